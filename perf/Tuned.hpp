// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_TUNED_HPP
#define KINDEX_PERF_TUNED_HPP

/// \file
/// An index under a lookup policy and build options of one's own.

#include "AnyIndex.hpp"
#include "Options.hpp"

#include <kindex/PivotTree.hpp>
#include <kindex/query/LookupPolicy.hpp>

#include <type_traits>

namespace kindex::perf {

/// How an index is built and asked.
template <class Policy, class BuildOptions = PivotTreeOptions>
struct Tuning {
  Policy policy = {};
  BuildOptions build = {};  ///< for indexes that take them
};

/// `Index` under a tuning, in temporary memory that it keeps: the first batch
/// allocates it. Settings that a policy holds at run time share one type, so
/// that they are compiled once.
///
/// \tparam ops what is measured, among find, lower_bound, range and
/// for_each_in_range.
template <class Index, class Policy, Op... ops>
class Tuned {
  static constexpr bool offers(Op op) { return ((op == ops) || ...); }

 public:
  using hits_type = typename Index::hits_type;

  template <class Exec, class BuildOptions, class... Arguments>
  Tuned(const Exec& space, const Tuning<Policy, BuildOptions>& tuning,
        const Arguments&... arguments)
      : index_(build(tuning.build, space, arguments...)),
        policy_(tuning.policy) {}

  template <class Exec, class Queries, class Out>
  requires(offers(Op::find)) void find(const Exec& space,
                                       const Queries& queries,
                                       const Out& out) const {
    index_.find(space, queries, out, policy(space, queries.extent(0)));
  }

  template <class Exec, class Queries, class Ranks>
  requires(offers(Op::lower_bound)) void lower_bound(const Exec& space,
                                                     const Queries& queries,
                                                     const Ranks& ranks) const {
    index_.lower_bound(space, queries, ranks, policy(space, queries.extent(0)));
  }

  template <class Exec, class Queries>
  requires(offers(Op::range)) void range(
      const Exec& space, const Queries& lo, const Queries& hi,
      typename Index::hits_type& hits) const {
    index_.range(space, lo, hi, hits, policy(space, lo.extent(0)));
  }

  template <class Exec, class Queries, class Counts>
  requires(offers(Op::for_each_in_range)) void count_marked(
      const Exec& space, const Queries& lo, const Queries& hi,
      const Counts& counts) const {
    index_.for_each_in_range(
        space, lo, hi,
        CountMarked<typename Index::key_type, typename Index::value_type,
                    Counts>{counts},
        policy(space, lo.extent(0)));
  }

  std::uint64_t memory_bytes() const { return index_.memory_bytes(); }

 private:
  using Workspace = Kokkos::View<std::byte*, typename Index::memory_space>;

  template <class BuildOptions, class Exec, class Keys>
  static Index build(const BuildOptions& options, const Exec& space, SortedTag,
                     const Keys& keys) {
    if constexpr (std::is_constructible_v<Index, Exec, SortedTag, Keys, Check,
                                          BuildOptions>)
      return Index(space, sorted, keys, Check::on, options);
    else
      return Index(space, sorted, keys);
  }

  template <class BuildOptions, class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys>
  static Index build(const BuildOptions& options, const Exec& space,
                     const Keys& keys, const Values& values) {
    if constexpr (std::is_constructible_v<Index, Exec, Keys, Values,
                                          BuildOptions>)
      return Index(space, keys, values, options);
    else
      return Index(space, keys, values);
  }

  template <class BuildOptions, class Exec, class Keys, class Values>
  static Index build(const BuildOptions& options, const Exec& space, SortedTag,
                     const Keys& keys, const Values& values) {
    if constexpr (std::is_constructible_v<Index, Exec, SortedTag, Keys, Values,
                                          Check, BuildOptions>)
      return Index(space, sorted, keys, values, Check::on, options);
    else
      return Index(space, sorted, keys, values);
  }

  template <class Exec>
  Policy policy(const Exec& space, size_type queries) const {
    Policy policy = policy_;
    if (policy.reordering() != Reordering::partitioned) return policy;
    const size_type bytes = index_.workspace_bytes(queries, policy);
    if (workspace_.extent(0) < bytes)
      workspace_ =
          Workspace(Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                       "kindex::bench::workspace"),
                    bytes);
    return policy.set_workspace(workspace_);
  }

  Index index_;
  Policy policy_;
  mutable Workspace workspace_;
};

}  // namespace kindex::perf

#endif
