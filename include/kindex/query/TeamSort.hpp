// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_TEAMSORT_HPP
#define KINDEX_QUERY_TEAMSORT_HPP

/// \file
/// The sort of a tile of lookups by the threads of a team.

#include <kindex/query/Node.hpp>

#include <algorithm>
#include <cstdint>

#ifdef KOKKOS_ENABLE_CUDA
#include <kindex/cuda/TeamSort.hpp>
#endif

namespace kindex::query {

/// Sorts the numbers 0...size−1 of up to `Threads · PerThread` lookups by their
/// keys (by their upper half for Key128: any order does). This form is a
/// host's, whose teams are one thread.
template <class Exec, class Key, int Threads, int PerThread>
struct TeamSort {
  using Bits = CodeBits<Key>;

  /// The most lookups.
  static constexpr int capacity = Threads * PerThread;
  static_assert(capacity <= 65536, "kindex: slots of a tile have 16 bits");

  struct Pair {
    Bits bits;
    std::uint16_t slot;
    friend bool operator<(const Pair& a, const Pair& b) {
      return a.bits != b.bits ? a.bits < b.bits : a.slot < b.slot;
    }
  };

  /// Team scratch that it works in.
  struct Storage {
    alignas(16) std::byte pairs[capacity * sizeof(Pair)];
  };

  /// Writes the sorted numbers to `order`. Ends with a barrier.
  ///
  /// \param key_of `key_of(i)`: the key of lookup i.
  template <class Member, class KeyOf>
  KOKKOS_FUNCTION static void sort(const Member& team, Storage& storage,
                                   int size, const KeyOf& key_of,
                                   std::uint16_t* order) {
    KOKKOS_IF_ON_HOST(
        (Pair* const pairs = reinterpret_cast<Pair*>(storage.pairs);
         for (int i = 0; i < size; ++i)::new (&pairs[i])
             Pair{code_bits(key_of(i)), static_cast<std::uint16_t>(i)};
         std::sort(pairs, pairs + size);
         for (int i = 0; i < size; ++i) order[i] = pairs[i].slot;))
    team.team_barrier();
  }
};

#ifdef KOKKOS_ENABLE_CUDA
template <class Key, int Threads, int PerThread>
struct TeamSort<Kokkos::Cuda, Key, Threads, PerThread>
    : cuda::TeamSort<Key, Threads, PerThread> {};
#endif

}  // namespace kindex::query

#endif
