// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_CUDA_LANEGROUP_HPP
#define KINDEX_CUDA_LANEGROUP_HPP

/// \file
/// A group of lanes of a warp, which exchange values by shuffles.

#include <Kokkos_Macros.hpp>

#ifdef KOKKOS_ENABLE_CUDA

#include <kindex/Key.hpp>

namespace kindex::cuda {

/// `Lanes` neighbouring lanes of a warp (2, 4, 8, 16 or 32). All lanes of the
/// warp must call its methods together.
template <int Lanes>
struct LaneGroup {
  static_assert(Lanes == 2 || Lanes == 4 || Lanes == 8 || Lanes == 16 ||
                Lanes == 32);

  /// Lanes of the group.
  static constexpr int size = Lanes;

  /// This thread's place in the group.
  KOKKOS_FUNCTION int lane() const {
    KOKKOS_IF_ON_DEVICE((return threadIdx.y % Lanes;))
    KOKKOS_IF_ON_HOST((return 0;))
  }

  /// The value of lane `from`, in every lane.
  template <class T>
  KOKKOS_FUNCTION T broadcast([[maybe_unused]] const T& value,
                              [[maybe_unused]] int from) const {
    KOKKOS_IF_ON_DEVICE((
        if constexpr (std::is_same_v<T, Key128>) {
          return Key128{broadcast(value.hi, from), broadcast(value.lo, from)};
        } else if constexpr (std::is_floating_point_v<T>) {
          return __shfl_sync(0xFFFFFFFFU, value, from, Lanes);
        } else if constexpr (sizeof(T) <= 4) {
          return static_cast<T>(__shfl_sync(
              0xFFFFFFFFU, static_cast<unsigned>(value), from, Lanes));
        } else {
          return static_cast<T>(
              __shfl_sync(0xFFFFFFFFU, static_cast<unsigned long long>(value),
                          from, Lanes));
        }))
    KOKKOS_IF_ON_HOST((return value;))
  }

  /// The sum over all lanes, in every lane.
  KOKKOS_FUNCTION unsigned sum(unsigned value) const {
    KOKKOS_IF_ON_DEVICE((for (int step = 1; step < Lanes; step *= 2) value +=
                         __shfl_xor_sync(0xFFFFFFFFU, value, step, Lanes);))
    return value;
  }

  /// Bit i: what lane i says.
  KOKKOS_FUNCTION unsigned which(bool value) const {
    KOKKOS_IF_ON_DEVICE(
        (const unsigned warp = __ballot_sync(0xFFFFFFFFU, value);
         return warp >> (threadIdx.y % 32 / Lanes * Lanes) &
                (0xFFFFFFFFU >> (32 - Lanes));))
    KOKKOS_IF_ON_HOST((return value ? 1 : 0;))
  }

  /// Whether a lane of the warp says so.
  KOKKOS_FUNCTION bool any(bool value) const {
    KOKKOS_IF_ON_DEVICE((return __any_sync(0xFFFFFFFFU, value);))
    KOKKOS_IF_ON_HOST((return value;))
  }

  /// Makes what a lane wrote to memory visible to the others of the warp.
  KOKKOS_FUNCTION void sync() const { KOKKOS_IF_ON_DEVICE((__syncwarp();)) }
};

}  // namespace kindex::cuda

#endif
#endif
