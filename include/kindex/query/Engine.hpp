// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_ENGINE_HPP
#define KINDEX_QUERY_ENGINE_HPP

/// \file
/// The bulk engine: the one kernel that runs a batch of lookups, for every
/// index and every verb.

#include <kindex/query/LaneGroup.hpp>
#include <kindex/query/LookupPolicy.hpp>
#include <kindex/query/Probe.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace kindex::query {

/// What the engine must know of a device, and what it chooses there unless a
/// policy says otherwise.
template <class Exec>
struct DeviceTraits {
  /// Whether teams are many threads that run in lockstep (a GPU).
  static constexpr bool is_gpu =
      !Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible;
  /// Independent lookups that a thread keeps in flight. A host core overlaps
  /// that many cache misses; a GPU does it with its many threads.
  static constexpr int lookups_in_flight = is_gpu ? 1 : 16;
  /// Threads that run in lockstep: lanes of a group are among them, so a team
  /// is a multiple of them.
  static constexpr int warp_size = is_gpu ? 32 : 1;
  /// The level of team scratch that holds some 40 KiB.
  static constexpr int scratch_level = is_gpu ? 0 : 1;
  /// Threads of a team.
  static constexpr int team_size = is_gpu ? 256 : 1;
  /// Lookups of a thread per tile: on hosts enough to hide the hand-out of
  /// tiles, few enough to balance a batch of some ten thousand.
  static constexpr int lookups_per_thread = is_gpu ? 4 : 1024;
  /// Hits of a range query that a thread copies per tile.
  static constexpr int hits_per_thread = is_gpu ? 16 : 16384;
};

/// The scratch memory of a team, at the level that DeviceTraits names.
template <class Exec, class Member>
KOKKOS_FUNCTION decltype(auto) team_scratch(const Member& team) {
  // A copy: kernels have no memory for the member itself.
  constexpr int level = DeviceTraits<Exec>::scratch_level;
  return team.team_scratch(int{level});
}

/// How one batch is laid out on a device.
struct Schedule {
  int league_size;  ///< number of teams
  int team_size;    ///< threads of a team
  size_type tile;   ///< consecutive lookups that a team takes at once
};

/// The schedule of `lookups` lookups under `policy`, for a kernel that admits
/// teams of `max_team_size` threads.
template <class Exec>
Schedule make_schedule(const Exec& space, const LookupPolicy& policy,
                       size_type lookups, int max_team_size) {
  using Traits = DeviceTraits<Exec>;
  Schedule schedule{};
  const int wanted =
      policy.team_size() > 0 ? policy.team_size() : Traits::team_size;
  schedule.team_size = std::max(
      std::min(wanted, max_team_size) / Traits::warp_size * Traits::warp_size,
      Traits::warp_size);
  // Small batches are cut finer, so that every thread of the device has some.
  const size_type share =
      lookups / (4 * static_cast<size_type>(space.concurrency()));
  const size_type chosen =
      std::clamp<size_type>(share, std::min(64, Traits::lookups_per_thread),
                            Traits::lookups_per_thread);
  const size_type per_thread =
      policy.lookups_per_thread() > 0 ? policy.lookups_per_thread() : chosen;
  schedule.tile = per_thread * schedule.team_size;
  size_type teams = (lookups + schedule.tile - 1) / schedule.tile;
  if (policy.scheduling() == Scheduling::fixed) {
    const int resident = space.concurrency() / schedule.team_size;
    teams = std::min<size_type>(teams, std::max(resident, 1));
  }
  // A kernel strides on when a batch has more tiles than a league can count.
  constexpr size_type most = std::numeric_limits<int>::max();
  schedule.league_size = static_cast<int>(std::min(teams, most));
  return schedule;
}

/// Runs the lookups of a tile: each thread brings its own queries, W at once,
/// and the lanes of a group search all of theirs together.
///
/// \tparam Verb what is asked and where answers go:
///   - `static constexpr int probes`: searches per query, 1 or 2;
///   - `static constexpr bool comes_back`: whether it reads the entry found;
///   - `void make_probes(size_type query, Probe<Key> (&)[probes]) const`;
///   - `void store(const Ref&, size_type query, const Probe<Key> (&)[probes],
///     const size_type (&positions)[probes]) const`.
template <class Group, class Ref, class Verb, int W>
struct LookupKernel {
  using Key = typename Ref::key_type;

  Ref ref;
  Verb verb;
  size_type queries;
  size_type tile;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto threads = static_cast<size_type>(team.team_size());
    for (size_type begin = team.league_rank() * tile; begin < queries;
         begin += team.league_size() * tile) {
      const size_type end = begin + tile < queries ? begin + tile : queries;
      // Neighbouring threads take neighbouring queries, and all threads of a
      // team make the same number of rounds: lanes need each other.
      for (size_type first = begin; first < end; first += threads * W)
        run(first + team.team_rank(), threads, end);
    }
  }

  KOKKOS_FUNCTION void run(size_type first, size_type step,
                           size_type end) const {
    constexpr int probes = Verb::probes;
    Probe<Key> probe[W][probes];
    Key keys[W * probes];
    size_type positions[W * probes];
    for (int w = 0; w < W; ++w) {
      // Spare places of the last tile repeat its last query.
      const size_type query =
          first + w * step < end ? first + w * step : end - 1;
      verb.make_probes(query, probe[w]);
      for (int p = 0; p < probes; ++p) keys[w * probes + p] = probe[w][p].key;
    }
    ref.template search<Verb::comes_back>(Group(), keys, positions);
    for (int w = 0; w < W; ++w) {
      const size_type query = first + w * step;
      size_type found[probes];
      for (int p = 0; p < probes; ++p)
        found[p] = probe[w][p].above ? ref.size() : positions[w * probes + p];
      if (query < end) verb.store(ref, query, probe[w], found);
    }
  }
};

/// Launches `kernel` over `work` items (lookups, ranges or hits) under
/// `policy`: the one place where teams are launched.
///
/// \param set_tile `set_tile(kernel, tile)` tells the kernel how many
///   consecutive items a team takes at once.
/// \param scratch_bytes `scratch_bytes(team_size)`: team scratch it needs.
template <class Exec, class Kernel, class SetTile, class ScratchBytes>
void run_teams(const Exec& space, const std::string& label, Kernel kernel,
               size_type work, const LookupPolicy& policy,
               const SetTile& set_tile, const ScratchBytes& scratch_bytes) {
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::Schedule<Kokkos::Dynamic>>;
  const int wanted = policy.team_size() > 0 ? policy.team_size()
                                            : DeviceTraits<Exec>::team_size;
  Policy probe(space, 1, 1);
  probe.set_scratch_size(DeviceTraits<Exec>::scratch_level,
                         Kokkos::PerTeam(int(scratch_bytes(wanted))));
  const Schedule schedule =
      make_schedule(space, policy, work,
                    probe.team_size_max(kernel, Kokkos::ParallelForTag()));
  set_tile(kernel, schedule.tile);
  Policy teams(space, schedule.league_size, schedule.team_size);
  teams.set_scratch_size(
      DeviceTraits<Exec>::scratch_level,
      Kokkos::PerTeam(int(scratch_bytes(schedule.team_size))));
  Kokkos::parallel_for(label, teams, kernel);
}

/// Launches `kernel`, which strides over `tiles` tiles on its own, one team per
/// tile, with `scratch_bytes` bytes of team scratch.
template <class Exec, class Kernel>
void run_tiled(const Exec& space, const std::string& label,
               const Kernel& kernel, size_type tiles,
               std::size_t scratch_bytes) {
  constexpr int threads = DeviceTraits<Exec>::is_gpu ? 512 : 1;
  run_teams(
      space, label, kernel, tiles * threads,
      LookupPolicy().set_lookups_per_thread(1).set_team_size(threads),
      [](Kernel&, size_type) {},
      [scratch_bytes](int) { return scratch_bytes; });
}

/// Turns the counts in `offsets(0..n-1)` into exclusive prefix sums, with the
/// total behind them.
struct OffsetsScan {
  size_type* offsets;
  size_type counts;

  KOKKOS_FUNCTION void operator()(size_type i, size_type& sum,
                                  bool is_final) const {
    const size_type count = i < counts ? offsets[i] : 0;
    if (is_final) offsets[i] = sum;
    sum += count;
  }
};

/// Runs `verb` for `queries` queries on `space`: one kernel, no fence, no
/// allocation; nothing at all for an empty batch.
template <class Exec, class Ref, class Verb>
void run_lookups(const std::string& label, const Exec& space, const Ref& ref,
                 const Verb& verb, size_type queries,
                 const LookupPolicy& policy) {
  if (queries == 0) return;
  using Group = typename GroupOn<Exec, Ref::lanes>::type;
  using Kernel =
      LookupKernel<Group, Ref, Verb, DeviceTraits<Exec>::lookups_in_flight>;
  run_teams(
      space, label, Kernel{ref, verb, queries, 0}, queries, policy,
      [](Kernel& kernel, size_type tile) { kernel.tile = tile; },
      [](int) { return std::size_t{0}; });
}

}  // namespace kindex::query

#endif
