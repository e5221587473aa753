// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_ASCENDINGREF_HPP
#define KINDEX_QUERY_ASCENDINGREF_HPP

/// \file
/// What the handles of indexes over ascending entries share.

#include <kindex/build/Entries.hpp>
#include <kindex/query/RankedRef.hpp>

namespace kindex::query {

/// A handle of ascending entries.
///
/// \tparam Ref the handle (curiously recurring), with a `search`.
/// \tparam Key, Value, Layout types of the index.
template <class Ref, class Key, class Value, class Layout>
class AscendingRef : public RankedRef<Ref, Key, Value> {
 public:
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
