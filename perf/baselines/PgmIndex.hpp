// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_PGM_INDEX_HPP
#define KINDEX_PERF_BASELINES_PGM_INDEX_HPP

#include "../HostSort.hpp"

#include <kindex/Error.hpp>
#include <kindex/Types.hpp>

#include <pgm/pgm_index.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kindex::perf {

/// The library of the PGM-index (Ferragina and Vinciguerra, 2020), its search
/// in an OpenMP loop, with as much error as LearnedIndex has by default. It
/// reserves the type's largest key.
template <class Key, class Value>
class PgmIndex {
  using Keys = Kokkos::View<const Key*, Kokkos::HostSpace>;
  using Values = Kokkos::View<const Value*, Kokkos::HostSpace>;
  using Model = pgm::PGMIndex<Key, 16, 4, double>;

 public:
  /// The position is the answer.
  template <class Exec>
  PgmIndex(const Exec&, SortedTag, const Keys& keys)
      : keys_(host_array<Key>("pgm_index::keys", keys.extent(0))) {
    host_parallel_for(size(), [&](std::uint64_t i) { keys_(i) = keys(i); });
    fit();
  }

  template <class Exec>
  PgmIndex(const Exec&, const Keys& keys, const Values& values)
      : keys_(host_array<Key>("pgm_index::keys", keys.extent(0))),
        values_(host_array<Value>("pgm_index::values", keys.extent(0))) {
    const auto entries = sorted_entries<Key>(keys);
    host_parallel_for(size(), [&](std::uint64_t i) {
      keys_(i) = entries(i).key;
      values_(i) = values(entries(i).row);
    });
    fit();
  }

  template <class Exec, class Out>
  void find(const Exec&, const Keys& queries, const Out& out) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      const std::uint64_t rank = lower(queries(i));
      const bool hit = rank < size() && !(queries(i) < keys_(rank));
      out(i) = !hit                    ? default_missing<Value>()
               : values_.extent(0) > 0 ? values_(rank)
                                       : static_cast<Value>(rank);
    });
  }

  template <class Exec, class Ranks>
  void lower_bound(const Exec&, const Keys& queries, const Ranks& ranks) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      ranks(i) = static_cast<typename Ranks::value_type>(lower(queries(i)));
    });
  }

  std::uint64_t memory_bytes() const {
    return size() * sizeof(Key) + values_.extent(0) * sizeof(Value) +
           model_.size_in_bytes();
  }

 private:
  std::uint64_t size() const { return keys_.extent(0); }

  void fit() {
    const Key* begin = keys_.data();
    if (size() > 0 && keys_(size() - 1) == std::numeric_limits<Key>::max())
      throw Error("pgm_index: the largest key of the type is reserved");
    model_ = Model(begin, begin + size());
  }

  std::uint64_t lower(const Key& key) const {
    const Key* begin = keys_.data();
    const auto near = model_.search(key);
    return static_cast<std::uint64_t>(
        std::lower_bound(begin + near.lo, begin + near.hi, key) - begin);
  }

  HostArray<Key> keys_;
  HostArray<Value> values_;
  Model model_;
};

}  // namespace kindex::perf

#endif
