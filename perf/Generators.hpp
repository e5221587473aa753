// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_GENERATORS_HPP
#define KINDEX_PERF_GENERATORS_HPP

/// \file
/// Key sets by name: statistical distributions, and stand-ins shaped like the
/// real sets that search-index papers measure on.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

namespace kindex::perf {

enum class Generator {
  uniform,
  dense,
  normal,
  lognormal,
  exponential,
  books,
  fb,
  wiki,
  osm,
  isbn,
  uuid
};

struct GeneratorInfo {
  std::string_view name;
  std::string_view what;
};

inline constexpr GeneratorInfo generators[] = {
    {"uniform", "all values of the type alike; floats in (0, 1)"},
    {"dense", "0, 1, 2, ... without gaps, around zero for signed types"},
    {"normal", "normal around the middle of the type's range; floats N(0, 1)"},
    {"lognormal", "exp of N(0, 2)"},
    {"exponential", "exponential, crowded at the low end"},
    {"books", "like sales ranks of books: smooth, ever sparser upwards"},
    {"fb",
     "like user ids: uniform below 2^46, and up to 21 outliers to 2^64-1"},
    {"wiki", "like edit timestamps: dense, with bursts of equal keys"},
    {"osm", "like cell ids of map features: clustered on every scale"},
    {"isbn", "like ISBNs: publishers' blocks, each filled from its start"},
    {"uuid", "random UUIDs of version 4 (k128 only)"}};

constexpr std::string_view name_of(Generator generator) {
  return generators[static_cast<std::size_t>(generator)].name;
}

constexpr std::optional<Generator> generator_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(generators); ++i)
    if (generators[i].name == name) return static_cast<Generator>(i);
  return std::nullopt;
}

/// Fills `keys` with a set of `keys.size()` keys in random order. The same
/// generator, type, size and seed give the same keys on every machine and for
/// every number of threads.
///
/// A shape is drawn as an unsigned integer of the type's width (64 bits for
/// Key128, whose low half is then a hash of the high one, so that equal stays
/// equal) and mapped to the type: signed types take it in order, from their
/// minimum up; floats take its value, rounded. The real-valued distributions
/// (uniform, normal, lognormal, exponential) give floats unscaled.
template <class Key>
void generate(Generator generator, std::uint64_t seed, std::span<Key> keys);

/// Seed of all sets when the user names none.
inline constexpr std::uint64_t default_seed = 42;

}  // namespace kindex::perf

#endif
