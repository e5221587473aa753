// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each macro adds one use that must be refused with a message of ours; without
// any, this compiles.
#include <cstdint>
#include <kindex/HybridLearnedIndex.hpp>
#include <kindex/SortedArray.hpp>

using Exec = Kokkos::DefaultExecutionSpace;
using Memory = Exec::memory_space;

template <class T>
using View = Kokkos::View<T*, Memory>;

// A memory space that no execution space of Kokkos can access.
struct FarSpace {
  using memory_space = FarSpace;
  using execution_space = Kokkos::DefaultHostExecutionSpace;
  using device_type = Kokkos::Device<execution_space, memory_space>;
  using size_type = std::size_t;
  static constexpr const char* name() { return "Far"; }
};
using FarView =
    Kokkos::View<int*, FarSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

void use(const Exec& space, const View<int>& keys, const View<double>& doubles,
         const View<float>& floats, const View<kindex::Key128>& wide,
         const View<bool>& bools, const View<kindex::size_type>& ranks,
         const View<const kindex::size_type>& const_ranks,
         const Kokkos::View<int**, Memory>& matrix,
         [[maybe_unused]] const FarView& far) {
  const kindex::SortedArray index(space, keys);
  const kindex::SortedArray wide_index(space, wide);
  const kindex::SortedArray double_index(space, doubles);
  index.lower_bound(space, doubles, ranks);
#if defined(KINDEX_FAR_QUERIES)
  index.lower_bound(space, far, ranks);
#elif defined(KINDEX_FAR_KEYS)
  const kindex::SortedArray<int, std::uint32_t, Memory> other(space, far);
#elif defined(KINDEX_FAR_QUERIES_OF_HYBRID)
  const kindex::HybridLearnedIndex<int, std::uint32_t, Memory> hybrid;
  hybrid.lower_bound(space, far, ranks);
#elif defined(KINDEX_FAR_KEYS_OF_HYBRID)
  const kindex::HybridLearnedIndex<int, std::uint32_t, Memory> hybrid(space,
                                                                      far);
#elif defined(KINDEX_FLOAT_QUERIES_ON_KEY128)
  wide_index.lower_bound(space, floats, ranks);
#elif defined(KINDEX_KEY128_QUERIES_ON_DOUBLE)
  double_index.lower_bound(space, wide, ranks);
#elif defined(KINDEX_BOOL_QUERIES)
  index.lower_bound(space, bools, ranks);
#elif defined(KINDEX_BOOL_KEYS)
  const kindex::SortedArray other(space, bools);
#elif defined(KINDEX_TWO_DIMENSIONAL_KEYS)
  const kindex::SortedArray<int, std::uint32_t, Memory> other(space, matrix);
#elif defined(KINDEX_CONST_OUTPUT)
  index.lower_bound(space, keys, const_ranks);
#elif defined(KINDEX_FLOATING_POINT_RANKS)
  index.lower_bound(space, keys, floats);
#elif defined(KINDEX_ROWS_AS_DOUBLES)
  const kindex::SortedArray<int, double, Memory> other(space, keys);
#elif defined(KINDEX_TOP_ON_DEVICE_ONLY)
  index.lower_bound(space, keys, ranks,
                    kindex::BasicLookupPolicy<kindex::BroadcastTop>());
#elif !defined(KINDEX_ACCEPTED)
#error "unknown case"
#endif
  (void)bools, (void)const_ranks, (void)matrix, (void)floats;
}
