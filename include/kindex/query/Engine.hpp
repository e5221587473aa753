// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_ENGINE_HPP
#define KINDEX_QUERY_ENGINE_HPP

/// \file
/// How kernels are launched on a device: teams, tiles and their scratch.

#include <kindex/cuda/Cores.hpp>
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
  static constexpr int lookups_in_flight = is_gpu ? 1 : 32;
  /// Threads that run in lockstep: lanes of a group are among them, so a team
  /// is a multiple of them.
  static constexpr int warp_size = is_gpu ? 32 : 1;
  /// The level of team scratch that holds `scratch_bytes`.
  static constexpr int scratch_level = is_gpu ? 0 : 1;
  /// Team scratch that every device has, whatever the team.
  static constexpr std::size_t scratch_bytes = 40960;
  /// Threads of a team.
  static constexpr int team_size = is_gpu ? 256 : 1;
  /// Whether a team can sort the lookups of a tile: see TeamSort.
  static constexpr bool can_sort_teams =
#ifdef KOKKOS_ENABLE_CUDA
      std::is_same_v<Exec, Kokkos::Cuda> ||
#endif
      !is_gpu;
  /// Lookups of a thread per tile: on hosts enough to hide the hand-out of
  /// tiles, few enough to balance a batch of some ten thousand.
  static constexpr int lookups_per_thread = is_gpu ? 4 : 1024;
  /// Hits of a range query that a thread copies per tile.
  static constexpr int hits_per_thread = is_gpu ? 32 : 16384;
};

/// The scratch memory of a team, at the level that DeviceTraits names.
template <class Exec, class Member>
KOKKOS_FUNCTION decltype(auto) team_scratch(const Member& team) {
  // A copy: kernels have no memory for the member itself.
  constexpr int level = DeviceTraits<Exec>::scratch_level;
  return team.team_scratch(int{level});
}

/// Unmanaged team scratch of `n` elements.
template <class T, class Exec>
using TeamArray = Kokkos::View<T*, typename Exec::scratch_memory_space,
                               Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// What team scratch is handed out in, so that it is aligned for loads of 16
/// bytes.
struct alignas(16) ScratchUnit {
  std::byte bytes[16];
};

/// Bytes of team scratch for `n` elements of `T` from take_scratch.
template <class T, class Exec>
std::size_t scratch_bytes_of(size_type n) {
  return TeamArray<ScratchUnit, Exec>::shmem_size((n * sizeof(T) + 15) / 16);
}

/// `n` elements of team scratch, uninitialised. Each call takes more of it.
template <class T, class Exec, class Member>
KOKKOS_FUNCTION T* take_scratch(const Member& team, size_type n) {
  const TeamArray<ScratchUnit, Exec> units(team_scratch<Exec>(team),
                                           (n * sizeof(T) + 15) / 16);
  return reinterpret_cast<T*>(units.data());
}

/// How one batch is laid out on a device.
struct Schedule {
  int league_size;  ///< number of teams
  int team_size;    ///< threads of a team
  size_type tile;   ///< consecutive lookups that a team takes at once
};

/// Teams of `team_size` threads under a scheduling that is not dynamic.
template <class Exec>
size_type teams_at_once(const Exec& space, Scheduling scheduling,
                        int team_size) {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>)
    if (scheduling == Scheduling::one_per_core)
      return cuda::multiprocessors(space);
#endif
  (void)scheduling;
  return std::max(space.concurrency() / team_size, 1);
}

/// The schedule of `lookups` lookups under `policy`, for a kernel that admits
/// teams of `max_team_size` threads.
template <class Exec>
Schedule make_schedule(const Exec& space, const LookupSettings& policy,
                       size_type lookups, int max_team_size) {
  using Traits = DeviceTraits<Exec>;
  Schedule schedule{};
  const int wanted =
      policy.team_size() > 0 ? policy.team_size() : Traits::team_size;
  schedule.team_size = std::max(
      std::min(wanted, max_team_size) / Traits::warp_size * Traits::warp_size,
      Traits::warp_size);
  // Small batches are cut finer, so that every thread of the device has some; a
  // host's get several tiles each, for balance.
  const size_type share =
      lookups /
      ((Traits::is_gpu ? 1 : 4) * static_cast<size_type>(space.concurrency()));
  const size_type chosen = std::clamp<size_type>(share, Traits::is_gpu ? 1 : 64,
                                                 Traits::lookups_per_thread);
  const size_type per_thread =
      policy.lookups_per_thread() > 0 ? policy.lookups_per_thread() : chosen;
  schedule.tile = per_thread * schedule.team_size;
  size_type teams = (lookups + schedule.tile - 1) / schedule.tile;
  if (policy.scheduling() == Scheduling::fixed ||
      policy.scheduling() == Scheduling::one_per_core)
    teams = std::min(
        teams, teams_at_once(space, policy.scheduling(), schedule.team_size));
  // A kernel strides on when a batch has more tiles than a league can count.
  constexpr size_type most = std::numeric_limits<int>::max();
  schedule.league_size = static_cast<int>(std::min(teams, most));
  return schedule;
}

/// Launches `kernel` over `work` items (lookups, ranges or hits) under
/// `policy`: the one place where teams are launched.
///
/// A kernel that needs teams of a certain size has a `static constexpr int
/// team_size`, 0 for none.
///
/// \param set_tile `set_tile(kernel, tile)` tells the kernel how many
///   consecutive items a team takes at once.
/// \param scratch_bytes `scratch_bytes(team_size)`: team scratch it needs.
template <class Exec, class Kernel, class SetTile, class ScratchBytes>
void run_teams(const Exec& space, const std::string& label, Kernel kernel,
               size_type work, const LookupSettings& policy,
               const SetTile& set_tile, const ScratchBytes& scratch_bytes) {
  constexpr int fixed = [] {
    if constexpr (requires { Kernel::team_size; }) {
      return Kernel::team_size;
    } else {
      return 0;
    }
  }();
  using Policy = Kokkos::TeamPolicy<
      Exec, Kokkos::Schedule<Kokkos::Dynamic>,
      Kokkos::LaunchBounds<unsigned(fixed), fixed == 0 ? 0U : 1U>>;
  int max_team_size = 1;
  if constexpr (DeviceTraits<Exec>::is_gpu) {
    const int wanted = policy.team_size() > 0 ? policy.team_size()
                                              : DeviceTraits<Exec>::team_size;
    Policy probe(space, 1, 1);
    probe.set_scratch_size(DeviceTraits<Exec>::scratch_level,
                           Kokkos::PerTeam(int(scratch_bytes(wanted))));
    max_team_size = probe.team_size_max(kernel, Kokkos::ParallelForTag());
  } else {
    max_team_size =
        Policy(space, 1, 1).team_size_max(kernel, Kokkos::ParallelForTag());
  }
  const Schedule schedule = make_schedule(space, policy, work, max_team_size);
  if (fixed != 0 && schedule.team_size != fixed)
    kindex::impl::fail(
        label.c_str(), "teams of ", fixed,
        " threads are asked for, but their registers and scratch "
        "leave room for ",
        max_team_size);
  set_tile(kernel, schedule.tile);
  Policy teams(space, schedule.league_size, schedule.team_size);
  teams.set_scratch_size(
      DeviceTraits<Exec>::scratch_level,
      Kokkos::PerTeam(int(scratch_bytes(schedule.team_size))));
  if constexpr (sizeof(Kernel) >= 512) {
    // As arguments all the same: through its buffer in constant memory, Kokkos
    // would wait for the last kernel that used that.
    Kokkos::parallel_for(
        label,
        Kokkos::Experimental::require(
            teams, Kokkos::Experimental::WorkItemProperty::HintLightWeight),
        kernel);
  } else {
    Kokkos::parallel_for(label, teams, kernel);
  }
}

/// Launches `kernel`, which strides over `tiles` tiles on its own, one team of
/// `threads` threads per tile, with `scratch_bytes` bytes of team scratch.
template <class Exec, class Kernel>
void run_tiled(const Exec& space, const std::string& label,
               const Kernel& kernel, size_type tiles, std::size_t scratch_bytes,
               int threads = DeviceTraits<Exec>::is_gpu ? 512 : 1) {
  run_teams(
      space, label, kernel, tiles * size_type(threads),
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

}  // namespace kindex::query

#endif
