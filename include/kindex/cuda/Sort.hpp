// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_CUDA_SORT_HPP
#define KINDEX_CUDA_SORT_HPP

/// \file
/// The radix sort of keys on a CUDA device.

#include <Kokkos_Macros.hpp>

#ifdef KOKKOS_ENABLE_CUDA

#include <kindex/Key.hpp>
#include <kindex/build/Scratch.hpp>
#include <kindex/query/Strided.hpp>

#include <string>

namespace kindex::cuda {

/// Bits and rows of keys, apart, as the radix sort wants them.
template <class Key, class Row>
struct MakePairs {
  using Bits = typename KeyTraits<Key>::bits_type;
  query::Strided<const Key> keys;
  Bits* bits;
  Row* rows;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    bits[i] = KeyTraits<Key>::to_bits(keys(i));
    rows[i] = static_cast<Row>(i);
  }
};

/// Sorts pairs stably by bits (`cub::DeviceRadixSort`, compiled in the
/// library, for the bits of all key types and rows of 32 and 64 bits). With
/// `temporary` null only writes the bytes of temporary memory it needs.
/// Asynchronous on `space`.
template <class Bits, class Row>
void sort_pairs(const Kokkos::Cuda& space, void* temporary,
                std::size_t& temporary_bytes, const Bits* bits_in,
                Bits* bits_out, const Row* rows_in, Row* rows_out,
                size_type size);

/// build::sort_rows on a CUDA device. Asynchronous on `space`.
template <class Row, class Key>
Kokkos::View<Row*, Kokkos::CudaSpace> sort_rows(
    const std::string& label, const Kokkos::Cuda& space,
    query::Strided<const Key> keys,
    build::Scratch<Kokkos::CudaSpace>* scratch = nullptr) {
  using Bits = typename KeyTraits<Key>::bits_type;
  using Memory = Kokkos::CudaSpace;
  const auto array = [&]<class T>(T, const char* what, size_type size) {
    return build::temporary<T, Memory>(space, label + "::sort::" + what, size,
                                       scratch);
  };
  const auto bits = array(Bits{}, "bits", keys.size);
  const auto sorted = array(Bits{}, "sorted_bits", keys.size);
  const auto input = array(Row{}, "input_rows", keys.size);
  const auto rows = array(Row{}, "rows", keys.size);
  Kokkos::parallel_for(
      label + "::sort::make_pairs",
      Kokkos::RangePolicy<Kokkos::Cuda, Kokkos::IndexType<size_type>>(
          space, 0, keys.size),
      MakePairs<Key, Row>{keys, bits.data(), input.data()});
  std::size_t bytes = 0;
  sort_pairs(space, nullptr, bytes, bits.data(), sorted.data(), input.data(),
             rows.data(), keys.size);
  const auto temporary = array(std::byte{}, "temporary", bytes);
  sort_pairs(space, temporary.data(), bytes, bits.data(), sorted.data(),
             input.data(), rows.data(), keys.size);
  return rows;
}

}  // namespace kindex::cuda

#endif
#endif
