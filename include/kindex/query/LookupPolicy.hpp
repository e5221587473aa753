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
  /// down to what the device admits for the kernel (1 on most hosts).
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
  /// Threads of a team; 0: chosen.
  int team_size() const { return team_size_; }
  /// Lookups of a thread per tile; 0: chosen.
  int lookups_per_thread() const { return lookups_per_thread_; }
  /// Start of the caller's temporary memory, or null.
  std::byte* workspace() const { return workspace_; }
  /// Bytes of the caller's temporary memory.
  size_type workspace_bytes() const { return workspace_bytes_; }

 private:
  Scheduling scheduling_ = Scheduling::automatic;
  int team_size_ = 0;
  int lookups_per_thread_ = 0;
  std::byte* workspace_ = nullptr;
  size_type workspace_bytes_ = 0;
};

}  // namespace kindex

#endif
