// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_KEY_HPP
#define KINDEX_KEY_HPP

/// \file
/// What a key is: the admitted types, their order, and the order-preserving
/// map to unsigned bits on which sorts and layouts rely.

#include <kindex/Types.hpp>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <type_traits>

namespace kindex {

/// A key of 16 bytes (UUIDs, IPv6 addresses, hashes, composed keys), ordered
/// as an unsigned integer of 128 bits.
struct alignas(16) Key128 {
  std::uint64_t hi = 0;  ///< the more significant 8 bytes
  std::uint64_t lo = 0;  ///< the less significant 8 bytes

  /// Equality of all 128 bits.
  KOKKOS_FUNCTION friend constexpr bool operator==(const Key128& a,
                                                   const Key128& b) {
    return a.hi == b.hi && a.lo == b.lo;
  }
  /// Inequality.
  KOKKOS_FUNCTION friend constexpr bool operator!=(const Key128& a,
                                                   const Key128& b) {
    return !(a == b);
  }
  /// Order of unsigned 128-bit integers.
  KOKKOS_FUNCTION friend constexpr bool operator<(const Key128& a,
                                                  const Key128& b) {
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
  }
  /// Order of unsigned 128-bit integers.
  KOKKOS_FUNCTION friend constexpr bool operator>(const Key128& a,
                                                  const Key128& b) {
    return b < a;
  }
  /// Order of unsigned 128-bit integers.
  KOKKOS_FUNCTION friend constexpr bool operator<=(const Key128& a,
                                                   const Key128& b) {
    return !(b < a);
  }
  /// Order of unsigned 128-bit integers.
  KOKKOS_FUNCTION friend constexpr bool operator>=(const Key128& a,
                                                   const Key128& b) {
    return !(a < b);
  }
  /// Prints `0x` and 32 hexadecimal digits.
  friend std::ostream& operator<<(std::ostream& out, const Key128& key) {
    constexpr char digits[] = "0123456789abcdef";
    out << "0x";
    for (int shift = 60; shift >= 0; shift -= 4)
      out << digits[(key.hi >> shift) & 15];
    for (int shift = 60; shift >= 0; shift -= 4)
      out << digits[(key.lo >> shift) & 15];
    return out;
  }
};

namespace impl {

template <std::size_t Bytes>
struct UnsignedOfSize;
template <>
struct UnsignedOfSize<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOfSize<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOfSize<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOfSize<8> {
  using type = std::uint64_t;
};

}  // namespace impl

/// Whether `Key` can be a key: integers of 8 to 64 bits (not `bool`),
/// `float`, `double` and Key128.
template <class Key>
inline constexpr bool is_key_v =
    (std::is_integral_v<Key> && !std::is_same_v<Key, bool> &&
     sizeof(Key) <= 8) ||
    std::is_same_v<Key, float> || std::is_same_v<Key, double> ||
    std::is_same_v<Key, Key128>;

/// The order of a key type as bits: `a < b` if and only if
/// `to_bits(a) < to_bits(b)`, for all keys that an index admits.
///
/// Floating-point keys are ordered as by `<`, with −0.0 equal to +0.0 (both map
/// to the same bits); NaN has no place in that order, and an index refuses it.
///
/// \tparam Key a type for which is_key_v holds.
template <class Key>
struct KeyTraits {
  static_assert(is_key_v<Key>,
                "kindex: a key is an integer of 8 to 64 bits, float, double or "
                "kindex::Key128");

  /// Unsigned type of the key's size (Key128 stands for its own bits).
  using bits_type = typename impl::UnsignedOfSize<sizeof(Key)>::type;

  /// The order-preserving map to unsigned bits.
  KOKKOS_FUNCTION static bits_type to_bits(Key key) {
    constexpr bits_type sign = bits_type(bits_type{1} << (8 * sizeof(Key) - 1));
    if constexpr (std::is_floating_point_v<Key>) {
      // Adding zero turns −0.0 into +0.0 and leaves all else alone.
      const auto bits = Kokkos::bit_cast<bits_type>(key + Key(0));
      return (bits & sign) ? bits_type(~bits) : bits_type(bits | sign);
    } else if constexpr (std::is_signed_v<Key>) {
      return bits_type(static_cast<bits_type>(key) ^ sign);
    } else {
      return static_cast<bits_type>(key);
    }
  }

  /// The inverse of to_bits (+0.0 for the bits of both zeros).
  KOKKOS_FUNCTION static Key from_bits(bits_type bits) {
    constexpr bits_type sign = bits_type(bits_type{1} << (8 * sizeof(Key) - 1));
    if constexpr (std::is_floating_point_v<Key>) {
      return Kokkos::bit_cast<Key>((bits & sign) ? bits_type(bits ^ sign)
                                                 : bits_type(~bits));
    } else if constexpr (std::is_signed_v<Key>) {
      return static_cast<Key>(bits_type(bits ^ sign));
    } else {
      return static_cast<Key>(bits);
    }
  }

  /// The smallest key.
  KOKKOS_FUNCTION static Key lowest() {
    if constexpr (std::is_floating_point_v<Key>) {
      return -Kokkos::Experimental::infinity_v<Key>;
    } else {
      return from_bits(bits_type{0});
    }
  }

  /// The largest key: +infinity, or the type's maximum.
  KOKKOS_FUNCTION static Key highest() {
    if constexpr (std::is_floating_point_v<Key>) {
      return Kokkos::Experimental::infinity_v<Key>;
    } else {
      return from_bits(static_cast<bits_type>(~bits_type{0}));
    }
  }

  /// The smallest key above `key`. Precondition: `key < highest()`.
  KOKKOS_FUNCTION static Key next(Key key) {
    return from_bits(static_cast<bits_type>(to_bits(key) + 1));
  }

  /// Whether `key` is not a number, and so outside the order.
  KOKKOS_FUNCTION static bool is_nan([[maybe_unused]] Key key) {
    if constexpr (std::is_floating_point_v<Key>) {
      return key != key;
    } else {
      return false;
    }
  }
};

/// The order of Key128 as bits: its own.
template <>
struct KeyTraits<Key128> {
  /// Key128 stands for its own bits.
  using bits_type = Key128;

  /// The identity.
  KOKKOS_FUNCTION static Key128 to_bits(Key128 key) { return key; }
  /// The identity.
  KOKKOS_FUNCTION static Key128 from_bits(Key128 bits) { return bits; }
  /// Zero.
  KOKKOS_FUNCTION static Key128 lowest() { return {0, 0}; }
  /// All bits one.
  KOKKOS_FUNCTION static Key128 highest() {
    return {~std::uint64_t{0}, ~std::uint64_t{0}};
  }
  /// The smallest key above `key`. Precondition: `key < highest()`.
  KOKKOS_FUNCTION static Key128 next(Key128 key) {
    const std::uint64_t lo = key.lo + 1;
    return {key.hi + (lo == 0 ? 1 : 0), lo};
  }
  /// Never.
  KOKKOS_FUNCTION static bool is_nan(Key128) { return false; }
};

/// All keys that begin with the same bits, as a query: `prefix_range(space,
/// prefixes)` gives the entries whose keys have the prefix (an IPv6 network
/// among addresses that are Key128), `count` and `equal_range` how many and
/// which ranks. A key's bits are those of its representation in memory, the
/// most significant first; −0.0 has those of +0.0.
template <class Key>
struct Prefix {
  Key key;   ///< any key that begins so
  int bits;  ///< how many bits count, from 0 to 8 * sizeof(Key)
};

/// The entry of an index whose key begins with the most bits of a query.
struct PrefixMatch {
  size_type rank;      ///< its rank
  std::uint64_t bits;  ///< how many bits they have in common
};

namespace impl {

template <class Query>
struct PrefixedKey {
  using type = void;
};
template <class Key>
struct PrefixedKey<Prefix<Key>> {
  using type = Key;
};

/// The first `count` bits, then bits that are all `fill`.
template <class Bits>
KOKKOS_FUNCTION Bits leading_bits(const Bits& bits, int count, bool fill) {
  if constexpr (std::is_same_v<Bits, Key128>) {
    return {leading_bits(bits.hi, count < 64 ? count : 64, fill),
            leading_bits(bits.lo, count < 64 ? 0 : count - 64, fill)};
  } else {
    if (count < 0) count = 0;
    const int rest = 8 * int(sizeof(Bits)) - count;
    const Bits ones = static_cast<Bits>(~Bits{0});
    if (rest <= 0) return bits;
    const Bits low =
        count == 0 ? ones : static_cast<Bits>((Bits{1} << rest) - 1);
    return static_cast<Bits>(fill ? (bits | low) : (bits & Bits(~low)));
  }
}

/// How many leading bits are equal.
template <class Bits>
KOKKOS_FUNCTION int common_bits(const Bits& a, const Bits& b) {
  if constexpr (std::is_same_v<Bits, Key128>) {
    return a.hi == b.hi ? 64 + common_bits(a.lo, b.lo)
                        : common_bits(a.hi, b.hi);
  } else {
    using Word = std::conditional_t<(sizeof(Bits) < 4), std::uint32_t, Bits>;
    const auto differ = static_cast<Word>(Word(a) ^ Word(b));
    return int(Kokkos::countl_zero(differ)) -
           8 * int(sizeof(Word) - sizeof(Bits));
  }
}

}  // namespace impl

/// Whether `Query` is a Prefix.
template <class Query>
inline constexpr bool is_prefix_v =
    !std::is_void_v<typename impl::PrefixedKey<Query>::type>;

}  // namespace kindex

#endif
