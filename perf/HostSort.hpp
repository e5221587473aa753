// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_HOST_SORT_HPP
#define KINDEX_PERF_HOST_SORT_HPP

/// \file
/// Arrays in host memory, and the stable parallel sort behind the host
/// reference; independent of the library's own sorts.

#include "HostParallel.hpp"
#include "KeyType.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
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

/// A key as the standard library compares it.
template <class Key>
const Key& comparable(const Key& key) {
  return key;
}
inline std::string_view comparable(const Bytes& string) {
  return {reinterpret_cast<const char*>(string.data), string.size};
}
template <class Key>
bool is_less(const Key& a, const Key& b) {
  return comparable(a) < comparable(b);
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

/// Sorts shares, one of each thread, and merges them two by two.
template <class Key>
void merge_sort(const HostArray<Entry<Key>>& entries) {
  const std::uint64_t n = entries.extent(0);
  const auto threads = static_cast<std::uint64_t>(host_threads());
  const std::uint64_t share = n / threads + 1;
  const auto at = [&](std::uint64_t i) {
    return entries.data() + std::min(i, n);
  };
  const auto is_before = [](const Entry<Key>& a, const Entry<Key>& b) {
    const auto order = comparable(a.key) <=> comparable(b.key);
    return order != 0 ? order < 0 : a.row < b.row;
  };
  host_parallel_for(threads, [&](std::uint64_t i) {
    std::sort(at(i * share), at((i + 1) * share), is_before);
  });
  for (std::uint64_t width = share; width < n; width *= 2)
    host_parallel_for(n / (2 * width) + 1, [&](std::uint64_t i) {
      std::inplace_merge(at(2 * i * width), at((2 * i + 1) * width),
                         at((2 * i + 2) * width), is_before);
    });
}

}  // namespace detail

/// `keys` in ascending order, each with its row; equal keys in row order.
template <class Key>
HostArray<Entry<Key>> sorted_entries(const HostArray<const Key>& keys) {
  const std::uint64_t n = keys.extent(0);
  auto entries = host_array<Entry<Key>>("sorted_entries", n);
  host_parallel_for(n, [&](std::uint64_t i) {
    entries(i) = {keys(i), static_cast<std::uint32_t>(i)};
  });
  if constexpr (is_string<Key>) {
    detail::merge_sort<Key>(entries);
  } else {
    auto other = host_array<Entry<Key>>("sorted_entries::other", n);
    for (int place = 0; place < static_cast<int>(sizeof(Key)); ++place)
      if (detail::radix_pass<Key>(entries, other, place))
        std::swap(entries, other);
  }
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
