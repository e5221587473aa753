// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_RANDOM_HPP
#define KINDEX_PERF_RANDOM_HPP

/// \file
/// Random numbers as a function of (seed, stream, position): any element of a
/// sequence can be computed alone, so filling an array is parallel and gives
/// the same bits on every machine and for every number of threads.

#include <Kokkos_Macros.hpp>

#include <bit>
#include <cstdint>

namespace kindex::perf {

/// The finaliser of splitmix64 (Steele, Lea and Flood, 2014): a bijection of
/// 64-bit words whose outputs on a counter pass statistical tests.
KOKKOS_FUNCTION constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The upper half of the 128-bit product: maps a random `x` to `[0, n)`.
constexpr std::uint64_t scale_to(std::uint64_t x, std::uint64_t n) {
  const std::uint64_t x_lo = x & 0xffffffffu, x_hi = x >> 32;
  const std::uint64_t n_lo = n & 0xffffffffu, n_hi = n >> 32;
  const std::uint64_t middle = x_hi * n_lo + ((x_lo * n_lo) >> 32);
  return x_hi * n_hi + (middle >> 32) +
         ((x_lo * n_hi + (middle & 0xffffffffu)) >> 32);
}

/// A sequence of independent uniform 64-bit words.
class CounterRandom {
 public:
  constexpr CounterRandom(std::uint64_t seed, std::uint64_t stream)
      : base_(mix(mix(seed) ^ stream)) {}

  /// The word at position `i`.
  constexpr std::uint64_t operator()(std::uint64_t i) const {
    return mix(mix(i) ^ base_);
  }
  /// The word at `i`, mapped to `[0, n)`.
  constexpr std::uint64_t below(std::uint64_t n, std::uint64_t i) const {
    return scale_to((*this)(i), n);
  }
  /// The word at `i`, mapped to a real number strictly between 0 and 1.
  constexpr double unit(std::uint64_t i) const {
    return (static_cast<double>((*this)(i) >> 12) + 0.5) * 0x1p-52;
  }

 private:
  std::uint64_t base_;
};

/// A pseudo-random permutation of `[0, n)` that is evaluated anywhere without
/// storing it: a Feistel network over the next even number of bits, walked
/// until it lands inside (Black and Rogaway, 2002).
class Permutation {
 public:
  constexpr Permutation(std::uint64_t n, std::uint64_t seed)
      : n_(n),
        half_bits_((std::bit_width(n > 1 ? n - 1 : 1) + 1) / 2),
        half_mask_((std::uint64_t{1} << half_bits_) - 1),
        seed_(mix(seed)) {}

  /// Where `i < n` goes.
  constexpr std::uint64_t operator()(std::uint64_t i) const {
    do i = encrypt(i);
    while (i >= n_);
    return i;
  }

 private:
  constexpr std::uint64_t encrypt(std::uint64_t x) const {
    std::uint64_t left = x >> half_bits_, right = x & half_mask_;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next =
          left ^
          (mix(right ^ (seed_ + round * 0x9e3779b97f4a7c15u)) & half_mask_);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t n_;
  int half_bits_;
  std::uint64_t half_mask_;
  std::uint64_t seed_;
};

}  // namespace kindex::perf

#endif
