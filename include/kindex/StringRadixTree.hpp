// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_STRINGRADIXTREE_HPP
#define KINDEX_STRINGRADIXTREE_HPP

/// \file
/// Ascending byte strings under an adaptive radix tree.

#include <kindex/RadixTree.hpp>
#include <kindex/build/EditEntries.hpp>
#include <kindex/build/Strings.hpp>
#include <kindex/query/RadixRef.hpp>
#include <kindex/query/StringRadixForm.hpp>

namespace kindex {

namespace impl {

/// Refers to the strings of offsets and chars.
template <class Offset>
struct ReferToStrings {
  query::Strided<const Offset> offsets;
  const unsigned char* chars;
  Bytes* bytes;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const auto begin = static_cast<size_type>(offsets(i));
    const auto end = static_cast<size_type>(offsets(i + 1));
    bytes[i] = {chars + begin, static_cast<std::uint32_t>(end - begin),
                Edge::at};
  }
};

}  // namespace impl

/// Queries of offsets and chars: element i refers to the `offsets(i + 1) -
/// offsets(i)` bytes from `chars(offsets(i))` on, which must stay alive and in
/// place. One kernel on `space` and one allocation; where the offsets are
/// checked, another kernel and a fence.
///
/// \param space an instance whose memory space `chars` is in.
/// \param offsets m + 1 ascending integers.
/// \param chars a contiguous View of bytes.
/// \param check whether offsets are checked. Where they are not, wrong ones are
///   undefined behaviour.
/// \throws Error if `chars` is not contiguous, if an offset is below the one
///   before or above the size of `chars`, or if a string has more than 2^31 - 1
///   bytes.
template <class Exec, class Offsets, class Chars>
Kokkos::View<Bytes*, typename Exec::memory_space> as_bytes(
    const Exec& space, const Offsets& offsets, const Chars& chars,
    Check check = Check::on) {
  static_assert(std::is_integral_v<typename Offsets::non_const_value_type> &&
                    sizeof(typename Chars::value_type) == 1,
                "kindex: strings are integers as offsets, and bytes");
  const std::string label = "kindex::as_bytes";
  const auto o = query::as_input(query::strided<Exec>(offsets));
  const auto c = query::strided<Exec>(chars);
  build::check_stride(label, c);
  if (check == Check::on) build::check_offsets(label, space, o, c.size);
  const size_type m = o.size == 0 ? 0 : o.size - 1;
  const Kokkos::View<Bytes*, typename Exec::memory_space> bytes(
      Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                         "kindex::as_bytes::bytes"),
      m);
  Kokkos::parallel_for(
      "kindex::as_bytes",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0, m),
      impl::ReferToStrings<typename Offsets::non_const_value_type>{
          o, reinterpret_cast<const unsigned char*>(c.data), bytes.data()});
  return bytes;
}

/// Byte strings of any length in ascending order, and an adaptive radix tree of
/// where they stand: RadixTree for keys that are Bytes. Any bytes are legal,
/// zero among them, and so are the empty string, strings that others begin
/// with, and duplicates, which keep the order of the input.
///
/// Strings that end where a node branches are the first of its entries, in
/// front of those of its children: no byte marks an end. A node keeps the
/// number of bytes above it; a path of more than one byte is passed unread, and
/// compared with the first of the node's strings, in a second descent, only for
/// bounds that may have left it: those that do not end at strings which have
/// it.
///
/// Queries are Views of Bytes that refer to memory which the instance's
/// execution space can access (see Bytes); as_bytes makes them of offsets and
/// chars. A `Prefix<Bytes>` asks for all strings that begin so.
/// `longest_prefix_match` is the longest string that a query begins with: a
/// bound, and another one for each string between that and the query which
/// shares more with it.
///
/// Memory beside the chars: 8 bytes per string for the offsets, the values, and
/// nodes of 32 (Node4), 96, 240, 1040, 352 or 48 bytes: see RadixTree. A lookup
/// reads a node for each byte that distinguishes the query from others, and up
/// to `leaf_entries` strings; a second descent the same, and the first string
/// of each node behind a path.
///
/// `insert`, `insert_or_assign`, `erase` and `update` change the index by a
/// batch on the device.
///
/// Copies are shallow and counted, like those of Views.
///
/// \tparam Value, MemorySpace as for SortedArray.
template <class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space>
class StringRadixTree
    : public query::BulkQueries<StringRadixTree<Value, MemorySpace>, Bytes,
                                Value, MemorySpace> {
  using Storage = build::Strings<Value, MemorySpace>;
  using Levels = build::RadixLevels<std::uint32_t, MemorySpace>;

 public:
  class Ref;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "StringRadixTree"; }

  /// Up to 4 strings share a leaf.
  static constexpr RadixTreeOptions default_options() {
    RadixTreeOptions options;
    options.leaf_entries = 4;
    return options;
  }

  /// The empty index.
  StringRadixTree() = default;

  /// Builds from n strings in any order; values are the row ids 0...n-1.
  ///
  /// Sorts (see build::sort_strings for memory and fences), copies, and makes
  /// the tree as RadixTree does: a fence of `space` for each level, and two
  /// more.
  ///
  /// \param space the instance on which the index is built.
  /// \param offsets n + 1 integers: string i has the elements `offsets(i)` to
  ///   `offsets(i + 1)` - 1 of `chars`, at most 2^31 - 1; without an element,
  ///   there are no strings.
  /// \param chars bytes, one behind the other.
  /// \param options when strings share a leaf, and on which pages a host has
  /// them.
  /// \throws Error naming the position and the value of the first offset below
  ///   its predecessor or beyond `chars`; for more rows than `Value` can
  ///   number; for leaves of no entry or more than 2^16.
  template <class Exec, class Offsets, class Chars>
  StringRadixTree(const Exec& space, const Offsets& offsets, const Chars& chars,
                  const RadixTreeOptions& options = default_options())
      : StringRadixTree(options) {
    build(space, Storage(name(), space, offsets, chars, false, Check::on,
                         row_ids(), options_.pages));
  }

  /// Builds from strings in any order and their values.
  ///
  /// \param space, offsets, chars, options as above.
  /// \param values n values, in the order of the strings.
  /// \throws Error as above, or if there is not one value per string.
  template <class Exec, class Offsets, class Chars, class Values>
  requires Kokkos::is_view_v<Values> StringRadixTree(
      const Exec& space, const Offsets& offsets, const Chars& chars,
      const Values& values, const RadixTreeOptions& options = default_options())
      : StringRadixTree(options) {
    build(space, Storage(name(), space, offsets, chars, false, Check::on,
                         query::as_input(query::strided<Exec>(values)),
                         options_.pages));
  }

  /// Builds from ascending strings; values are the row ids 0...n-1, which are
  /// not stored: the position is the answer.
  ///
  /// \param space, offsets, chars, options as above.
  /// \param check whether the promise of order is verified.
  /// \throws Error as above, and naming the position of the first string below
  ///   its predecessor, and both.
  template <class Exec, class Offsets, class Chars>
  StringRadixTree(const Exec& space, SortedTag, const Offsets& offsets,
                  const Chars& chars, Check check = Check::on,
                  const RadixTreeOptions& options = default_options())
      : StringRadixTree(options) {
    build(space, Storage(name(), space, offsets, chars, true, check, row_ids(),
                         options_.pages));
  }

  /// Builds from ascending strings and their values.
  ///
  /// \param space, offsets, chars, values, check, options as above.
  /// \throws Error as above.
  template <class Exec, class Offsets, class Chars, class Values>
  requires Kokkos::is_view_v<Values> StringRadixTree(
      const Exec& space, SortedTag, const Offsets& offsets, const Chars& chars,
      const Values& values, Check check = Check::on,
      const RadixTreeOptions& options = default_options())
      : StringRadixTree(options) {
    build(space, Storage(name(), space, offsets, chars, true, check,
                         query::as_input(query::strided<Exec>(values)),
                         options_.pages));
  }

  /// Adds strings and their values, each behind all that are equal, those of a
  /// batch in its order: as std::multimap does.
  ///
  /// Sorts the batch and finds its places by a batch of upper_bound; then
  /// writes all strings, offsets and values anew, in order, and the tree of
  /// them, as a build does. The result is that of building from all strings,
  /// with values that are stored. Refs taken before are not valid any more, and
  /// other instances must have ended with them; copies of the index keep what
  /// they had.
  ///
  /// Cost: the sort of the batch (see build::sort_strings), m searches, what
  /// there is read and written once, and the build of the tree. Memory: a
  /// second index until the call returns. Fences `space` as the constructor
  /// does.
  ///
  /// \param space, offsets, chars as for the constructor: m strings.
  /// \param values m values, in the order of the strings.
  /// \throws Error as the constructor, or if there is not one value per string;
  ///   std::bad_alloc if memory runs out. The index is as it was.
  template <class Exec, class Offsets, class Chars, class Values>
  void insert(const Exec& space, const Offsets& offsets, const Chars& chars,
              const Values& values) {
    const auto batch = sorted_batch(
        space, offsets, chars, query::as_input(query::strided<Exec>(values)));
    if (batch.size() == 0) return;
    const auto planned =
        build::plan_insertions(label, space, *this, queries_of(space, batch));
    edit(space,
         build::InsertedEntries<EntriesRef, EntriesRef, Entry>{
             strings_.entries(), batch.entries(), planned.plan},
         size() + batch.size());
  }

  /// Gives all strings that equal string i of the batch value i, and inserts it
  /// where there is none; of equal strings in the batch, the last one wins: as
  /// std::map does.
  ///
  /// Where all are there, an update; else the cost, fences and memory of an
  /// insert and an update.
  ///
  /// \param space, offsets, chars, values as for insert.
  /// \throws as insert.
  template <class Exec, class Offsets, class Chars, class Values>
  void insert_or_assign(const Exec& space, const Offsets& offsets,
                        const Chars& chars, const Values& values) {
    using Picked = build::PickedEntries<EntriesRef>;
    const auto batch = sorted_batch(
        space, offsets, chars, query::as_input(query::strided<Exec>(values)));
    if (batch.size() == 0) return;
    const auto queries = queries_of(space, batch);
    const auto planned =
        build::plan_assignments(label, space, *this, queries, batch.entries());
    if (planned.inserted > 0) {
      StringRadixTree changed = *this;
      changed.edit(space,
                   build::InsertedEntries<EntriesRef, Picked, Entry>{
                       strings_.entries(),
                       Picked{batch.entries(), planned.places.data()},
                       planned.insertions.plan},
                   size() + planned.inserted);
      build::update_values(label, space, changed, queries,
                           changed.strings_.entries(), batch.entries());
      *this = std::move(changed);
    } else {
      strings_.own_values(label, space);
      build::write_values(label, space, strings_.entries(), batch.entries(),
                          planned.lower, planned.upper);
    }
  }

  /// Removes all strings that are among those given; of others, nothing.
  ///
  /// Otherwise as insert; where nothing is removed, nothing is written. One
  /// fence more, for the number of strings that stay.
  ///
  /// \param space, offsets, chars as for insert.
  /// \throws as insert.
  template <class Exec, class Offsets, class Chars>
  void erase(const Exec& space, const Offsets& offsets, const Chars& chars) {
    const build::Strings<std::uint64_t, MemorySpace> batch(
        name(), space, offsets, chars, false, Check::on, row_ids());
    if (batch.size() == 0 || size() == 0) return;
    const auto planned =
        build::plan_erasures(label, space, *this, queries_of(space, batch));
    if (planned.erased == 0) return;
    edit(space,
         build::KeptEntries<EntriesRef, Entry>{strings_.entries(), planned.plan,
                                               planned.gone.data()},
         size() - planned.erased);
  }

  /// Gives all strings that equal string i of the batch value i, if there are
  /// any; of equal strings in the batch, the last one wins.
  ///
  /// Values are written where they are, unless a copy of the index shares them
  /// or they are row ids that are not stored: then they are copied first. The
  /// tree stays as it is. Fences `space` to check the offsets and as the sort
  /// does.
  ///
  /// \param space, offsets, chars, values as for insert.
  /// \throws as insert.
  template <class Exec, class Offsets, class Chars, class Values>
  void update(const Exec& space, const Offsets& offsets, const Chars& chars,
              const Values& values) {
    const auto batch = sorted_batch(
        space, offsets, chars, query::as_input(query::strided<Exec>(values)));
    if (batch.size() == 0 || size() == 0) return;
    strings_.own_values(label, space);
    build::update_values(label, space, *this, queries_of(space, batch),
                         strings_.entries(), batch.entries());
  }

  /// The number of strings.
  size_type size() const { return strings_.size(); }

  /// Bytes that the index holds.
  size_type memory_bytes() const { return data_bytes() + tree_bytes(); }

  /// Bytes for which huge pages were asked, and not refused: see
  /// BPlusTree::huge_page_bytes.
  size_type huge_page_bytes() const {
    return strings_.huge_page_bytes() + levels_.huge_page_bytes();
  }

  /// Bytes of strings, offsets and values.
  size_type data_bytes() const { return strings_.memory_bytes(); }

  /// Bytes of the nodes.
  size_type tree_bytes() const { return levels_.memory_bytes(); }

  /// The most nodes on a way from the root to a leaf.
  int height() const { return levels_.height(); }

  /// Strings up to which different ones share a leaf.
  size_type leaf_entries() const { return options_.leaf_entries; }

  /// The nodes as they are stored.
  const build::RadixLevels<std::uint32_t, MemorySpace>& levels() const {
    return levels_;
  }

  /// How many nodes of each form there are.
  RadixNodeCounts node_counts() const { return impl::node_counts(levels_); }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const {
    Ref ref;
    ref.entries_ = strings_.entries();
    ref.nodes_.form.strings = strings_.ref();
    levels_.refer(ref.nodes_);
    ref.nodes_.is_cached = memory_bytes() <= ref.nodes_.cached_bytes;
    return ref;
  }

 private:
  /// An empty index, once the options are checked.
  explicit StringRadixTree(const RadixTreeOptions& options)
      : options_(impl::checked("kindex::StringRadixTree", options)) {}

  using EntriesRef = build::StringEntriesRef<Value>;
  using Entry = build::Entry<Bytes, Value>;
  static constexpr const char* label = "kindex::StringRadixTree";

  static query::Strided<const build::RowIds> row_ids() { return {}; }

  /// Takes the strings, and makes their tree.
  template <class Exec>
  void build(const Exec& space, const Storage& strings) {
    Levels levels(space, label, build::RadixStrings{strings.ref()},
                  strings.size(), options_);
    strings_ = strings;
    levels_ = std::move(levels);
  }

  /// The same of those that `source` says, `count` of them.
  template <class Exec, class Source>
  void edit(const Exec& space, const Source& source, size_type count) {
    build(space,
          Storage::from_source(label, space, source, count, options_.pages));
  }

  template <class Exec, class Offsets, class Chars, class Given>
  static Storage sorted_batch(const Exec& space, const Offsets& offsets,
                              const Chars& chars,
                              query::Strided<const Given> values) {
    return Storage(name(), space, offsets, chars, false, Check::on, values);
  }

  /// Strings of a batch as queries.
  template <class Exec, class Batch>
  static auto queries_of(const Exec& space, const Batch& batch) {
    return as_bytes(space, batch.offsets(), batch.chars(), Check::off);
  }

  Storage strings_;
  Levels levels_;
  RadixTreeOptions options_ = default_options();
};

/// The handle of a StringRadixTree in a kernel: see query::RefVerbs for its
/// verbs. Keys are Bytes that refer to the index's memory.
template <class Value, class MemorySpace>
class StringRadixTree<Value, MemorySpace>::Ref
    : public query::RadixRef<query::RankedRef<Ref, Bytes, Value>,
                             query::StringRadixForm> {
  using Base = query::RadixRef<query::RankedRef<Ref, Bytes, Value>,
                               query::StringRadixForm>;

 public:
  /// A handle of the empty index.
  Ref() = default;

  /// The number of strings.
  KOKKOS_FUNCTION size_type size() const { return entries_.size; }
  /// The string at `position`.
  KOKKOS_FUNCTION Bytes key_at(size_type position) const {
    return entries_.key(position);
  }
  /// The value at `position`.
  KOKKOS_FUNCTION Value value_at(size_type position) const {
    return entries_.value(position);
  }
  /// Has a host fetch where the first string of a leaf begins.
  KOKKOS_FUNCTION void fetch_leaf(size_type rank) const {
    query::prefetch(&entries_.strings.offsets[rank]);
  }
  /// Has a host fetch that string.
  KOKKOS_FUNCTION void fetch_first(size_type rank) const {
    query::prefetch(entries_.strings.chars + entries_.strings.offsets[rank]);
  }

  /// The position of `key` among the strings from `rank` on; all before are
  /// below it, and those behind the leaf above. Or RadixNodes::astray, if the
  /// first of them has not the key's first `depth` bytes.
  template <bool finds>
  KOKKOS_FUNCTION size_type search_leaf(size_type rank, const Bytes& key,
                                        int depth) const {
    constexpr size_type astray =
        query::RadixNodes<query::StringRadixForm>::astray;
    constexpr int most_scanned = 8;
    // No string: behind the last byte of a node, or of all.
    if (rank == size()) return depth > 0 ? astray : rank;
    size_type at = rank;
    for (int i = 0; i < most_scanned; ++i, ++at) {
      if (at == size()) return at;
      const Bytes own = key_at(at);
      const std::uint32_t common = common_bytes(own, key);
      if (i == 0 && int(common) < depth) return astray;
      const int difference = own.symbol(common) - key.symbol(common);
      if (difference >= 0) return finds && difference > 0 ? size() : at;
    }
    at = this->bound_from(at, 0, key);
    return finds ? this->if_equal(at, key) : at;
  }

  /// The longest string that `query` begins with, and its bits; rank size() and
  /// no bits if there is none.
  KOKKOS_FUNCTION PrefixMatch longest_prefix_match(const Bytes& query) const {
    return match_near(Base::lower_bound(query), query);
  }

  /// The same, given the lower bound of `query`.
  KOKKOS_FUNCTION PrefixMatch match_near(size_type bound, Bytes query) const {
    if (bound < size() && key_at(bound) == query)
      return {bound, 8 * std::uint64_t{query.size}};
    while (bound > 0) {
      // No string between that one and the query shares more with it.
      const Bytes below = key_at(bound - 1);
      const std::uint32_t common = common_bytes(below, query);
      query.size = common;
      bound = Base::lower_bound(query);
      if (bound < size() && key_at(bound) == query)
        return {bound, 8 * std::uint64_t{common}};
    }
    return {size(), 0};
  }

 private:
  friend class StringRadixTree;

  build::StringEntriesRef<Value> entries_;
  using Base::nodes_;
};

/// \cond
template <class Exec, class Offsets, class Chars>
StringRadixTree(const Exec&, const Offsets&, const Chars&,
                const RadixTreeOptions& = {})
    -> StringRadixTree<std::uint32_t, typename Exec::memory_space>;
template <class Exec, class Offsets, class Chars, class Values>
requires Kokkos::is_view_v<Values> StringRadixTree(const Exec&, const Offsets&,
                                                   const Chars&, const Values&,
                                                   const RadixTreeOptions& = {})
->StringRadixTree<typename Values::non_const_value_type,
                  typename Exec::memory_space>;
template <class Exec, class Offsets, class Chars>
StringRadixTree(const Exec&, SortedTag, const Offsets&, const Chars&,
                Check = Check::on, const RadixTreeOptions& = {})
    -> StringRadixTree<std::uint32_t, typename Exec::memory_space>;
template <class Exec, class Offsets, class Chars, class Values>
requires Kokkos::is_view_v<Values> StringRadixTree(const Exec&, SortedTag,
                                                   const Offsets&, const Chars&,
                                                   const Values&,
                                                   Check = Check::on,
                                                   const RadixTreeOptions& = {})
->StringRadixTree<typename Values::non_const_value_type,
                  typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
