// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_ONE_THREAD_HPP
#define KINDEX_PERF_ONE_THREAD_HPP

/// \file
/// Lookups without cooperation: what a user's own kernel does.

#include <Kokkos_Core.hpp>

#include <kindex/Types.hpp>

namespace kindex::perf {

/// One find, in a kernel of one's own.
template <class Ref, class Queries, class Out>
struct FindAlone {
  Ref ref;
  Queries queries;
  Out out;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    out(i) = ref.find(queries(i));
  }
};

/// One lower bound, in a kernel of one's own.
template <class Ref, class Queries, class Ranks>
struct LowerBoundAlone {
  Ref ref;
  Queries queries;
  Ranks ranks;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    using Rank = typename Ranks::non_const_value_type;
    ranks(i) = static_cast<Rank>(ref.lower_bound(queries(i)));
  }
};

/// Runs such a kernel, a thread for each query.
template <class Exec, class Kernel>
void run_alone(const Exec& space, const Kernel& kernel) {
  Kokkos::parallel_for("kindex_bench::one_thread",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(
                           space, 0, kernel.queries.extent(0)),
                       kernel);
}

/// The values of queries, found by `ref`.
template <class Exec, class Ref, class Queries, class Out>
void find_alone(const Exec& space, const Ref& ref, const Queries& queries,
                const Out& out) {
  run_alone(space, FindAlone<Ref, Queries, Out>{ref, queries, out});
}

/// `Index`, each of whose lookups one thread makes alone by `index.ref()`: it
/// reads whole nodes itself.
template <class Index>
class OneThread {
 public:
  template <class Exec, class... Arguments>
  explicit OneThread(const Exec& space, const Arguments&... arguments)
      : index_(space, arguments...) {}

  template <class Exec, class Queries, class Ranks>
  void lower_bound(const Exec& space, const Queries& queries,
                   const Ranks& ranks) const {
    using Kernel = LowerBoundAlone<typename Index::Ref, Queries, Ranks>;
    run_alone(space, Kernel{index_.ref(), queries, ranks});
  }

  std::uint64_t memory_bytes() const { return index_.memory_bytes(); }

 private:
  Index index_;
};

}  // namespace kindex::perf

#endif
