// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_DATA_SET_HPP
#define KINDEX_PERF_DATA_SET_HPP

/// \file
/// The keys of a run and the host reference: a sorted copy.

#include "HostSort.hpp"
#include "KeySpec.hpp"
#include "PackedStrings.hpp"
#include "Progress.hpp"
#include "Random.hpp"

#include <kindex/Error.hpp>
#include <kindex/io/KeyFile.hpp>

#include <span>

namespace kindex::perf {

/// The value stored with the key of `row`: unlike its row, so that an index
/// that returns positions instead of values is caught.
template <class Value>
Value value_of_row(std::uint64_t row) {
  return static_cast<Value>(mix(row));
}

/// A key set in host memory.
template <class Key>
struct DataSet {
  HostArray<const Key> keys;            ///< as generated or read
  HostArray<const Key> sorted;          ///< ascending
  HostArray<const std::uint32_t> rows;  ///< position in `keys` of each `sorted`

  std::uint64_t size() const { return keys.extent(0); }

  static DataSet make(const KeySpec& spec, std::uint64_t seed) {
    DataSet data;
    data.keys = spec.file.empty() ? generated(spec, seed) : read(spec);
    data.sort();
    return data;
  }

 private:
  static HostArray<const Key> generated(const KeySpec& spec,
                                        std::uint64_t seed) {
    const Progress progress("generating " + spec.description());
    if constexpr (is_string<Key>) {
      const StringSequence strings(*spec.strings, seed);
      return packed_strings<Kokkos::HostSpace>(
          "keys", spec.size, [&](std::uint64_t i) { return strings.size(i); },
          [&](std::uint64_t i, unsigned char* to) {
            strings.write(i, reinterpret_cast<char*>(to));
          });
    } else {
      auto keys = host_array<Key>("keys", spec.size);
      generate<Key>(*spec.generator, seed, std::span(keys.data(), spec.size));
      return keys;
    }
  }

  static HostArray<const Key> read(const KeySpec& spec) {
    const Progress progress("reading " + spec.description());
    if constexpr (std::is_same_v<Key, std::uint32_t> ||
                  std::is_same_v<Key, std::uint64_t>)
      return read_key_file<Key>(spec.file);
    else
      throw Error("a key file holds u32 or u64 keys");
  }

  void sort() {
    const Progress progress("sorting " + std::to_string(size()) +
                            " keys for the host reference");
    const auto entries = sorted_entries<Key>(keys);
    auto ascending = host_array<Key>("sorted", size());
    auto from = host_array<std::uint32_t>("rows", size());
    host_parallel_for(size(), [&](std::uint64_t i) {
      ascending(i) = entries(i).key;
      from(i) = entries(i).row;
    });
    // The reference must not depend on the map to bits being right.
    const std::uint64_t steps = size() > 0 ? size() - 1 : 0;
    if (host_parallel_find_first(steps, [&](std::uint64_t i) {
          return is_less(ascending(i + 1), ascending(i)) ||
                 (!is_less(ascending(i), ascending(i + 1)) &&
                  from(i + 1) < from(i));
        }) != steps)
      throw Error("kindex_bench: the host reference is not sorted stably");
    if constexpr (is_string<Key>)
      sorted = packed<Kokkos::HostSpace>("sorted", ascending);
    else
      sorted = ascending;
    rows = from;
  }
};

}  // namespace kindex::perf

#endif
