// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_STRINGRADIXFORM_HPP
#define KINDEX_QUERY_STRINGRADIXFORM_HPP

/// \file
/// Byte strings on their way down a radix tree.

#include <kindex/build/Strings.hpp>
#include <kindex/query/RadixNodes.hpp>

namespace kindex::query {

/// Byte strings on their way down a radix tree.
struct StringRadixForm {
  using Query = Bytes;
  using Prefix = std::uint32_t;
  static constexpr bool has_ends = true;
  static constexpr bool leaves_decide = true;
  static constexpr int last_depth = -1;
  build::StringsRef strings;

  KOKKOS_FUNCTION const Bytes& query(const Bytes& key) const { return key; }
  KOKKOS_FUNCTION int byte(const Bytes& query, int depth) const {
    return query.symbol(std::uint32_t(depth));
  }
  KOKKOS_FUNCTION int depth(Prefix prefix) const { return int(prefix); }
  /// Compares with the first key of the node.
  template <class Word>
  KOKKOS_FUNCTION int side(const Bytes& query,
                           const RadixHead<Prefix, Word>& head, int from,
                           int depth) const {
    const unsigned char* path = strings.chars + strings.offsets[head.first];
    const auto end = static_cast<std::uint32_t>(depth);
    const std::uint32_t common =
        common_bytes(query.data, path, query.size < end ? query.size : end,
                     static_cast<std::uint32_t>(from));
    if (common >= end) return 0;
    return query.symbol(common) < int(path[common]) ? -1 : 1;
  }
};

}  // namespace kindex::query

#endif
