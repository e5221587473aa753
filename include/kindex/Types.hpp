// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_TYPES_HPP
#define KINDEX_TYPES_HPP

/// \file
/// Types and options that every room of the library shares.

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace kindex {

/// Sizes, ranks, offsets and counts: always 64 bits.
using size_type = std::uint64_t;

/// Tag of a constructor whose caller promises keys in ascending order.
struct SortedTag {};

/// The promise that keys come in ascending order (duplicates allowed).
inline constexpr SortedTag sorted{};

/// Tag of a range query that returns the keys of its hits, too.
struct WithKeysTag {};

/// Asks a range query for the keys of its hits, beside their values.
inline constexpr WithKeysTag with_keys{};

/// Whether a promise about the input is verified before it is relied on.
enum class Check {
  on,  ///< verify; a broken promise throws and names the first offence
  off  ///< trust the caller; a broken promise makes results unspecified
};

/// Structure of arrays: all keys, then all values. Smallest and, for
/// searches that return ranks, the fastest.
struct SoA {};

/// Array of structures: each key beside its value, so that the value of a
/// hit comes with the cache line that decided it.
struct AoS {};

/// What `find` writes for an absent key when the caller names nothing else:
/// all bits one. No value is reserved: a caller who stores that value asks
/// `contains`, or passes another `missing`.
///
/// \tparam Value any trivially copyable type.
template <class Value>
KOKKOS_FUNCTION Value default_missing() {
  static_assert(std::is_trivially_copyable_v<Value>);
  if constexpr (std::is_same_v<Value, bool>) {
    return true;
  } else if constexpr (std::is_integral_v<Value>) {
    return static_cast<Value>(~Value{0});
  } else {
    Value value;
    auto* bytes = reinterpret_cast<unsigned char*>(&value);
    for (std::size_t i = 0; i < sizeof(Value); ++i) bytes[i] = 0xFF;
    return value;
  }
}

}  // namespace kindex

#endif
