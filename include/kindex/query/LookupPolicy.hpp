// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_LOOKUPPOLICY_HPP
#define KINDEX_QUERY_LOOKUPPOLICY_HPP

/// \file
/// How a batch of lookups is run; never what it returns.

#include <kindex/Error.hpp>
#include <kindex/Types.hpp>

#include <cstddef>
#include <type_traits>

namespace kindex {

/// How the lookups of a batch are handed to teams.
enum class Scheduling {
  automatic,  ///< chosen by device and batch
  dynamic,    ///< one team per tile of lookups, started as others end
  fixed,      ///< as many teams as the device runs at once; each strides on
  /// One team per multiprocessor of a GPU of NVIDIA's, per thread of a host;
  /// each strides on. The same as `fixed` on other devices.
  one_per_core
};

/// In which order the lookups of a batch are made. Results are always in the
/// caller's order.
enum class Reordering {
  automatic,   ///< partitioned where that wins and memory for it is given
  none,        ///< as they come
  partitioned  ///< the whole batch by key, 256 ways
};

/// A feature of BasicLookupPolicy: teams keep the first keys of the index's
/// search order (the top of the tree, or the first probes of a binary search)
/// in team scratch. Schedulings other than dynamic copy them once per team
/// instead of once per tile.
struct PinnedTop {};

/// A feature of BasicLookupPolicy: the first keys of the index's search order,
/// up to 3 KiB, come with the arguments of the kernel, which a GPU of NVIDIA's
/// has in constant memory: one load serves all lanes that read the same, others
/// wait for each other (Zhong et al., 2022, for the top of a learned index).
/// For indexes that have them on the host: LearnedIndex and
/// HybridLearnedIndex. Others do not compile with it.
struct BroadcastTop {};

/// A feature of BasicLookupPolicy: a team sorts the lookups of each tile by
/// key, so that neighbouring threads search neighbouring keys (Henneberg and
/// Schuhknecht, 2025; a radix sort in registers on NVIDIA's GPUs, std::sort on
/// hosts, nothing elsewhere). For the verbs with one search per query (`find`,
/// `contains`, `lower_bound`, `upper_bound`).
///
/// Calls throw Error where a GPU has not the team scratch that the sort needs:
/// some 20 KiB for TeamSorted<256, 8>, in proportion to the lookups of a team.
///
/// \tparam TeamSize threads of a team on a GPU, a multiple of 32 up to 1024.
/// \tparam LookupsPerThread lookups of a thread per tile there, 1 to 16.
template <int TeamSize = 256, int LookupsPerThread = 4>
struct TeamSorted {
  static_assert(TeamSize % 32 == 0 && TeamSize >= 32 && TeamSize <= 1024);
  static_assert(LookupsPerThread >= 1 && LookupsPerThread <= 16);
  static constexpr int team_size = TeamSize;  ///< threads of a team
  static constexpr int lookups_per_thread = LookupsPerThread;  ///< per tile
};

/// A feature of BasicLookupPolicy: a lane of a group loads one key of a node
/// instead of 16 bytes, so that groups have as many lanes as nodes have keys
/// (the form of Henneberg and Schuhknecht, 2025, for comparison).
struct OneKeyPerLane {};

/// A feature of BasicLookupPolicy: the promise that queries ascend. A team then
/// reads the keys between those of its first and its last query once, in
/// order, as in a merge. For the verbs with one search per query, on indexes
/// whose entries ascend in memory. A broken promise costs time, not results.
struct SortedQueries {};

/// A feature of BasicLookupPolicy: how many lookups a thread of a host takes in
/// turns, so that their loads from memory overlap, instead of 32. The many
/// threads of a GPU need no such help: there it changes nothing.
///
/// \tparam Lookups 1 to 64.
template <int Lookups>
struct InFlight {
  static_assert(Lookups >= 1 && Lookups <= 64);
  static constexpr int lookups = Lookups;  ///< in turns
};

/// In which order a team that sorts its lookups writes their results.
enum class ResultOrder {
  restored,  ///< brought back to the caller's order in team scratch first
  as_found   ///< each to its place as it is found
};

namespace impl {

template <class Feature>
struct TeamSortTraits {
  static constexpr int team_size = 0, lookups_per_thread = 0;
};
template <int TeamSize, int LookupsPerThread>
struct TeamSortTraits<TeamSorted<TeamSize, LookupsPerThread>> {
  static constexpr int team_size = TeamSize;
  static constexpr int lookups_per_thread = LookupsPerThread;
};

template <class Feature>
inline constexpr int in_flight_v = 0;
template <int Lookups>
inline constexpr int in_flight_v<InFlight<Lookups>> = Lookups;

}  // namespace impl

/// What a policy of any type says at run time.
class LookupSettings {
 public:
  /// How lookups are handed to teams.
  Scheduling scheduling() const { return scheduling_; }
  /// The order of the lookups.
  Reordering reordering() const { return reordering_; }
  /// Threads of a team; 0: chosen.
  int team_size() const { return team_size_; }
  /// Lookups of a thread per tile; 0: chosen.
  int lookups_per_thread() const { return lookups_per_thread_; }
  /// Steps of a search that are pinned; −1: as many as fit.
  int pinned_steps() const { return pinned_steps_; }
  /// The most bytes of pinned keys.
  size_type pinned_bytes() const { return pinned_bytes_; }
  /// How a team that sorts its lookups writes results.
  ResultOrder result_order() const { return result_order_; }
  /// Start of the caller's temporary memory, or null.
  std::byte* workspace() const { return workspace_; }
  /// Bytes of the caller's temporary memory.
  size_type workspace_bytes() const { return workspace_bytes_; }

 protected:
  /// \cond
  Reordering reordering_ = Reordering::automatic;
  Scheduling scheduling_ = Scheduling::automatic;
  int team_size_ = 0;
  int lookups_per_thread_ = 0;
  int pinned_steps_ = -1;
  size_type pinned_bytes_ = 16384;
  ResultOrder result_order_ = ResultOrder::restored;
  std::byte* workspace_ = nullptr;
  size_type workspace_bytes_ = 0;
  /// \endcond
};

/// How a batch of queries is run. A policy changes how fast a call is, never
/// what it returns; the default, LookupPolicy, chooses by device and batch
/// size. The setters return the policy, so that they chain:
/// \code
/// index.find(space, queries, out,
///            kindex::LookupPolicy().set_scheduling(kindex::Scheduling::fixed)
///                .set_team_size(512));
/// \endcode
/// What it chooses unless told otherwise, by measurements on an H100 and its
/// host (perf/results; the constants stand where they are used):
/// - on a GPU, teams of 512 threads where groups of lanes search together, of
///   256 elsewhere, inside partitions and to find keys of 8 bytes; 4 lookups a
///   thread, or 1 with such groups and from 512 MiB of keys, and fewer where a
///   batch would leave threads idle; tiles handed out dynamically;
/// - on a host, teams of one thread, up to 1024 lookups each, 32 in flight;
/// - on a GPU, lookups of a SortedArray sorted in teams (TeamSorted<256, 8>) in
///   batches from 2^22;
/// - on a GPU, point lookups of 2^20 and n/4 queries or more partitioned, given
///   memory for it (`workspace_bytes(m, policy)`) and an index from 96 MiB: on
///   SortedArray, Eytzinger and LearnedIndex always; on PivotTree and BPlusTree
///   for `find` and `contains` where values are stored apart from their keys,
///   on pairs from 512 MiB with keys up to 4 bytes or narrow nodes, and
///   otherwise where all pivots are whole and nodes are narrow or keys take 512
///   MiB; on RadixTree for values apart, and with nodes from 48 MiB;
/// - nothing pinned: what is at the top stays in a GPU's caches anyway. (On
///   RadixTree, PinnedTop answers 1.13 times as many lookups of ISBNs, 0.90 to
///   1.01 times as many of random keys and 0.88 to 0.97 times as many of dense
///   ones, 2^16 to 2^26, on an H200 in a run that is not kept.)
/// - nothing that needs a promise.
///
/// What changes the kernel itself is part of the policy's type, as in the
/// policies of Kokkos: what nobody uses is not compiled.
/// \code
/// using Pinned = kindex::BasicLookupPolicy<kindex::PinnedTop>;
/// index.find(space, queries, out, Pinned().set_pinned_steps(10));
/// \endcode
///
/// \tparam Features any of PinnedTop or BroadcastTop, TeamSorted,
///   OneKeyPerLane, SortedQueries, InFlight.
template <class... Features>
class BasicLookupPolicy : public LookupSettings {
  using Self = BasicLookupPolicy;

 public:
  /// Whether teams keep the top of the index in scratch.
  static constexpr bool pins = (std::is_same_v<Features, PinnedTop> || ...);
  /// Whether the top of the index comes with the kernel's arguments.
  static constexpr bool broadcasts =
      (std::is_same_v<Features, BroadcastTop> || ...);
  /// Whether lanes load one key each.
  static constexpr bool one_key_per_lane =
      (std::is_same_v<Features, OneKeyPerLane> || ...);
  /// Whether queries are promised to ascend.
  static constexpr bool queries_ascend =
      (std::is_same_v<Features, SortedQueries> || ...);
  /// Threads of a team that sorts its lookups, or 0.
  static constexpr int sorting_team =
      (impl::TeamSortTraits<Features>::team_size + ... + 0);
  /// Lookups of each of them.
  static constexpr int sorted_per_thread =
      (impl::TeamSortTraits<Features>::lookups_per_thread + ... + 0);
  /// Lookups that a thread of a host takes in turns, or 0 for the default.
  static constexpr int in_flight = (impl::in_flight_v<Features> + ... + 0);
  static_assert(((std::is_same_v<Features, PinnedTop> ||
                  std::is_same_v<Features, BroadcastTop> ||
                  std::is_same_v<Features, OneKeyPerLane> ||
                  std::is_same_v<Features, SortedQueries> ||
                  impl::in_flight_v<Features> > 0 ||
                  impl::TeamSortTraits<Features>::team_size > 0) &&
                 ...),
                "kindex: not a feature of a lookup policy");
  static_assert((int(impl::TeamSortTraits<Features>::team_size > 0) + ... +
                 0) <= 1,
                "kindex: a team sorts its lookups in one way");
  static_assert((int(impl::in_flight_v<Features> > 0) + ... + 0) <= 1,
                "kindex: one number of lookups is in flight");
  static_assert(!(pins && broadcasts),
                "kindex: the top of the index is in one place");
  static_assert(!(queries_ascend && (sorting_team > 0 || pins || broadcasts)),
                "kindex: ascending queries are neither sorted again nor do "
                "they search the top of the index");

  /// Everything is chosen.
  BasicLookupPolicy() = default;
  /// The same settings with other features.
  explicit BasicLookupPolicy(const LookupSettings& settings)
      : LookupSettings(settings) {}

  /// Sets how lookups are handed to teams.
  Self& set_scheduling(Scheduling scheduling) {
    scheduling_ = scheduling;
    return *this;
  }

  /// Sets the threads of a team, 1 to 1024; 0 (the default) chooses. Rounded
  /// down to what the device admits for the kernel: whole warps on a GPU, 1 on
  /// most hosts.
  ///
  /// \throws Error if outside that range.
  Self& set_team_size(int threads) {
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
  Self& set_lookups_per_thread(int lookups) {
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
  /// `automatic` partitions only where the policy has a workspace of that many
  /// bytes.
  Self& set_reordering(Reordering reordering) {
    reordering_ = reordering;
    return *this;
  }

  /// Gives the call temporary memory, so that it allocates none for itself
  /// beside its results. `workspace` must be contiguous, live in memory that
  /// the call's execution space can access, start at a multiple of 16 bytes,
  /// hold at least `workspace_bytes(m)` bytes of the index asked, and stay
  /// untouched until the call has completed. It is not kept alive.
  template <class View>
  Self& set_workspace(const View& workspace) {
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

  /// Pins, or broadcasts, the first `steps` steps of a search (levels of a
  /// tree); −1 (the default): as many as fit, the last one in part.
  ///
  /// \throws Error if below −1.
  Self& set_pinned_steps(int steps) requires(pins || broadcasts) {
    if (steps < -1)
      impl::fail("kindex::BasicLookupPolicy::set_pinned_steps", "steps is ",
                 steps, ", below -1");
    pinned_steps_ = steps;
    return *this;
  }

  /// Limits the team scratch that holds pinned keys, 0 to 32768 bytes. The
  /// default, 16384, costs an H100 no team: a multiprocessor runs eight of 256
  /// threads, and its 227 KiB of scratch are enough for them. More leaves room
  /// for fewer teams; what a sort needs comes first.
  ///
  /// \throws Error if outside that range.
  Self& set_pinned_bytes(size_type bytes) requires pins {
    if (bytes > 32768)
      impl::fail("kindex::BasicLookupPolicy::set_pinned_bytes", "bytes is ",
                 bytes, ", not in 0...32768");
    pinned_bytes_ = bytes;
    return *this;
  }

  /// Sets how a team that sorts its lookups writes results.
  Self& set_result_order(ResultOrder order) requires(sorting_team > 0) {
    result_order_ = order;
    return *this;
  }
};

/// The policy without features: everything that can be chosen at run time.
using LookupPolicy = BasicLookupPolicy<>;

namespace impl {

template <class T>
inline constexpr bool is_lookup_policy_v = false;
template <class... Features>
inline constexpr bool is_lookup_policy_v<BasicLookupPolicy<Features...>> = true;

}  // namespace impl

/// Any BasicLookupPolicy.
template <class T>
concept AnyLookupPolicy = impl::is_lookup_policy_v<T>;

}  // namespace kindex

#endif
