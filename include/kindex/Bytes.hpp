// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BYTES_HPP
#define KINDEX_BYTES_HPP

/// \file
/// Byte strings as keys.

#include <kindex/Key.hpp>

#include <cstdint>

namespace kindex {

/// Where in the order a byte string stands as a query.
enum class Edge : std::uint32_t {
  at,         ///< at itself
  behind,     ///< behind itself, before the strings that it begins
  behind_all  ///< behind all strings that it begins
};

/// A byte string in memory that it does not own, ordered byte by byte as
/// unsigned numbers; a string comes before those that it begins. Any bytes are
/// legal, zero among them, and so is no byte at all.
struct Bytes {
  const unsigned char* data = nullptr;  ///< the first byte
  std::uint32_t size = 0;               ///< how many
  Edge edge = Edge::at;                 ///< what a query means

  /// Byte `i`, or, behind the last, a number for the edge: below all bytes or
  /// above.
  KOKKOS_FUNCTION int symbol(std::uint32_t i) const {
    if (i < size) return data[i];
    return edge == Edge::at ? end : edge == Edge::behind ? end + 1 : 256;
  }
  /// The symbol of the end.
  static constexpr int end = -2;

  /// The number of leading bytes that two strings have in common.
  KOKKOS_FUNCTION friend std::uint32_t common_bytes(const Bytes& a,
                                                    const Bytes& b) {
    const std::uint32_t most = a.size < b.size ? a.size : b.size;
    std::uint32_t common = 0;
    while (common < most && a.data[common] == b.data[common]) ++common;
    return common;
  }
  /// Equality of bytes and edges.
  KOKKOS_FUNCTION friend bool operator==(const Bytes& a, const Bytes& b) {
    return a.size == b.size && a.edge == b.edge && common_bytes(a, b) == a.size;
  }
  /// Inequality.
  KOKKOS_FUNCTION friend bool operator!=(const Bytes& a, const Bytes& b) {
    return !(a == b);
  }
  /// The order of the first symbols that differ.
  KOKKOS_FUNCTION friend bool operator<(const Bytes& a, const Bytes& b) {
    const std::uint32_t common = common_bytes(a, b);
    return a.symbol(common) < b.symbol(common);
  }
  /// The same.
  KOKKOS_FUNCTION friend bool operator>(const Bytes& a, const Bytes& b) {
    return b < a;
  }
};

/// All byte strings that begin with `key`, as a query.
template <>
struct Prefix<Bytes> {
  Bytes key;  ///< what they begin with
};

/// What the verbs ask of queries.
template <>
struct KeyTraits<Bytes> {
  /// Never.
  KOKKOS_FUNCTION static bool is_nan(const Bytes&) { return false; }
};

}  // namespace kindex

#endif
