// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Generators.hpp"

#include "HostParallel.hpp"
#include "KeyType.hpp"
#include "PortableMath.hpp"
#include "Random.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace kindex::perf {
namespace {

/// Width of the unsigned integers in which a type's shapes are drawn.
template <class Key>
inline constexpr int shape_bits = std::is_same_v<Key, Key128>
                                      ? 64
                                      : static_cast<int>(8 * sizeof(Key));

template <class Key>
Key from_shape(std::uint64_t shape) {
  if constexpr (std::is_same_v<Key, Key128>) {
    return {shape, mix(shape)};
  } else if constexpr (std::is_floating_point_v<Key>) {
    return static_cast<Key>(shape);
  } else {
    using Bits = typename KeyTraits<Key>::bits_type;
    return KeyTraits<Key>::from_bits(static_cast<Bits>(shape));
  }
}

/// `x` of [0, 1) as a fraction of the range; saturates outside.
template <class Key>
Key from_fraction(double x) {
  const double scaled = x * std::ldexp(1.0, shape_bits<Key>);
  if (!(scaled > 0)) return from_shape<Key>(0);
  // The largest double below 2^64, far above what narrower types hold.
  constexpr std::uint64_t most = ~std::uint64_t{0} >> (64 - shape_bits<Key>);
  if (scaled >= std::ldexp(1.0, shape_bits<Key>)) return from_shape<Key>(most);
  return from_shape<Key>(static_cast<std::uint64_t>(scaled));
}

// ---- what every shape is drawn from
// ------------------------------------------

/// Independent streams of one seed.
struct Source {
  Source(std::uint64_t seed, std::uint64_t size)
      : n(size), order(size, seed), first(seed, 1), second(seed, 2) {}

  std::uint64_t n;
  Permutation order;     ///< input position -> place in the set
  CounterRandom first;   ///< per key
  CounterRandom second;  ///< per key or per group of keys
};

template <class Key>
Key uniform(const Source& source, std::uint64_t i) {
  if constexpr (std::is_same_v<Key, Key128>)
    return {source.first(i), source.second(i)};
  else if constexpr (std::is_floating_point_v<Key>)
    return static_cast<Key>(source.first.unit(i));
  else
    return from_shape<Key>(source.first(i) >> (64 - shape_bits<Key>));
}

template <class Key>
Key dense(const Source& source, std::uint64_t i) {
  const std::uint64_t place = source.order(i);
  if constexpr (std::is_same_v<Key, Key128>)
    return {0, place};
  else if constexpr (std::is_integral_v<Key> && std::is_signed_v<Key>)
    return static_cast<Key>(place - source.n / 2);
  else
    return static_cast<Key>(place);
}

template <class Key>
Key normal(const Source& source, std::uint64_t i) {
  const double z = portable_normal_quantile(source.first.unit(i));
  if constexpr (std::is_floating_point_v<Key>)
    return static_cast<Key>(z);
  else
    return from_fraction<Key>(0.5 + z / 16);
}

template <class Key>
Key lognormal(const Source& source, std::uint64_t i) {
  const double x =
      portable_exp(2 * portable_normal_quantile(source.first.unit(i)));
  if constexpr (std::is_floating_point_v<Key>)
    return static_cast<Key>(x);
  else
    return from_fraction<Key>(x * 0x1p-14);
}

template <class Key>
Key exponential(const Source& source, std::uint64_t i) {
  const double x = -portable_log(source.first.unit(i));
  if constexpr (std::is_floating_point_v<Key>)
    return static_cast<Key>(x);
  else
    return from_fraction<Key>(x / 40);
}

/// Density falls smoothly from the low to the high end.
template <class Key>
Key books(const Source& source, std::uint64_t i) {
  const double u = source.first.unit(i);
  return from_fraction<Key>(0.5 * u * u * (0.25 + 0.75 * u));
}

/// Uniform in a low part of the range, but for outliers that double their
/// distance up to the type's maximum.
template <class Key>
Key fb(const Source& source, std::uint64_t i) {
  constexpr int bits = shape_bits<Key>;
  constexpr int low_bits = bits == 64 ? 46 : bits - bits / 8;
  const std::uint64_t outliers = std::min<std::uint64_t>(21, source.n / 16);
  const std::uint64_t place = source.order(i);
  if (place >= outliers)
    return from_shape<Key>(source.first(i) >> (64 - low_bits));
  constexpr std::uint64_t most = ~std::uint64_t{0} >> (64 - bits);
  const int shift = static_cast<int>(place) % (bits - low_bits);
  return from_shape<Key>(most >> shift);
}

/// Seconds since 2001, at most one edit each on average, in blocks of 64 edits;
/// within a block they come in bursts of 1, 2, 4, ... equal seconds.
template <class Key>
Key wiki(const Source& source, std::uint64_t i) {
  constexpr std::uint64_t january_2001 = 979'000'000;
  const std::uint64_t place = source.order(i);
  const std::uint64_t block = place / 64;
  const std::uint64_t draw = source.second(block);
  const int burst = std::countr_zero(draw | 64);  // geometric, at most 6
  const std::uint64_t in_block = ((place % 64) >> burst) << burst;
  const std::uint64_t pause = (draw >> 32) % 64;
  return from_shape<Key>(january_2001 + block * 128 + pause + in_block);
}

/// Digits of a cell id, most significant first: within every cell the sub-cells
/// are populated unevenly, in an order of its own. The lower half is uniform.
template <class Key>
Key osm(const Source& source, std::uint64_t i) {
  constexpr int bits = shape_bits<Key>;
  constexpr int digit_bits = bits >= 16 ? 4 : 2;
  constexpr std::uint64_t digits = 1u << digit_bits;
  const std::uint64_t draw = source.first(i), fine = source.second(i);
  std::uint64_t cell = 0;
  for (int filled = 0; filled < bits / 2; filled += digit_bits) {
    const std::uint64_t u = (draw >> filled) % digits;
    const std::uint64_t skewed = u * u / digits;
    const std::uint64_t turn = mix(cell + (std::uint64_t{1} << 40)) % digits;
    cell = cell * digits + (skewed + turn) % digits;
  }
  return from_shape<Key>((cell << (bits / 2)) | (fine >> (64 - bits / 2)));
}

/// ISBN-13 with its check digit (the 9 digits of publisher and title alone
/// where that does not fit): blocks of 1000 titles, each filled from its start.
template <class Key>
Key isbn(const Source& source, std::uint64_t i) {
  const std::uint64_t place = source.order(i);
  const std::uint64_t block = place / 256;
  const std::uint64_t stride = 1 + source.second(block) % 3;
  const std::uint64_t title = block * 1000 + (place % 256) * stride;
  if constexpr (shape_bits<Key> < 64) {
    return from_shape<Key>(title);
  } else {
    const std::uint64_t body = 978'000'000'000 + title;
    std::uint64_t sum = 0, rest = body;
    for (int weight = 3; rest > 0; rest /= 10, weight = 4 - weight)
      sum += rest % 10 * static_cast<std::uint64_t>(weight);
    return from_shape<Key>(body * 10 + (10 - sum % 10) % 10);
  }
}

/// RFC 9562, version 4: 122 random bits, 6 fixed.
template <class Key>
Key uuid(const Source& source, std::uint64_t i) {
  const std::uint64_t hi = (source.first(i) & ~std::uint64_t{0xf000}) | 0x4000;
  const std::uint64_t lo = (source.second(i) >> 2) | (std::uint64_t{1} << 63);
  if constexpr (std::is_same_v<Key, Key128>)
    return {hi, lo};
  else
    return from_shape<Key>(hi >> (64 - shape_bits<Key>));
}

template <class Key, class Draw>
void fill(std::uint64_t seed, std::span<Key> keys, const Draw& draw) {
  const Source source(seed, keys.size());
  host_parallel_for(keys.size(),
                    [&](std::uint64_t i) { keys[i] = draw(source, i); });
}

}  // namespace

template <class Key>
void generate(Generator generator, std::uint64_t seed, std::span<Key> keys) {
  switch (generator) {
    case Generator::uniform: return fill(seed, keys, uniform<Key>);
    case Generator::dense: return fill(seed, keys, dense<Key>);
    case Generator::normal: return fill(seed, keys, normal<Key>);
    case Generator::lognormal: return fill(seed, keys, lognormal<Key>);
    case Generator::exponential: return fill(seed, keys, exponential<Key>);
    case Generator::books: return fill(seed, keys, books<Key>);
    case Generator::fb: return fill(seed, keys, fb<Key>);
    case Generator::wiki: return fill(seed, keys, wiki<Key>);
    case Generator::osm: return fill(seed, keys, osm<Key>);
    case Generator::isbn: return fill(seed, keys, isbn<Key>);
    case Generator::uuid: return fill(seed, keys, uuid<Key>);
  }
}

#define KINDEX_PERF_INSTANTIATE(Key) \
  template void generate<Key>(Generator, std::uint64_t, std::span<Key>);
KINDEX_PERF_FOR_EACH_KEY_TYPE(KINDEX_PERF_INSTANTIATE)
#undef KINDEX_PERF_INSTANTIATE

}  // namespace kindex::perf
