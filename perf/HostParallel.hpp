// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_HOST_PARALLEL_HPP
#define KINDEX_PERF_HOST_PARALLEL_HPP

/// \file
/// Plain OpenMP loops for work on the host that is not measured, and for the
/// references, which must not lean on the library under test.

#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace kindex::perf {

/// Calls `f(i)` for all `i` in `[0, n)`, in parallel, in contiguous shares.
template <class F>
void host_parallel_for(std::uint64_t n, const F& f) {
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (std::uint64_t i = 0; i < n; ++i) f(i);
}

/// The smallest `i` in `[0, n)` with `holds(i)`, or `n`.
template <class F>
std::uint64_t host_parallel_find_first(std::uint64_t n, const F& holds) {
  std::uint64_t first = n;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) reduction(min : first)
#endif
  for (std::uint64_t i = 0; i < n; ++i)
    if (i < first && holds(i)) first = i;
  return first;
}

/// The sum of `f(i)` over all `i` in `[0, n)`.
template <class F>
std::uint64_t host_parallel_sum(std::uint64_t n, const F& f) {
  std::uint64_t sum = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) reduction(+ : sum)
#endif
  for (std::uint64_t i = 0; i < n; ++i) sum += f(i);
  return sum;
}

/// How many threads the loops above use.
inline int host_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace kindex::perf

#endif
