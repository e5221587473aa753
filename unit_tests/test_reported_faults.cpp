// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults that were reported against other libraries; the right answers,
// literally.
#include <gtest/gtest.h>

#include <cstdint>
#include <kindex/SortedArray.hpp>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/Queries.hpp"

namespace kindex_test {
namespace {

template <class Exec>
class ReportedFaults : public ::testing::Test {};
TYPED_TEST_SUITE(ReportedFaults, Devices, DeviceName);

TYPED_TEST(ReportedFaults, OneKeyHasThreeLowerBounds) {
  using Exec = TypeParam;
  kindex::SortedArray index(Exec{}, to_device<Exec>(std::vector<int>{42}));
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<int>{41, 42, 43}),
            (Ranks{0, 0, 1}));
  EXPECT_EQ(upper_bounds<Exec>(index, std::vector<int>{41, 42, 43}),
            (Ranks{0, 1, 1}));
}

TYPED_TEST(ReportedFaults, EmptyIndexHasNoHits) {
  using Exec = TypeParam;
  kindex::SortedArray index(Exec{}, to_device<Exec>(std::vector<int>{}));
  EXPECT_TRUE(index.empty());
  EXPECT_EQ(range_counts<Exec>(index, std::vector<int>{0}, std::vector<int>{0}),
            (Ranks{0}));
  const auto zero = to_device<Exec>(std::vector<int>{0});
  const auto hits = index.range(Exec{}, zero, zero);
  EXPECT_EQ(to_host(hits.offsets), (Ranks{0, 0}));
  EXPECT_EQ(hits.values.extent(0), 0u);
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<int>{-1, 0, 1}),
            (Ranks{0, 0, 0}));
  EXPECT_EQ(finds<Exec>(index, std::vector<int>{0}),
            (std::vector<std::uint32_t>{0xFFFFFFFFu}));
  const kindex::SortedArray<int, std::uint32_t, typename Exec::memory_space>
      by_default;
  EXPECT_EQ(lower_bounds<Exec>(by_default, std::vector<int>{0}), (Ranks{0}));
  EXPECT_EQ(by_default.memory_bytes(), 0u);
}

TYPED_TEST(ReportedFaults, EmptyBatchLeavesOutputsUntouched) {
  using Exec = TypeParam;
  const Exec space{};
  kindex::SortedArray index(space, to_device<Exec>(std::vector<int>{3, 1, 2}));
  // Views without elements over memory that must stay as it is.
  const auto ranks = filled<size_type, Exec>(3),
             more = filled<size_type, Exec>(3);
  const auto values = filled<std::uint32_t, Exec>(3);
  const auto contained = filled<unsigned char, Exec>(3);
  const auto none = Kokkos::make_pair(1, 1);
  const auto no_queries =
      Kokkos::subview(to_device<Exec>(std::vector<int>{1, 2, 3}), none);
  const auto no_ranks = Kokkos::subview(ranks, none),
             no_more = Kokkos::subview(more, none);
  index.find(space, no_queries, Kokkos::subview(values, none));
  index.contains(space, no_queries, Kokkos::subview(contained, none));
  index.lower_bound(space, no_queries, no_ranks);
  index.upper_bound(space, no_queries, no_ranks);
  index.equal_range(space, no_queries, no_ranks, no_more);
  index.count(space, no_queries, no_ranks);
  index.range_count(space, no_queries, no_queries, no_ranks);
  const auto hits = index.range(space, no_queries, no_queries);
  EXPECT_EQ(to_host(ranks), Ranks(3, 0xA5A5A5A5A5A5A5A5u));
  EXPECT_EQ(to_host(more), Ranks(3, 0xA5A5A5A5A5A5A5A5u));
  EXPECT_EQ(to_host(values), std::vector<std::uint32_t>(3, 0xA5A5A5A5u));
  EXPECT_EQ(to_host(contained), std::vector<unsigned char>(3, 0xA5));
  EXPECT_EQ(to_host(hits.offsets), (Ranks{0}));
  EXPECT_EQ(hits.values.extent(0), 0u);
  // Also with Views that were never allocated.
  index.lower_bound(space, DeviceView<int, Exec>(),
                    DeviceView<size_type, Exec>());
  EXPECT_EQ(index.range(space, DeviceView<int, Exec>(), DeviceView<int, Exec>())
                .values.extent(0),
            0u);
}

TYPED_TEST(ReportedFaults, CloseFloatingPointKeys) {
  using Exec = TypeParam;
  kindex::SortedArray doubles(
      Exec{}, to_device<Exec>(std::vector<double>{10.5, 10.5, 10.6}));
  EXPECT_EQ(lower_bounds<Exec>(doubles, std::vector<double>{10.5, 10.55}),
            (Ranks{0, 2}));
  EXPECT_EQ(upper_bounds<Exec>(doubles, std::vector<double>{10.5}), (Ranks{2}));
  kindex::SortedArray floats(
      Exec{}, to_device<Exec>(std::vector<float>{10.5f, 10.5f, 10.6f}));
  EXPECT_EQ(lower_bounds<Exec>(floats, std::vector<float>{10.5f, 10.55f}),
            (Ranks{0, 2}));
  EXPECT_EQ(upper_bounds<Exec>(floats, std::vector<float>{10.5f}), (Ranks{2}));
}

template <class Exec, class Key>
void zeros_are_equal() {
  const Key inf = std::numeric_limits<Key>::infinity();
  const std::vector<Key> keys{-inf,   Key(-1), Key(-0.0), Key(+0.0),
                              Key(0), Key(2),  inf};
  const std::vector<Key> zeros{Key(-0.0), Key(+0.0), Key(0)};
  for (const bool sorted : {false, true}) {
    const auto device_keys = to_device<Exec>(keys);
    const auto index =
        sorted ? kindex::SortedArray(Exec{}, kindex::sorted, device_keys)
               : kindex::SortedArray(Exec{}, device_keys);
    EXPECT_EQ(lower_bounds<Exec>(index, zeros), (Ranks{2, 2, 2}));
    EXPECT_EQ(upper_bounds<Exec>(index, zeros), (Ranks{5, 5, 5}));
    EXPECT_EQ(lower_bounds<Exec>(index, std::vector<Key>{-inf, inf}),
              (Ranks{0, 6}));
    EXPECT_EQ(upper_bounds<Exec>(index, std::vector<Key>{-inf, inf}),
              (Ranks{1, 7}));
    EXPECT_EQ(range_values<Exec>(index, Key(0), Key(-0.0)),
              (std::vector<std::uint32_t>{2, 3, 4}));
  }
  // In any arrangement equal keys keep the order of the input.
  const std::vector<Key> mixed{inf,       Key(0.0), Key(-0.0), Key(2),
                               Key(-0.0), -inf,     Key(0.0),  Key(-1)};
  const kindex::SortedArray index(Exec{}, to_device<Exec>(mixed));
  EXPECT_EQ(range_values<Exec>(index, Key(-0.0), Key(0.0)),
            (std::vector<std::uint32_t>{1, 2, 4, 6}));
  EXPECT_EQ(finds<Exec>(index, zeros), (std::vector<std::uint32_t>{1, 1, 1}));
}

TYPED_TEST(ReportedFaults, NegativeZeroEqualsPositiveZero) {
  zeros_are_equal<TypeParam, float>();
  zeros_are_equal<TypeParam, double>();
}

TYPED_TEST(ReportedFaults, SmallestIntegerAmongUnsortedKeys) {
  using Exec = TypeParam;
  const std::vector<std::int64_t> keys{
      std::numeric_limits<std::int64_t>::min(), 0, 3, 2, 1, 3, 6, 4, 3};
  kindex::SortedArray index(Exec{}, to_device<Exec>(keys));
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<std::int64_t>{3, -1}),
            (Ranks{4, 1}));
  EXPECT_EQ(upper_bounds<Exec>(index, std::vector<std::int64_t>{3}),
            (Ranks{7}));
  EXPECT_EQ(range_values<Exec>(index, std::int64_t{3}, std::int64_t{3}),
            (std::vector<std::uint32_t>{2, 5, 8}));
}

TYPED_TEST(ReportedFaults, ManyZeros) {
  using Exec = TypeParam;
  kindex::SortedArray index(Exec{}, to_device<Exec>(std::vector<int>(256, 0)));
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<int>{0}), (Ranks{0}));
  EXPECT_EQ(upper_bounds<Exec>(index, std::vector<int>{0}), (Ranks{256}));
  std::vector<std::uint32_t> rows(256);
  std::iota(rows.begin(), rows.end(), 0u);
  EXPECT_EQ(range_values<Exec>(index, 0, 0), rows);
}

TYPED_TEST(ReportedFaults, StridedRow) {
  using Exec = TypeParam;
  using Matrix =
      Kokkos::View<int**, Kokkos::LayoutLeft, typename Exec::memory_space>;
  Matrix matrix("test::matrix", 3, 5);
  const auto host = Kokkos::create_mirror_view(matrix);
  const int row[] = {5, 1, 4, 2, 3};
  for (int j = 0; j < 5; ++j) {
    host(0, j) = 100 + j;
    host(1, j) = row[j];
    host(2, j) = 200 + j;
  }
  Kokkos::deep_copy(matrix, host);
  const auto keys = Kokkos::subview(matrix, 1, Kokkos::ALL);
  ASSERT_EQ(keys.stride(0), 3u);
  const kindex::SortedArray index(Exec{}, keys);
  Exec{}.fence("test::build");
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<int>{1, 2, 3, 4, 5, 6}),
            (Ranks{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(range_values<Exec>(index, 0, 9),
            (std::vector<std::uint32_t>{1, 3, 4, 2, 0}));

  // Strided queries, outputs and values, too.
  index.lower_bound(Exec{}, keys, Kokkos::subview(matrix, 0, Kokkos::ALL));
  const kindex::SortedArray with_values(
      Exec{}, keys, Kokkos::subview(matrix, 2, Kokkos::ALL));
  EXPECT_EQ(range_values<Exec>(with_values, 0, 9),
            (std::vector<int>{201, 203, 204, 202, 200}));
  Kokkos::fence("test::queries");
  Kokkos::deep_copy(host, matrix);
  for (int j = 0; j < 5; ++j) {
    EXPECT_EQ(host(0, j), row[j] - 1);
    EXPECT_EQ(host(1, j), row[j]) << "the keys were changed";
    EXPECT_EQ(host(2, j), 200 + j) << "another row was changed";
  }
}

TYPED_TEST(ReportedFaults, BuildingTouchesOnlyItsRow) {
  using Exec = TypeParam;
  using Matrix =
      Kokkos::View<int**, Kokkos::LayoutLeft, typename Exec::memory_space>;
  Matrix matrix("test::matrix", 3, 5);
  const auto host = Kokkos::create_mirror_view(matrix);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) host(i, j) = 10 * i + (j * 3) % 5;
  Kokkos::deep_copy(matrix, host);
  const kindex::SortedArray index(Exec{},
                                  Kokkos::subview(matrix, 1, Kokkos::ALL));
  Kokkos::fence("test::build");
  Kokkos::deep_copy(host, matrix);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) EXPECT_EQ(host(i, j), 10 * i + (j * 3) % 5);
  EXPECT_EQ(index.size(), 5u);
}

// 1000 range batches on one instance; a sum over all hits of each.
template <class Exec>
std::vector<std::uint64_t> range_batches(const Exec& space, unsigned seed,
                                         int batches) {
  std::mt19937 rng(seed);
  std::vector<int> host_keys(3000);
  for (int& k : host_keys) k = static_cast<int>(rng() % 2000);
  const auto keys = to_device<Exec>(host_keys);
  const kindex::SortedArray index(space, keys);
  std::vector<std::uint64_t> sums;
  for (int b = 0; b < batches; ++b) {
    std::vector<int> lo(17), hi(17);
    for (std::size_t i = 0; i < lo.size(); ++i) {
      lo[i] = static_cast<int>(rng() % 2000);
      hi[i] = lo[i] + static_cast<int>(rng() % 30);
    }
    const auto hits = index.range(space, to_device<Exec>(lo),
                                  to_device<Exec>(hi), kindex::with_keys);
    space.fence("test::range");
    std::uint64_t sum = 0;
    const auto mix_in = [&](const auto& view) {
      const auto copy = Kokkos::create_mirror_view(view);
      Kokkos::deep_copy(space, copy, view);
      space.fence("test::copy");
      for (std::size_t i = 0; i < copy.extent(0); ++i)
        sum = sum * 1099511628211u + static_cast<std::uint64_t>(copy(i)) + 1;
    };
    mix_in(hits.offsets);
    mix_in(hits.values);
    mix_in(hits.keys);
    sums.push_back(sum);
  }
  return sums;
}

TYPED_TEST(ReportedFaults, TwoHostThreadsWithTheirOwnInstances) {
  using Exec = TypeParam;
  constexpr int batches = 1000;
  const std::vector<std::uint64_t> serial[] = {
      range_batches(Exec{}, 1, batches), range_batches(Exec{}, 2, batches)};
  ASSERT_NE(serial[0], serial[1]);
  const auto spaces = distinct_instances<Exec>(2);
  ASSERT_TRUE(spaces[0] != spaces[1] && spaces[0] != Exec{} &&
              spaces[1] != Exec{});
  std::vector<std::uint64_t> parallel[2];
  std::string errors[2];
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      try {
        parallel[t] = range_batches<Exec>(
            spaces[t], 1 + static_cast<unsigned>(t), batches);
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < 2; ++t) {
    EXPECT_EQ(errors[t], "");
    EXPECT_TRUE(parallel[t] == serial[t])
        << "thread " << t << " got other hits than a serial run";
  }
}

TYPED_TEST(ReportedFaults, DisorderIsOneCatchableError) {
  using Exec = TypeParam;
  std::vector<int> host(2000);
  std::iota(host.begin(), host.end(), 0);
  const kindex::SortedArray before(Exec{}, kindex::sorted,
                                   to_device<Exec>(host));
  host[777] = 5;     // below its predecessor
  host[1500] = -10;  // a later one, which is not the first
  const auto keys = to_device<Exec>(host);
  int caught = 0;
  try {
    const kindex::SortedArray index(Exec{}, kindex::sorted, keys);
  } catch (const kindex::Error& error) {
    ++caught;
    EXPECT_NE(std::string(error.what()).find("777"), std::string::npos)
        << error.what();
    EXPECT_EQ(std::string(error.what()).find("1500"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("kindex::SortedArray"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(caught, 1);
  // Everything stays usable: the older index, a new one, and the same keys
  // unsorted.
  EXPECT_EQ(lower_bounds<Exec>(before, std::vector<int>{777, 5000}),
            (Ranks{777, 2000}));
  const kindex::SortedArray after(Exec{}, keys);
  EXPECT_EQ(lower_bounds<Exec>(after, std::vector<int>{-10, 0, 5, 6}),
            (Ranks{0, 1, 6, 8}));
  EXPECT_THROW((kindex::SortedArray(Exec{}, kindex::sorted, keys)),
               kindex::Error);
}

}  // namespace
}  // namespace kindex_test
