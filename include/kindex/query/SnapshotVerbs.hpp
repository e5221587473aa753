// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_SNAPSHOTVERBS_HPP
#define KINDEX_QUERY_SNAPSHOTVERBS_HPP

/// \file
/// The verbs of an index that changes while it is read.

#include <kindex/query/LookupPolicy.hpp>

#include <type_traits>
#include <utility>

namespace kindex::query {

/// The bulk verbs of an index that changes: each call is one of the snapshot of
/// the index at its begin, which has them from BulkQueries, where they are
/// documented. So a call sees all of a group of operations or nothing, and may
/// be made while others change the index.
///
/// \tparam Index the index (curiously recurring): `snapshot()`, and
///   `snapshot_for_points()`, which may be one that knows no ranks.
template <class Index>
class SnapshotVerbs {
 public:
  /// As BulkQueries::find.
  template <class... Arguments>
  void find(Arguments&&... arguments) const {
    for_points(arguments...).find(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::contains.
  template <class... Arguments>
  void contains(Arguments&&... arguments) const {
    for_points(arguments...).contains(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::lower_bound.
  template <class... Arguments>
  void lower_bound(Arguments&&... arguments) const {
    now().lower_bound(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::upper_bound.
  template <class... Arguments>
  void upper_bound(Arguments&&... arguments) const {
    now().upper_bound(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::equal_range.
  template <class... Arguments>
  void equal_range(Arguments&&... arguments) const {
    now().equal_range(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::count.
  template <class... Arguments>
  void count(Arguments&&... arguments) const {
    now().count(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::range_count.
  template <class... Arguments>
  void range_count(Arguments&&... arguments) const {
    now().range_count(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::range.
  template <class... Arguments>
  auto range(Arguments&&... arguments) const {
    return now().range(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::prefix_range.
  template <class... Arguments>
  auto prefix_range(Arguments&&... arguments) const {
    return now().prefix_range(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::reverse_range.
  template <class... Arguments>
  auto reverse_range(Arguments&&... arguments) const {
    return now().reverse_range(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::longest_prefix_match.
  template <class... Arguments>
  void longest_prefix_match(Arguments&&... arguments) const {
    now().longest_prefix_match(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::parent_chain.
  template <class... Arguments>
  void parent_chain(Arguments&&... arguments) const {
    for_points(arguments...)
        .parent_chain(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::for_each_in_range.
  template <class... Arguments>
  void for_each_in_range(Arguments&&... arguments) const {
    now().for_each_in_range(std::forward<Arguments>(arguments)...);
  }
  /// As BulkQueries::workspace_bytes.
  template <class... Arguments>
  size_type workspace_bytes(Arguments&&... arguments) const {
    return now().workspace_bytes(std::forward<Arguments>(arguments)...);
  }
  /// Whether there are no entries.
  bool empty() const { return index().size() == 0; }

 private:
  const Index& index() const { return static_cast<const Index&>(*this); }
  auto now() const { return index().snapshot(); }

  template <class... Arguments>
  auto for_points(const Arguments&... arguments) const {
    return (takes_keys_by_rank(arguments) || ...)
               ? index().snapshot()
               : index().snapshot_for_points();
  }

  /// Whether an argument is a policy under which keys are asked for by rank.
  template <class Argument>
  static bool takes_keys_by_rank(const Argument& argument) {
    if constexpr (std::is_base_of_v<LookupSettings, Argument>) {
      return argument.reordering() == Reordering::partitioned;
    } else {
      return false;
    }
  }
};

}  // namespace kindex::query

#endif
