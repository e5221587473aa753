// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_CUDA_PAGELOCKED_HPP
#define KINDEX_CUDA_PAGELOCKED_HPP

/// \file
/// Which memory of the host a GPU copies from by itself.

#include <Kokkos_Macros.hpp>

#ifdef KOKKOS_ENABLE_CUDA

#include <cuda_runtime_api.h>

namespace kindex::cuda {

/// Whether the page of `address` is locked, by whoever allocated or registered
/// it.
inline bool is_page_locked(const void* address) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();  // an answer, not an error
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

}  // namespace kindex::cuda

#endif
#endif
