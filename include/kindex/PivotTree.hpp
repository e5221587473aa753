// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PIVOTTREE_HPP
#define KINDEX_PIVOTTREE_HPP

/// \file
/// Ascending keys under implicit levels of pivots: K-ary search by nodes.

#include <kindex/build/Entries.hpp>
#include <kindex/build/PivotLevels.hpp>
#include <kindex/query/AscendingRef.hpp>
#include <kindex/query/BulkQueries.hpp>

#include <algorithm>

namespace kindex {

/// How the last level of pivots, the largest, is stored.
enum class LastLevel {
  automatic,  ///< quantised where whole pivots would not stay in a GPU's L2
  exact,      ///< whole keys
  quantised   ///< 8 bits each, relative to the node's own range
};

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
/// A pivot is the largest key of its child's subtree: see build::PivotLevels.
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
  using Levels = build::PivotLevels<Key, K, MemorySpace>;
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
  /// the levels of pivots, and 16 bytes per level of whole keys.
  size_type memory_bytes() const {
    if (size() == 0) return 0;
    return entries_.memory_bytes() + levels_.memory_bytes() + codes_.extent(0);
  }

  /// Levels of pivots that are stored.
  int levels() const { return levels_.height() + (codes_.extent(0) > 0); }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const {
    Ref ref;
    ref.entries_ = entries_.ref();
    ref.router_ = levels_.router(query::chosen_node_search());
    ref.leaves_ = Leaves::of(size(), ref.router_.how);
    ref.codes_ = codes_.data();
    ref.code_nodes_ = codes_.extent(0) / node_codes;
    ref.below_ = below_;
    return ref;
  }

 private:
  using Leaves = query::Leaves<typename Storage::Ref, leaf_keys, node_lanes>;

  // CUDA compiles no kernel whose type is private.
 public:
  /// \cond
  struct WriteCodes;
  /// \endcond

 private:
  template <class Exec>
  void build(const Exec& space, const PivotTreeOptions& options);

  Storage entries_;
  Levels levels_;  ///< of whole keys
  Kokkos::View<std::uint8_t*, MemorySpace> codes_;
  size_type below_ = 1;  ///< leaves below a child of the last stored level
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
      query::one_key_lanes<Key, node_keys, leaf_keys>;
  /// Measured on an H100 to lose by a third or more.
  static constexpr bool sorting_pays = false;
  /// Whether partitions gain where they can: see query::Leaves; for keys alone
  /// not where codes keep the last level in L2 (measured on an H100).
  KOKKOS_FUNCTION bool partitioning_pays(bool finds) const {
    return (codes_ == nullptr || std::is_same_v<Layout, AoS> ||
            (finds && entries_.has_values_apart())) &&
           leaves_.partitioning_pays(finds, entries_);
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
    } else if ((leaves_.count + widest) * widest < (size_type{1} << 32)) {
      search_with<finds, std::uint32_t>(group, top, keys, positions);
    } else {
      search_with<finds, size_type>(group, top, keys, positions);
    }
  }

  /// How many pivots are pinned for `steps` levels (−1: all of whole keys), at
  /// most `most`, in whole nodes.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    return router_.pinned_size(steps, most);
  }

  /// Pivot i of all, from the root.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const {
    return router_.pinned_key(i);
  }

 private:
  friend class PivotTree;
  friend struct WriteCodes;

  /// The most that a step multiplies by.
  static constexpr size_type widest = std::max({K, node_codes + 1, leaf_keys});

  template <bool finds, class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search_with(const Group& group, const Top& top,
                                   const Key (&own)[Own],
                                   size_type (&positions)[Own]) const {
    constexpr int W = Own * Group::size;
    Key keys[W];
    query::gather_lanes(group, own, keys);
    Index node[W];
    for (int w = 0; w < W; ++w) node[w] = 0;
    router_.descend(group, top, keys, node, 0, router_.height,
                    codes_ == nullptr && below_ == 1 ? Leaves::soon(entries_)
                                                     : query::ReadSoon{});
    if (codes_ != nullptr) {
      choose_leaf(group, own, node);
    } else if (below_ > 1) {
      for (int w = 0; w < W; ++w) node[w] = leaf_among(keys[w], node[w]);
    }
    leaves_.template search<finds>(group, entries_, keys, node, positions);
  }

  /// Binary search of the leaves below child `child` of the last stored level.
  template <class Index>
  KOKKOS_FUNCTION Index leaf_among(const Key& key, Index child) const {
    const size_type first = size_type(child) * below_;
    if (first >= leaves_.count) return Index(leaves_.count - 1);
    const size_type last =
        first + below_ < leaves_.count ? first + below_ - 1 : leaves_.count - 1;
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
  KOKKOS_FUNCTION void choose_leaf(const Group& group, const Key (&own)[Own],
                                   Index (&node)[Own * Group::size]) const {
    constexpr int W = Own * Group::size;
    const Index last = Index(code_nodes_) - 1;
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
    const Index last_leaf = Index(leaves_.count - 1);
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
    for (int level = router_.height - 1; level >= 0; --level) {
      const Index child = node % K;
      node /= K;
      if (child != (upper ? K - 1 : 0))
        return router_
            .pivots[router_.levels[level].offset + size_type(node) * node_keys +
                    child - (upper ? 0 : 1)];
    }
    return entries_.key(upper ? size() - 1 : 0);
  }

  query::PivotRouter<Key, K> router_;  ///< the levels of whole keys
  Leaves leaves_;
  const std::uint8_t* codes_ = nullptr;
  size_type code_nodes_ = 0;
  size_type below_ = 1;
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
  const size_type leaves = (size() - 1) / leaf_keys + 1;
  // Measured on an H100: random reads keep about 24 MiB of its L2 useful.
  const bool too_large = query::DeviceTraits<Exec>::is_gpu &&
                         leaves * sizeof(Key) > (size_type{16} << 20);
  bool coded = leaves > 1 && sizeof(Key) > 1 &&
               (options.last_level == LastLevel::quantised ||
                (options.last_level == LastLevel::automatic && too_large));
  const size_type code_nodes = (leaves - 1) / (node_codes + 1) + 1;
  // Codes are of the last level only.
  if (coded && options.levels >= 0 &&
      options.levels < Levels::depth(code_nodes) + 1)
    coded = false;
  // Of whole keys.
  const int depth = Levels::depth(coded ? code_nodes : leaves);
  const int stored =
      coded || options.levels < 0 ? depth : std::min(options.levels, depth);
  for (int level = stored; level < depth; ++level) below_ *= K;
  if (stored == 0 && !coded) below_ = leaves;
  levels_ =
      Levels(name(), space, entries_.ref(),
             (coded ? size_type(node_codes + 1) : below_) * leaf_keys, stored);
  if (coded) {
    const size_type codes = code_nodes * node_codes;
    const Kokkos::View<std::uint8_t*, MemorySpace> last(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                           std::string("kindex::PivotTree::codes")),
        codes);
    Kokkos::parallel_for(
        "kindex::PivotTree::write_codes",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                                codes),
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
