// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_CUDA_LOAD_HPP
#define KINDEX_CUDA_LOAD_HPP

/// \file
/// Loads with a cache policy.

#include <Kokkos_Macros.hpp>

#ifdef KOKKOS_ENABLE_CUDA

#include <kindex/Types.hpp>

namespace kindex::cuda {

/// Loads `*source`, first to leave the L2 cache and without a place in L1.
/// Other sizes than multiples of 16 bytes are loaded as usual.
template <class T>
__device__ T load_evict_first(const T* source) {
  if constexpr (sizeof(T) % 16 == 0 && alignof(T) % 16 == 0) {
    union Words {
      __device__ Words() {}
      T whole;
      uint4 word[sizeof(T) / 16];
    } words;
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    const auto* from = reinterpret_cast<const uint4*>(source);
    for (unsigned i = 0; i < sizeof(T) / 16; ++i) {
      uint4& word = words.word[i];
      asm volatile(
          "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, "
          "[%4], %5;"
          : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
          : "l"(from + i), "l"(policy));
    }
    return words.whole;
  } else {
    return *source;
  }
}

}  // namespace kindex::cuda

#endif
#endif
