// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_CUDA_LOAD_HPP
#define KINDEX_CUDA_LOAD_HPP

/// \file
/// Loads with a cache policy.

#include <kindex/Types.hpp>

#ifdef KOKKOS_ENABLE_CUDA

namespace kindex::cuda {

/// Loads `*source`, first to leave the L2 cache; with `Again`, the L1 cache
/// keeps it for a second look. Other sizes than multiples of 16 bytes are
/// loaded as usual.
template <bool Again, class T>
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
      if constexpr (Again) {
        asm volatile("ld.global.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                     : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                     : "l"(from + i), "l"(policy));
      } else {
        asm volatile(
            "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, "
            "[%4], %5;"
            : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
            : "l"(from + i), "l"(policy));
      }
    }
    return words.whole;
  } else {
    return *source;
  }
}

}  // namespace kindex::cuda

#endif
#endif
