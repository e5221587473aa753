// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_ARTTREE_HPP
#define KINDEX_PERF_BASELINES_ARTTREE_HPP

#include "../HostSort.hpp"
#include "../Options.hpp"

#include <kindex/Types.hpp>

#include <ART/Tree.h>
#include <malloc.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace kindex::perf {

/// The adaptive radix tree of Leis, Scheibner, Kemper and Neumann, "The ART of
/// Practical Synchronization" (DaMoN 2016), in its form without
/// synchronisation, searched in an OpenMP loop. Its keys are the bytes of ours,
/// the most significant first; it is filled in ascending order by one thread.
/// Where a lookup ends, it reads the key in the array that it was built from.
template <class Key>
class ArtTree {
  using Keys = Kokkos::View<const Key*, Kokkos::HostSpace>;
  using Values = Kokkos::View<const std::uint32_t*, Kokkos::HostSpace>;
  using Tree = ART_unsynchronized::Tree;

 public:
  static bool supports(Op, ValueMode mode) { return mode != ValueMode::u64; }

  template <class Exec>
  ArtTree(const Exec&, SortedTag, const Keys& keys) : ArtTree(keys) {
    insert([&](std::uint64_t i) { return i; });
  }

  /// Values are the rows of the keys.
  template <class Exec>
  ArtTree(const Exec&, const Keys& keys, const Values& values) : ArtTree(keys) {
    values_ = values;
    const auto entries = sorted_entries<Key>(keys);
    insert([&](std::uint64_t i) { return entries(i).row; });
  }

  template <class Exec, class Out>
  void find(const Exec&, const Keys& queries, const Out& out) const {
    searched_ = keys_.data();
    const Tree& tree = *tree_;
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      ::Key key;
      write(queries(i), key);
      const TID found = tree.lookup(key);
      out(i) = found == 0              ? default_missing<std::uint32_t>()
               : values_.extent(0) > 0 ? values_(found - 1)
                                       : static_cast<std::uint32_t>(found - 1);
    });
  }

  /// What nodes took of the heap, and the keys that it reads.
  std::uint64_t memory_bytes() const {
    return node_bytes_ + keys_.extent(0) * sizeof(Key) +
           values_.extent(0) * sizeof(std::uint32_t);
  }

 private:
  explicit ArtTree(const Keys& keys)
      : keys_(keys), tree_(std::make_unique<Tree>(load)) {}

  template <class RowOf>
  void insert(const RowOf& row_of) {
    searched_ = keys_.data();
    const std::size_t before = mallinfo2().uordblks;
    for (std::uint64_t i = 0; i < keys_.extent(0); ++i) {
      const std::uint64_t row = row_of(i);
      // The first of equal keys stays.
      if (i > 0 && keys_(row) == keys_(row_of(i - 1))) continue;
      ::Key key;
      write(keys_(row), key);
      tree_->insert(key, row + 1);
    }
    node_bytes_ = mallinfo2().uordblks - before;
  }

  static void write(const Key& from, ::Key& to) {
    const auto bits = KeyTraits<Key>::to_bits(from);
    std::array<char, sizeof(Key)> bytes;
    for (std::size_t i = 0; i < sizeof(Key); ++i)
      bytes[i] = static_cast<char>(bits >> (8 * (sizeof(Key) - 1 - i)));
    to.set(bytes.data(), sizeof(Key));
  }

  static void load(TID row, ::Key& key) { write(searched_[row - 1], key); }

  /// Trees call a plain function for the keys of their rows.
  static inline const Key* searched_ = nullptr;

  Keys keys_;
  Values values_;
  std::unique_ptr<Tree> tree_;
  std::uint64_t node_bytes_ = 0;
};

}  // namespace kindex::perf

#endif
