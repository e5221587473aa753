// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PIVOTTREE_HPP
#define KINDEX_PIVOTTREE_HPP

/// \file
/// Ascending keys under implicit levels of pivots: K-ary search by nodes.

#include <kindex/build/Entries.hpp>
#include <kindex/query/AscendingRef.hpp>
#include <kindex/query/BulkQueries.hpp>
#include <kindex/query/Node.hpp>

#include <algorithm>
#include <bit>

namespace kindex {

/// How the last level of pivots, the largest, is stored.
enum class LastLevel {
  automatic,  ///< quantised where whole pivots would not stay in a GPU's L2
  exact,      ///< whole keys
  quantised   ///< 8 bits each, relative to the node's own range
};

namespace build {

/// A stored level of a PivotTree.
struct PivotLevel {
  size_type offset;  ///< its first pivot among all
  size_type nodes;   ///< its nodes
};

}  // namespace build

/// How a PivotTree is built.
struct PivotTreeOptions {
  /// Levels of pivots, from the root, that are stored; −1: all. What is left
  /// out at the bottom is finished by binary search of the ascending keys.
  int levels = -1;
  /// How the last of all levels is stored (ignored if it is left out).
  LastLevel last_level = LastLevel::automatic;
};

/// Ascending keys, as in SortedArray, below implicit levels of pivots: node by
/// node, K−1 pivots side by side lead to one of K children, without pointers
/// (Henneberg and Schuhknecht, "Is Binary Search Really All You Need?", 2025:
/// AO+PB+KS, with K = 2 AO+PB+BS). Every path from the root has the same
/// length. Duplicates keep the order of the input.
///
/// A pivot is the largest key of its child's subtree. With whole levels l
/// counted from the leaves, pivot i of level l is the key at position
/// K^l·B·(1 + i + ⌊i/(K−1)⌋) − 1, or the last key behind the end, for leaves of
/// B keys: one load and one store per pivot, all in parallel.
///
/// A lookup reads one node per level and one leaf, each in loads of 16 bytes:
/// on a GPU by a group of lanes together. From memory that costs one leaf, of
/// 64 bytes or 128 for pairs of more than 8, if the levels stay in the L2
/// cache. The last level takes a key for every leaf; quantised to 8 bits
/// relative to the range of its node, it takes a byte, and where its rounding
/// leaves a choice, leaves are compared. Nodes of such codes have 16 of them
/// where nodes of keys have fewer, with as many children more: that leaves the
/// levels above half as large for keys of 8 bytes.
///
/// \tparam Key, Value, MemorySpace, Layout as for SortedArray.
/// \tparam K children of a node, at least 2. Default: nodes of 64 bytes.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA, int K = 64 / int(sizeof(Key)) + 1>
class PivotTree
    : public query::BulkQueries<PivotTree<Key, Value, MemorySpace, Layout, K>,
                                Key, Value, MemorySpace> {
  static_assert(K >= 2, "kindex: a node has at least two children");

  using Storage = build::Entries<Key, Value, MemorySpace, Layout>;
  static constexpr int node_keys = K - 1;
  static constexpr int entry_bytes = std::is_same_v<Layout, SoA>
                                         ? sizeof(Key)
                                         : sizeof(build::Entry<Key, Value>);
  /// Lanes that read a node together.
  static constexpr int node_lanes = query::node_lanes<Key, node_keys>;
  /// Entries of a leaf: as many bytes as a node, twice that for pairs larger
  /// than an eighth of it (measured on an H100: fewer leaves leave smaller
  /// levels, which L2 keeps), and some for each lane.
  static constexpr int leaf_keys = [] {
    constexpr int node_bytes = node_keys * int(sizeof(Key));
    const int leaf_bytes =
        std::is_same_v<Layout, AoS> && 8 * entry_bytes > node_bytes
            ? 2 * node_bytes
            : node_bytes;
    return std::max(1, leaf_bytes / entry_bytes / node_lanes) * node_lanes;
  }();
  static constexpr size_type block = leaf_keys;
  /// Codes of a node: at least 4 bytes for each lane, up to 16. More would
  /// leave a choice more often.
  static constexpr int node_codes =
      node_lanes == 1 ? node_keys
                      : std::max(node_keys, std::min(4 * node_lanes, 16));

 public:
  class Ref;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "PivotTree"; }

  /// The empty index.
  PivotTree() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// \param space, keys as for SortedArray.
  /// \param options levels stored.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys>
  PivotTree(const Exec& space, const Keys& keys,
            const PivotTreeOptions& options = {})
      : entries_(Storage::from_unsorted(name(), space, keys, block)) {
    build(space, options);
  }

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, values, options as above.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> PivotTree(
      const Exec& space, const Keys& keys, const Values& values,
      const PivotTreeOptions& options = {})
      : entries_(Storage::from_unsorted(name(), space, keys, values, block)) {
    build(space, options);
  }

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store.
  ///
  /// \param space, keys, check as for SortedArray.
  /// \param options levels stored.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys>
  PivotTree(const Exec& space, SortedTag, const Keys& keys,
            Check check = Check::on, const PivotTreeOptions& options = {})
      : entries_(Storage::from_sorted(name(), space, keys, check, block)) {
    build(space, options);
  }

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check, options as above.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> PivotTree(
      const Exec& space, SortedTag, const Keys& keys, const Values& values,
      Check check = Check::on, const PivotTreeOptions& options = {})
      : entries_(
            Storage::from_sorted(name(), space, keys, values, check, block)) {
    build(space, options);
  }

  /// The number of entries.
  size_type size() const { return entries_.size(); }

  /// Bytes that the index holds: keys and values, up to one leaf of padding,
  /// the levels of pivots, and 16 bytes per level.
  size_type memory_bytes() const {
    if (size() == 0) return 0;
    return entries_.memory_bytes() + pivots_.extent(0) * sizeof(Key) +
           codes_.extent(0) + levels_.extent(0) * sizeof(Level);
  }

  /// Levels of pivots that are stored.
  int levels() const { return static_cast<int>(levels_.extent(0)); }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const {
    Ref ref;
    ref.entries_ = entries_.ref();
    ref.levels_ = levels_.data();
    ref.pivots_ = pivots_.data();
    ref.codes_ = codes_.data();
    ref.leaves_ = leaves_;
    ref.below_ = below_;
    ref.exact_ = exact_;
    // Measured on an H100: telling the caches that leaves are read once gains
    // 16 % where they are many times the L2 cache, and costs where they fit or
    // where the lookup comes back for the entry.
    ref.leaves_stay_ = leaves_ * leaf_keys * entry_bytes <= size_type{128}
                                                                << 20;
    return ref;
  }

 private:
  using Level = build::PivotLevel;

  /// The stored levels, from the root.
  struct Levels {
    /// Enough for 2^64 leaves.
    static constexpr int most = 64;

    Level level[most] = {};
    size_type leaves = 0;  ///< nodes below all levels
    size_type below = 1;   ///< leaves below a child of the last level
    int exact = 0;         ///< levels of whole keys
    int codes = 0;         ///< levels of codes below them
  };

  // CUDA compiles no kernel whose type is private.
 public:
  /// \cond
  struct WriteLevels;
  struct WritePivots;
  struct WriteCodes;
  /// \endcond

 private:
  template <class Exec>
  void build(const Exec& space, const PivotTreeOptions& options);

  /// All levels above the leaves, the last one of codes if there is one.
  static int depth_of(const Levels& levels) {
    int depth = 0;
    for (size_type nodes = levels.leaves; nodes > 1; ++depth)
      nodes = (nodes - 1) / (depth < levels.codes ? node_codes + 1 : K) + 1;
    return depth;
  }

  Storage entries_;
  Kokkos::View<Level*, MemorySpace> levels_;
  Kokkos::View<Key*, MemorySpace> pivots_;
  Kokkos::View<std::uint8_t*, MemorySpace> codes_;
  size_type leaves_ = 0;
  size_type below_ = 1;
  int exact_ = 0;
};

/// The handle of a PivotTree in a kernel: see query::RefVerbs for its verbs.
template <class Key, class Value, class MemorySpace, class Layout, int K>
class PivotTree<Key, Value, MemorySpace, Layout, K>::Ref
    : public query::AscendingRef<Ref, Key, Value, Layout> {
  using query::AscendingRef<Ref, Key, Value, Layout>::entries_;

 public:
  using query::AscendingRef<Ref, Key, Value, Layout>::size;

  /// Lanes that read a node together, 16 bytes each.
  static constexpr int lanes = node_lanes;
  /// The same with one key each, where that is a power of two up to a warp.
  static constexpr int most_lanes =
      lanes > 1 && leaf_keys <= 32 &&
              (leaf_keys & (leaf_keys - 1)) == 0 && node_keys % leaf_keys == 0
          ? leaf_keys
          : lanes;
  /// Measured on an H100 to lose by a third or more.
  static constexpr bool sorting_pays = false;
  /// Whether partitions gain where they can. Measured on an H100: for values
  /// that lie apart from their keys; for pairs from 512 MiB, except with keys
  /// of 8 bytes in wide nodes; for keys alone not where codes keep the last
  /// level in L2, nor in wide nodes whose last level fits it as it is (2^25
  /// keys of 4 bytes: 22.6 instead of 26.6 billion lookups per second).
  KOKKOS_FUNCTION bool partitioning_pays(bool finds) const {
    if constexpr (std::is_same_v<Layout, AoS>) {
      return size() * entry_bytes >= size_type{512} << 20 &&
             (sizeof(Key) < 8 || node_lanes < 4);
    } else {
      if (finds && entries_.values != nullptr) return true;
      return codes_ == nullptr &&
             (node_lanes < 4 || size() * sizeof(Key) >= size_type{512} << 20);
    }
  }

  /// A handle of the empty index.
  Ref() = default;

  /// The positions of each lane's own keys, which the lanes of a group search
  /// together.
  ///
  /// \tparam finds whether the first equal entry is wanted, or size(), instead
  ///   of the lower bound.
  template <bool finds, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search(const Group& group, const Top& top,
                              const Key (&keys)[Own],
                              size_type (&positions)[Own]) const {
    if (size() == 0) {
      for (int o = 0; o < Own; ++o) positions[o] = 0;
    } else if (constexpr size_type widest =
                   std::max({K, node_codes + 1, leaf_keys});
               (leaves_ + widest) * widest < (size_type{1} << 32)) {
      search_with<finds, std::uint32_t>(group, top, keys, positions);
    } else {
      search_with<finds, size_type>(group, top, keys, positions);
    }
  }

  /// How many pivots are pinned for `steps` levels (−1: all of whole keys), at
  /// most `most`, in whole nodes.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    size_type below = below_;  // leaves below a node of the level
    if (codes_ != nullptr) below *= node_codes + 1;
    for (int level = 0; level < exact_; ++level) below *= K;
    size_type pinned = 0;
    for (int level = 0; level < exact_ && level != steps && pinned < most;
         ++level) {
      pinned += size() == 0 ? 0 : ((leaves_ - 1) / below + 1) * node_keys;
      below /= K;
    }
    return (pinned < most ? pinned : most) / node_keys * node_keys;
  }

  /// Pivot i of all, from the root.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const { return pivots_[i]; }

 private:
  friend class PivotTree;
  friend struct WriteCodes;

  template <bool finds, class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search_with(const Group& group, const Top& top,
                                   const Key (&own)[Own],
                                   size_type (&positions)[Own]) const {
    constexpr int W = Own * Group::size;
    Key keys[W];
    query::gather_lanes(group, own, keys);
    Index node[W];
    for (int w = 0; w < W; ++w) node[w] = 0;
    for (int level = 0; level < exact_; ++level)
      descend(levels_[level], group, top, keys, node);
    if (codes_ != nullptr) {
      choose_leaf(levels_[exact_], group, own, node);
    } else if (below_ > 1) {
      for (int w = 0; w < W; ++w) node[w] = leaf_among(keys[w], node[w]);
    }
    // The sums of flags stand above those of counts.
    constexpr unsigned flag = std::bit_ceil(unsigned(leaf_keys) + 1);
    unsigned counts[W];
    constexpr unsigned added = finds ? flag : 0;
    // The value beside a key is read again.
    constexpr bool comes_back = finds && std::is_same_v<Layout, AoS>;
    if (comes_back || leaves_stay_) {
      count_in_leaves<query::Reuse::often, added>(group, keys, node, counts);
    } else {
      count_in_leaves<query::Reuse::never, added>(group, keys, node, counts);
    }
    query::sum_counts<leaf_keys + (finds ? flag * Group::size : 0)>(group,
                                                                    counts);
    for (int o = 0; o < Own; ++o) {
      const unsigned sum = query::own_of(group, &counts[o * Group::size]);
      const size_type position =
          size_type(query::own_of(group, &node[o * Group::size])) * leaf_keys +
          sum % flag;
      const bool wanted = finds ? sum >= flag : position < size();
      positions[o] = wanted ? position : size();
    }
  }

  /// This lane's part of the numbers of keys below in the leaves `node`, and
  /// `flag` more where one of them is equal.
  template <query::Reuse reuse, unsigned flag, class Index, class Group, int W>
  KOKKOS_FUNCTION void count_in_leaves(const Group& group, const Key (&keys)[W],
                                       Index (&node)[W],
                                       unsigned (&counts)[W]) const {
    const Index last = Index(leaves_ - 1);
    using Share =
        decltype(query::load_entries<leaf_keys, reuse>(group, entries_, last));
    Share shares[W];
    for (int w = 0; w < W; ++w) {
      node[w] = node[w] < last ? node[w] : last;
      shares[w] = query::load_entries<leaf_keys, reuse>(
          group, entries_, node[w] * Index(leaf_keys));
    }
    for (int w = 0; w < W; ++w) {
      counts[w] = query::count_below(shares[w], keys[w]);
      if constexpr (flag != 0)
        counts[w] += query::holds(shares[w], keys[w]) ? flag : 0;
    }
  }

  /// Steps from the nodes of a level to their children.
  template <class Index, class Group, class Top, int W>
  KOKKOS_FUNCTION void descend(const Level& level, const Group& group,
                               const Top& top, const Key (&keys)[W],
                               Index (&node)[W]) const {
    const Key* pivots = pivots_ + level.offset;
    const Index last = Index(level.nodes) - 1;
    // All loads first: they are what takes time, and they overlap.
    using Share = decltype(query::load_keys<node_keys>(group, pivots, last));
    Share shares[W];
    for (int w = 0; w < W; ++w) {
      // Keys above all others lead past the level's end.
      node[w] = node[w] < last ? node[w] : last;
      const Index first = node[w] * Index(node_keys);
      const bool is_pinned = top.holds(level.offset + first, node_keys);
      shares[w] = query::load_keys<node_keys>(
          group, is_pinned ? top.keys(pivots_) + level.offset : pivots, first);
    }
    unsigned counts[W];
    for (int w = 0; w < W; ++w)
      counts[w] = query::count_below(shares[w], keys[w]);
    query::sum_counts<node_keys>(group, counts);
    for (int w = 0; w < W; ++w) node[w] = node[w] * K + Index(counts[w]);
  }

  /// Binary search of the leaves below child `child` of the last stored level.
  template <class Index>
  KOKKOS_FUNCTION Index leaf_among(const Key& key, Index child) const {
    const size_type first = size_type(child) * below_;
    if (first >= leaves_) return Index(leaves_ - 1);
    const size_type last =
        first + below_ < leaves_ ? first + below_ - 1 : leaves_ - 1;
    return leaf_between(key, Index(first), Index(last));
  }

  /// The first of the leaves [first, last] whose last key is not below `key`,
  /// or `last`.
  template <class Index>
  KOKKOS_FUNCTION Index leaf_between(const Key& key, Index first,
                                     Index last) const {
    while (first < last) {
      const Index middle = first + (last - first) / 2;
      if (entries_.key(size_type(middle) * leaf_keys + leaf_keys - 1) < key) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }

  /// Steps through the level of codes to leaves. A lane prepares and settles
  /// its own keys; the lanes count together.
  template <class Index, class Group, int Own>
  KOKKOS_FUNCTION void choose_leaf(const Level& level, const Group& group,
                                   const Key (&own)[Own],
                                   Index (&node)[Own * Group::size]) const {
    constexpr int W = Own * Group::size;
    const Index last = Index(level.nodes) - 1;
    for (int w = 0; w < W; ++w) node[w] = node[w] < last ? node[w] : last;
    std::uint8_t own_codes[Own];
    for (int o = 0; o < Own; ++o)
      own_codes[o] = quantiser(query::own_of(group, &node[o * Group::size]))
                         .code(query::code_bits(own[o]));
    std::uint8_t searched[W];
    query::gather_lanes(group, own_codes, searched);
    unsigned below[W];
    unsigned not_above[W];
    for (int w = 0; w < W; ++w) {
      const auto share = query::load_codes<node_codes>(
          group, codes_, node[w] * Index(node_codes));
      below[w] = 0;
      not_above[w] = 0;
      for (const std::uint8_t code : share.elements) {
        below[w] += code < searched[w] ? 1 : 0;
        not_above[w] += code <= searched[w] ? 1 : 0;
      }
    }
    query::sum_counts<node_codes>(group, below);
    query::sum_counts<node_codes>(group, not_above);
    const Index last_leaf = Index(leaves_ - 1);
    Index leaf[Own];
    for (int o = 0; o < Own; ++o) {
      // Pivots with the same code leave a choice.
      const Index at =
          query::own_of(group, &node[o * Group::size]) * (node_codes + 1);
      Index first = at + query::own_of(group, &below[o * Group::size]);
      Index until = at + query::own_of(group, &not_above[o * Group::size]);
      until = until < last_leaf ? until : last_leaf;
      first = first < until ? first : until;
      leaf[o] = leaf_between(own[o], first, until);
    }
    query::gather_lanes(group, leaf, node);
  }

  /// How node `node` of the level of codes maps keys to codes: by the range of
  /// its keys, which the levels above know.
  template <class Index>
  KOKKOS_FUNCTION query::Quantiser<query::CodeBits<Key>> quantiser(
      Index node) const {
    return {query::code_bits(fence(node, false)),
            query::code_bits(fence(node, true))};
  }

  /// A key that is not above any key of node `node` below the exact levels, or
  /// with `upper` one that is not below any: the pivot beside it, in the
  /// nearest ancestor that has one.
  template <class Index>
  KOKKOS_FUNCTION Key fence(Index node, bool upper) const {
    for (int level = exact_ - 1; level >= 0; --level) {
      const Index child = node % K;
      node /= K;
      if (child != (upper ? K - 1 : 0))
        return pivots_[levels_[level].offset + size_type(node) * node_keys +
                       child - (upper ? 0 : 1)];
    }
    return entries_.key(upper ? size() - 1 : 0);
  }

  const Level* levels_ = nullptr;
  const Key* pivots_ = nullptr;
  const std::uint8_t* codes_ = nullptr;
  size_type leaves_ = 0;
  size_type below_ = 1;
  int exact_ = 0;
  bool leaves_stay_ = true;
};

/// Writes the table of levels.
template <class Key, class Value, class MemorySpace, class Layout, int K>
struct PivotTree<Key, Value, MemorySpace, Layout, K>::WriteLevels {
  Levels levels;
  Level* table;

  KOKKOS_FUNCTION void operator()(int level) const {
    table[level] = levels.level[level];
  }
};

/// Writes pivot i of all stored levels of whole keys.
template <class Key, class Value, class MemorySpace, class Layout, int K>
struct PivotTree<Key, Value, MemorySpace, Layout, K>::WritePivots {
  typename Storage::Ref entries;
  Key* pivots;
  Levels levels;
  size_type reach;  ///< leaves below a child of the root

  KOKKOS_FUNCTION void operator()(size_type slot) const {
    int level = 0;
    size_type below = reach;
    while (level + 1 < levels.exact && levels.level[level + 1].offset <= slot) {
      ++level;
      below /= K;
    }
    const size_type i = slot - levels.level[level].offset;
    const size_type position = below * leaf_keys * (1 + i + i / node_keys) - 1;
    pivots[slot] =
        entries.key(position < entries.size ? position : entries.size - 1);
  }
};

/// Writes code i of the level of codes.
template <class Key, class Value, class MemorySpace, class Layout, int K>
struct PivotTree<Key, Value, MemorySpace, Layout, K>::WriteCodes {
  Ref ref;
  std::uint8_t* codes;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type node = i / node_codes;
    const size_type end = leaf_keys * (1 + i + node);
    const Key pivot = ref.key_at((end < ref.size() ? end : ref.size()) - 1);
    codes[i] = ref.quantiser(node).code(query::code_bits(pivot));
  }
};

template <class Key, class Value, class MemorySpace, class Layout, int K>
template <class Exec>
void PivotTree<Key, Value, MemorySpace, Layout, K>::build(
    const Exec& space, const PivotTreeOptions& options) {
  if (size() == 0) return;
  Levels levels;
  levels.leaves = (size() - 1) / leaf_keys + 1;
  // Measured on an H100: random reads keep about 24 MiB of its L2 useful.
  const bool too_large = query::DeviceTraits<Exec>::is_gpu &&
                         levels.leaves * sizeof(Key) > (size_type{16} << 20);
  levels.codes = levels.leaves > 1 && sizeof(Key) > 1 &&
                 (options.last_level == LastLevel::quantised ||
                  (options.last_level == LastLevel::automatic && too_large));
  // Codes are of the last level only.
  if (options.levels >= 0 && options.levels < depth_of(levels))
    levels.codes = 0;
  const int depth = depth_of(levels);
  const int stored =
      options.levels < 0 ? depth : std::min(options.levels, depth);
  levels.exact = stored - levels.codes;
  size_type reach = 1;  // leaves below a child of the root
  for (int level = 1; level < depth; ++level)
    reach *= level + 1 == depth && levels.codes > 0 ? node_codes + 1 : K;
  size_type pivots = 0;
  levels.below = stored == 0 ? levels.leaves : reach;
  for (int level = 0; level < stored; ++level) {
    const bool coded = level == levels.exact;
    const size_type children = coded ? node_codes + 1 : K;
    if (level > 0) levels.below /= children;
    const size_type nodes = (levels.leaves - 1) / (levels.below * children) + 1;
    levels.level[level] = {coded ? 0 : pivots, nodes};
    if (!coded) pivots += nodes * node_keys;
  }
  leaves_ = levels.leaves;
  below_ = levels.below;
  exact_ = levels.exact;

  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
  const auto alloc = [&](const char* what) {
    return Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                              std::string("kindex::PivotTree::") + what);
  };
  if (stored == 0) return;
  levels_ = Kokkos::View<Level*, MemorySpace>(alloc("levels"), stored);
  Kokkos::parallel_for("kindex::PivotTree::write_levels",
                       Kokkos::RangePolicy<Exec>(space, 0, stored),
                       WriteLevels{levels, levels_.data()});
  if (pivots > 0) {
    pivots_ = Kokkos::View<Key*, MemorySpace>(alloc("pivots"), pivots);
    Kokkos::parallel_for(
        "kindex::PivotTree::write_pivots", Range(space, 0, pivots),
        WritePivots{entries_.ref(), pivots_.data(), levels, reach});
  }
  if (levels.codes > 0) {
    const size_type codes = levels.level[stored - 1].nodes * node_codes;
    const Kokkos::View<std::uint8_t*, MemorySpace> last(alloc("codes"), codes);
    Kokkos::parallel_for("kindex::PivotTree::write_codes",
                         Range(space, 0, codes),
                         WriteCodes{ref(), last.data()});
    codes_ = last;
  }
}

/// \cond
template <class Exec, class Keys>
PivotTree(const Exec&, const Keys&, const PivotTreeOptions& = {})
    -> PivotTree<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> PivotTree(const Exec&, const Keys&,
                                             const Values&,
                                             const PivotTreeOptions& = {})
->PivotTree<typename Keys::non_const_value_type,
            typename Values::non_const_value_type, typename Exec::memory_space>;
template <class Exec, class Keys>
PivotTree(const Exec&, SortedTag, const Keys&, Check = Check::on,
          const PivotTreeOptions& = {})
    -> PivotTree<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> PivotTree(const Exec&, SortedTag,
                                             const Keys&, const Values&,
                                             Check = Check::on,
                                             const PivotTreeOptions& = {})
->PivotTree<typename Keys::non_const_value_type,
            typename Values::non_const_value_type, typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
