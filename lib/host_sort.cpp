// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kindex/build/Sort.hpp>

#include <algorithm>

#if defined(KOKKOS_ENABLE_OPENMP) && defined(__GLIBCXX__)
#include <parallel/algorithm>
#define KINDEX_HAVE_PARALLEL_MODE
#endif

namespace kindex::build {

template <class Bits, class Row>
void sort_entries_on_host(SortEntry<Bits, Row>* first, size_type size,
                          [[maybe_unused]] int threads) {
#ifdef KINDEX_HAVE_PARALLEL_MODE
  // Entries are distinct, so any sort is stable.
  __gnu_parallel::sort(first, first + size,
                       __gnu_parallel::multiway_mergesort_tag(
                           static_cast<__gnu_parallel::_ThreadIndex>(threads)));
#else
  std::sort(first, first + size);
#endif
}

#define KINDEX_SORT_ENTRIES(Bits)                                     \
  template void sort_entries_on_host(SortEntry<Bits, std::uint32_t>*, \
                                     size_type, int);                 \
  template void sort_entries_on_host(SortEntry<Bits, std::uint64_t>*, \
                                     size_type, int)

KINDEX_SORT_ENTRIES(std::uint8_t);
KINDEX_SORT_ENTRIES(std::uint16_t);
KINDEX_SORT_ENTRIES(std::uint32_t);
KINDEX_SORT_ENTRIES(std::uint64_t);
KINDEX_SORT_ENTRIES(Key128);

#undef KINDEX_SORT_ENTRIES

}  // namespace kindex::build
