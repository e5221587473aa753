// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_SPACES_HPP
#define KINDEX_PERF_SPACES_HPP

/// \file
/// The execution spaces that are compared: the host's, and the device's where
/// Kokkos has one.

#include <Kokkos_Core.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace kindex::perf {

using HostExec = Kokkos::DefaultHostExecutionSpace;
using DeviceExec = Kokkos::DefaultExecutionSpace;

inline constexpr bool has_device = !std::is_same_v<HostExec, DeviceExec>;

/// Whether the host reads and writes the memory of `Exec` directly.
template <class Exec>
inline constexpr bool is_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace,
                               typename Exec::memory_space>::accessible;

/// Where the host keeps what it sends to `Exec`: page-locked for GPUs.
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
template <class Exec>
using StagingSpace = std::conditional_t<is_host<Exec>, Kokkos::HostSpace,
                                        Kokkos::SharedHostPinnedSpace>;
#else
template <class Exec>
using StagingSpace = Kokkos::HostSpace;
#endif

/// Calls `f.template operator()<Exec>()` for every space.
template <class F>
void for_each_space(F&& f) {
  f.template operator()<HostExec>();
  if constexpr (has_device) f.template operator()<DeviceExec>();
}

inline std::vector<std::string> space_names() {
  std::vector<std::string> names{HostExec::name()};
  if (has_device) names.emplace_back(DeviceExec::name());
  return names;
}

}  // namespace kindex::perf

#endif
