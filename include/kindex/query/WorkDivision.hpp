// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_WORKDIVISION_HPP
#define KINDEX_QUERY_WORKDIVISION_HPP

/// \file
/// How much of each search the host does before the device.

#include <kindex/Types.hpp>

#include <algorithm>

namespace kindex {

/// How the searches of a hybrid tree are divided: the host follows the topmost
/// levels itself, the device those below, and the host ends in the leaf. Never
/// changes a result. (Shahvarani and Jacobsen, SIGMOD 2016: D and R.)
struct WorkDivision {
  int levels = 0;    ///< that the host follows for all lookups
  double share = 0;  ///< of each bucket, for which it follows one level more

  /// Whether they are the same.
  friend bool operator==(const WorkDivision& a, const WorkDivision& b) {
    return a.levels == b.levels && !(a.share < b.share) && !(b.share < a.share);
  }
};

namespace query {

/// The division of least cost of searches through `height` levels, if cost has
/// one minimum: level by level until it grows, then halving the step to both
/// sides five times. None at all unless that saves 3 %, asked again in the end:
/// costs are measured, the first are too high, and the least of many is too
/// low.
///
/// \param cost `double cost(const WorkDivision&)`.
template <class Cost>
WorkDivision find_division(int height, const Cost& cost) {
  const auto division_at = [](double levels) {
    const int whole = static_cast<int>(levels);
    return WorkDivision{whole, levels - whole};
  };
  double at_first = cost(division_at(0));
  double best = 0, least = at_first;
  const auto try_at = [&](double levels) {
    if (levels < 0 || levels > height) return false;
    const double spent = cost(division_at(levels));
    if (!(spent < least)) return false;
    least = spent;
    best = levels;
    return true;
  };
  while (try_at(best + 1)) {
  }
  double step = 0.5;
  for (int i = 0; i < 5; ++i, step /= 2) {
    const double middle = best;
    if (!try_at(middle - step)) try_at(middle + step);
  }
  if (best > 0) at_first = std::min(at_first, cost(division_at(0)));
  return division_at(least < 0.97 * at_first ? best : 0);
}

}  // namespace query
}  // namespace kindex

#endif
