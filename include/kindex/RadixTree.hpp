// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_RADIXTREE_HPP
#define KINDEX_RADIXTREE_HPP

/// \file
/// Ascending keys under an adaptive radix tree.

#include <kindex/build/EditEntries.hpp>
#include <kindex/build/Entries.hpp>
#include <kindex/build/RadixLevels.hpp>
#include <kindex/query/AscendingRef.hpp>
#include <kindex/query/BulkQueries.hpp>
#include <kindex/query/Node.hpp>
#include <kindex/query/RadixRef.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace kindex {

/// How many nodes of each form a RadixTree has.
struct RadixNodeCounts {
  size_type node4 = 0;    ///< up to 4 children
  size_type node16 = 0;   ///< up to 16 children
  size_type node48 = 0;   ///< up to 48 children
  size_type node256 = 0;  ///< more than 48, or than 4 with 8192 entries
  size_type ranks = 0;    ///< more than 48 children, all of them leaves
  size_type bits = 0;     ///< more than 4 children of one entry each
};

namespace impl {

inline const RadixTreeOptions& checked(const char* function,
                                       const RadixTreeOptions& options) {
  constexpr size_type most = size_type{1} << 16;
  if (options.leaf_entries < 1 || options.leaf_entries > most)
    fail(function, "options.leaf_entries is ", options.leaf_entries,
         ", not in 1...", most);
  return options;
}

template <class Levels>
RadixNodeCounts node_counts(const Levels& levels) {
  using query::RadixKind;
  return {levels.count(RadixKind::node4),  levels.count(RadixKind::node16),
          levels.count(RadixKind::node48), levels.count(RadixKind::node256),
          levels.count(RadixKind::ranks),  levels.count(RadixKind::bits)};
}

}  // namespace impl

/// Ascending keys, as in SortedArray, and an adaptive radix tree of where they
/// stand (Leis, Kemper and Neumann, "The Adaptive Radix Tree", ICDE 2013; on
/// GPUs: Alam, Yoginath and Perumalla, HPCC 2016): each node branches by one
/// byte of the keys' bits in order (see KeyTraits), the most significant first,
/// and has one of four sizes, for 4, 16, 48 or 256 children. A node branches
/// where its keys first differ (path compression), and a subtree of few keys is
/// a leaf (lazy expansion). Duplicates keep the order of the input.
///
/// Unlike in the paper,
/// - leaves are not stored: a leaf is the rank of its first entry, and its keys
///   are those from there on. So up to `leaf_entries` different keys share a
///   leaf, which spares most nodes and the read of one;
/// - a node knows its first and last rank, and in a Node256 a byte without a
///   child refers to where the next child begins: a bound is one descent that
///   never turns back;
/// - a Node48 finds its children by a set of 256 bits instead of an index of
///   256 bytes; a Node256 of leaves has their ranks in differences of 8 bits;
///   and of a node whose children are single entries, the set of bytes is all
///   there is;
/// - a node of more than four children with 8192 entries below, or more, is a
///   Node256: see query::radix_busy_entries.
///
/// For keys of 4 bytes and fewer than 2^31 entries, nodes take 32 bytes
/// (Node4), 96 (Node16), 240 (Node48), 1040 (Node256), 352 (Node256 of leaves)
/// and 48 (set of single entries). A lookup reads, for each level, the 32 bytes
/// that have its byte's place (two such reads, one after the other, from a
/// Node16 or Node48, and behind a path), then the keys of a leaf by 32 bytes
/// (on hosts, first 16) from its first on, then the value if it finds one. Of
/// 2^26 random keys of 32 bits, level by level, the tree has a Node256, 256 of
/// them, and 2^16 Node256 of leaves with some four keys each, 23 MB: what
/// depends on memory beyond the caches is one read of keys, 1.4 sectors on
/// average, and one of the value. Of 2^26 dense ones, 2^18 sets of single
/// entries, 12.6 MB, answer without the keys.
///
/// Copies are shallow and counted, like those of Views.
///
/// \tparam Key, Value, MemorySpace, Layout as for SortedArray.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA>
class RadixTree
    : public query::BulkQueries<RadixTree<Key, Value, MemorySpace, Layout>, Key,
                                Value, MemorySpace> {
  using Storage = build::Entries<Key, Value, MemorySpace, Layout>;
  using Bits = typename KeyTraits<Key>::bits_type;
  using Levels = build::RadixLevels<Bits, MemorySpace>;
  static constexpr int entry_bytes = std::is_same_v<Layout, SoA>
                                         ? sizeof(Key)
                                         : sizeof(build::Entry<Key, Value>);
  /// Entries of a leaf that are read at once: a sector of memory.
  static constexpr int window = std::max(1, 32 / entry_bytes);
  static constexpr size_type block = window;
  using Entry = build::Entry<Key, Value>;
  /// Entries that are edited at a time, 8 MB: two pieces and what they replace
  /// fit a GPU's cache.
  static constexpr size_type piece =
      std::max(size_type{1}, (size_type{8} << 20) / sizeof(Entry) / block) *
      block;

 public:
  class Ref;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "RadixTree"; }

  /// The empty index.
  RadixTree() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// Sorts as SortedArray does, then makes the tree level by level: see
  /// build::RadixLevels for its memory. Fences `space` once for each level, of
  /// which there are at most as many as a key has bytes.
  ///
  /// \param space, keys as for SortedArray.
  /// \param options when keys share a leaf, and on which pages a host has them.
  /// \throws Error as SortedArray, and for leaves of no entry or more than
  /// 2^16.
  template <class Exec, class Keys>
  RadixTree(const Exec& space, const Keys& keys,
            const RadixTreeOptions& options = {})
      : RadixTree(options) {
    entries_ = Storage::from_unsorted(name(), space, keys, form());
    rebuild(space);
  }

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, values, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> RadixTree(
      const Exec& space, const Keys& keys, const Values& values,
      const RadixTreeOptions& options = {})
      : RadixTree(options) {
    entries_ = Storage::from_unsorted(name(), space, keys, values, form());
    rebuild(space);
  }

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store.
  ///
  /// \param space, keys, check as for SortedArray.
  /// \param options as above.
  /// \throws Error as above.
  template <class Exec, class Keys>
  RadixTree(const Exec& space, SortedTag, const Keys& keys,
            Check check = Check::on, const RadixTreeOptions& options = {})
      : RadixTree(options) {
    entries_ = Storage::from_sorted(name(), space, keys, check, form());
    rebuild(space);
  }

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> RadixTree(
      const Exec& space, SortedTag, const Keys& keys, const Values& values,
      Check check = Check::on, const RadixTreeOptions& options = {})
      : RadixTree(options) {
    entries_ = Storage::from_sorted(name(), space, keys, values, check, form());
    rebuild(space);
  }

  /// Adds entries, each behind all that are equal, those of a batch in its
  /// order: as std::multimap does.
  ///
  /// Sorts the batch, finds its places by a batch of upper_bound, moves the
  /// entries behind them apart where they are, and changes the tree: nodes on
  /// the ways to new entries grow, paths split, and ranks in all others move
  /// (see build::RadixLevels::change). The result is that of building from all
  /// entries, but for the order of nodes in their arenas.
  ///
  /// Entries and nodes stay where they are while there is room for them; what
  /// is full moves to memory of twice the size (see reserve), and leaves none.
  /// Copies of the index made before keep what they had: while there are some,
  /// an update takes other memory. Refs taken before are not valid any more,
  /// and other instances must have ended with them.
  ///
  /// Cost: the sort (see build::sort_rows), m searches, the entries behind the
  /// first insertion read and written once, in pieces that stay in the cache in
  /// between, the nodes read and written once, and, of those on the ways to new
  /// entries, what a build costs. Temporary memory, which is kept for the next
  /// batch (scratch_bytes): two pieces of 8 MB, that of the sort, per operation
  /// its key and value and 8 bytes (of erase 40, of insert_or_assign 32), that
  /// of the build, and 13 to 17 bytes per node. Fences `space` as the
  /// constructor does, and once more.
  ///
  /// \param space, keys as for the constructor: m keys.
  /// \param values m values, in the order of the keys.
  /// \throws Error for NaN, or if there is not one value per key; the index is
  ///   as it was. If memory runs out, that is true as well, but when it does so
  ///   for the nodes: then the entries are there, and the index answers,
  ///   slowly.
  template <class Exec, class Keys, class Values>
  void insert(const Exec& space, const Keys& keys, const Values& values);

  /// Gives all entries whose key equals `keys(i)` the value `values(i)`, and
  /// inserts an entry with both where there is none; of equal keys in the
  /// batch, the last one wins: as std::map does.
  ///
  /// Cost, fences and memory of an insert and an update together, but for one
  /// sort and one search; one fence more, for the number of entries that come.
  ///
  /// \param space, keys, values as for insert.
  /// \throws as insert.
  template <class Exec, class Keys, class Values>
  void insert_or_assign(const Exec& space, const Keys& keys,
                        const Values& values);

  /// Removes all entries whose key is among `keys`; of others, nothing.
  ///
  /// Otherwise as insert; one fence more, for the number of entries that stay.
  ///
  /// \throws Error for NaN; the index is as it was. std::bad_alloc as insert.
  template <class Exec, class Keys>
  void erase(const Exec& space, const Keys& keys);

  /// Gives all entries whose key equals `keys(i)` the value `values(i)`, if
  /// there are any; of equal keys in the batch, the last one wins.
  ///
  /// Values are written where they are, unless a copy of the index shares them
  /// or they are row ids that are not stored: then the entries are copied
  /// first. The tree stays as it is. No fence but those of the sort and of the
  /// check of the keys.
  ///
  /// \throws Error as insert.
  template <class Exec, class Keys, class Values>
  void update(const Exec& space, const Keys& keys, const Values& values);

  /// Has room for `entries` entries, which no copy shares, so that updates
  /// allocate no memory for entries until there are more; and for nodes in the
  /// proportion of those that there are to their entries.
  ///
  /// Cost: if there is less room, that memory, one kernel that copies the
  /// entries, and a copy for each form of nodes; the same where a copy of the
  /// index shares them. Less than what there is takes no more memory.
  ///
  /// \param space an instance that can access the index's memory.
  /// \param entries how many there will be, with those that there are.
  /// \throws Error if no memory can hold so many; the index is as it was.
  template <class Exec>
  void reserve(const Exec& space, size_type entries) {
    constexpr size_type most =
        size_type(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(Entry) -
        block;
    if (entries > most)
      impl::fail("kindex::RadixTree::reserve", "entries is ", entries,
                 ", more than ", most);
    entries_.make_room(name(), space, entries, entries, form());
    if (size() > 0)
      levels_.reserve(space, std::max(1.0, static_cast<double>(entries) /
                                               static_cast<double>(size())));
  }

  /// Gives back the memory of free room of entries and nodes, and what updates
  /// keep for the next one.
  ///
  /// Cost: what has free room is copied, in one kernel for entries and one copy
  /// for each form of nodes. Where places of nodes among others are free, as
  /// updates leave them, the tree is built again, beside the one that there is,
  /// for what a build costs.
  ///
  /// \param space as for reserve.
  /// \throws std::bad_alloc if memory runs out: the index answers as before,
  ///   and holds no more than before.
  template <class Exec>
  void shrink_to_fit(const Exec& space) {
    scratch_.clear();
    if (entries_.capacity() > Storage::slots(size(), block)) {
      Storage less;
      if (size() > 0) less = entries_.copied(name(), space, form());
      entries_ = less;
    }
    if (levels_.has_free_places())
      levels_ = Levels(space, label, tree_keys(), size(), options_);
    levels_.shrink_to_fit(space);
  }

  /// The number of entries for which there is memory.
  size_type capacity() const { return entries_.capacity(); }

  /// The number of entries.
  size_type size() const { return entries_.size(); }

  /// Bytes that the index holds: data_bytes(), tree_bytes(), and the free room
  /// that updates leave; scratch_bytes() come to it.
  size_type memory_bytes() const {
    return entries_.memory_bytes() + levels_.memory_bytes();
  }

  /// Bytes for which huge pages were asked, and not refused: see
  /// BPlusTree::huge_page_bytes.
  size_type huge_page_bytes() const {
    return entries_.huge_page_bytes() + levels_.huge_page_bytes();
  }

  /// Bytes that updates of this copy of the index have used meanwhile, and
  /// that the next one uses again: see insert.
  size_type scratch_bytes() const { return scratch_.memory_bytes(); }

  /// Bytes of keys and values, with up to 32 bytes of padding.
  size_type data_bytes() const { return entries_.used_bytes(block); }

  /// Bytes of the nodes: the sum of node_counts() by the size of each form.
  size_type tree_bytes() const { return levels_.node_bytes(); }

  /// The most nodes on a way from the root to a leaf.
  int height() const { return levels_.height(); }

  /// Entries up to which different keys share a leaf.
  size_type leaf_entries() const { return options_.leaf_entries; }

  /// The nodes as they are stored.
  const build::RadixLevels<typename KeyTraits<Key>::bits_type, MemorySpace>&
  levels() const {
    return levels_;
  }

  /// How many nodes of each form there are.
  RadixNodeCounts node_counts() const { return impl::node_counts(levels_); }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const {
    Ref ref;
    ref.entries_ = entries_.ref();
    levels_.refer(ref.nodes_);
    const bool keys_are_read = levels_.single_entries() < size();
    ref.nodes_.is_cached =
        tree_bytes() + (keys_are_read ? size() * entry_bytes : 0) <=
        ref.nodes_.cached_bytes;
    ref.keys_stay_ = size() * entry_bytes <= size_type{128} << 20;
    ref.nodes_stay_ = tree_bytes() <= size_type{48} << 20;
    return ref;
  }

 private:
  /// An empty index, once the options are checked.
  explicit RadixTree(const RadixTreeOptions& options)
      : options_(impl::checked("kindex::RadixTree", options)) {}

  /// How entries are stored.
  build::StorageForm form() const { return {block, options_.pages}; }

  template <class Exec>
  void rebuild(const Exec& space) {
    levels_.rebuild(space, label, tree_keys(), size(), options_);
  }

  /// The keys as a tree is built from.
  build::RadixKeys<typename Storage::Ref> tree_keys() const {
    return {entries_.ref()};
  }

  /// Makes the tree that of the entries, of which some came or went.
  template <class Exec, class Shift>
  void change(const Exec& space, const Shift& shift) {
    levels_.change(space, label, tree_keys(), size(), options_, shift,
                   &scratch_);
  }

  static constexpr const char* label = "kindex::RadixTree";

  using Staged = Kokkos::View<Entry*, MemorySpace>;

  /// Writes the new entries that `source` says, `size` of them, for which there
  /// is room, and makes their tree.
  ///
  /// \param shift how their ranks move.
  template <class Exec, class Source, class Shift>
  void edit(const Exec& space, const Source& source, size_type size,
            const Shift& shift, const Staged& staged) {
    if (size > 0)
      build::edit_entries(std::string(label) + "::edit_entries", space,
                          entries_.ref(), source, size,
                          Storage::slots(size, block), !Shift::removes,
                          staged.data(), staged.extent(0) / 2);
    entries_.resize(size);
    change(space, shift);
  }

  /// Two pieces of at most `slots` entries.
  template <class Exec>
  Staged staging(const Exec& space, size_type slots) {
    return scratch_.template take<Entry>(
        space, std::string(label) + "::staged",
        2 * std::min(piece, Storage::slots(slots, block)));
  }

  /// The changes of a batch in ascending order, which last as long as that.
  template <class Batch, class Exec, class... Given>
  Batch sorted(const Exec& space, const Given&... given) {
    scratch_.begin(space, std::string(label) + "::scratch");
    return Batch::from_unsorted(name(), space, given..., build::StorageForm(),
                                &scratch_);
  }

  /// Sorted keys as queries.
  template <class Batch>
  static auto keys_of(const Batch& batch) {
    return Kokkos::View<const Key*, MemorySpace,
                        Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
        batch.ref().keys, batch.size());
  }

  Storage entries_;
  Levels levels_;
  build::Scratch<MemorySpace> scratch_;
  RadixTreeOptions options_;
};

/// The handle of a RadixTree in a kernel: see query::RefVerbs for its verbs.
template <class Key, class Value, class MemorySpace, class Layout>
class RadixTree<Key, Value, MemorySpace, Layout>::Ref
    : public query::RadixRef<query::AscendingRef<Ref, Key, Value, Layout>,
                             query::FixedRadixForm<Key>> {
  using Base = query::RadixRef<query::AscendingRef<Ref, Key, Value, Layout>,
                               query::FixedRadixForm<Key>>;
  using Base::entries_;
  using Base::nodes_;

 public:
  using Base::size;

  /// A handle of the empty index.
  Ref() = default;

  /// Whether partitions of a large batch gain: for values that lie apart, and
  /// where a GPU's cache holds not even the nodes. Measured on an H200: 1.4
  /// times as many lookups per second in 73 MB of nodes, 1.55 times in 199 MB,
  /// 1.0 in 23 MB, 0.76 in 13 MB.
  KOKKOS_FUNCTION bool partitioning_pays(bool finds) const {
    return !nodes_stay_ || (finds && entries_.has_values_apart());
  }

  /// Has a host fetch the first keys of a leaf.
  KOKKOS_FUNCTION void fetch_leaf(size_type rank) const {
    if (rank < size()) query::prefetch(&entries_.key(rank));
  }

  /// The position of `key` among the entries from `rank` on; all before are
  /// below it, and those behind the leaf above.
  template <bool finds>
  KOKKOS_FUNCTION size_type search_leaf(size_type rank, const Key& key,
                                        int /*depth*/) const {
    KOKKOS_IF_ON_HOST((return scan_leaf<finds>(rank, key);))
    KOKKOS_IF_ON_DEVICE((return read_leaf<finds>(rank, key);))
  }

 private:
  friend class RadixTree;

  /// That on a host: the first keys, of up to 16 bytes, are counted without a
  /// branch, and decide in most leaves of random keys; then one by one.
  template <bool finds>
  KOKKOS_FUNCTION size_type scan_leaf(size_type rank, const Key& key) const {
    constexpr int at_once = std::clamp(16 / entry_bytes, 1, 4);
    constexpr int most_scanned = 8;
    const size_type n = size();
    size_type at = rank;
    int decided = at_once;
    if (rank + at_once <= n) {
      decided = 0;
      for (int i = 0; i < at_once; ++i)
        decided += entries_.key(rank + i) < key ? 1 : 0;
      at = rank + decided;
    }
    if (decided == at_once) {
      for (int i = 0; i < most_scanned && at < n && entries_.key(at) < key; ++i)
        ++at;
      if (at < n && entries_.key(at) < key) at = this->bound_from(at, 0, key);
    }
    return finds ? this->if_equal(at, key) : at;
  }

  /// That on a GPU: by sectors of memory.
  template <bool finds>
  KOKKOS_FUNCTION size_type read_leaf(size_type rank, const Key& key) const {
    constexpr int most_windows = 4;
    size_type at = rank / window * window;
    for (int w = 0; w < most_windows && at < size(); ++w, at += window) {
      const auto keys = keys_stay_ ? load<query::Reuse::often>(at)
                                   : load<query::Reuse::never>(at);
      const unsigned below = query::count_below(keys, key);
      if (below < unsigned(window))
        return !finds || query::holds(keys, key) ? at + below : size();
    }
    if (at >= size()) return size();
    at = this->bound_from(at, window, key);
    return finds ? this->if_equal(at, key) : at;
  }

  template <query::Reuse reuse>
  KOKKOS_FUNCTION auto load(size_type first) const {
    return query::load_entries<window, reuse>(query::SingleLane(), entries_,
                                              first);
  }

  // Whether a GPU's cache holds them.
  bool keys_stay_ = true;
  bool nodes_stay_ = true;
};

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec, class Keys, class Values>
void RadixTree<Key, Value, MemorySpace, Layout>::insert(const Exec& space,
                                                        const Keys& keys,
                                                        const Values& values) {
  using Batch = build::Entries<Key, Value, MemorySpace, SoA>;
  const auto batch = sorted<Batch>(space, keys, values);
  if (batch.size() == 0) return;
  const auto planned =
      build::plan_insertions(label, space, *this, keys_of(batch), &scratch_);
  const size_type all = size() + batch.size();
  const auto staged = staging(space, all);
  entries_.make_room(name(), space, all, 2 * capacity(), form());
  edit(
      space,
      build::InsertedEntries<typename Storage::Ref, typename Batch::Ref, Entry>{
          entries_.ref(), batch.ref(), planned.plan},
      all, build::RadixInsertions{planned.starts.data(), batch.size()}, staged);
}

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec, class Keys, class Values>
void RadixTree<Key, Value, MemorySpace, Layout>::insert_or_assign(
    const Exec& space, const Keys& keys, const Values& values) {
  using Batch = build::Entries<Key, Value, MemorySpace, SoA>;
  using Picked = build::PickedEntries<typename Batch::Ref>;
  const auto batch = sorted<Batch>(space, keys, values);
  if (batch.size() == 0) return;
  const auto planned = build::plan_assignments(
      label, space, *this, keys_of(batch), batch.ref(), &scratch_);
  const bool inserts = planned.inserted > 0;
  const size_type all = size() + planned.inserted;
  const auto staged = inserts ? staging(space, all) : Staged();
  entries_.make_room(name(), space, all, 2 * capacity(), form());
  build::write_values(label, space, entries_.ref(), batch.ref(), planned.lower,
                      planned.upper);
  if (!inserts) return;
  edit(space,
       build::InsertedEntries<typename Storage::Ref, Picked, Entry>{
           entries_.ref(), Picked{batch.ref(), planned.places.data()},
           planned.insertions.plan},
       all,
       build::RadixInsertions{planned.insertions.starts.data(),
                              planned.inserted},
       staged);
}

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec, class Keys>
void RadixTree<Key, Value, MemorySpace, Layout>::erase(const Exec& space,
                                                       const Keys& keys) {
  using Batch = build::Entries<Key, std::uint64_t, MemorySpace, SoA>;
  const auto batch = sorted<Batch>(space, keys);
  if (batch.size() == 0 || size() == 0) return;
  const auto planned =
      build::plan_erasures(label, space, *this, keys_of(batch), &scratch_);
  if (planned.erased == 0) return;
  const size_type left = size() - planned.erased;
  const auto staged = staging(space, left);
  entries_.make_room(name(), space, size(), size(), form());
  edit(space,
       build::KeptEntries<typename Storage::Ref, Entry>{
           entries_.ref(), planned.plan, planned.gone.data()},
       left,
       build::RadixErasures{planned.lower.data(), planned.gone.data(),
                            batch.size()},
       staged);
}

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec, class Keys, class Values>
void RadixTree<Key, Value, MemorySpace, Layout>::update(const Exec& space,
                                                        const Keys& keys,
                                                        const Values& values) {
  using Batch = build::Entries<Key, Value, MemorySpace, SoA>;
  const auto batch = sorted<Batch>(space, keys, values);
  if (batch.size() == 0 || size() == 0) return;
  entries_.make_room(name(), space, size(), size(), form());
  build::update_values(label, space, *this, keys_of(batch), entries_.ref(),
                       batch.ref(), &scratch_);
}

/// \cond
template <class Exec, class Keys>
RadixTree(const Exec&, const Keys&, const RadixTreeOptions& = {})
    -> RadixTree<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> RadixTree(const Exec&, const Keys&,
                                             const Values&,
                                             const RadixTreeOptions& = {})
->RadixTree<typename Keys::non_const_value_type,
            typename Values::non_const_value_type, typename Exec::memory_space>;
template <class Exec, class Keys>
RadixTree(const Exec&, SortedTag, const Keys&, Check = Check::on,
          const RadixTreeOptions& = {})
    -> RadixTree<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> RadixTree(const Exec&, SortedTag,
                                             const Keys&, const Values&,
                                             Check = Check::on,
                                             const RadixTreeOptions& = {})
->RadixTree<typename Keys::non_const_value_type,
            typename Values::non_const_value_type, typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
