// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_LOOKUPPOLICY_HPP
#define KINDEX_QUERY_LOOKUPPOLICY_HPP

/// \file
/// How a batch of lookups is run; never what it returns.

#include <kindex/Error.hpp>
#include <kindex/Types.hpp>

#include <cstddef>

namespace kindex {

/// How the lookups of a batch are handed to teams.
enum class Scheduling {
  automatic,  ///< chosen by device and batch
  dynamic,    ///< one team per tile of lookups, started as others end
  fixed       ///< as many teams as the device runs at once; each strides on
};

/// In which order the lookups of a batch are made. Results are always in the
/// caller's order.
enum class Reordering {
  automatic,   ///< partitioned where that wins and memory for it is given
  none,        ///< as they come
  partitioned  ///< the whole batch by key, 256 ways
};

/// How a batch of queries is run. A policy changes how fast a call is, never
/// what it returns; the default chooses by device and batch size. The setters
/// return the policy, so that they chain:
/// \code
/// index.find(space, queries, out,
///            kindex::LookupPolicy().set_scheduling(kindex::Scheduling::fixed)
///                .set_team_size(512));
/// \endcode
class LookupPolicy {
 public:
  /// Sets how lookups are handed to teams.
  LookupPolicy& set_scheduling(Scheduling scheduling) {
    scheduling_ = scheduling;
    return *this;
  }

  /// Sets the threads of a team, 1 to 1024; 0 (the default) chooses. Rounded
  /// down to what the device admits for the kernel: whole warps on a GPU, 1 on
  /// most hosts.
  ///
  /// \throws Error if outside that range.
  LookupPolicy& set_team_size(int threads) {
    if (threads < 0 || threads > 1024)
      impl::fail("kindex::LookupPolicy::set_team_size", "threads is ", threads,
                 ", not in 0...1024");
    team_size_ = threads;
    return *this;
  }

  /// Sets how many lookups a thread does before its team is done with a tile,
  /// 1 to 65536; 0 (the default) chooses.
  ///
  /// \throws Error if outside that range.
  LookupPolicy& set_lookups_per_thread(int lookups) {
    if (lookups < 0 || lookups > 65536)
      impl::fail("kindex::LookupPolicy::set_lookups_per_thread", "lookups is ",
                 lookups, ", not in 0...65536");
    lookups_per_thread_ = lookups;
    return *this;
  }

  /// Sets the order of the lookups.
  ///
  /// Partitioned (`find`, `contains`, `lower_bound`, `upper_bound`): keys at
  /// equal distances of rank split the batch 256 ways; each partition is looked
  /// up on its own, so that the part of the index that it reads stays in a
  /// GPU's L2 cache; then results are brought back to the caller's order. Five
  /// more kernels and a scan, some 24 bytes moved per query of 4 bytes. It pays
  /// for indexes several times that cache and batches of n/4 queries or more.
  /// It needs temporary memory, `workspace_bytes(m, policy)`: without a
  /// workspace, the call allocates and frees it, for which Kokkos fences.
  /// `automatic` partitions only where the policy has a workspace.
  LookupPolicy& set_reordering(Reordering reordering) {
    reordering_ = reordering;
    return *this;
  }

  /// Gives the call temporary memory, so that it allocates none for itself
  /// beside its results. `workspace` must be contiguous, live in memory that
  /// the call's execution space can access, start at a multiple of 16 bytes,
  /// hold at least `workspace_bytes(m)` bytes of the index asked, and stay
  /// untouched until the call has completed. It is not kept alive.
  template <class View>
  LookupPolicy& set_workspace(const View& workspace) {
    static_assert(View::rank() == 1 &&
                      std::is_same_v<typename View::value_type, std::byte>,
                  "kindex: a workspace is a View<std::byte*>");
    if (!workspace.span_is_contiguous())
      impl::fail("kindex::LookupPolicy::set_workspace",
                 "workspace is not contiguous");
    if (reinterpret_cast<std::uintptr_t>(workspace.data()) % 16 != 0)
      impl::fail("kindex::LookupPolicy::set_workspace",
                 "workspace does not start at a multiple of 16 bytes");
    workspace_ = workspace.data();
    workspace_bytes_ = workspace.extent(0);
    return *this;
  }

  /// How lookups are handed to teams.
  Scheduling scheduling() const { return scheduling_; }
  /// The order of the lookups.
  Reordering reordering() const { return reordering_; }
  /// Threads of a team; 0: chosen.
  int team_size() const { return team_size_; }
  /// Lookups of a thread per tile; 0: chosen.
  int lookups_per_thread() const { return lookups_per_thread_; }
  /// Start of the caller's temporary memory, or null.
  std::byte* workspace() const { return workspace_; }
  /// Bytes of the caller's temporary memory.
  size_type workspace_bytes() const { return workspace_bytes_; }

 private:
  Reordering reordering_ = Reordering::automatic;
  Scheduling scheduling_ = Scheduling::automatic;
  int team_size_ = 0;
  int lookups_per_thread_ = 0;
  std::byte* workspace_ = nullptr;
  size_type workspace_bytes_ = 0;
};

}  // namespace kindex

#endif
