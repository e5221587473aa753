// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The piecewise-linear fit: as few segments as a brute-force reference, and no
// point further from its segment than promised, whatever the chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <kindex/build/LinearFit.hpp>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/Devices.hpp"

namespace kindex_test {

using kindex::size_type;

/// Coordinates in memory.
template <class X>
struct CoordinateIn {
  const X* coordinates;
  KOKKOS_FUNCTION X operator()(size_type i) const { return coordinates[i]; }
};

namespace {

using kindex::build::LinearModel;
__extension__ typedef __int128 Int128;

template <class Exec>
class LinearFits : public ::testing::Test {};
TYPED_TEST_SUITE(LinearFits, Devices, DeviceName);

template <class X>
struct Point {
  X x;
  size_type y;
};

/// The points that a fit has to meet, as its documentation says.
template <class X>
std::vector<Point<X>> points_of(const std::vector<X>& xs) {
  std::vector<Point<X>> points;
  std::size_t run = 0;
  for (std::size_t i = 0; i <= xs.size(); ++i) {
    if (i > 0 && i < xs.size() && xs[i] == xs[i - 1]) continue;
    if (i > run + 1) {
      const X before = xs[i - 1];
      const X after = static_cast<X>(before + 1);
      if (after != 0 && (i == xs.size() || after != xs[i]))
        points.push_back({after, i});
    }
    if (i < xs.size()) points.push_back({xs[i], i});
    run = i;
  }
  return points;
}

/// Whether a line lies within `epsilon` of all points [first, last).
template <class X>
bool fits(const std::vector<Point<X>>& points, std::size_t first,
          std::size_t last, std::int64_t epsilon) {
  // Of two points, the line must not rise more than their farthest ends do;
  // that suffices for all where it holds for the steepest of the least slopes
  // and the flattest of the greatest.
  Int128 least_dy = 0, most_dy = 0;
  Int128 least_dx = 0, most_dx = 0;
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = i + 1; j < last; ++j) {
      const Int128 dx = static_cast<X>(points[j].x - points[i].x);
      const Int128 dy = Int128(points[j].y) - Int128(points[i].y);
      if (least_dx == 0 || (dy - 2 * epsilon) * least_dx > least_dy * dx) {
        least_dy = dy - 2 * epsilon;
        least_dx = dx;
      }
      if (most_dx == 0 || (dy + 2 * epsilon) * most_dx < most_dy * dx) {
        most_dy = dy + 2 * epsilon;
        most_dx = dx;
      }
    }
  return least_dx == 0 || least_dy * most_dx <= most_dy * least_dx;
}

/// First points of the fewest segments.
template <class X>
std::vector<X> starts_by_force(const std::vector<X>& xs, std::int64_t epsilon) {
  const auto points = points_of(xs);
  std::vector<X> starts;
  for (std::size_t first = 0; first < points.size();) {
    starts.push_back(points[first].x);
    std::size_t last = first + 1;
    while (last < points.size() && fits(points, first, last + 1, epsilon))
      ++last;
    first = last;
  }
  return starts;
}

template <class X>
struct Fit {
  std::vector<X> starts;
  std::vector<LinearModel> models;
};

template <class Exec, class X>
Fit<X> fit(const std::vector<X>& xs, size_type epsilon, size_type chunks) {
  const auto coordinates = to_device<Exec>(xs);
  const auto segments = kindex::build::fit_segments<X>(
      Exec{}, "test", CoordinateIn<X>{coordinates.data()}, xs.size(), epsilon,
      chunks);
  Fit<X> result;
  if (segments.count > 0) {
    result.starts = to_host(segments.starts);
    result.models = to_host(segments.models);
  }
  EXPECT_EQ(result.starts.size(), segments.count);
  return result;
}

/// Every point within epsilon + 1 of its segment's prediction, segments in
/// order, predictions in order within them.
template <class X>
void expect_near(const std::vector<X>& xs, const Fit<X>& result,
                 size_type epsilon, const std::string& how) {
  const auto points = points_of(xs);
  ASSERT_EQ(result.starts.empty(), points.empty());
  if (points.empty()) return;
  ASSERT_EQ(result.starts.front(), points.front().x) << how;
  std::size_t segment = 0;
  size_type before = 0;
  for (const auto& [x, y] : points) {
    if (segment + 1 < result.starts.size() && x >= result.starts[segment + 1]) {
      ++segment;
      before = 0;
      ASSERT_EQ(x, result.starts[segment]) << how << ": no point begins it";
    }
    const size_type rank = result.models[segment].predict(
        static_cast<X>(x - result.starts[segment]));
    ASSERT_LE(rank < y ? y - rank : rank - y, epsilon + 1)
        << how << ", segment " << segment << ", x = " << x << ", y = " << y;
    ASSERT_GE(rank, before) << how << ": predictions fall";
    before = rank;
  }
  ASSERT_EQ(segment + 1, result.starts.size()) << how;
}

template <class X, class Draw>
std::vector<X> ascending(std::size_t n, const Draw& draw) {
  std::vector<X> xs;
  for (std::size_t i = 0; i < n; ++i) xs.push_back(static_cast<X>(draw(i)));
  std::sort(xs.begin(), xs.end());
  return xs;
}

template <class Exec, class X>
void expect_fewest(int rounds) {
  std::mt19937_64 rng(sizeof(X));
  constexpr X most = static_cast<X>(~X{0});
  for (int round = 0; round < rounds; ++round) {
    const std::size_t n = 1 + rng() % 60;
    const X range = static_cast<X>(rng()) >> (rng() % (8 * sizeof(X)));
    const bool from_above = rng() % 2 == 0;
    const auto xs = ascending<X>(n, [&](std::size_t) {
      const X x = static_cast<X>(rng()) & range;
      return from_above ? static_cast<X>(most - x) : x;
    });
    const auto epsilon = static_cast<std::int64_t>(1 + rng() % 5);
    const std::string how = "round " + std::to_string(round) +
                            ", n = " + std::to_string(n) +
                            ", epsilon = " + std::to_string(epsilon);
    const auto expected = starts_by_force(xs, epsilon);
    for (const size_type chunks : {1, 2, 3, 100}) {
      const auto result = fit<Exec>(xs, epsilon, chunks);
      ASSERT_EQ(result.starts, expected) << how << ", chunks = " << chunks;
      expect_near(xs, result, epsilon, how);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(LinearFits, FewestSegmentsOf32Bits) {
  expect_fewest<TypeParam, std::uint32_t>(300);
}

TYPED_TEST(LinearFits, FewestSegmentsOf64Bits) {
  expect_fewest<TypeParam, std::uint64_t>(300);
}

/// Coordinates to which lines fit badly, or too well.
template <class X>
std::vector<std::pair<std::string, std::vector<X>>> hard_coordinates(
    std::size_t n) {
  constexpr X most = static_cast<X>(~X{0});
  std::mt19937_64 rng(11);
  std::vector<std::pair<std::string, std::vector<X>>> sets;
  const auto add = [&](const std::string& name, const auto& draw) {
    sets.emplace_back(name, ascending<X>(n, draw));
  };
  add("random", [&](std::size_t) { return rng(); });
  add("dense", [](std::size_t i) { return i; });
  add("dense at the end", [&](std::size_t i) { return most - i; });
  add("equal", [](std::size_t) { return 7; });
  add("equal and largest", [&](std::size_t) { return most; });
  add("two clusters", [&](std::size_t i) { return i % 2 == 0 ? i : most - i; });
  add("squares", [](std::size_t i) { return i * i; });
  add("runs", [&](std::size_t i) { return i / 300 * 7; });
  add("runs of all lengths", [&](std::size_t i) {
    return rng() % 2 == 0 ? i : rng() % 50 * (n / 50);
  });
  add("equal here and there", [&](std::size_t) { return rng() % (2 * n); });
  add("outliers", [&](std::size_t i) { return i % 997 == 3 ? rng() : i / 2; });
  if constexpr (sizeof(X) == 8) {
    add("one apart beyond 2^53",
        [](std::size_t i) { return (std::uint64_t{1} << 60) + i; });
    add("doubles next to each other",
        [](std::size_t i) { return std::bit_cast<std::uint64_t>(1e300) + i; });
  }
  return sets;
}

template <class Exec, class X>
void expect_good_fits(std::size_t n) {
  for (const auto& [name, xs] : hard_coordinates<X>(n))
    for (const size_type epsilon : {1, 16, 300}) {
      const std::string how = name + ", epsilon = " + std::to_string(epsilon);
      const std::size_t fewest = fit<Exec>(xs, epsilon, 1).starts.size();
      EXPECT_LE(fewest, n / (2 * epsilon) + 1) << how;
      if (name.starts_with("dense") || name.starts_with("doubles") ||
          name.starts_with("one apart")) {
        EXPECT_EQ(fewest, 1u) << how;
      }
      for (const size_type chunks : {0, 1, 2, 7, 40}) {
        const auto result = fit<Exec>(xs, epsilon, chunks);
        const std::string now = how + ", chunks = " + std::to_string(chunks);
        expect_near(xs, result, epsilon, now);
        if (::testing::Test::HasFatalFailure()) return;
        EXPECT_LE(result.starts.size(), fewest + fewest / 100 + 1) << now;
        if (name == "random") {
          EXPECT_EQ(result.starts.size(), fewest) << now;
        }
      }
    }
}

TYPED_TEST(LinearFits, GoodFitsOf32Bits) {
  expect_good_fits<TypeParam, std::uint32_t>(40000);
}

TYPED_TEST(LinearFits, GoodFitsOf64Bits) {
  expect_good_fits<TypeParam, std::uint64_t>(40000);
}

/// Bit by bit, though a device may leave out what a host looks at.
template <class Exec, class X>
void expect_fits_of_host(std::size_t n) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  for (const auto& [name, xs] : hard_coordinates<X>(n))
    for (const size_type epsilon : {1, 4, 30, 300})
      for (const size_type chunks : {1, 7}) {
        const std::string how = name +
                                ", epsilon = " + std::to_string(epsilon) +
                                ", chunks = " + std::to_string(chunks);
        const auto expected = fit<Host>(xs, epsilon, chunks);
        const auto result = fit<Exec>(xs, epsilon, chunks);
        ASSERT_EQ(result.starts, expected.starts) << how;
        for (std::size_t i = 0; i < expected.models.size(); ++i) {
          ASSERT_EQ(result.models[i].intercept, expected.models[i].intercept)
              << how << ", segment " << i;
          ASSERT_EQ(result.models[i].slope, expected.models[i].slope)
              << how << ", segment " << i;
        }
      }
}

TYPED_TEST(LinearFits, SameAsOnHosts) {
  if (std::is_same_v<TypeParam, Kokkos::DefaultHostExecutionSpace>)
    GTEST_SKIP() << "nothing to compare";
  expect_fits_of_host<TypeParam, std::uint32_t>(20011);
  expect_fits_of_host<TypeParam, std::uint64_t>(20011);
}

/// Many chunks that each are part of one segment, and chunks without a point.
TYPED_TEST(LinearFits, SegmentsOverManyChunks) {
  using X = std::uint64_t;
  std::mt19937_64 rng(13);
  // Straight, but for noise of up to 20 ranks.
  auto xs = ascending<X>(
      50000, [&](std::size_t i) { return 1000 * i + rng() % 20000; });
  // A run over several chunks.
  std::fill(xs.begin() + 30000, xs.begin() + 40000, xs[30000]);
  const auto expected = fit<TypeParam>(xs, 64, 1);
  EXPECT_LT(expected.starts.size(), 10u);
  for (const size_type chunks : {3, 100, 1000, 50000}) {
    const auto result = fit<TypeParam>(xs, 64, chunks);
    EXPECT_EQ(result.starts, expected.starts) << chunks;
    expect_near(xs, result, 64, std::to_string(chunks));
  }
}

/// All points of a parabola are on its hull: such segments end early.
TYPED_TEST(LinearFits, FullHulls) {
  using X = std::uint64_t;
  const auto xs = ascending<X>(
      30000, [](std::size_t i) { return i * (X{1} << 40) + i * i; });
  const auto one = fit<TypeParam>(xs, 64, 1);
  EXPECT_GT(one.starts.size(), xs.size() / 1024 / 2);
  EXPECT_LE(one.starts.size(), xs.size() / 512);
  for (const size_type chunks : {1, 5}) {
    const auto result = fit<TypeParam>(xs, 64, chunks);
    expect_near(xs, result, 64, std::to_string(chunks));
    EXPECT_LE(result.starts.size(), xs.size() / 512 + chunks);
  }
}

/// Chains of segments that stay out of step, so that one is cut, and there an
/// arc that fills a hull only because the points before it are cut off: once,
/// what followed kept a line that had not seen it.
TYPED_TEST(LinearFits, FullHullsWhereChainsAreCut) {
  using X = std::uint64_t;
  constexpr std::size_t half = 34000;
  constexpr size_type epsilon = 4;
  constexpr double growth = 0.0007;
  std::mt19937_64 rng(1);
  const auto between = [&](double low, double high) {
    return low + (high - low) * std::ldexp(double(rng() >> 11), -53);
  };
  for (int round = 0; round < 50; ++round) {
    const double length = std::sqrt(16 * epsilon / growth);
    const std::size_t corner = half + std::size_t(between(97, 107) * length);
    const double jump = between(1.2, 2.1) * epsilon;
    const double bend = std::pow(10, between(-7, -5));
    std::vector<X> xs;
    double x = 1e4, step = 6;
    for (std::size_t i = 0; i < 2 * half; ++i) {
      xs.push_back(static_cast<X>(x));
      if (i < half - 2000) {
        x = i + 1 == half - 2000 ? 1e6 : x + step;
      } else if (i < corner) {
        // Each step is in proportion to where it starts.
        step = x * growth;
        x += step;
      } else if (i == corner) {
        x += step * (jump + 1);
      } else {
        x += step * (1 - bend * double(i - corner));
      }
    }
    ASSERT_TRUE(std::is_sorted(xs.begin(), xs.end()));
    ASSERT_LT(x, 1.8e19);
    expect_near(xs, fit<TypeParam>(xs, epsilon, 2), epsilon,
                "round " + std::to_string(round));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// Feasible or not by one unit in 2^61: doubles would not tell.
TYPED_TEST(LinearFits, SlopesAreComparedExactly) {
  using X = std::uint64_t;
  constexpr X far = X{1} << 61;
  // Lines up to 1 at 0 and from 2 at `far` on reach 5 at four times that.
  const std::vector<X> fits{0, 1, 2, far, 4 * far};
  EXPECT_EQ(fit<TypeParam>(fits, 1, 1).starts, std::vector<X>{0});
  // From 2 a little earlier, more than the 5 that are allowed.
  const std::vector<X> fails{0, 1, 2, far - 1, 4 * far};
  EXPECT_EQ(fit<TypeParam>(fails, 1, 1).starts, (std::vector<X>{0, 4 * far}));
}

TYPED_TEST(LinearFits, NothingToFit) {
  EXPECT_TRUE(
      fit<TypeParam>(std::vector<std::uint32_t>{}, 4, 0).starts.empty());
  const auto one = fit<TypeParam>(std::vector<std::uint32_t>{9}, 4, 3);
  EXPECT_EQ(one.starts, std::vector<std::uint32_t>{9});
  EXPECT_EQ(one.models[0].predict(std::uint32_t{0}), 0u);
}

}  // namespace
}  // namespace kindex_test
