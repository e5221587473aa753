// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_SECTOR_BATCH_HPP
#define KINDEX_PERF_SECTOR_BATCH_HPP

#include <kindex/Key.hpp>

#include <cstdint>
#include <type_traits>

namespace kindex::perf {

/// What one load instruction of a GPU reads at most.
struct alignas(16) HalfSector {
  std::uint32_t words[4];
  KOKKOS_FUNCTION std::uint32_t sum() const {
    return words[0] + words[1] + words[2] + words[3];
  }
};

/// A batch of gathers of one sector each.
template <class Query, class Result>
struct SectorBatch {
  const Query* queries;
  const HalfSector* sectors;  ///< two per sector
  Result* results;
  std::uint64_t sector_count;  ///< below 2^32

  /// The random sector that query `i` asks for. The position takes part: few
  /// values fit in a narrow query.
  KOKKOS_FUNCTION std::uint64_t sector_of(std::uint64_t i) const {
    std::uint64_t x;
    if constexpr (std::is_same_v<Query, Key128>)
      x = queries[i].hi ^ queries[i].lo;
    else
      x = queries[i];
    x = (x ^ i) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 32)) * 0x94d049bb133111ebu;
    return ((x >> 32) * sector_count) >> 32;
  }
};

}  // namespace kindex::perf

#endif
