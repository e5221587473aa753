// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_ZIPF_HPP
#define KINDEX_PERF_ZIPF_HPP

#include "Random.hpp"

#include <cstdint>

namespace kindex::perf {

/// Ranks `r` of `[0, n)` with probability proportional to
/// `1 / (r + 1)^theta`, exactly, by rejection-inversion (Hörmann and
/// Derflinger, 1996).
class Zipf {
 public:
  /// `theta > 0`, `n > 0`.
  Zipf(std::uint64_t n, double theta);

  /// The rank at position `i` of the sequence `random`.
  std::uint64_t operator()(const CounterRandom& random, std::uint64_t i) const;

 private:
  double integral(double x) const;
  double inverse_integral(double y) const;

  std::uint64_t n_;
  double theta_;
  double low_;
  double high_;
};

}  // namespace kindex::perf

#endif
