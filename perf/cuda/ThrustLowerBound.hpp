// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_CUDA_THRUST_LOWER_BOUND_HPP
#define KINDEX_PERF_CUDA_THRUST_LOWER_BOUND_HPP

#include "../Options.hpp"

#include <kindex/build/Entries.hpp>

#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

#include <cstdint>

namespace kindex::perf {

namespace thrust_kernels {

/// Turns lower bounds into values.
template <class Entries, class Queries, class Out>
struct Look {
  Entries entries;
  Queries queries;
  Out out;
  const std::uint32_t* ranks;
  KOKKOS_FUNCTION void operator()(std::uint64_t i) const {
    const std::uint32_t rank = ranks[i];
    const bool hit = rank < entries.size && entries.key(rank) == queries(i);
    out(i) =
        hit ? entries.value(rank) : default_missing<typename Out::value_type>();
  }
};

/// Turns lower and upper bounds into counts.
template <class Counts>
struct Subtract {
  Counts counts;  ///< upper bounds, become counts
  const std::uint32_t* lower;
  KOKKOS_FUNCTION void operator()(std::uint64_t i) const {
    counts(i) -= lower[i];
  }
};

}  // namespace thrust_kernels

/// thrust::lower_bound on a sorted array. How long it would take to sort is not
/// measured: the entries are put in order by the library.
template <class Key, class Value>
class ThrustLowerBound {
  using Memory = Kokkos::CudaSpace;
  using Keys = Kokkos::View<const Key*, Memory>;
  using Values = Kokkos::View<const Value*, Memory>;
  using Entries = build::Entries<Key, Value, Memory, SoA>;

 public:
  static bool supports(Op op, ValueMode) {
    return op != Op::build && op != Op::build_sorted;
  }

  ThrustLowerBound(const Kokkos::Cuda& space, SortedTag, const Keys& keys)
      : entries_(Entries::from_sorted("thrust_lower_bound", space, keys,
                                      Check::off)) {}

  ThrustLowerBound(const Kokkos::Cuda& space, const Keys& keys,
                   const Values& values)
      : entries_(Entries::from_unsorted("thrust_lower_bound", space, keys,
                                        values)) {}

  template <class Out>
  void find(const Kokkos::Cuda& space, const Keys& queries,
            const Out& out) const {
    const auto ranks = temporary(space, queries.extent(0));
    lower_bound(space, queries, ranks);
    using Ref = typename Entries::Ref;
    run(space, "find", queries.extent(0),
        thrust_kernels::Look<Ref, Keys, Out>{entries_.ref(), queries, out,
                                             ranks.data()});
  }

  template <class Ranks>
  void lower_bound(const Kokkos::Cuda& space, const Keys& queries,
                   const Ranks& ranks) const {
    const Key* keys = entries_.ref().keys;
    thrust::lower_bound(thrust::cuda::par_nosync.on(space.cuda_stream()), keys,
                        keys + entries_.size(), queries.data(),
                        queries.data() + queries.extent(0), ranks.data());
  }

  template <class Counts>
  void count(const Kokkos::Cuda& space, const Keys& queries,
             const Counts& counts) const {
    const auto ranks = temporary(space, queries.extent(0));
    lower_bound(space, queries, ranks);
    const Key* keys = entries_.ref().keys;
    thrust::upper_bound(thrust::cuda::par_nosync.on(space.cuda_stream()), keys,
                        keys + entries_.size(), queries.data(),
                        queries.data() + queries.extent(0), counts.data());
    run(space, "count", queries.extent(0),
        thrust_kernels::Subtract<Counts>{counts, ranks.data()});
  }

  std::uint64_t memory_bytes() const { return entries_.memory_bytes(); }

 private:
  using Temporary = Kokkos::View<std::uint32_t*, Memory>;

  static Temporary temporary(const Kokkos::Cuda& space, std::uint64_t n) {
    return Temporary(Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                        "kindex_bench::thrust::ranks"),
                     n);
  }

  template <class Kernel>
  static void run(const Kokkos::Cuda& space, const char* what, std::uint64_t n,
                  const Kernel& kernel) {
    Kokkos::parallel_for(
        std::string("kindex_bench::thrust::") + what,
        Kokkos::RangePolicy<Kokkos::Cuda, Kokkos::IndexType<std::uint64_t>>(
            space, 0, n),
        kernel);
  }

  Entries entries_;
};

}  // namespace kindex::perf

#endif
