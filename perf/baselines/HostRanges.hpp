// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_HOST_RANGES_HPP
#define KINDEX_PERF_BASELINES_HOST_RANGES_HPP

#include "../HostSort.hpp"

#include <kindex/Types.hpp>

#include <cstdint>

namespace kindex::perf {

/// Hits of a batch of ranges, as the library returns them, and with memory that
/// is used again.
template <class Value>
struct HostRanges {
  HostArray<size_type> offsets;
  HostArray<Value> values;
  HostArray<Value> memory;
};

/// Counts, sums up and fills: `count(i)` is the number of hits of range `i`,
/// `fill(i, hits, out)` writes them.
template <class Value, class Count, class Fill>
void host_ranges(HostRanges<Value>& hits, std::uint64_t queries,
                 const Count& count, const Fill& fill) {
  if (hits.offsets.extent(0) != queries + 1)
    hits.offsets = host_array<size_type>("hits::offsets", queries + 1);
  host_parallel_for(queries,
                    [&](std::uint64_t i) { hits.offsets(i) = count(i); });
  size_type total = 0;
  for (std::uint64_t i = 0; i < queries; ++i)
    total += std::exchange(hits.offsets(i), total);
  hits.offsets(queries) = total;
  if (hits.memory.extent(0) < total)
    hits.memory = host_array<Value>("hits::values", total);
  hits.values = Kokkos::subview(hits.memory,
                                Kokkos::pair<size_type, size_type>(0, total));
  host_parallel_for(queries, [&](std::uint64_t i) {
    const size_type begin = hits.offsets(i);
    fill(i, hits.offsets(i + 1) - begin, hits.values.data() + begin);
  });
}

}  // namespace kindex::perf

#endif
