// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_CUDA_GATHER_BY_PAIRS_HPP
#define KINDEX_PERF_CUDA_GATHER_BY_PAIRS_HPP

#include "../SectorBatch.hpp"

namespace kindex::perf {

/// A warp answers 32 queries; two neighbouring lanes read a sector together,
/// 16 bytes each, in two rounds of 16 sectors.
template <class Query, class Result>
__global__ void gather_by_pairs_kernel(
    const __grid_constant__ SectorBatch<Query, Result> batch, std::uint64_t n) {
  constexpr unsigned all = 0xffffffffu;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t mine = i < n ? batch.sector_of(i) : 0;

  std::uint32_t sums[2];
#pragma unroll
  for (unsigned round = 0; round < 2; ++round) {
    const std::uint64_t sector =
        __shfl_sync(all, static_cast<unsigned long long>(mine),
                    static_cast<int>(round * 16 + lane / 2));
    sums[round] = batch.sectors[2 * sector + lane % 2].sum();
  }
  std::uint32_t mine_sum = 0;
#pragma unroll
  for (unsigned round = 0; round < 2; ++round) {
    const std::uint32_t both =
        sums[round] + __shfl_xor_sync(all, sums[round], 1);
    const std::uint32_t back =
        __shfl_sync(all, both, static_cast<int>((lane % 16) * 2));
    if (lane / 16 == round) mine_sum = back;
  }
  if (i < n) batch.results[i] = static_cast<Result>(mine_sum);
}

template <class Query, class Result>
void gather_by_pairs(cudaStream_t stream,
                     const SectorBatch<Query, Result>& batch, std::uint64_t n) {
  constexpr unsigned threads = 256;
  const auto blocks = static_cast<unsigned>((n + threads - 1) / threads);
  gather_by_pairs_kernel<<<blocks, threads, 0, stream>>>(batch, n);
}

}  // namespace kindex::perf

#endif
