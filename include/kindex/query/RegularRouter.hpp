// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_REGULARROUTER_HPP
#define KINDEX_QUERY_REGULARROUTER_HPP

/// \file
/// The nodes of a regular B+-tree, and the way from its root to the line of a
/// leaf.

#include <kindex/query/HostNodes.hpp>
#include <kindex/query/Node.hpp>

#include <algorithm>
#include <bit>

namespace kindex::query {

/// How many of what a node of a regular B+-tree has. A node's keys are lines
/// of 64 bytes, in front of them one with the last key of each, so that two
/// lines of a node lead to a child (Shahvarani and Jacobsen, SIGMOD 2016).
///
/// | bytes of a key | 1 | 2 | 4 | 8 | 16 |
/// |---|---|---|---|---|---|
/// | children of an inner node | 1024 | 512 | 256 | 64 | 16 |
/// | entries of a leaf | 4096 | 2048 | 1024 | 512 | 64 |
template <class Key>
struct RegularShape {
  /// Keys of a line.
  static constexpr int line_keys = line_bytes / int(sizeof(Key));

  /// Lines of keys of an inner node: no more than its first line has keys.
  static constexpr int inner_lines = std::min(line_keys, 16);
  /// All of them.
  static constexpr int inner_node_lines = 1 + inner_lines;
  /// Keys of an inner node, with its first line.
  static constexpr int inner_node_keys = inner_node_lines * line_keys;
  /// Children of an inner node.
  static constexpr int fan_out = inner_lines * line_keys;

  /// Lines of keys of a leaf, each of which is a child of the node above it.
  static constexpr int leaf_lines = std::min(64, line_keys* line_keys);
  /// Entries of a leaf.
  static constexpr int leaf_keys = leaf_lines * line_keys;
  /// Lines of keys of a last inner node.
  static constexpr int last_lines = leaf_lines / line_keys;
  /// All of them: a single line needs none in front.
  static constexpr int last_node_lines = last_lines == 1 ? 1 : 1 + last_lines;
  /// Keys of a last inner node, with its first line.
  static constexpr int last_node_keys = last_node_lines * line_keys;
};

/// The inner nodes of a regular B+-tree as kernels see them: trivially
/// copyable, non-owning. Without entries, it is not asked.
///
/// Inner nodes have numbers, and lie in three pools: keys (what every search
/// reads), numbers of children (one of them), and how many there are (what
/// only updates read). The last inner nodes have the numbers of their leaves,
/// and lines of these as children. Key i is the largest below child i; behind
/// the last but one follow keys that are below none, the type's largest. What
/// is counted is keys below the one searched: none of those ever is, so that
/// they take no key from the caller, and the count never leads behind the last
/// child.
///
/// Searches go through `height` levels of nodes, of which the last inner nodes
/// are the last, to lines of leaves, numbered through: line i of leaf l is l *
/// leaf_lines + i.
template <class Key>
struct RegularRouter {
  using Shape = RegularShape<Key>;  ///< sizes of nodes
  using pinned_type = Key;          ///< what the search order consists of
  static constexpr bool is_divisible = true;  ///< see Hybrid
  /// Lanes that read a line together.
  static constexpr int lanes = node_lanes<Key, Shape::line_keys>;
  /// The same with one key for each.
  static constexpr int most_lanes =
      one_key_lanes<Key, Shape::line_keys, Shape::line_keys>;

  const Key* inner = nullptr;               ///< keys of inner nodes
  const std::uint32_t* children = nullptr;  ///< of inner nodes
  const Key* last = nullptr;                ///< keys of last inner nodes
  std::uint32_t root = 0;       ///< number of the root: a leaf's at height 0
  std::uint32_t last_leaf = 0;  ///< the leaf of the largest keys
  int height = 0;               ///< levels of inner nodes
  NodeSearch how = NodeSearch::scalar;  ///< on a host
  int dropped = 0;  ///< bits of the number of a line that guesses leave out
  int shift = 0;    ///< bits that the engine leaves out: see Hybrid

  /// Leads keys from the root to lines of leaves. The lanes of a group read
  /// lines together.
  ///
  /// \param leaves keys of leaves, which a host fetches; or null.
  template <class Group, int W>
  KOKKOS_FUNCTION void descend(const Group& group, const Key (&keys)[W],
                               size_type (&line)[W], const Key* leaves) const {
    size_type node[W];
    for (int w = 0; w < W; ++w) node[w] = root;
    search_inner(group, keys, node, line, 0, height - 1);
    search_last(group, keys, node, line, leaves);
  }

  /// The part of descend from inner nodes `node` of level `from` to nodes of
  /// level `until`, which may be the last inner ones.
  ///
  /// \param line is overwritten.
  template <class Group, int W>
  KOKKOS_FUNCTION void search_inner(const Group& group, const Key (&keys)[W],
                                    size_type (&node)[W], size_type (&line)[W],
                                    int from, int until) const {
    constexpr int line_keys = Shape::line_keys;
    unsigned counts[W];
    for (int level = from; level < until; ++level) {
      for (int w = 0; w < W; ++w) line[w] = node[w] * Shape::inner_node_lines;
      count_below_in(group, inner, keys, line, counts);
      for (int w = 0; w < W; ++w) {
        line[w] += 1 + counts[w];
        node[w] = node[w] * Shape::fan_out + counts[w] * line_keys;
        prefetch(inner + line[w] * line_keys);
        prefetch(children + node[w]);
      }
      count_below_in(group, inner, keys, line, counts);
      for (int w = 0; w < W; ++w) {
        node[w] = children[node[w] + counts[w]];
        prefetch(level + 2 < height ? inner + node[w] * Shape::inner_node_keys
                                    : last + node[w] * Shape::last_node_keys);
      }
    }
  }

  /// The part of descend below the last inner nodes `node`.
  template <class Group, int W>
  KOKKOS_FUNCTION void search_last(const Group& group, const Key (&keys)[W],
                                   size_type (&node)[W], size_type (&line)[W],
                                   const Key* leaves) const {
    constexpr int line_keys = Shape::line_keys;
    unsigned counts[W];
    for (int w = 0; w < W; ++w) line[w] = node[w] * Shape::last_node_lines;
    if constexpr (Shape::last_lines > 1) {
      count_below_in(group, last, keys, line, counts);
      for (int w = 0; w < W; ++w) {
        line[w] += 1 + counts[w];
        node[w] = node[w] * Shape::leaf_lines + counts[w] * line_keys;
        prefetch(last + line[w] * line_keys);
      }
    } else {
      for (int w = 0; w < W; ++w) node[w] *= Shape::leaf_lines;
    }
    count_below_in(group, last, keys, line, counts);
    for (int w = 0; w < W; ++w) {
      line[w] = node[w] + counts[w];
      if (leaves != nullptr) prefetch(leaves + line[w] * line_keys);
    }
  }

  /// Each key's number of keys below it in a line of `lines`.
  template <class Group, int W>
  KOKKOS_FUNCTION void count_below_in(const Group& group, const Key* lines,
                                      const Key (&keys)[W],
                                      const size_type (&line)[W],
                                      unsigned (&counts)[W]) const {
    constexpr int line_keys = Shape::line_keys;
    if constexpr (Group::size == 1) {
      KOKKOS_IF_ON_HOST(
          (count_in_lines(how, lines, 1, keys, line, counts, W, 0U); return;))
    }
    // All loads first: they are what takes time, and they overlap.
    using Share = decltype(load_keys<line_keys>(group, lines, line[0]));
    Share shares[W];
    for (int w = 0; w < W; ++w)
      shares[w] = load_keys<line_keys>(group, lines, line[w] * line_keys);
    for (int w = 0; w < W; ++w) counts[w] = count_below(shares[w], keys[w]);
    sum_counts<line_keys>(group, counts);
  }

  /// Leads each lane's own keys from nodes of level `from`, anything for 0, to
  /// those of level `until`, or behind the last one to lines without the bits
  /// that guesses leave out. See Hybrid.
  template <class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void walk(const Group& group, const Top& /*top*/,
                            const Key (&own)[Own], Index (&at)[Own], int from,
                            int until) const {
    constexpr int W = Own * Group::size;
    if (from == until) return;
    Key keys[W];
    size_type node[W], line[W];
    gather_lanes(group, own, keys);
    if (from == 0) {
      for (int w = 0; w < W; ++w) node[w] = root;
    } else {
      Index given[W];
      gather_lanes(group, at, given);
      for (int w = 0; w < W; ++w) node[w] = given[w];
    }
    search_inner(group, keys, node, line, from,
                 until < height ? until : height - 1);
    if (until == height) {
      search_last(group, keys, node, line, nullptr);
      for (int w = 0; w < W; ++w) node[w] = line[w] >> dropped;
    }
    for (int o = 0; o < Own; ++o)
      at[o] = Index(own_of(group, &node[o * Group::size]));
  }

  /// The guess for what walk leads to behind the last level.
  template <class Index>
  KOKKOS_FUNCTION Index position_of(Index at) const {
    return Index(at << shift);
  }

  /// Sets how guesses fit 32 bits, for an index of `size` entries in leaves
  /// with numbers below `leaves`.
  void fit_guesses(size_type size, size_type leaves) {
    const int used = std::bit_width(size);
    const int needed = std::bit_width(leaves * Shape::leaf_lines - 1);
    constexpr int guess_bits = 32;
    shift = used > guess_bits ? used - guess_bits : 0;
    dropped = needed > guess_bits ? needed - guess_bits : 0;
  }

  /// The guess for a line, whose lowest bits are left out where 32 do not hold
  /// it.
  KOKKOS_FUNCTION size_type guess_of(size_type line) const {
    return (line >> dropped) << shift;
  }
  /// The line of a guess, or one before it in the same leaf.
  KOKKOS_FUNCTION size_type line_of(size_type guess) const {
    return (guess >> shift) << dropped;
  }
  /// The guess for what is nowhere: of a line that is there.
  KOKKOS_FUNCTION size_type somewhere() const {
    return guess_of(size_type{last_leaf} * Shape::leaf_lines);
  }

  /// Nothing is pinned: a node's keys are not side by side with its children.
  KOKKOS_FUNCTION size_type pinned_size(int /*steps*/,
                                        size_type /*most*/) const {
    return 0;
  }
  /// Not called.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const { return inner[i]; }
};

}  // namespace kindex::query

#endif
