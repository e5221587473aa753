// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_RANKEDREF_HPP
#define KINDEX_QUERY_RANKEDREF_HPP

/// \file
/// What the handles of indexes share whose entries ascend.

#include <kindex/query/RefVerbs.hpp>

namespace kindex::query {

/// A handle whose entries ascend, so that positions are ranks.
///
/// \tparam Ref the handle (curiously recurring): see RefVerbs for what it has.
/// \tparam Key, Value types of the index.
template <class Ref, class Key, class Value>
class RankedRef : public RefVerbs<Ref, Key, Value> {
 public:
  /// Positions are ranks.
  static constexpr bool is_contiguous = true;

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
};

}  // namespace kindex::query

#endif
