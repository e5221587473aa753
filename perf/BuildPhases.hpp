// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BUILD_PHASES_HPP
#define KINDEX_PERF_BUILD_PHASES_HPP

/// \file
/// How the time of building an implicit B+-tree divides.

#include <functional>
#include <optional>

namespace kindex::perf {

/// Seconds of the phases of a build, each with a fence behind it.
struct BuildPhases {
  double sort;    ///< entries: sorted, or checked, and copied
  double inner;   ///< inner levels: allocated and written
  double mirror;  ///< what follows: of a hybrid index, their copy
};

/// Runs `build()` some times and takes medians, or nothing if it writes no
/// inner levels of a BPlusTree. Sees the phases as a tool of Kokkos does, by
/// the labels of kernels; Kokkos fences before it calls one.
std::optional<BuildPhases> build_phases(const std::function<void()>& build);

}  // namespace kindex::perf

#endif
