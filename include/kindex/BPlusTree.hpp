// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BPLUSTREE_HPP
#define KINDEX_BPLUSTREE_HPP

/// \file
/// A B+-tree without pointers, whose nodes are cache lines.

#include <kindex/build/Entries.hpp>
#include <kindex/build/PivotLevels.hpp>
#include <kindex/query/AscendingRef.hpp>
#include <kindex/query/BulkQueries.hpp>

#include <algorithm>

namespace kindex {

/// How a BPlusTree is built, for its use on hosts; on a GPU it changes nothing.
struct BPlusTreeOptions {
  /// How a thread finds its way through a node.
  NodeSearch node_search = NodeSearch::automatic;
  /// The pages of nodes and values: huge ones save a look into the tables of
  /// pages per node that is not in the caches.
  Pages pages = Pages::huge;
};

template <class Key, class Value, class MemorySpace, class Layout>
class HybridBPlusTree;

/// The implicit B+-tree: all nodes are one cache line, full but for the last of
/// each level, and stand level by level in one array, so that there are no
/// pointers and nothing marks what is free. Built anew, in parallel, where
/// entries change. (Shahvarani and Jacobsen, "A Hybrid B+-tree as Solution for
/// In-Memory Indexing on CPU-GPU Heterogeneous Computing Platforms", SIGMOD
/// 2016.) Duplicates keep the order of the input.
///
/// An inner node has 64 bytes of separators and a child more: 17 for keys of 4
/// bytes, 9 for keys of 8. That is the fan-out of the authors' tree for CPUs;
/// theirs for GPUs has 16 and 8, since a lane of it reads each separator and
/// one of them is the largest key there is. Here comparisons are counted, so
/// that no key is reserved, and 4 lanes read 16 bytes each, so that nodes are
/// the same on both. A leaf has 64 bytes of keys (SoA, values in an array
/// beside), or as many pairs as fit (AoS): then a hit comes with its value.
///
/// A lookup reads one line per level, on a GPU by a group of lanes together; on
/// a host a thread takes some lookups in turns (InFlight), fetches each one's
/// next node while it does the others, and searches nodes with SIMD
/// (NodeSearch). From memory that costs a line or two if the levels above stay
/// in caches: they take 1/16 of the memory of keys of 4 bytes, 1/8 of that of
/// 8.
///
/// What PivotTree has beside this is a choice of fan-outs, levels left out, and
/// codes of 8 bits in the last one: for lookups on GPUs. This has nodes as they
/// are best for hosts, and for HybridBPlusTree.
///
/// \tparam Key, Value, MemorySpace, Layout as for SortedArray.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA>
class BPlusTree
    : public query::BulkQueries<BPlusTree<Key, Value, MemorySpace, Layout>, Key,
                                Value, MemorySpace> {
  using Storage = build::Entries<Key, Value, MemorySpace, Layout>;
  static constexpr int node_keys = query::line_bytes / int(sizeof(Key));
  static constexpr int node_lanes = query::node_lanes<Key, node_keys>;
  static constexpr int entry_bytes = std::is_same_v<Layout, SoA>
                                         ? sizeof(Key)
                                         : sizeof(build::Entry<Key, Value>);
  /// Entries of a leaf: a line, or where they are large one for each lane.
  static constexpr int leaf_keys =
      std::max(1, query::line_bytes / entry_bytes / node_lanes) * node_lanes;
  using Leaves = query::Leaves<typename Storage::Ref, leaf_keys, node_lanes>;

 public:
  /// Children of an inner node.
  static constexpr int fan_out = node_keys + 1;

  class Ref;
  /// The handle of the inner nodes.
  using Router = query::PivotRouter<Key, fan_out>;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "BPlusTree"; }

  /// The empty index.
  BPlusTree() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// Sorts and copies as SortedArray does; two kernels more write the inner
  /// nodes, without a fence.
  ///
  /// \param space, keys as for SortedArray.
  /// \param options of nodes.
  /// \throws Error as SortedArray, and if the processor has not the
  ///   instructions that options name.
  template <class Exec, class Keys>
  BPlusTree(const Exec& space, const Keys& keys,
            const BPlusTreeOptions& options = {})
      : how_(checked(options)),
        entries_(
            Storage::from_unsorted(name(), space, keys, form_of(options))) {
    build(space, options);
  }

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, values as for SortedArray.
  /// \param options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> BPlusTree(
      const Exec& space, const Keys& keys, const Values& values,
      const BPlusTreeOptions& options = {})
      : how_(checked(options)),
        entries_(Storage::from_unsorted(name(), space, keys, values,
                                        form_of(options))) {
    build(space, options);
  }

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store.
  ///
  /// \param space, keys, check as for SortedArray.
  /// \param options as above.
  /// \throws Error as above.
  template <class Exec, class Keys>
  BPlusTree(const Exec& space, SortedTag, const Keys& keys,
            Check check = Check::on, const BPlusTreeOptions& options = {})
      : how_(checked(options)),
        entries_(Storage::from_sorted(name(), space, keys, check,
                                      form_of(options))) {
    build(space, options);
  }

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check as for SortedArray.
  /// \param options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> BPlusTree(
      const Exec& space, SortedTag, const Keys& keys, const Values& values,
      Check check = Check::on, const BPlusTreeOptions& options = {})
      : how_(checked(options)),
        entries_(Storage::from_sorted(name(), space, keys, values, check,
                                      form_of(options))) {
    build(space, options);
  }

  /// The number of entries.
  size_type size() const { return entries_.size(); }

  /// Bytes that the index holds: leaves and values, up to one leaf of padding,
  /// inner nodes, and 16 bytes per level of them.
  size_type memory_bytes() const { return leaf_bytes() + inner_bytes(); }

  /// Bytes of leaves and values.
  size_type leaf_bytes() const { return entries_.memory_bytes(); }

  /// Bytes of inner nodes and of the table of their levels.
  size_type inner_bytes() const {
    return size() == 0 ? 0 : levels_.memory_bytes();
  }

  /// Levels of inner nodes; 0: up to one leaf.
  int height() const { return size() == 0 ? 0 : levels_.height(); }

  /// How nodes are searched on this host, never NodeSearch::automatic.
  NodeSearch node_search() const { return how_; }

  /// Bytes for which huge pages were asked, and not refused: whole ones inside
  /// the index's arrays. 0: they were not wanted, the system has none, or no
  /// array is that large.
  size_type huge_page_bytes() const {
    return size() == 0 ? 0
                       : entries_.huge_page_bytes() + levels_.huge_page_bytes();
  }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const {
    Ref ref;
    ref.entries_ = entries_.ref();
    ref.router_ = router();
    ref.leaves_ = Leaves::of(size(), how_);
    return ref;
  }

  /// The handle of the inner nodes for kernels: trivially copyable, non-owning.
  Router router() const { return levels_.router(how_); }

 private:
  template <class, class, class, class>
  friend class HybridBPlusTree;

  static NodeSearch checked(const BPlusTreeOptions& options) {
    if (!is_available(options.node_search))
      impl::fail("kindex::BPlusTree", "options.node_search is ",
                 name_of(options.node_search),
                 ", which this processor does not have");
    return query::chosen_node_search(options.node_search);
  }

  static build::StorageForm form_of(const BPlusTreeOptions& options) {
    return {leaf_keys, options.pages};
  }

  template <class Exec>
  void build(const Exec& space, const BPlusTreeOptions& options) {
    if (size() == 0) return;
    levels_ = build::PivotLevels<Key, fan_out, MemorySpace>(
        name(), space, entries_.ref(), leaf_keys, options.pages);
  }

  NodeSearch how_ = query::chosen_node_search();
  Storage entries_;
  build::PivotLevels<Key, fan_out, MemorySpace> levels_;
};

/// The handle of a BPlusTree in a kernel: see query::RefVerbs for its verbs.
template <class Key, class Value, class MemorySpace, class Layout>
class BPlusTree<Key, Value, MemorySpace, Layout>::Ref
    : public query::AscendingRef<Ref, Key, Value, Layout> {
  using query::AscendingRef<Ref, Key, Value, Layout>::entries_;

 public:
  using query::AscendingRef<Ref, Key, Value, Layout>::size;

  /// Lanes that read a node together, 16 bytes each.
  static constexpr int lanes = node_lanes;
  /// The same with one key each, as the authors of the method do, where that is
  /// a power of two up to a warp.
  static constexpr int most_lanes =
      query::one_key_lanes<Key, node_keys, leaf_keys>;
  /// As for PivotTree.
  static constexpr bool sorting_pays = false;
  /// As for PivotTree with whole pivots.
  KOKKOS_FUNCTION bool partitioning_pays(bool finds) const {
    return leaves_.partitioning_pays(finds, entries_);
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
    } else if (has_few_leaves()) {
      search_with<finds, std::uint32_t>(group, top, keys, positions);
    } else {
      search_with<finds, size_type>(group, top, keys, positions);
    }
  }

  /// The same from positions on that are not behind the leaves of the keys, nor
  /// far before them: those that router() leads to, maybe rounded down. See
  /// query::Hybrid.
  template <bool finds, class Group, int Own>
  KOKKOS_FUNCTION void finish(const Group& group, const Key (&own)[Own],
                              size_type (&positions)[Own]) const {
    constexpr int W = Own * Group::size;
    size_type leaf[W];
    Key keys[W];
    query::gather_lanes(group, own, keys);
    query::gather_lanes(group, positions, leaf);
    if (size() == 0) {
      for (int o = 0; o < Own; ++o) positions[o] = 0;
      return;
    }
    for (int w = 0; w < W; ++w) {
      leaf[w] /= leaf_keys;
      // In a line that is read anyway.
      while (leaf[w] + 1 < leaves_.count &&
             entries_.key(leaf[w] * leaf_keys + leaf_keys - 1) < keys[w])
        ++leaf[w];
    }
    leaves_.template search<finds>(group, entries_, keys, leaf, positions);
  }

  /// Has a host fetch what `finish` reads first from a guess; not where there
  /// are no entries.
  KOKKOS_FUNCTION void prefetch(size_type guess) const {
    query::prefetch(&entries_.key(guess < size() ? guess : size() - 1));
  }

  /// How many pivots are pinned for `steps` levels (−1: all), at most `most`,
  /// in whole nodes.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    return router_.pinned_size(steps, most);
  }

  /// Separator i of all, from the root.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const {
    return router_.pinned_key(i);
  }

 private:
  friend class BPlusTree;

  /// The most that a step multiplies by.
  static constexpr size_type widest = std::max(fan_out, leaf_keys);

  /// Whether 32 bits hold what counts children and entries.
  KOKKOS_FUNCTION bool has_few_leaves() const {
    return (leaves_.count + widest) * widest < (size_type{1} << 32);
  }

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
                    Leaves::soon(entries_));
    leaves_.template search<finds>(group, entries_, keys, node, positions);
  }

  Router router_;
  Leaves leaves_;
};

/// \cond
template <class Exec, class Keys>
BPlusTree(const Exec&, const Keys&, const BPlusTreeOptions& = {})
    -> BPlusTree<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> BPlusTree(const Exec&, const Keys&,
                                             const Values&,
                                             const BPlusTreeOptions& = {})
->BPlusTree<typename Keys::non_const_value_type,
            typename Values::non_const_value_type, typename Exec::memory_space>;
template <class Exec, class Keys>
BPlusTree(const Exec&, SortedTag, const Keys&, Check = Check::on,
          const BPlusTreeOptions& = {})
    -> BPlusTree<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> BPlusTree(const Exec&, SortedTag,
                                             const Keys&, const Values&,
                                             Check = Check::on,
                                             const BPlusTreeOptions& = {})
->BPlusTree<typename Keys::non_const_value_type,
            typename Values::non_const_value_type, typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
