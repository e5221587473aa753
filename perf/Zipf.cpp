// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Zipf.hpp"

#include "PortableMath.hpp"

#include <algorithm>
#include <cmath>

namespace kindex::perf {

Zipf::Zipf(std::uint64_t n, double theta)
    : n_(n),
      theta_(theta),
      low_(integral(1.5) - 1),
      high_(integral(static_cast<double>(n) + 0.5)) {}

/// The integral of x^-theta, up to a constant: (x^(1-theta) - 1) / (1-theta).
double Zipf::integral(double x) const {
  const double t = (1 - theta_) * portable_log(x);
  // expm1(t) / t by its series where the quotient would cancel
  if (std::abs(t) < 1e-4)
    return portable_log(x) * (1 + t / 2 * (1 + t / 3 * (1 + t / 4)));
  return (portable_exp(t) - 1) / (1 - theta_);
}

double Zipf::inverse_integral(double y) const {
  const double t = std::max(y * (1 - theta_), -1 + 1e-15);
  if (std::abs(t) < 1e-4)  // log1p(t) / t by its series
    return portable_exp(y * (1 - t * (1.0 / 2 - t * (1.0 / 3 - t / 4))));
  return portable_exp(portable_log(1 + t) / (1 - theta_));
}

std::uint64_t Zipf::operator()(const CounterRandom& random,
                               std::uint64_t i) const {
  const CounterRandom tries(random(i), 0);
  for (std::uint64_t attempt = 0;; ++attempt) {
    const double u = high_ + tries.unit(attempt) * (low_ - high_);
    const double x = inverse_integral(u);
    const double k =
        std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (u >= integral(k + 0.5) - portable_pow(k, -theta_))
      return static_cast<std::uint64_t>(k) - 1;
  }
}

}  // namespace kindex::perf
