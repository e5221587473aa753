// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_KEY_TYPE_HPP
#define KINDEX_PERF_KEY_TYPE_HPP

/// \file
/// The key types that kindex_bench measures, and their short names.

#include <kindex/Bytes.hpp>
#include <kindex/Key.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kindex::perf {

/// The keys that radix trees are measured on most: operations of theirs alone
/// are compiled for no others.
template <class Key>
inline constexpr bool is_wide_unsigned =
    std::is_same_v<Key, std::uint32_t> || std::is_same_v<Key, std::uint64_t> ||
    std::is_same_v<Key, Key128>;

/// Whether keys are byte strings, which have benchmarks of their own.
template <class Key>
inline constexpr bool is_string = std::is_same_v<Key, Bytes>;

enum class KeyType {
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f32,
  f64,
  k128,
  str
};

/// Of all but strings.
inline constexpr std::string_view key_type_names[] = {
    "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "k128"};
inline constexpr std::string_view string_type_name = "str";

constexpr std::string_view name_of(KeyType type) {
  return type == KeyType::str ? string_type_name
                              : key_type_names[static_cast<std::size_t>(type)];
}

constexpr std::optional<KeyType> key_type_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(key_type_names); ++i)
    if (key_type_names[i] == name) return static_cast<KeyType>(i);
  if (name == string_type_name) return KeyType::str;
  return std::nullopt;
}

/// Calls `f.template operator()<Key>()` with the C++ type of `type`, which
/// is not `str`.
template <class F>
decltype(auto) with_key_type(KeyType type, F&& f) {
  switch (type) {
    case KeyType::u8: return f.template operator()<std::uint8_t>();
    case KeyType::u16: return f.template operator()<std::uint16_t>();
    case KeyType::u32: return f.template operator()<std::uint32_t>();
    case KeyType::u64: return f.template operator()<std::uint64_t>();
    case KeyType::i8: return f.template operator()<std::int8_t>();
    case KeyType::i16: return f.template operator()<std::int16_t>();
    case KeyType::i32: return f.template operator()<std::int32_t>();
    case KeyType::i64: return f.template operator()<std::int64_t>();
    case KeyType::f32: return f.template operator()<float>();
    case KeyType::f64: return f.template operator()<double>();
    case KeyType::str: throw std::logic_error("strings are no key type");
    case KeyType::k128: break;
  }
  return f.template operator()<Key128>();
}

}  // namespace kindex::perf

/// Expands `MACRO(Key)` for every key type.
#define KINDEX_PERF_FOR_EACH_KEY_TYPE(MACRO) \
  MACRO(std::uint8_t)                        \
  MACRO(std::uint16_t)                       \
  MACRO(std::uint32_t)                       \
  MACRO(std::uint64_t)                       \
  MACRO(std::int8_t)                         \
  MACRO(std::int16_t)                        \
  MACRO(std::int32_t)                        \
  MACRO(std::int64_t)                        \
  MACRO(float)                               \
  MACRO(double)                              \
  MACRO(kindex::Key128)

#endif
