// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_PARENTCHAIN_HPP
#define KINDEX_QUERY_PARENTCHAIN_HPP

/// \file
/// Hierarchies whose links are the entries of an index.

#include <kindex/query/Strided.hpp>

namespace kindex::query {

/// Writes the ancestors of each key, one thread per key.
template <class Ref, class Key, class Length>
struct FollowParents {
  Ref ref;
  Strided<const Key> keys;
  Key* parents;  ///< of key i: from `i * key_stride` on
  size_type key_stride;
  size_type level_stride;
  size_type most;  ///< ancestors of a key that are written
  Strided<Length> lengths;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    size_type length = 0;
    ref.for_each_parent(keys(i), most, [&](const Key& parent) {
      parents[i * key_stride + length * level_stride] = parent;
      ++length;
    });
    lengths(i) = static_cast<Length>(length);
  }
};

}  // namespace kindex::query

#endif
