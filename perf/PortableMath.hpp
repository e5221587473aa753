// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_PORTABLE_MATH_HPP
#define KINDEX_PERF_PORTABLE_MATH_HPP

/// \file
/// Elementary functions that give the same bits everywhere: the C library's
/// `log` and `exp` differ in the last place between systems, and the standard
/// library's distributions are not specified at all. Only operations that
/// IEEE 754 rounds exactly are used; sources that include this are compiled
/// with floating-point contraction off.

#include <cmath>

namespace kindex::perf {

/// Natural logarithm of a normal `x > 0`, to about 1e-14.
inline double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  // log m = 2 atanh(s), |s| < 0.172
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double sum = 0;
  for (int k = 17; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return 2 * s * sum + exponent * 0.69314718055994531;
}

/// Exponential of `x` in [-700, 700], to about 1e-14.
inline double portable_exp(double x) {
  const double k = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = x - k * 0.69314718055994531;
  double sum = 1;
  for (int i = 13; i >= 1; --i) sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(k));
}

/// `x` to the power `y`, for a normal `x > 0`.
inline double portable_pow(double x, double y) {
  return portable_exp(y * portable_log(x));
}

/// Quantile of the standard normal distribution at `p` in (0, 1), to about
/// 1e-9 (the rational approximation of Acklam, 2003).
inline double portable_normal_quantile(double p) {
  const auto tail = [](double q) {
    return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q -
               2.400758277161838e+00) *
                  q -
              2.549732539343734e+00) *
                 q +
             4.374664141464968e+00) *
                q +
            2.938163982698783e+00) /
           ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q +
              2.445134137142996e+00) *
                 q +
             3.754408661907416e+00) *
                q +
            1);
  };
  if (p < 0.02425) return tail(std::sqrt(-2 * portable_log(p)));
  if (p > 1 - 0.02425) return -tail(std::sqrt(-2 * portable_log(1 - p)));
  const double q = p - 0.5;
  const double r = q * q;
  return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r -
             2.759285104469687e+02) *
                r +
            1.383577518672690e+02) *
               r -
           3.066479806614716e+01) *
              r +
          2.506628277459239e+00) *
         q /
         (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r -
             1.556989798598866e+02) *
                r +
            6.680131188771972e+01) *
               r -
           1.328068155288572e+01) *
              r +
          1);
}

}  // namespace kindex::perf

#endif
