// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_PARTITIONED_HPP
#define KINDEX_PERF_PARTITIONED_HPP

/// \file
/// An index whose batches are partitioned by key.

#include <kindex/query/LookupPolicy.hpp>

#include <utility>

namespace kindex::perf {

/// `Index` under Reordering::partitioned, in temporary memory that it keeps:
/// the first batch allocates it.
template <class Index>
class Partitioned {
 public:
  template <class Exec, class... Arguments>
  explicit Partitioned(const Exec& space, const Arguments&... arguments)
      : index_(space, arguments...) {}

  template <class Exec, class Queries, class Out>
  void find(const Exec& space, const Queries& queries, const Out& out) const {
    index_.find(space, queries, out, policy(space, queries.extent(0)));
  }

  template <class Exec, class Queries, class Ranks>
  void lower_bound(const Exec& space, const Queries& queries,
                   const Ranks& ranks) const {
    index_.lower_bound(space, queries, ranks, policy(space, queries.extent(0)));
  }

  std::uint64_t memory_bytes() const { return index_.memory_bytes(); }

 private:
  using Workspace = Kokkos::View<std::byte*, typename Index::memory_space>;

  template <class Exec>
  LookupPolicy policy(const Exec& space, size_type queries) const {
    LookupPolicy policy;
    policy.set_reordering(Reordering::partitioned);
    const size_type bytes = index_.workspace_bytes(queries, policy);
    if (workspace_.extent(0) < bytes)
      workspace_ =
          Workspace(Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                       "kindex::bench::workspace"),
                    bytes);
    return policy.set_workspace(workspace_);
  }

  Index index_;
  mutable Workspace workspace_;
};

}  // namespace kindex::perf

#endif
