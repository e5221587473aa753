// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_RADIXREF_HPP
#define KINDEX_QUERY_RADIXREF_HPP

/// \file
/// What the handles of radix trees share.

#include <kindex/query/RadixNodes.hpp>
#include <kindex/query/RankedRef.hpp>

namespace kindex::query {

/// A handle that searches through the nodes of a radix tree.
///
/// \tparam Base the rest of the handle, a RankedRef of one that has
///   `fetch_leaf` and `search_leaf`: see RadixNodes::search.
/// \tparam Form what its keys are: FixedRadixForm or StringRadixForm.
template <class Base, class Form>
class RadixRef : public Base {
 public:
  using pinned_type = size_type;  ///< a child of the root

  /// One thread per lookup: it reads less than 16 bytes of most nodes.
  static constexpr int lanes = 1;
  /// The same.
  static constexpr int most_lanes = 1;
  /// Not measured to pay.
  static constexpr bool sorting_pays = false;
  /// The positions of W keys: see RadixNodes::search.
  template <bool finds, class Group, class Top, class Key, int W>
  KOKKOS_FUNCTION void search(const Group&, const Top& top,
                              const Key (&keys)[W],
                              size_type (&positions)[W]) const {
    if (this->self().size() == 0) {
      for (int w = 0; w < W; ++w) positions[w] = 0;
    } else {
      nodes_.template search<finds>(top, keys, positions, this->self());
    }
  }

  /// How many children of the root are pinned: all 256 or none.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    return this->self().size() > 0 ? nodes_.pinned_size(steps, most) : 0;
  }

  /// Where the root leads by byte i.
  KOKKOS_FUNCTION size_type pinned_key(size_type i) const {
    return nodes_.pinned_child(i);
  }

 protected:
  /// The first entry from `at` on that is not below `key`; all before are. In
  /// steps that grow from `reach` + 1, then by halves.
  template <class Key>
  KOKKOS_FUNCTION size_type bound_from(size_type at, size_type reach,
                                       const Key& key) const {
    size_type length = this->self().size() - at;
    for (; reach < length; reach = 2 * reach + 1)
      if (!(this->self().key_at(at + reach) < key)) length = reach;
    while (length > 0) {
      const size_type half = length / 2;
      const bool is_below = this->self().key_at(at + half) < key;
      at += is_below ? half + 1 : 0;
      length = is_below ? length - half - 1 : half;
    }
    return at;
  }

  RadixNodes<Form> nodes_;  ///< the tree
};

}  // namespace kindex::query

#endif
