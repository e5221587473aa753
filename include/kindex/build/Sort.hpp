// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_SORT_HPP
#define KINDEX_BUILD_SORT_HPP

/// \file
/// The stable order of keys, on any device, for every index that is built from
/// unsorted input.

#include <kindex/Key.hpp>
#include <kindex/build/Scratch.hpp>
#include <kindex/query/Strided.hpp>

#include <Kokkos_Sort.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <kindex/cuda/Sort.hpp>
#endif

#include <limits>
#include <string>

namespace kindex::build {

/// A key's bits and the row it came from: what is sorted.
template <class Bits, class Row>
struct SortEntry {
  Bits bits;  ///< order-preserving bits of the key
  Row row;    ///< position in the input

  /// Order by bits, equal bits by row: what a stable sort of the keys gives.
  KOKKOS_FUNCTION friend bool operator<(const SortEntry& a,
                                        const SortEntry& b) {
    return a.bits < b.bits || (!(b.bits < a.bits) && a.row < b.row);
  }
};

/// Sorts entries in host memory with up to `threads` threads (compiled in the
/// library, for the bits of all key types and rows of 32 and 64 bits).
template <class Bits, class Row>
void sort_entries_on_host(SortEntry<Bits, Row>* first, size_type size,
                          int threads);

/// Makes the entries of keys.
template <class Key, class Row>
struct MakeEntries {
  using Bits = typename KeyTraits<Key>::bits_type;
  query::Strided<const Key> keys;
  SortEntry<Bits, Row>* entries;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    entries[i] = {KeyTraits<Key>::to_bits(keys(i)), static_cast<Row>(i)};
  }
};

/// Takes the rows out of entries.
template <class Bits, class Row>
struct TakeRows {
  const SortEntry<Bits, Row>* entries;
  Row* rows;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    rows[i] = entries[i].row;
  }
};

/// The input rows in ascending order of their keys, equal keys in the order of
/// the input: `keys(rows(0)) <= keys(rows(1)) <= ...`.
///
/// On CUDA a radix sort (CUB), on OpenMP a parallel merge sort (libstdc++), on
/// other devices the sort of Kokkos. Temporary memory: twice the keys' bits
/// and rows. Ordered on `space`; fences it where the sort is a host's.
///
/// \tparam Row an unsigned type that can number the keys.
/// \param label prefix of all labels.
template <class Row, class Exec, class Key>
Kokkos::View<Row*, typename Exec::memory_space> sort_rows(
    const std::string& label, const Exec& space, query::Strided<const Key> keys,
    Scratch<typename Exec::memory_space>* scratch = nullptr) {
  using Memory = typename Exec::memory_space;
  using Bits = typename KeyTraits<Key>::bits_type;
  using Entry = SortEntry<Bits, Row>;
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) {
    return cuda::sort_rows<Row>(label, space, keys, scratch);
  }
#endif
  const auto entries = temporary<Entry, Memory>(
      space, label + "::sort::entries", keys.size, scratch);
  Kokkos::parallel_for(label + "::sort::make_entries",
                       Range(space, 0, keys.size),
                       MakeEntries<Key, Row>{keys, entries.data()});
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace,
                                           Memory>::accessible) {
    space.fence(label + "::sort");
    sort_entries_on_host(entries.data(), keys.size, space.concurrency());
  } else {
    Kokkos::sort(space, entries);
  }
  const auto rows =
      temporary<Row, Memory>(space, label + "::sort::rows", keys.size, scratch);
  Kokkos::parallel_for(label + "::sort::take_rows", Range(space, 0, keys.size),
                       TakeRows<Bits, Row>{entries.data(), rows.data()});
  return rows;
}

}  // namespace kindex::build

#endif
