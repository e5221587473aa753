// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_PACKED_STRINGS_HPP
#define KINDEX_PERF_PACKED_STRINGS_HPP

/// \file
/// Strings in Views, which own their characters, too.

#include "HostSort.hpp"

#include <kindex/Types.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace kindex::perf {

/// Where packed strings begin, and where the last one ends.
template <class Strings>
auto offsets_of(const Strings& strings) {
  return Kokkos::View<const size_type*, typename Strings::memory_space,
                      Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
      reinterpret_cast<const size_type*>(strings.data() + strings.extent(0)),
      strings.extent(0) + 1);
}

/// The characters of packed strings. Fences `space`.
template <class Exec, class Strings>
auto chars_of(const Exec& space, const Strings& strings) {
  const auto offsets = offsets_of(strings);
  const Kokkos::View<size_type, Kokkos::HostSpace> size("kindex_bench::size");
  Kokkos::deep_copy(space, size, Kokkos::subview(offsets, strings.extent(0)));
  space.fence("kindex_bench: how many characters there are");
  return Kokkos::View<const unsigned char*, typename Strings::memory_space,
                      Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
      reinterpret_cast<const unsigned char*>(offsets.data() +
                                             offsets.extent(0)),
      size());
}

/// `n` strings in `Memory`, one behind the other. The allocation of the View
/// holds them, their offsets and their characters.
///
/// \param size how many characters string i has.
/// \param write `write(i, to)` writes them.
template <class Memory, class Size, class Write>
Kokkos::View<Bytes*, Memory> packed_strings(const std::string& what,
                                            std::uint64_t n, const Size& size,
                                            const Write& write) {
  const auto offsets = host_array<size_type>(what + "::offsets", n + 1);
  host_parallel_for(n, [&](std::uint64_t i) { offsets(i + 1) = size(i); });
  offsets(0) = 0;
  for (std::uint64_t i = 0; i < n; ++i) offsets(i + 1) += offsets(i);

  const std::uint64_t behind = (n + 1) * sizeof(size_type) + offsets(n);
  const std::uint64_t slots = n + (behind + sizeof(Bytes) - 1) / sizeof(Bytes);
  const auto block = host_array<Bytes>(what, slots);
  Kokkos::View<Bytes*, Memory> to;
  if constexpr (std::is_same_v<Memory, Kokkos::HostSpace>)
    to = block;
  else
    to = array_in<Bytes, Memory>(what, slots);

  auto* const own_offsets = reinterpret_cast<size_type*>(block.data() + n);
  auto* const own_chars = reinterpret_cast<unsigned char*>(own_offsets + n + 1);
  const auto* const chars =
      reinterpret_cast<const unsigned char*>(to.data() + n) +
      (n + 1) * sizeof(size_type);
  own_offsets[n] = offsets(n);
  host_parallel_for(n, [&](std::uint64_t i) {
    own_offsets[i] = offsets(i);
    block(i) = {chars + offsets(i),
                static_cast<std::uint32_t>(offsets(i + 1) - offsets(i)),
                Edge::at};
    write(i, own_chars + offsets(i));
  });
  if constexpr (!std::is_same_v<Memory, Kokkos::HostSpace>)
    Kokkos::deep_copy(to, block);
  return Kokkos::subview(to, std::pair<std::uint64_t, std::uint64_t>(0, n));
}

/// Copies of strings, in their order.
template <class Memory>
Kokkos::View<Bytes*, Memory> packed(const std::string& what,
                                    const HostArray<const Bytes>& from) {
  return packed_strings<Memory>(
      what, from.extent(0), [&](std::uint64_t i) { return from(i).size; },
      [&](std::uint64_t i, unsigned char* to) {
        std::copy_n(from(i).data, from(i).size, to);
      });
}

}  // namespace kindex::perf

#endif
