// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_PINNED_HPP
#define KINDEX_QUERY_PINNED_HPP

/// \file
/// The top of an index in team scratch or among a kernel's arguments.

#include <kindex/Types.hpp>

#include <type_traits>

namespace kindex::query {

/// Nothing is pinned: all keys come from the index's memory.
struct NothingPinned {
  static constexpr bool is_pinned = false;

  /// Whether keys [first, first + count) of the search order are pinned.
  template <class Index>
  KOKKOS_FUNCTION constexpr bool holds(Index /*first*/, int /*count*/) const {
    return false;
  }
  /// Where key 0 of the search order would be.
  template <class Key>
  KOKKOS_FUNCTION const Key* keys(const Key* in_memory) const {
    return in_memory;
  }
};

/// The first `size` keys of an index's search order.
template <class Key>
struct PinnedKeys {
  static constexpr bool is_pinned = true;
  const Key* first = nullptr;  ///< for lookups in team scratch, aligned to 16
                               ///< bytes
  size_type size = 0;          ///< how many

  /// Whether keys [begin, begin + count) of the search order are pinned.
  template <class Index>
  KOKKOS_FUNCTION bool holds(Index begin, int count) const {
    return size_type(begin) + size_type(count) <= size;
  }
  /// Where key 0 of the search order is.
  KOKKOS_FUNCTION const Key* keys(const Key* /*in_memory*/) const {
    return first;
  }
};

/// The same as a member of the kernel.
template <class Key>
struct BroadcastKeys {
  static constexpr bool is_pinned = true;
  /// As many as leave room for the kernel in 4096 bytes of arguments.
  static constexpr size_type capacity = 3072 / sizeof(Key);
  Key first[capacity] = {};
  size_type size = 0;  ///< how many

  /// Whether keys [begin, begin + count) of the search order are here.
  template <class Index>
  KOKKOS_FUNCTION bool holds(Index begin, int count) const {
    return size_type(begin) + size_type(count) <= size;
  }
  /// Where key 0 of the search order is.
  KOKKOS_FUNCTION const Key* keys(const Key* /*in_memory*/) const {
    return first;
  }
};

/// How many keys are pinned of a tree whose level l has `K^l` nodes of `K − 1`
/// keys: `steps` levels (−1: all), up to `most` keys, in whole nodes.
template <int K>
KOKKOS_FUNCTION size_type pinned_nodes(int steps, size_type keys,
                                       size_type most) {
  size_type levels = 1;
  for (int step = 0; step != steps && levels <= keys; ++step) levels *= K;
  size_type pinned = levels - 1 < keys ? levels - 1 : keys;
  if (pinned > most) pinned = most;
  return pinned / (K - 1) * (K - 1);
}

/// Copies the pinned keys of `ref` to `scratch`, with all threads of the team.
/// Ends with a barrier.
template <class Member, class Ref, class Key>
KOKKOS_FUNCTION void pin(const Member& team, const Ref& ref, Key* scratch,
                         size_type size) {
  for (size_type i = team.team_rank(); i < size; i += team.team_size())
    scratch[i] = ref.pinned_key(i);
  team.team_barrier();
}

}  // namespace kindex::query

#endif
