// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_HOST_RANGES_HPP
#define KINDEX_PERF_BASELINES_HOST_RANGES_HPP

#include "../HostSort.hpp"

#include <kindex/Types.hpp>

#include <cstdint>

namespace kindex::perf {

/// Hits of a batch of ranges, as the library returns them.
template <class Value>
struct HostRanges {
  HostArray<size_type> offsets;
  HostArray<Value> values;
};

/// Counts, sums up and fills: `count(i)` is the number of hits of range `i`,
/// `fill(i, hits, out)` writes them.
template <class Value, class Count, class Fill>
HostRanges<Value> host_ranges(std::uint64_t queries, const Count& count,
                              const Fill& fill) {
  HostRanges<Value> hits;
  hits.offsets = host_array<size_type>("hits::offsets", queries + 1);
  host_parallel_for(queries,
                    [&](std::uint64_t i) { hits.offsets(i) = count(i); });
  size_type total = 0;
  for (std::uint64_t i = 0; i < queries; ++i)
    total += std::exchange(hits.offsets(i), total);
  hits.offsets(queries) = total;
  hits.values = host_array<Value>("hits::values", total);
  host_parallel_for(queries, [&](std::uint64_t i) {
    const size_type begin = hits.offsets(i);
    fill(i, hits.offsets(i + 1) - begin, hits.values.data() + begin);
  });
  return hits;
}

}  // namespace kindex::perf

#endif
