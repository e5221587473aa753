// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_LANEGROUP_HPP
#define KINDEX_QUERY_LANEGROUP_HPP

/// \file
/// Lanes that look up keys together: each loads its part of a node, and their
/// counts are summed.

#include <kindex/Types.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <kindex/cuda/LaneGroup.hpp>
#endif

namespace kindex::query {

/// The portable group: one thread that reads whole nodes itself.
struct SingleLane {
  /// Lanes of the group.
  static constexpr int size = 1;
  /// This thread's place in the group.
  KOKKOS_FUNCTION int lane() const { return 0; }
  /// The value of lane `from`, in every lane.
  template <class T>
  KOKKOS_FUNCTION T broadcast(const T& value, int /*from*/) const {
    return value;
  }
  /// The sum over all lanes, in every lane.
  KOKKOS_FUNCTION unsigned sum(unsigned value) const { return value; }
  /// Bit i: what lane i says.
  KOKKOS_FUNCTION unsigned which(bool value) const { return value ? 1 : 0; }
  /// Whether a lane says so, of this group or of those that run in lockstep
  /// with it.
  KOKKOS_FUNCTION bool any(bool value) const { return value; }
  /// Makes what a lane wrote to memory visible to all others.
  KOKKOS_FUNCTION void sync() const {}
};

/// The group of `Lanes` lanes on `Exec`, or SingleLane where `Exec` has no
/// shuffles.
template <class Exec, int Lanes>
struct GroupOn {
  using type = SingleLane;  ///< the group
};

#ifdef KOKKOS_ENABLE_CUDA
template <int Lanes>
requires(Lanes > 1) struct GroupOn<Kokkos::Cuda, Lanes> {
  using type = cuda::LaneGroup<Lanes>;
};
#endif

/// Of `Group::size` values that all lanes hold, the one that belongs to this
/// lane.
template <class Group, class T>
KOKKOS_FUNCTION T own_of(const Group& group, const T* values) {
  if constexpr (Group::size == 1) {
    return values[0];
  } else {
    // Masks, not an index: an array indexed by the lane would leave registers.
    T own = 0;
    for (int from = 0; from < Group::size; ++from)
      own |= values[from] & (group.lane() == from ? ~T{0} : T{0});
    return own;
  }
}

/// All lanes' values: `all[o * Group::size + lane]` becomes value o of `lane`.
template <class Group, class T, int Own>
KOKKOS_FUNCTION void gather_lanes(const Group& group, const T (&own)[Own],
                                  T (&all)[Own * Group::size]) {
  for (int o = 0; o < Own; ++o)
    for (int from = 0; from < Group::size; ++from)
      all[o * Group::size + from] = group.broadcast(own[o], from);
}

/// Sums W counts over the lanes of a group, as many to a word as fit, so that W
/// counts cost fewer exchanges.
///
/// \tparam Most no sum is larger.
template <int Most, class Group, int W>
KOKKOS_FUNCTION void sum_counts(const Group& group, unsigned (&counts)[W]) {
  if constexpr (Group::size > 1) {
    constexpr int bits = Most < 256 ? 8 : Most < 65536 ? 16 : 32;
    constexpr int per_word = 32 / bits;
    constexpr unsigned all = ~0U >> (32 - bits);
    for (int w = 0; w < W; w += per_word) {
      unsigned packed = 0;
      for (int i = 0; i < per_word; ++i)
        if (w + i < W) packed |= counts[w + i] << (bits * i);
      packed = group.sum(packed);
      for (int i = 0; i < per_word; ++i)
        if (w + i < W) counts[w + i] = (packed >> (bits * i)) & all;
    }
  }
}

}  // namespace kindex::query

#endif
