// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_STRING_SEQUENCE_HPP
#define KINDEX_PERF_STRING_SEQUENCE_HPP

/// \file
/// Sets of strings by name.

#include "Generators.hpp"
#include "Random.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kindex::perf {

enum class StringGenerator { words, urls, uuids };

inline constexpr GeneratorInfo string_generators[] = {
    {"words", "4 to 12 random lower-case letters (str only)"},
    {"urls",
     "like addresses of pages: popular hosts and paths, then a number (str "
     "only)"},
    {"uuids", "the 36 characters of UUIDs of version 4 (str only)"}};

constexpr std::string_view name_of(StringGenerator generator) {
  return string_generators[static_cast<std::size_t>(generator)].name;
}

constexpr std::optional<StringGenerator> string_generator_named(
    std::string_view name) {
  for (std::size_t i = 0; i < std::size(string_generators); ++i)
    if (string_generators[i].name == name)
      return static_cast<StringGenerator>(i);
  return std::nullopt;
}

/// No string has more characters.
inline constexpr std::size_t longest_string = 100;

/// Different strings without end, each of which can be written alone. The same
/// generator and seed give the same strings on every machine.
class StringSequence {
 public:
  StringSequence(StringGenerator generator, std::uint64_t seed);

  /// Writes string `i < 2^32`, and returns how many characters it has.
  std::size_t write(std::uint64_t i, char* to) const;
  std::size_t size(std::uint64_t i) const {
    char text[longest_string];
    return write(i, text);
  }

 private:
  std::size_t write_url(std::uint64_t i, char* to) const;
  std::size_t write_uuid(std::uint64_t i, char* to) const;

  StringGenerator generator_;
  std::uint64_t seed_;
  CounterRandom first_, second_;
  // Of URLs: as often as they are popular.
  std::vector<std::string> hosts_, pieces_;
};

}  // namespace kindex::perf

#endif
