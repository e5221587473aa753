// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_CUDA_CORES_HPP
#define KINDEX_CUDA_CORES_HPP

/// \file
/// How many multiprocessors a GPU has.

#include <Kokkos_Core.hpp>

#ifdef KOKKOS_ENABLE_CUDA

namespace kindex::cuda {

/// Of the GPU of `space`.
inline int multiprocessors(const Kokkos::Cuda& space) {
  return space.cuda_device_prop().multiProcessorCount;
}

}  // namespace kindex::cuda

#endif
#endif
