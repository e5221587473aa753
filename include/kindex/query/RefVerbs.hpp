// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_REFVERBS_HPP
#define KINDEX_QUERY_REFVERBS_HPP

/// \file
/// The verbs of a single query, inside the caller's own kernels.

#include <kindex/query/LaneGroup.hpp>
#include <kindex/query/Pinned.hpp>
#include <kindex/query/Probe.hpp>

namespace kindex::query {

/// What `index.ref()` offers in a kernel, written once for all indexes.
///
/// \tparam Ref the index's handle (curiously recurring). It must be trivially
///   copyable and have
///   - `size_type size() const`: the number of entries;
///   - `template <bool finds, class Group, class Top, int W> void search(const
///     Group&, const Top&, const Key (&keys)[W], size_type (&positions)[W])
///     const`: the lower bounds of W keys per lane, as *positions* (where an
///     entry is stored; size() behind the last); or, with `finds`, the first
///     equal entries, or size(). Maybe `size_type no_position() const` is in
///     the place of size() here, where positions are not 0...size()-1. W > 1
///     lets the loads of independent lookups overlap. `Top` is what of the
///     search order is pinned;
///   - `size_type pinned_size(int steps, size_type most) const` and
///     `pinned_type pinned_key(size_type i) const`: the search order;
///   - maybe `PinnedKeys<pinned_type> top_on_host() const`: the first of these
///     in host memory, for BroadcastTop;
///   - `static constexpr int lanes, most_lanes`: lanes of a group that search
///     together, with 16 bytes or with one key each;
///   - `static constexpr bool sorting_pays`, `bool partitioning_pays(bool
///   finds)
///     const`:
///     what the automatic policy may do with large batches on a GPU;
///   - `Key key_at(size_type position) const`, `Value value_at(...)`;
///   - `size_type rank_of(size_type position) const`, and its inverse
///     `position_of(rank)`;
///   - maybe `Kokkos::pair<size_type, size_type> positions_from(size_type rank)
///     const`: where position_of takes long, the position of a rank, and behind
///     those of the ranks that follow side by side, as past-last;
///   - `static constexpr bool is_contiguous`: positions are ranks, so a range
///     is one run of positions;
///   - `int runs() const` and `Kokkos::pair<size_type, size_type> run(int i,
///     size_type first, size_type last) const`: in how many runs of positions
///     the entries of ranks `first` to `last` - 1 lie at most, and run i of
///     them, as first and past-last; the runs with most entries come first.
/// \tparam Key, Value types of the index.
template <class Ref, class Key, class Value>
class RefVerbs {
 public:
  using key_type = Key;      ///< type of the keys
  using pinned_type = Key;   ///< what the search order consists of
  using value_type = Value;  ///< type of the values

  /// The value of the first entry (in the order of the input) whose key equals
  /// `query`, or `missing`.
  template <class Query>
  KOKKOS_FUNCTION Value find(const Query& query, Value missing) const {
    const size_type position = locate<true>(lower_probe<Key>(query));
    return position < no_position(self()) ? self().value_at(position) : missing;
  }

  /// The same, with all bits one for an absent key.
  template <class Query>
  KOKKOS_FUNCTION Value find(const Query& query) const {
    return find(query, default_missing<Value>());
  }

  /// Whether an entry's key equals `query`.
  template <class Query>
  KOKKOS_FUNCTION bool contains(const Query& query) const {
    return locate<true>(lower_probe<Key>(query)) < no_position(self());
  }

  /// The number of keys below `query`; size() for NaN.
  template <class Query>
  KOKKOS_FUNCTION size_type lower_bound(const Query& query) const {
    return self().rank_of(locate<false>(lower_probe<Key>(query)));
  }

  /// The number of keys not above `query`; size() for NaN.
  template <class Query>
  KOKKOS_FUNCTION size_type upper_bound(const Query& query) const {
    return self().rank_of(locate<false>(upper_probe<Key>(query)));
  }

  /// Lower and upper bound of `query`.
  template <class Query>
  KOKKOS_FUNCTION Kokkos::pair<size_type, size_type> equal_range(
      const Query& query) const {
    return {lower_bound(query), upper_bound(query)};
  }

  /// The number of entries whose key equals `query`.
  template <class Query>
  KOKKOS_FUNCTION size_type count(const Query& query) const {
    return upper_bound(query) - lower_bound(query);
  }

  /// The ranks of the entries with `lo <= key <= hi`, as first and past-last.
  /// Empty (first = past-last) if `lo > hi` or one of them is NaN.
  template <class Query>
  KOKKOS_FUNCTION Kokkos::pair<size_type, size_type> range(
      const Query& lo, const Query& hi) const {
    const size_type first = lower_bound(lo);
    const size_type last = is_nan(hi) ? first : upper_bound(hi);
    return {first, last > first ? last : first};
  }

  /// The number of entries with `lo <= key <= hi`.
  template <class Query>
  KOKKOS_FUNCTION size_type range_count(const Query& lo,
                                        const Query& hi) const {
    const auto ranks = range(lo, hi);
    return ranks.second - ranks.first;
  }

  /// Calls `visit(key, value)` for every entry with `lo <= key <= hi`, in
  /// ascending order of keys, equal keys in the order of the input.
  template <class Query, class Visit>
  KOKKOS_FUNCTION void for_each_in_range(const Query& lo, const Query& hi,
                                         const Visit& visit) const {
    const auto ranks = range(lo, hi);
    for_each_position(
        self(), ranks.first, ranks.second, [&](size_type position) {
          visit(self().key_at(position), self().value_at(position));
        });
  }

  /// The same in descending order of keys, equal keys in the reverse order of
  /// the input.
  template <class Query, class Visit>
  KOKKOS_FUNCTION void for_each_in_reverse_range(const Query& lo,
                                                 const Query& hi,
                                                 const Visit& visit) const {
    const auto ranks = range(lo, hi);
    for (size_type rank = ranks.second; rank-- > ranks.first;)
      visit(key(rank), value(rank));
  }

  /// The entry whose key begins with the most bits of `query`: of several, the
  /// first not below the query, or if all are below, the last. Of no entries,
  /// rank size() with no bits.
  KOKKOS_FUNCTION PrefixMatch longest_prefix_match(const Key& query) const {
    return match_near(lower_bound(query), query);
  }

  /// The same, given the lower bound of `query`.
  KOKKOS_FUNCTION PrefixMatch match_near(size_type bound,
                                         const Key& query) const {
    using Traits = KeyTraits<Key>;
    const auto common = [&](size_type rank) {
      return static_cast<std::uint64_t>(kindex::impl::common_bits(
          Traits::to_bits(key(rank)), Traits::to_bits(query)));
    };
    PrefixMatch match{self().size(), 0};
    if (bound > 0) match = {bound - 1, common(bound - 1)};
    if (bound < self().size()) {
      const std::uint64_t bits = common(bound);
      if (bound == 0 || bits >= match.bits) match = {bound, bits};
    }
    return match;
  }

  /// Calls `visit(parent)` for the ancestors of `key`, in an index whose values
  /// are the keys of parents: its own parent, then that one's, up to the first
  /// that is no key of the index or its own parent, at most `most` of them.
  template <class Visit>
  KOKKOS_FUNCTION void for_each_parent(Key key, size_type most,
                                       const Visit& visit) const {
    static_assert(std::is_same_v<Key, Value>,
                  "kindex: the keys of parents are the index's values");
    for (size_type level = 0; level < most; ++level) {
      const size_type position = locate<true>(lower_probe<Key>(key));
      if (position >= no_position(self())) return;
      const Key parent = self().value_at(position);
      if (parent == key) return;
      visit(parent);
      key = parent;
    }
  }

  /// The key of rank `rank`. Precondition: `rank < size()`.
  KOKKOS_FUNCTION Key key(size_type rank) const {
    KOKKOS_ASSERT(rank < self().size());
    return self().key_at(self().position_of(rank));
  }

  /// The value of rank `rank`. Precondition: `rank < size()`.
  KOKKOS_FUNCTION Value value(size_type rank) const {
    KOKKOS_ASSERT(rank < self().size());
    return self().value_at(self().position_of(rank));
  }

  /// The position of the lower bound of `probe`, or, if one `finds`, of the
  /// first entry that equals the query, or size(): one search.
  template <bool finds>
  KOKKOS_FUNCTION size_type locate(const Probe<Key>& probe) const {
    const Key keys[1] = {probe.key};
    size_type positions[1];
    self().template search<finds>(SingleLane{}, NothingPinned{}, keys,
                                  positions);
    const bool nowhere = probe.above || (finds && !probe.exact);
    return nowhere ? no_position(self()) : positions[0];
  }

  /// `position`, the lower bound of `key`, if there is an equal entry, or
  /// size().
  KOKKOS_FUNCTION size_type if_equal(size_type position, const Key& key) const {
    return position < self().size() && self().key_at(position) == key
               ? position
               : self().size();
  }

 protected:
  /// The handle itself.
  KOKKOS_FUNCTION const Ref& self() const {
    return static_cast<const Ref&>(*this);
  }
};

}  // namespace kindex::query

#endif
