// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_LOAD_HPP
#define KINDEX_QUERY_LOAD_HPP

/// \file
/// Loads that say how soon the same memory is wanted again.

#include <kindex/Types.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <kindex/cuda/Load.hpp>
#endif

namespace kindex::query {

/// How soon the same memory is wanted again.
enum class Reuse {
  often,  ///< by other lookups: worth a place in all caches
  never   ///< by none: it should displace nothing
};

/// Loads `*source`. A GPU's caches are told of the reuse; a host's decide
/// themselves.
template <Reuse reuse, class T>
KOKKOS_FUNCTION T load(const T* source) {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (reuse != Reuse::often) {
    KOKKOS_IF_ON_DEVICE((return cuda::load_evict_first(source);))
    KOKKOS_IF_ON_HOST((return *source;))
  } else {
    return *source;
  }
#else
  return *source;
#endif
}

/// Has a host fetch the line of `source` while it does something else; a GPU's
/// many threads need no such help.
template <class T>
KOKKOS_FUNCTION void prefetch([[maybe_unused]] const T* source) {
  KOKKOS_IF_ON_HOST((__builtin_prefetch(source);))
}

}  // namespace kindex::query

#endif
