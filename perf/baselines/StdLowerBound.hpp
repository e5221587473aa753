// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_STD_LOWER_BOUND_HPP
#define KINDEX_PERF_BASELINES_STD_LOWER_BOUND_HPP

#include "../HostSort.hpp"
#include "../PackedStrings.hpp"
#include "HostRanges.hpp"

#include <kindex/Types.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kindex::perf {

/// What a careful user writes without a library: a sorted array, and
/// std::lower_bound in an OpenMP loop. Of strings, an array of
/// std::string_view.
template <class Key, class Value>
class StdLowerBound {
  using Keys = Kokkos::View<const Key*, Kokkos::HostSpace>;
  using Values = Kokkos::View<const Value*, Kokkos::HostSpace>;
  using Stored = std::conditional_t<is_string<Key>, std::string_view, Key>;

 public:
  using hits_type = HostRanges<Value>;

  /// The position is the answer.
  template <class Exec>
  StdLowerBound(const Exec&, SortedTag, const Keys& keys)
      : keys_(host_array<Stored>("std_lower_bound::keys", keys.extent(0))) {
    keep(keys);
    host_parallel_for(size(),
                      [&](std::uint64_t i) { keys_(i) = comparable(keys(i)); });
  }

  template <class Exec>
  StdLowerBound(const Exec&, const Keys& keys, const Values& values)
      : keys_(host_array<Stored>("std_lower_bound::keys", keys.extent(0))),
        values_(host_array<Value>("std_lower_bound::values", keys.extent(0))) {
    keep(keys);
    const auto entries = sorted_entries<Key>(keys);
    host_parallel_for(size(), [&](std::uint64_t i) {
      keys_(i) = comparable(entries(i).key);
      values_(i) = values(entries(i).row);
    });
  }

  template <class Exec, class Out>
  void find(const Exec&, const Keys& queries, const Out& out) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      const std::uint64_t rank = lower(queries(i));
      const bool hit = rank < size() && !(comparable(queries(i)) < keys_(rank));
      out(i) = hit ? value(rank) : default_missing<Value>();
    });
  }

  template <class Exec, class Ranks>
  void lower_bound(const Exec&, const Keys& queries, const Ranks& ranks) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      ranks(i) = static_cast<typename Ranks::value_type>(lower(queries(i)));
    });
  }

  template <class Exec, class Counts>
  void count(const Exec&, const Keys& queries, const Counts& counts) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      counts(i) = static_cast<typename Counts::value_type>(upper(queries(i)) -
                                                           lower(queries(i)));
    });
  }

  template <class Exec>
  void range(const Exec&, const Keys& lo, const Keys& hi,
             hits_type& hits) const {
    auto first =
        host_array<std::uint64_t>("std_lower_bound::first", lo.extent(0));
    host_ranges(
        hits, lo.extent(0),
        [&](std::uint64_t i) {
          first(i) = lower(lo(i));
          return std::max(upper(hi(i)), first(i)) - first(i);
        },
        [&](std::uint64_t i, std::uint64_t size, Value* out) {
          for (std::uint64_t j = 0; j < size; ++j) out[j] = value(first(i) + j);
        });
  }

  std::uint64_t memory_bytes() const {
    std::uint64_t chars = 0;
    if constexpr (is_string<Key>) chars = offsets_of(given_)(size());
    return size() * sizeof(Stored) + chars + values_.extent(0) * sizeof(Value);
  }

 private:
  void keep(const Keys& keys) {
    if constexpr (is_string<Key>) given_ = keys;
  }
  std::uint64_t size() const { return keys_.extent(0); }
  std::uint64_t lower(const Key& key) const {
    const Stored* begin = keys_.data();
    return static_cast<std::uint64_t>(
        std::lower_bound(begin, begin + size(), comparable(key)) - begin);
  }
  std::uint64_t upper(const Key& key) const {
    const Stored* begin = keys_.data();
    return static_cast<std::uint64_t>(
        std::upper_bound(begin, begin + size(), comparable(key)) - begin);
  }
  Value value(std::uint64_t rank) const {
    return values_.extent(0) > 0 ? values_(rank) : static_cast<Value>(rank);
  }

  Keys given_;  ///< of strings: whose characters are read
  HostArray<Stored> keys_;
  HostArray<Value> values_;
};

}  // namespace kindex::perf

#endif
