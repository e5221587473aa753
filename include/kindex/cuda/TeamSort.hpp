// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_CUDA_TEAMSORT_HPP
#define KINDEX_CUDA_TEAMSORT_HPP

/// \file
/// The sort of a tile of lookups by the threads of a block.

#include <Kokkos_Macros.hpp>

#ifdef KOKKOS_ENABLE_CUDA

#include <kindex/query/Node.hpp>

#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

namespace kindex::cuda {

/// query::TeamSort on a CUDA device: keys stay in registers
/// (`cub::BlockRadixSort`). The team must have exactly `Threads` threads.
template <class Key, int Threads, int PerThread>
struct TeamSort {
  using Bits = query::CodeBits<Key>;
  // A team of Kokkos lies along the second dimension of its block.
  using Sort = cub::BlockRadixSort<Bits, 1, PerThread, std::uint16_t, 4, true,
                                   cub::BLOCK_SCAN_WARP_SCANS,
                                   cudaSharedMemBankSizeFourByte, Threads, 1>;

  /// The most lookups.
  static constexpr int capacity = Threads * PerThread;
  static_assert(capacity <= 65536, "kindex: slots of a tile have 16 bits");

  /// Team scratch that it works in.
  using Storage = typename Sort::TempStorage;

  /// Writes the sorted numbers to `order`. Ends with a barrier.
  template <class Member, class KeyOf>
  KOKKOS_FUNCTION static void sort([[maybe_unused]] const Member& team,
                                   [[maybe_unused]] Storage& storage,
                                   [[maybe_unused]] int size,
                                   [[maybe_unused]] const KeyOf& key_of,
                                   [[maybe_unused]] std::uint16_t* order) {
    KOKKOS_IF_ON_DEVICE((Bits bits[PerThread]; std::uint16_t slots[PerThread];
                         const int first = team.team_rank() * PerThread;
                         for (int i = 0; i < PerThread; ++i) {
                           // Spare places sort behind all others, being last
                           // already.
                           bits[i] = first + i < size
                                         ? query::code_bits(key_of(first + i))
                                         : static_cast<Bits>(~Bits{0});
                           slots[i] = static_cast<std::uint16_t>(first + i);
                         } Sort(storage)
                             .SortBlockedToStriped(bits, slots);
                         for (int i = 0; i < PerThread; ++i)
                             order[i * Threads + team.team_rank()] = slots[i];))
    team.team_barrier();
  }
};

}  // namespace kindex::cuda

#endif
#endif
