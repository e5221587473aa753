// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Short forms for tests that state their answers literally.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_QUERIES_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_QUERIES_HPP

#include <kindex/Types.hpp>
#include <vector>

#include "support/Devices.hpp"

namespace kindex_test {

using kindex::size_type;
using Ranks = std::vector<size_type>;

template <class Exec, class Index, class Query>
Ranks lower_bounds(const Index& index, const std::vector<Query>& queries) {
  auto ranks = filled<size_type, Exec>(queries.size());
  index.lower_bound(Exec{}, to_device<Exec>(queries), ranks);
  return to_host(ranks);
}

template <class Exec, class Index, class Query>
Ranks upper_bounds(const Index& index, const std::vector<Query>& queries) {
  auto ranks = filled<size_type, Exec>(queries.size());
  index.upper_bound(Exec{}, to_device<Exec>(queries), ranks);
  return to_host(ranks);
}

template <class Exec, class Index, class Query>
auto finds(const Index& index, const std::vector<Query>& queries) {
  auto values = filled<typename Index::value_type, Exec>(queries.size());
  index.find(Exec{}, to_device<Exec>(queries), values);
  return to_host(values);
}

template <class Exec, class Index, class Query>
Ranks range_counts(const Index& index, const std::vector<Query>& lo,
                   const std::vector<Query>& hi) {
  auto counts = filled<size_type, Exec>(lo.size());
  index.range_count(Exec{}, to_device<Exec>(lo), to_device<Exec>(hi), counts);
  return to_host(counts);
}

/// Values of the hits of one range.
template <class Exec, class Index, class Query>
auto range_values(const Index& index, Query lo, Query hi) {
  return to_host(index
                     .range(Exec{}, to_device<Exec>(std::vector<Query>{lo}),
                            to_device<Exec>(std::vector<Query>{hi}))
                     .values);
}

}  // namespace kindex_test

#endif
