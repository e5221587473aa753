// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_ASCENDINGREF_HPP
#define KINDEX_QUERY_ASCENDINGREF_HPP

/// \file
/// What the handles of indexes over ascending entries share.

#include <kindex/build/Entries.hpp>
#include <kindex/query/RefVerbs.hpp>

namespace kindex::query {

/// A handle whose entries ascend, so that positions are ranks.
///
/// \tparam Ref the handle (curiously recurring), with a `search`.
/// \tparam Key, Value, Layout types of the index.
template <class Ref, class Key, class Value, class Layout>
class AscendingRef : public RefVerbs<Ref, Key, Value> {
 public:
  /// Positions are ranks.
  static constexpr bool is_contiguous = true;

  /// The number of entries.
  KOKKOS_FUNCTION size_type size() const { return entries_.size; }
  /// The key at `position`.
  KOKKOS_FUNCTION Key key_at(size_type position) const {
    return entries_.key(position);
  }
  /// The value at `position`.
  KOKKOS_FUNCTION Value value_at(size_type position) const {
    return entries_.value(position);
  }
  /// The identity.
  KOKKOS_FUNCTION size_type rank_of(size_type position) const {
    return position;
  }
  /// The identity.
  KOKKOS_FUNCTION size_type position_of(size_type rank) const { return rank; }
  /// A range is one run of positions.
  KOKKOS_FUNCTION int runs() const { return 1; }
  /// The identity.
  KOKKOS_FUNCTION Kokkos::pair<size_type, size_type> run(int, size_type first,
                                                         size_type last) const {
    return {first, last};
  }

 protected:
  using Entries = build::EntriesRef<Key, Value, Layout>;  ///< as kernels see it

  /// A handle of no entries.
  AscendingRef() = default;
  /// A handle of `entries`, which ascend by key.
  KOKKOS_FUNCTION explicit AscendingRef(const Entries& entries)
      : entries_(entries) {}

  Entries entries_;  ///< the entries
};

}  // namespace kindex::query

#endif
