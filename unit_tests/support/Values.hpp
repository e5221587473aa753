// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Value types of the tests, and what tests need of keys and values inside
// kernels.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_VALUES_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_VALUES_HPP

#include <Kokkos_Core.hpp>
#include <kindex/Key.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace kindex_test {

/// A value of 12 bytes: no power of two, no integer.
struct Triple {
  std::uint32_t a, b, c;
  friend bool operator==(const Triple& x, const Triple& y) {
    return x.a == y.a && x.b == y.b && x.c == y.c;
  }
};

/// The value of row `row`. Row 0 has all bits one: no value is reserved.
template <class Value>
Value make_value(std::uint64_t row) {
  if constexpr (std::is_same_v<Value, Triple>) {
    const auto r = static_cast<std::uint32_t>(row);
    return {~r, ~(r * 2654435761u), ~(r ^ (r << 7))};
  } else {
    return static_cast<Value>(~static_cast<Value>(row));
  }
}

template <class Value>
Value all_bits_one() {
  Value value;
  std::memset(static_cast<void*>(&value), 0xFF, sizeof(value));
  return value;
}

KOKKOS_INLINE_FUNCTION std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Equal keys and equal values have equal hashes; used to sum over hits in any
/// order.
template <class T>
KOKKOS_INLINE_FUNCTION std::uint64_t hash_of(const T& x) {
  if constexpr (std::is_same_v<T, Triple>) {
    return mix(x.a + mix(x.b + mix(x.c)));
  } else if constexpr (std::is_same_v<T, kindex::Key128>) {
    return mix(x.hi + mix(x.lo));
  } else if constexpr (std::is_same_v<T, float>) {
    return mix(x == 0 ? 1 : Kokkos::bit_cast<std::uint32_t>(x));
  } else if constexpr (std::is_same_v<T, double>) {
    return mix(x == 0 ? 1 : Kokkos::bit_cast<std::uint64_t>(x));
  } else {
    return mix(static_cast<std::uint64_t>(x));
  }
}

template <class T>
std::string to_text(const T& x) {
  if constexpr (std::is_same_v<T, Triple>) {
    return "{" + std::to_string(x.a) + ", " + std::to_string(x.b) + ", " +
           std::to_string(x.c) + "}";
  } else if constexpr (std::is_same_v<T, kindex::Key128>) {
    return "{" + std::to_string(x.hi) + ", " + std::to_string(x.lo) + "}";
  } else if constexpr (std::is_floating_point_v<T>) {
    char text[64];
    std::snprintf(text, sizeof text, "%.17g", static_cast<double>(x));
    return text;
  } else {
    return std::to_string(x);
  }
}

}  // namespace kindex_test

#endif
