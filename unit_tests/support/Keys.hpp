// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What data sets need of a key type on the host. Independent of
// kindex::KeyTraits, which it tests.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_KEYS_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_KEYS_HPP

#include <kindex/Key.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace kindex_test {

template <class Key>
struct Keys {
  using Limits = std::numeric_limits<Key>;
  static constexpr bool floating = std::is_floating_point_v<Key>;

  static bool is_nan(Key k) {
    if constexpr (floating) return std::isnan(k);
    return false;
  }
  static bool less(Key a, Key b) { return a < b; }
  static Key min() {
    if constexpr (floating) return -Limits::infinity();
    return Limits::lowest();
  }
  static Key max() {
    if constexpr (floating) return Limits::infinity();
    return Limits::max();
  }
  /// The nearest key above; `max()` stays.
  static Key above(Key k) {
    if (!(k < max())) return k;
    if constexpr (floating)
      return std::nextafter(k, max());
    else
      return static_cast<Key>(k + 1);
  }
  static Key below(Key k) {
    if (!(min() < k)) return k;
    if constexpr (floating)
      return std::nextafter(k, min());
    else
      return static_cast<Key>(k - 1);
  }
  static Key of(int i) { return static_cast<Key>(i); }
  /// Any bit pattern that is no NaN.
  static Key random(std::mt19937_64& rng) {
    for (;;) {
      const std::uint64_t bits = rng();
      Key k;
      std::memcpy(&k, &bits, sizeof k);
      if (!is_nan(k)) return k;
    }
  }
  /// Keys that an implementation might have reserved or mishandled.
  static std::vector<Key> extremes() {
    if constexpr (floating)
      return {Limits::infinity(),
              -Limits::infinity(),
              Limits::max(),
              Limits::lowest(),
              Limits::denorm_min(),
              -Limits::denorm_min(),
              Limits::min(),
              -Limits::min(),
              Key(0),
              -Key(0),
              Key(1),
              Key(-1)};
    else
      return {Limits::max(),
              Limits::lowest(),
              Key(0),
              Key(1),
              static_cast<Key>(Limits::max() - 1),
              static_cast<Key>(Limits::lowest() + 1),
              static_cast<Key>(-1),
              static_cast<Key>(Limits::max() / 2)};
  }
  /// Queries that are legal though they are no keys.
  static std::vector<Key> odd_queries() {
    if constexpr (floating) return {Limits::quiet_NaN(), -Limits::quiet_NaN()};
    return {};
  }
};

template <>
struct Keys<kindex::Key128> {
  using Key = kindex::Key128;
  static constexpr bool floating = false;
  static constexpr std::uint64_t ones = ~std::uint64_t{0};

  static bool is_nan(Key) { return false; }
  static bool less(Key a, Key b) {
    return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
  }
  static Key min() { return {0, 0}; }
  static Key max() { return {ones, ones}; }
  static Key above(Key k) {
    if (!less(k, max())) return k;
    return {k.hi + (k.lo == ones), k.lo + 1};
  }
  static Key below(Key k) {
    if (!less(min(), k)) return k;
    return {k.hi - (k.lo == 0), k.lo - 1};
  }
  /// Crosses from one high word to the next at i = 0.
  static Key of(int i) {
    return i >= 0
               ? Key{8, static_cast<std::uint64_t>(i)}
               : Key{7,
                     static_cast<std::uint64_t>(static_cast<std::int64_t>(i))};
  }
  static Key random(std::mt19937_64& rng) {
    const std::uint64_t hi = rng();
    return {(hi & 1) ? hi : (hi & 6),
            rng()};  // half of them share few high words
  }
  static std::vector<Key> extremes() {
    return {{ones, ones},
            {0, 0},
            {0, 1},
            {0, ones},
            {1, 0},
            {ones, 0},
            {ones, ones - 1},
            {std::uint64_t{1} << 63, 0},
            {(std::uint64_t{1} << 63) - 1, ones}};
  }
  static std::vector<Key> odd_queries() { return {}; }
};

}  // namespace kindex_test

#endif
