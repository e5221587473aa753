// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_PIVOTROUTER_HPP
#define KINDEX_QUERY_PIVOTROUTER_HPP

/// \file
/// From keys to the leaves, or other units of entries, that implicit levels of
/// pivots lead to, and from there to positions.

#include <kindex/query/HostNodes.hpp>
#include <kindex/query/Node.hpp>

namespace kindex::query {

/// Levels of pivots as kernels see them: trivially copyable, non-owning. Node
/// by node, K−1 pivots side by side lead to one of K children, without
/// pointers; see build::PivotLevels. Without entries, it is not asked.
///
/// \tparam Key type of the keys.
/// \tparam K children of a node.
template <class Key, int K>
struct PivotRouter {
  using pinned_type = Key;  ///< what the search order consists of
  static constexpr bool is_divisible = true;  ///< see Hybrid
  static constexpr int node_keys = K - 1;     ///< pivots of a node
  /// Lanes that read a node together.
  static constexpr int lanes = node_lanes<Key, node_keys>;
  /// The same with one key for each.
  static constexpr int most_lanes = one_key_lanes<Key, node_keys, node_keys>;

  const PivotLevel* levels = nullptr;  ///< from the root
  const Key* pivots = nullptr;         ///< of all levels, from the root
  size_type units = 0;  ///< children of the last level that hold entries
  size_type unit = 0;   ///< entries of such a unit
  int height = 0;       ///< levels
  NodeSearch how = NodeSearch::scalar;  ///< on a host

  /// Steps from nodes of level `from` to those of level `until`, or to the
  /// children of the last level; the lanes of a group read nodes together.
  /// Children behind a level's end stand for its last.
  ///
  /// \param below what is read next of a child of the last level.
  template <class Index, class Group, class Top, int W>
  KOKKOS_FUNCTION void descend(const Group& group, const Top& top,
                               const Key (&keys)[W], Index (&node)[W], int from,
                               int until,
                               [[maybe_unused]] const ReadSoon& below) const {
    if constexpr (Group::size == 1 && !Top::is_pinned &&
                  node_keys * int(sizeof(Key)) == line_bytes) {
      KOKKOS_IF_ON_HOST(
          (descend_lines(how, levels + from, until - from, pivots, keys, node,
                         W, until == height ? below : ReadSoon{});
           return;))
    }
    // By address: an index would take registers that nvcc does not have to
    // spare.
    for (const PivotLevel* level = levels + from; level < levels + until;
         ++level)
      step(*level, group, top, keys, node);
  }

  /// Leads each lane's own keys from nodes of level `from` to those of level
  /// `until`, or to units behind the last.
  template <class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void walk(const Group& group, const Top& top,
                            const Key (&own)[Own], Index (&at)[Own], int from,
                            int until) const {
    constexpr int W = Own * Group::size;
    Key keys[W];
    Index node[W];
    gather_lanes(group, own, keys);
    gather_lanes(group, at, node);
    descend(group, top, keys, node, from, until, {});
    for (int o = 0; o < Own; ++o) at[o] = own_of(group, &node[o * Group::size]);
  }

  /// The position of the first entry of a unit, or of the last one for those
  /// behind it.
  template <class Index>
  KOKKOS_FUNCTION Index position_of(Index at) const {
    const Index last = Index(units - 1);
    return (at < last ? at : last) * Index(unit);
  }

  /// How many pivots are pinned for `steps` levels (−1: all), at most `most`,
  /// in whole nodes.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    size_type below = 1;  // units below a node of the level
    for (int level = 0; level < height; ++level) below *= K;
    size_type pinned = 0;
    for (int level = 0; level < height && level != steps && pinned < most;
         ++level) {
      pinned += units == 0 ? 0 : ((units - 1) / below + 1) * node_keys;
      below /= K;
    }
    return (pinned < most ? pinned : most) / node_keys * node_keys;
  }

  /// Pivot i of all, from the root.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const { return pivots[i]; }

 private:
  /// Steps from the nodes of a level to their children.
  template <class Index, class Group, class Top, int W>
  KOKKOS_FUNCTION void step(const PivotLevel& level, const Group& group,
                            const Top& top, const Key (&keys)[W],
                            Index (&node)[W]) const {
    const Key* of_level = pivots + level.offset;
    const Index last = Index(level.nodes) - 1;
    // All loads first: they are what takes time, and they overlap.
    using Share = decltype(load_keys<node_keys>(group, of_level, last));
    Share shares[W];
    for (int w = 0; w < W; ++w) {
      // Keys above all others lead past the level's end.
      node[w] = node[w] < last ? node[w] : last;
      const Index first = node[w] * Index(node_keys);
      const bool is_pinned = top.holds(level.offset + first, node_keys);
      shares[w] = load_keys<node_keys>(
          group, is_pinned ? top.keys(pivots) + level.offset : of_level, first);
    }
    unsigned counts[W];
    for (int w = 0; w < W; ++w) counts[w] = count_below(shares[w], keys[w]);
    sum_counts<node_keys>(group, counts);
    for (int w = 0; w < W; ++w) node[w] = node[w] * K + Index(counts[w]);
  }
};

/// Leaves of `Size` ascending entries each, the last one padded, as kernels see
/// them: trivially copyable, non-owning.
///
/// \tparam Entries EntriesRef of the index.
/// \tparam Size entries of a leaf.
/// \tparam lanes that read nodes and leaves together.
template <class Entries, int Size, int lanes>
struct Leaves {
  using Key = std::decay_t<decltype(Entries().key(0))>;  ///< type of the keys
  /// Whether a key stands beside its value.
  static constexpr bool is_aos = requires(const Entries& entries) {
    entries.entries;
  };
  /// Bytes from an entry's key to the next.
  static constexpr int entry_bytes = [] {
    if constexpr (is_aos) {
      return int(sizeof(*Entries().entries));
    } else {
      return int(sizeof(Key));
    }
  }();

  size_type count = 0;  ///< how many
  /// Whether caches should keep them. Measured on an H100: telling the caches
  /// that leaves are read once gains 16 % where they are many times the L2
  /// cache, and costs where they fit or where the lookup comes back for the
  /// entry.
  bool stay = true;
  NodeSearch how = NodeSearch::scalar;  ///< on a host

  /// The leaves of `size` entries.
  KOKKOS_FUNCTION static Leaves of(size_type size, NodeSearch how) {
    const size_type leaves = size == 0 ? 0 : (size - 1) / Size + 1;
    return {leaves, leaves * Size * entry_bytes <= size_type{128} << 20, how};
  }

  /// Whether partitions of a large batch gain below whole pivots. Measured on
  /// an H100: for values that lie apart from their keys; for pairs from 512
  /// MiB, except with keys of 8 bytes in wide nodes; for keys alone not in wide
  /// nodes whose last level fits L2 (2^25 keys of 4 bytes: 22.6 instead of 26.6
  /// billion lookups per second).
  KOKKOS_FUNCTION bool partitioning_pays(bool finds,
                                         const Entries& entries) const {
    const bool is_large = entries.size * entry_bytes >= size_type{512} << 20;
    if constexpr (is_aos) {
      return is_large && (sizeof(Key) < 8 || lanes < 4);
    } else {
      return (finds && entries.has_values_apart()) || lanes < 4 || is_large;
    }
  }

  /// Where the leaves are.
  KOKKOS_FUNCTION static ReadSoon soon(const Entries& entries) {
    if constexpr (is_aos) {
      return {entries.entries, Size * entry_bytes};
    } else {
      return {entries.keys, Size * entry_bytes};
    }
  }

  /// From the leaves of all lanes' keys, or any behind the end for the last, to
  /// the positions of each lane's own keys, or `entries.size`.
  ///
  /// \tparam finds whether equal entries are wanted, instead of lower bounds.
  template <bool finds, class Index, class Group, int Own>
  KOKKOS_FUNCTION void search(const Group& group, const Entries& entries,
                              const Key (&keys)[Own * Group::size],
                              Index (&leaf)[Own * Group::size],
                              size_type (&positions)[Own]) const {
    constexpr int W = Own * Group::size;
    // The sums of flags stand above those of counts.
    constexpr unsigned flag = Kokkos::bit_ceil(unsigned(Size) + 1);
    unsigned counts[W];
    constexpr unsigned added = finds ? flag : 0;
    // The value beside a key is read again.
    constexpr bool comes_back = finds && is_aos;
    if (comes_back || stay) {
      count_in_leaves<Reuse::often, added>(group, entries, keys, leaf, counts);
    } else {
      count_in_leaves<Reuse::never, added>(group, entries, keys, leaf, counts);
    }
    sum_counts<Size + (finds ? flag * Group::size : 0)>(group, counts);
    for (int o = 0; o < Own; ++o) {
      const unsigned sum = own_of(group, &counts[o * Group::size]);
      const size_type position =
          size_type(own_of(group, &leaf[o * Group::size])) * Size + sum % flag;
      const bool wanted = finds ? sum >= flag : position < entries.size;
      positions[o] = wanted ? position : entries.size;
    }
  }

 private:
  /// This lane's part of the numbers of keys below in the leaves `leaf`, and
  /// `flag` more where one of them is equal.
  template <Reuse reuse, unsigned flag, class Index, class Group, int W>
  KOKKOS_FUNCTION void count_in_leaves(const Group& group,
                                       const Entries& entries,
                                       const Key (&keys)[W], Index (&leaf)[W],
                                       unsigned (&counts)[W]) const {
    const Index last = Index(count - 1);
    if constexpr (Group::size == 1 && Size * entry_bytes == line_bytes &&
                  (!is_aos || entry_bytes == 2 * int(sizeof(Key)))) {
      KOKKOS_IF_ON_HOST((
          for (int w = 0; w < W; ++w) leaf[w] = leaf[w] < last ? leaf[w] : last;
          count_in_lines(how, static_cast<const Key*>(soon(entries).first),
                         is_aos ? 2 : 1, keys, leaf, counts, W, flag);
          return;))
    }
    using Share = decltype(load_entries<Size, reuse>(group, entries, last));
    Share shares[W];
    for (int w = 0; w < W; ++w) {
      leaf[w] = leaf[w] < last ? leaf[w] : last;
      shares[w] =
          load_entries<Size, reuse>(group, entries, leaf[w] * Index(Size));
    }
    for (int w = 0; w < W; ++w) {
      counts[w] = count_below(shares[w], keys[w]);
      if constexpr (flag != 0)
        counts[w] += holds(shares[w], keys[w]) ? flag : 0;
    }
  }
};

}  // namespace kindex::query

#endif
