// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries of another type than the keys are compared exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <kindex/SortedArray.hpp>
#include <limits>
#include <string>
#include <vector>

#include "support/Keys.hpp"
#include "support/Queries.hpp"
#include "support/Values.hpp"

namespace kindex_test {
namespace {

template <class Exec>
class MixedTypes : public ::testing::Test {};
TYPED_TEST_SUITE(MixedTypes, Devices, DeviceName);

// A type that holds all numbers involved exactly: 64 bits of significand.
using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64);

template <class Key>
std::vector<Key> interesting() {
  using Limits = std::numeric_limits<Key>;
  std::vector<Key> keys = Keys<Key>::extremes();
  for (const int bit : {7, 8, 15, 16, 24, 31, 32, 53, 62, 63, 64, 80})
    for (const int offset : {-2, -1, 0, 1, 2, 3})
      for (const int sign : {1, -1}) {
        const Exact x = sign * (std::ldexp(Exact(1), bit) + offset);
        if constexpr (std::is_floating_point_v<Key>) {
          keys.push_back(static_cast<Key>(x));
          keys.push_back(static_cast<Key>(x) + static_cast<Key>(0.5));
        } else if (x >= static_cast<Exact>(Limits::lowest()) &&
                   x <= static_cast<Exact>(Limits::max())) {
          keys.push_back(static_cast<Key>(x));
        }
      }
  for (int i = std::is_unsigned_v<Key> ? 0 : -3; i < 4; ++i) {
    keys.push_back(static_cast<Key>(i));
    if constexpr (std::is_floating_point_v<Key>)
      for (const double fraction : {0.25, 0.5, 0.999})
        keys.push_back(static_cast<Key>(i + fraction));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

template <class Exec, class Ref, class Query>
struct MixedKernel {
  Ref ref;
  DeviceView<Query, Exec> queries;
  DeviceView<size_type, Exec> lower, upper, counts;
  KOKKOS_FUNCTION void operator()(size_type i) const {
    lower(i) = ref.lower_bound(queries(i));
    upper(i) = ref.equal_range(queries(i)).second;
    counts(i) = ref.count(queries(i)) + (ref.contains(queries(i)) ? 1000 : 0);
  }
};

template <class Exec, class Key, class Query>
void compare_exactly() {
  SCOPED_TRACE("queries of type " + ::testing::internal::GetTypeName<Query>() +
               ", keys of type " + ::testing::internal::GetTypeName<Key>());
  const std::vector<Key> keys = interesting<Key>();
  std::vector<Query> queries = interesting<Query>();
  if constexpr (std::is_floating_point_v<Query>)
    queries.push_back(std::numeric_limits<Query>::quiet_NaN());
  Ranks lower, upper, counts;
  std::vector<std::uint32_t> found;
  for (const Query query : queries) {
    const auto q = static_cast<Exact>(query);
    std::size_t below = 0, not_above = 0;
    for (const Key key : keys) {
      below += static_cast<Exact>(key) < q;
      not_above += static_cast<Exact>(key) <= q;
    }
    if (std::isnan(q)) below = not_above = keys.size();
    lower.push_back(below);
    upper.push_back(not_above);
    counts.push_back(not_above - below + (not_above > below ? 1000 : 0));
    found.push_back(not_above > below ? static_cast<std::uint32_t>(below)
                                      : 0xFFFFFFFFu);
  }
  const kindex::SortedArray index(Exec{}, kindex::sorted,
                                  to_device<Exec>(keys));
  const auto report = [&](const char* verb, const auto& expected,
                          const auto& got) {
    for (std::size_t i = 0; i < queries.size(); ++i)
      EXPECT_EQ(expected[i], got[i]) << verb << " of " << to_text(queries[i]);
  };
  report("lower_bound", lower, lower_bounds<Exec>(index, queries));
  report("upper_bound", upper, upper_bounds<Exec>(index, queries));
  report("find", found, finds<Exec>(index, queries));
  using Ref = decltype(index.ref());
  MixedKernel<Exec, Ref, Query> kernel{index.ref(), to_device<Exec>(queries),
                                       filled<size_type, Exec>(queries.size()),
                                       filled<size_type, Exec>(queries.size()),
                                       filled<size_type, Exec>(queries.size())};
  Kokkos::parallel_for("test::MixedKernel",
                       Kokkos::RangePolicy<Exec>(0, queries.size()), kernel);
  report("ref.lower_bound", lower, to_host(kernel.lower));
  report("ref.equal_range", upper, to_host(kernel.upper));
  report("ref.count and contains", counts, to_host(kernel.counts));

  // Every query with every later one as a range.
  std::vector<Query> lo, hi;
  Ranks expected;
  for (std::size_t i = 0; i < queries.size(); i += 5)
    for (std::size_t j = 0; j < queries.size(); j += 7) {
      lo.push_back(queries[i]);
      hi.push_back(queries[j]);
      expected.push_back(queries[i] <= queries[j] ? upper[j] - lower[i] : 0);
    }
  const auto got = range_counts<Exec>(index, lo, hi);
  for (std::size_t i = 0; i < lo.size(); ++i)
    EXPECT_EQ(expected[i], got[i]) << "range_count of [" << to_text(lo[i])
                                   << ", " << to_text(hi[i]) << "]";
}

TYPED_TEST(MixedTypes, SignedQueriesOnUnsignedKeys) {
  compare_exactly<TypeParam, std::uint8_t, std::int64_t>();
  compare_exactly<TypeParam, std::uint32_t, std::int32_t>();
  compare_exactly<TypeParam, std::uint64_t, std::int8_t>();
  compare_exactly<TypeParam, std::uint64_t, std::int64_t>();
}

TYPED_TEST(MixedTypes, UnsignedQueriesOnSignedKeys) {
  compare_exactly<TypeParam, std::int8_t, std::uint64_t>();
  compare_exactly<TypeParam, std::int32_t, std::uint32_t>();
  compare_exactly<TypeParam, std::int64_t, std::uint64_t>();
}

TYPED_TEST(MixedTypes, IntegersOfOtherWidth) {
  compare_exactly<TypeParam, std::int16_t, std::int64_t>();
  compare_exactly<TypeParam, std::uint16_t, std::uint32_t>();
  compare_exactly<TypeParam, std::int64_t, std::int16_t>();
}

TYPED_TEST(MixedTypes, IntegerQueriesOnFloatingPointKeys) {
  compare_exactly<TypeParam, double, std::int64_t>();
  compare_exactly<TypeParam, double, std::uint64_t>();
  compare_exactly<TypeParam, float, std::int32_t>();
  compare_exactly<TypeParam, float, std::uint64_t>();
}

TYPED_TEST(MixedTypes, FloatingPointQueriesOnIntegerKeys) {
  compare_exactly<TypeParam, std::int64_t, double>();
  compare_exactly<TypeParam, std::uint64_t, double>();
  compare_exactly<TypeParam, std::int32_t, float>();
  compare_exactly<TypeParam, std::uint8_t, double>();
}

TYPED_TEST(MixedTypes, FloatAndDouble) {
  compare_exactly<TypeParam, float, double>();
  compare_exactly<TypeParam, double, float>();
}

TYPED_TEST(MixedTypes, NegativeQueryHasRankZero) {
  using Exec = TypeParam;
  const kindex::SortedArray index(
      Exec{}, to_device<Exec>(std::vector<std::uint32_t>{0, 4294967295u, 5}));
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<int>{-1, -5, 0, 1}),
            (Ranks{0, 0, 0, 1}));
  EXPECT_EQ(upper_bounds<Exec>(index, std::vector<int>{-1, -5, 0, 1}),
            (Ranks{0, 0, 1, 1}));
  EXPECT_EQ(finds<Exec>(index, std::vector<int>{-1, 5}),
            (std::vector<std::uint32_t>{0xFFFFFFFFu, 2}));
}

TYPED_TEST(MixedTypes, NothingIsRoundedThroughDouble) {
  using Exec = TypeParam;
  constexpr std::int64_t big = std::int64_t{1} << 53;
  const kindex::SortedArray doubles(
      Exec{}, to_device<Exec>(
                  std::vector<double>{9007199254740992.0, 9007199254740994.0}));
  EXPECT_EQ(
      lower_bounds<Exec>(
          doubles, std::vector<std::int64_t>{big, big + 1, big + 2, big + 3}),
      (Ranks{0, 1, 1, 2}));
  EXPECT_EQ(
      upper_bounds<Exec>(
          doubles, std::vector<std::int64_t>{big, big + 1, big + 2, big + 3}),
      (Ranks{1, 1, 2, 2}));
  const kindex::SortedArray integers(
      Exec{},
      to_device<Exec>(std::vector<std::int64_t>{big, big + 1, big + 2}));
  EXPECT_EQ(lower_bounds<Exec>(integers, std::vector<double>{9007199254740992.0,
                                                             9007199254740994.0,
                                                             1e300, -1e300}),
            (Ranks{0, 2, 3, 0}));
}

TYPED_TEST(MixedTypes, Key128AndIntegers) {
  using Exec = TypeParam;
  using kindex::Key128;
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  const kindex::SortedArray index(
      Exec{},
      to_device<Exec>(std::vector<Key128>{
          {0, 0}, {0, 5}, {0, 5}, {0, ones}, {1, 0}, {1, 5}, {ones, ones}}));
  EXPECT_EQ(
      lower_bounds<Exec>(index, std::vector<std::uint64_t>{0, 1, 5, 6, ones}),
      (Ranks{0, 1, 1, 3, 3}));
  EXPECT_EQ(
      upper_bounds<Exec>(index, std::vector<std::uint64_t>{0, 1, 5, 6, ones}),
      (Ranks{1, 1, 3, 3, 4}));
  EXPECT_EQ(
      lower_bounds<Exec>(
          index, std::vector<Key128>{{0, ones}, {1, 0}, {1, 1}, {ones, ones}}),
      (Ranks{3, 4, 5, 6}));
  EXPECT_EQ(upper_bounds<Exec>(index, std::vector<Key128>{{ones, ones}}),
            (Ranks{7}));
}

template <class Exec, class Index, class Out>
std::vector<Out> contains_as(const Index& index,
                             const std::vector<int>& queries) {
  auto out = filled<Out, Exec>(queries.size());
  index.contains(Exec{}, to_device<Exec>(queries), out);
  return to_host(out);
}

// Outputs of other types than the usual ones.
TYPED_TEST(MixedTypes, Outputs) {
  using Exec = TypeParam;
  const Exec space{};
  const kindex::SortedArray index(
      space, to_device<Exec>(std::vector<int>{30, 10, 20}));
  using Index = std::remove_const_t<decltype(index)>;
  EXPECT_EQ((contains_as<Exec, Index, int>(index, {10, 11})),
            (std::vector<int>{1, 0}));
  EXPECT_EQ((contains_as<Exec, Index, std::uint8_t>(index, {10, 11})),
            (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ((contains_as<Exec, Index, std::int64_t>(index, {10, 11})),
            (std::vector<std::int64_t>{1, 0}));
  const auto queries = to_device<Exec>(std::vector<int>{10, 20, 30, 40});
  const auto ranks32 = filled<std::int32_t, Exec>(4);
  index.lower_bound(space, queries, ranks32);
  EXPECT_EQ(to_host(ranks32), (std::vector<std::int32_t>{0, 1, 2, 3}));
  const auto first = filled<std::uint32_t, Exec>(4);
  const auto last = filled<std::int64_t, Exec>(4);
  index.equal_range(space, queries, first, last);
  EXPECT_EQ(to_host(first), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(to_host(last), (std::vector<std::int64_t>{1, 2, 3, 3}));
}

}  // namespace
}  // namespace kindex_test
