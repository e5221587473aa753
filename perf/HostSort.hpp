// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_HOST_SORT_HPP
#define KINDEX_PERF_HOST_SORT_HPP

/// \file
/// Arrays in host memory, and the stable parallel sort behind the host
/// reference; independent of the library's own sorts.

#include "HostParallel.hpp"

#include <kindex/Key.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kindex::perf {

template <class T>
using HostArray = Kokkos::View<T*, Kokkos::HostSpace>;

/// `n` elements of no particular value; first touched by whoever fills them.
template <class T, class MemorySpace>
Kokkos::View<T*, MemorySpace> array_in(const std::string& what,
                                       std::uint64_t n) {
  return Kokkos::View<T*, MemorySpace>(
      Kokkos::view_alloc("kindex_bench::" + what, Kokkos::WithoutInitializing),
      n);
}

template <class T>
HostArray<T> host_array(const std::string& what, std::uint64_t n) {
  return array_in<T, Kokkos::HostSpace>(what, n);
}

/// A key and the position from which it came.
template <class Key>
struct Entry {
  Key key;
  std::uint32_t row;
};

/// The 8 bits of a key's order that weigh 256^`place`.
template <class Key>
std::size_t digit(const Key& key, int place) {
  const auto bits = KeyTraits<Key>::to_bits(key);
  if constexpr (std::is_same_v<Key, Key128>)
    return ((place < 8 ? bits.lo : bits.hi) >> (8 * (place % 8))) & 255;
  else
    return static_cast<std::size_t>((bits >> (8 * place)) & 255);
}

namespace detail {

/// One pass of a least-significant-digit radix sort. Returns false, having
/// moved nothing, if all keys agree in the digit.
template <class Key>
bool radix_pass(const HostArray<Entry<Key>>& from,
                const HostArray<Entry<Key>>& to, int place) {
  const std::uint64_t n = from.extent(0);
  const auto shares = static_cast<std::uint64_t>(host_threads());
  const auto begin = [&](std::uint64_t share) { return n / shares * share; };
  const auto end = [&](std::uint64_t share) {
    return share + 1 == shares ? n : begin(share + 1);
  };

  std::vector<std::array<std::uint64_t, 256>> next(shares);
  host_parallel_for(shares, [&](std::uint64_t share) {
    std::array<std::uint64_t, 256> count{};
    for (std::uint64_t i = begin(share); i < end(share); ++i)
      ++count[digit(from(i).key, place)];
    next[share] = count;
  });

  std::uint64_t sum = 0;
  for (std::size_t d = 0; d < 256; ++d) {
    const std::uint64_t before = sum;
    for (auto& count : next) sum += std::exchange(count[d], sum);
    if (sum - before == n) return false;
  }

  host_parallel_for(shares, [&](std::uint64_t share) {
    std::array<std::uint64_t, 256> slot = next[share];
    for (std::uint64_t i = begin(share); i < end(share); ++i)
      to(slot[digit(from(i).key, place)]++) = from(i);
  });
  return true;
}

}  // namespace detail

/// `keys` in ascending order, each with its row; equal keys in row order.
template <class Key>
HostArray<Entry<Key>> sorted_entries(const HostArray<const Key>& keys) {
  const std::uint64_t n = keys.extent(0);
  auto entries = host_array<Entry<Key>>("sorted_entries", n);
  auto other = host_array<Entry<Key>>("sorted_entries::other", n);
  host_parallel_for(n, [&](std::uint64_t i) {
    entries(i) = {keys(i), static_cast<std::uint32_t>(i)};
  });
  for (int place = 0; place < static_cast<int>(sizeof(Key)); ++place)
    if (detail::radix_pass<Key>(entries, other, place))
      std::swap(entries, other);
  return entries;
}

/// Calls `append(key, value)` for entries in ascending order, of equal keys the
/// first one first.
template <class Key, class Values, class Append>
void for_each_sorted(const HostArray<const Key>& keys, const Values& values,
                     const Append& append) {
  const auto entries = sorted_entries<Key>(keys);
  for (std::uint64_t i = 0; i < keys.extent(0); ++i)
    append(entries(i).key, values(entries(i).row));
}

}  // namespace kindex::perf

#endif
