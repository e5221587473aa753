// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_KEY_SPEC_HPP
#define KINDEX_PERF_KEY_SPEC_HPP

/// \file
/// Which keys to measure on, as the user writes it.

#include "Generators.hpp"
#include "KeyType.hpp"
#include "StringSequence.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kindex::perf {

/// A key set: a generator with type and size, or a key file.
struct KeySpec {
  std::optional<Generator> generator;
  std::optional<StringGenerator> strings;  ///< both unset: read `file`
  std::filesystem::path file;
  KeyType type = KeyType::u64;
  std::uint64_t size = 0;

  /// The name of the set within benchmark names.
  std::string set_name() const;
  /// Type, size and set, for messages.
  std::string description() const;
};

/// Row ids, ranks and counts are 32-bit in kindex_bench.
inline constexpr std::uint64_t most_keys = 0xfffffffe;

/// Reads `GEN:TYPE:N` or the path of a key file, whose header is checked.
///
/// \throws kindex::Error with a sentence that helps.
KeySpec parse_key_spec(const std::string& text);

/// Reads a positive count: `1000`, `10k`, `10M`, `1G`, `2^24`, `1e7`.
///
/// \throws kindex::Error naming `what`.
std::uint64_t parse_count(std::string_view text, const std::string& what);

}  // namespace kindex::perf

#endif
