// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_LIBART_HPP
#define KINDEX_PERF_BASELINES_LIBART_HPP

#include "../HostSort.hpp"
#include "../Options.hpp"
#include "../StringSequence.hpp"

#include <kindex/Types.hpp>

#include <art.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

namespace kindex::perf {

/// libart, the adaptive radix tree of Leis, Kemper and Neumann (2013) in C by
/// Armon Dadgar, searched in an OpenMP loop. Its keys are the bytes of ours,
/// the most significant first, its values pointers that are none. It is filled
/// in ascending order by one thread. Strings get a zero at their end, since it
/// holds none that others begin with.
template <class Key>
class Libart {
  using Keys = Kokkos::View<const Key*, Kokkos::HostSpace>;
  using Values = Kokkos::View<const std::uint32_t*, Kokkos::HostSpace>;
  struct Text {
    std::array<unsigned char, is_string<Key> ? longest_string + 1 : sizeof(Key)>
        bytes;
    int size;
  };

 public:
  static bool supports(Op, ValueMode mode) { return mode != ValueMode::u64; }

  template <class Exec>
  Libart(const Exec&, SortedTag, const Keys& keys) : Libart() {
    for (std::uint64_t i = 0; i < keys.extent(0); ++i)
      append(keys(i), static_cast<std::uint32_t>(i));
  }

  template <class Exec>
  Libart(const Exec&, const Keys& keys, const Values& values) : Libart() {
    for_each_sorted<Key>(keys, values, [this](const Key& key, auto value) {
      append(key, value);
    });
  }

  template <class Exec, class Out>
  void find(const Exec&, const Keys& queries, const Out& out) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      const Text text = text_of(queries(i));
      const void* const found =
          art_search(tree_.get(), text.bytes.data(), text.size);
      out(i) = found == nullptr
                   ? default_missing<std::uint32_t>()
                   : static_cast<std::uint32_t>(
                         reinterpret_cast<std::uintptr_t>(found) - 1);
    });
  }

  /// What it asked for; the allocator takes more.
  std::uint64_t memory_bytes() const { return bytes_below(tree_->root); }

 private:
  struct Destroy {
    void operator()(art_tree* tree) const {
      art_tree_destroy(tree);
      delete tree;
    }
  };

  Libart() : tree_(new art_tree) { art_tree_init(tree_.get()); }

  static Text text_of(const Key& key) {
    Text text;
    if constexpr (is_string<Key>) {
      *std::copy_n(key.data, key.size, text.bytes.data()) = 0;
      text.size = static_cast<int>(key.size) + 1;
    } else {
      const auto bits = KeyTraits<Key>::to_bits(key);
      text.size = sizeof(Key);
      for (std::size_t i = 0; i < sizeof(Key); ++i)
        if constexpr (sizeof(Key) == 16)
          text.bytes[i] = static_cast<unsigned char>(
              (i < 8 ? bits.hi : bits.lo) >> (56 - 8 * (i % 8)));
        else
          text.bytes[i] =
              static_cast<unsigned char>(bits >> (8 * (sizeof(Key) - 1 - i)));
    }
    return text;
  }

  /// The first of equal keys stays.
  void append(const Key& key, std::uint32_t value) {
    const Text text = text_of(key);
    art_insert_no_replace(
        tree_.get(), text.bytes.data(), text.size,
        reinterpret_cast<void*>(static_cast<std::uintptr_t>(value) + 1));
  }

  template <class Node>
  static std::uint64_t bytes_of_node(const art_node* node, int children) {
    const auto* const full = reinterpret_cast<const Node*>(node);
    std::uint64_t bytes = sizeof(Node);
    for (int i = 0; i < children; ++i) bytes += bytes_below(full->children[i]);
    return bytes;
  }

  static std::uint64_t bytes_below(const art_node* node) {
    if (node == nullptr) return 0;
    const auto bits = reinterpret_cast<std::uintptr_t>(node);
    if (bits % 2 == 1)
      return sizeof(art_leaf) +
             reinterpret_cast<const art_leaf*>(bits - 1)->key_len;
    switch (node->type) {
      case NODE4: return bytes_of_node<art_node4>(node, node->num_children);
      case NODE16: return bytes_of_node<art_node16>(node, node->num_children);
      case NODE48: return bytes_of_node<art_node48>(node, 48);
      default: return bytes_of_node<art_node256>(node, 256);
    }
  }

  std::unique_ptr<art_tree, Destroy> tree_;
};

}  // namespace kindex::perf

#undef NODE4
#undef NODE16
#undef NODE48
#undef NODE256

#endif
