// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kindex/cuda/Sort.hpp>

#ifdef KOKKOS_ENABLE_CUDA

#include <kindex/Error.hpp>

#include <cub/device/device_radix_sort.cuh>
#include <cuda/std/tuple>

namespace kindex::cuda {

namespace {

/// The words of a Key128, most significant first.
struct WordsOfKey128 {
  __host__ __device__ ::cuda::std::tuple<std::uint64_t&, std::uint64_t&>
  operator()(Key128& key) const {
    return {key.hi, key.lo};
  }
};

}  // namespace

template <class Bits, class Row>
void sort_pairs(const Kokkos::Cuda& space, void* temporary,
                std::size_t& temporary_bytes, const Bits* bits_in,
                Bits* bits_out, const Row* rows_in, Row* rows_out,
                size_type size) {
  cudaError_t status = cudaSuccess;
  if constexpr (std::is_same_v<Bits, Key128>) {
    status = cub::DeviceRadixSort::SortPairs(
        temporary, temporary_bytes, bits_in, bits_out, rows_in, rows_out, size,
        WordsOfKey128{}, space.cuda_stream());
  } else {
    status = cub::DeviceRadixSort::SortPairs(
        temporary, temporary_bytes, bits_in, bits_out, rows_in, rows_out, size,
        0, 8 * static_cast<int>(sizeof(Bits)), space.cuda_stream());
  }
  if (status != cudaSuccess)
    kindex::impl::fail("kindex::cuda::sort_pairs", cudaGetErrorString(status));
}

#define KINDEX_SORT_PAIRS(Bits)                                      \
  template void sort_pairs(const Kokkos::Cuda&, void*, std::size_t&, \
                           const Bits*, Bits*, const std::uint32_t*, \
                           std::uint32_t*, size_type);               \
  template void sort_pairs(const Kokkos::Cuda&, void*, std::size_t&, \
                           const Bits*, Bits*, const std::uint64_t*, \
                           std::uint64_t*, size_type)

KINDEX_SORT_PAIRS(std::uint8_t);
KINDEX_SORT_PAIRS(std::uint16_t);
KINDEX_SORT_PAIRS(std::uint32_t);
KINDEX_SORT_PAIRS(std::uint64_t);
KINDEX_SORT_PAIRS(Key128);

#undef KINDEX_SORT_PAIRS

}  // namespace kindex::cuda

#endif
