// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is special to ranges: where their hits lie in memory, and batches that
// mix ranges of every length, short enough for one lane and too long for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <kindex/Eytzinger.hpp>
#include <kindex/PivotTree.hpp>
#include <kindex/SortedArray.hpp>
#include <random>
#include <vector>

#include "support/Devices.hpp"

namespace kindex_test {
namespace {

using kindex::AoS;
using kindex::size_type;
using kindex::SoA;
using kindex::build::EytzingerShape;

// ---- runs of Eytzinger's order
// ----------------------------------------------

/// Every run begins and ends where counting the level's keys one by one says.
template <int K>
void expect_runs_by_counting(size_type n) {
  const EytzingerShape<K> shape(n);
  std::vector<size_type> level_ends;  // from the root
  for (size_type end = 0, width = K - 1; end < n; width *= K)
    level_ends.push_back(end = std::min(end + width, n));
  ASSERT_EQ(shape.levels(), static_cast<int>(level_ends.size()));
  for (int i = 0; i < shape.levels(); ++i) {
    const std::size_t level = level_ends.size() - 1 - i;
    // slots[r]: where the keys of rank r and above begin in the level
    std::vector<size_type> slots(n + 1, level == 0 ? 0 : level_ends[level - 1]);
    for (size_type slot = slots[0]; slot < level_ends[level]; ++slot)
      for (size_type r = shape.rank_of(slot) + 1; r <= n; ++r) ++slots[r];
    for (size_type first = 0; first <= n; ++first)
      for (const size_type last :
           {first, std::min(first + 1, n), (first + n) / 2, n}) {
        const auto run = shape.run(i, first, last);
        ASSERT_TRUE(run.first == slots[first] && run.second == slots[last])
            << "ranks " << first << " to " << last << ", run " << i
            << ", n = " << n << ", K = " << K << ": slots " << run.first
            << " to " << run.second << " instead of " << slots[first] << " to "
            << slots[last];
      }
  }
}

TEST(EytzingerRuns, AreThoseOfCounting) {
  for (size_type n = 0; n <= 200; ++n) {
    expect_runs_by_counting<2>(n);
    expect_runs_by_counting<3>(n);
    expect_runs_by_counting<5>(n);
    expect_runs_by_counting<9>(n);
    expect_runs_by_counting<17>(n);
    if (HasFatalFailure()) return;
  }
}

/// Runs that hold only ranks of the range, and as many slots as it has, hold
/// all of it.
template <int K>
void expect_exact_runs(size_type n, size_type first, size_type last) {
  const EytzingerShape<K> shape(n);
  size_type slots = 0;
  for (int i = 0; i < shape.levels(); ++i) {
    const auto run = shape.run(i, first, last);
    ASSERT_LE(run.first, run.second);
    ASSERT_LE(run.second, n);
    slots += run.second - run.first;
    if (run.first == run.second) continue;
    ASSERT_GE(shape.rank_of(run.first), first) << n << ", K = " << K;
    ASSERT_LT(shape.rank_of(run.second - 1), last) << n << ", K = " << K;
  }
  ASSERT_EQ(slots, last - first) << "n = " << n << ", K = " << K;
}

TEST(EytzingerRuns, AreExactWhereSizesAreHuge) {
  std::mt19937_64 rng(1);
  for (const size_type n : {(size_type{1} << 40) + 12345,
                            (size_type{1} << 48) - 1, (size_type{1} << 52) + 1})
    for (int i = 0; i < 200; ++i) {
      const size_type last = rng() % (n + 1);
      const size_type length = std::min(rng() >> (12 + i % 52), last);
      expect_exact_runs<2>(n, last - length, last);
      expect_exact_runs<3>(n, last - length, last);
      expect_exact_runs<17>(n, last - length, last);
      expect_exact_runs<300>(n, last - length, last);
      if (HasFatalFailure()) return;
    }
}

// ---- batches of ranges
// ------------------------------------------------------

/// Counts how often each query sees each value.
template <class Exec>
struct CountHits {
  DeviceView<const std::uint32_t, Exec> key_of;  ///< by value
  DeviceView<std::uint32_t, Exec> seen;          ///< query * entries + value
  DeviceView<std::uint32_t, Exec> wrong;

  KOKKOS_FUNCTION void operator()(size_type query, std::uint32_t key,
                                  std::uint32_t value) const {
    const size_type entries = key_of.extent(0);
    const size_type place = query * entries + value;
    if (value >= entries || place >= seen.extent(0) || key != key_of(value))
      Kokkos::atomic_inc(&wrong(0));
    else
      Kokkos::atomic_inc(&seen(place));
  }
};

struct Batch {
  std::vector<std::uint32_t> lo, hi;
};

/// `m` ranges: none, reversed and between keys, 1 hit to all, in no order.
Batch mixed_ranges(const std::vector<std::uint32_t>& keys, std::size_t m) {
  const std::size_t lengths[] = {0,  1,   32, 0, 33, keys.size(), 2,  0,
                                 31, 160, 0,  0, 64, 7,           450};
  std::mt19937 rng(static_cast<unsigned>(m));
  Batch batch;
  for (std::size_t i = 0; i < m; ++i) {
    const std::size_t length = lengths[i % 15];
    const std::size_t first =
        rng() % (keys.size() - std::max<std::size_t>(length, 1) + 1);
    batch.lo.push_back(keys[first] + (length == 0 ? 1 : 0));
    batch.hi.push_back(length > 0   ? keys[first + length - 1]
                       : i % 2 == 0 ? keys[first] + 2
                                    : keys[first]);
  }
  return batch;
}

template <class Exec, class Index>
void expect_each_hit_once(const Index& index,
                          const std::vector<std::uint32_t>& keys,
                          const std::vector<std::uint32_t>& values,
                          std::size_t m) {
  SCOPED_TRACE(std::string(Index::name()) + ", " + std::to_string(m) +
               " ranges");
  const std::size_t n = keys.size();
  const Batch batch = mixed_ranges(keys, m);
  std::vector<std::uint32_t> key_of(n), seen(m * n, 0), hit_keys, hit_values;
  std::vector<size_type> offsets{0};
  for (std::size_t rank = 0; rank < n; ++rank)
    key_of[values[rank]] = keys[rank];
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t rank = 0; rank < n; ++rank)
      if (batch.lo[i] <= keys[rank] && keys[rank] <= batch.hi[i]) {
        seen[i * n + values[rank]] = 1;
        hit_keys.push_back(keys[rank]);
        hit_values.push_back(values[rank]);
      }
    offsets.push_back(hit_keys.size());
  }

  const auto lo = to_device<Exec>(batch.lo), hi = to_device<Exec>(batch.hi);
  const CountHits<Exec> count{to_device<Exec>(key_of),
                              filled<std::uint32_t, Exec>(m * n, 0),
                              filled<std::uint32_t, Exec>(1, 0)};
  index.for_each_in_range(Exec{}, lo, hi, count);
  EXPECT_EQ(to_host(count.wrong)[0], 0u) << "hits of no such key";
  EXPECT_TRUE(to_host(count.seen) == seen) << "for_each_in_range";

  const auto hits = index.range(Exec{}, lo, hi);
  EXPECT_TRUE(to_host(hits.offsets) == offsets);
  EXPECT_TRUE(to_host(hits.values) == hit_values);
  const auto with_keys = index.range(Exec{}, lo, hi, kindex::with_keys);
  EXPECT_TRUE(to_host(with_keys.values) == hit_values) << "with keys";
  EXPECT_TRUE(to_host(with_keys.keys) == hit_keys);
}

/// Keys with duplicates, and values that are stored and that are not.
template <class Exec, class Index>
void expect_ranges_of() {
  const std::size_t n = 700;
  std::vector<std::uint32_t> keys, rows, values;
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    keys.push_back(10 * (rank - (rank % 7 < 2 ? rank % 7 : 0)));
    rows.push_back(rank);
    values.push_back((rank * 37 + 5) % n);
  }
  const auto device_keys = to_device<Exec>(keys);
  const Index implicit(Exec{}, kindex::sorted, device_keys);
  const Index stored(Exec{}, kindex::sorted, device_keys,
                     to_device<Exec>(values));
  // Tails that fill no warp, no team and no tile.
  for (const std::size_t m : {1, 31, 32, 33, 300}) {
    expect_each_hit_once<Exec>(implicit, keys, rows, m);
    expect_each_hit_once<Exec>(stored, keys, values, m);
  }
}

template <class Exec>
class Ranges : public ::testing::Test {
 public:
  using Memory = typename Exec::memory_space;
};
TYPED_TEST_SUITE(Ranges, Devices, DeviceName);

TYPED_TEST(Ranges, HitOnceInAscendingKeys) {
  using Memory = typename TestFixture::Memory;
  using Row = std::uint32_t;
  expect_ranges_of<TypeParam, kindex::SortedArray<Row, Row, Memory, SoA>>();
  expect_ranges_of<TypeParam, kindex::PivotTree<Row, Row, Memory, AoS, 17>>();
}

TYPED_TEST(Ranges, HitOnceInLevelOrder) {
  using Memory = typename TestFixture::Memory;
  using Row = std::uint32_t;
  expect_ranges_of<TypeParam, kindex::Eytzinger<Row, Row, Memory, SoA, 2>>();
  expect_ranges_of<TypeParam, kindex::Eytzinger<Row, Row, Memory, AoS, 3>>();
  expect_ranges_of<TypeParam, kindex::Eytzinger<Row, Row, Memory, SoA, 17>>();
}

TYPED_TEST(Ranges, HitsUseTheirMemoryAgain) {
  using Exec = TypeParam;
  const Exec space;
  std::vector<std::uint32_t> keys(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) keys[i] = 2 * i;
  const kindex::SortedArray index(space, kindex::sorted, to_device<Exec>(keys));
  const auto ask = [&](std::uint32_t lo, std::uint32_t hi, std::size_t m,
                       auto& hits, bool want_keys) {
    const auto from = to_device<Exec>(std::vector<std::uint32_t>(m, lo));
    const auto to = to_device<Exec>(std::vector<std::uint32_t>(m, hi));
    if (want_keys)
      index.range(space, from, to, kindex::with_keys, hits);
    else
      index.range(space, from, to, hits);
    std::vector<std::uint32_t> one, values, found_keys;
    for (std::uint32_t rank = (lo + 1) / 2; rank < 1000 && 2 * rank <= hi;
         ++rank)
      one.push_back(rank);
    std::vector<size_type> offsets{0};
    for (std::size_t i = 0; i < m; ++i) {
      values.insert(values.end(), one.begin(), one.end());
      offsets.push_back(values.size());
    }
    if (want_keys)
      for (const std::uint32_t rank : values) found_keys.push_back(2 * rank);
    EXPECT_TRUE(to_host(hits.offsets) == offsets);
    EXPECT_TRUE(to_host(hits.values) == values);
    EXPECT_TRUE(to_host(hits.keys) == found_keys);
  };
  typename decltype(index)::hits_type hits;
  ask(10, 100, 7, hits, false);
  ask(0, 1999, 20, hits, true);
  const auto* values = hits.values.data();
  const auto* found_keys = hits.keys.data();
  const auto* offsets = hits.offsets.data();
  ask(30, 400, 20, hits, true);
  ask(1, 1, 3, hits, true);
  ask(7, 3, 5, hits, false);
  ask(0, 1998, 20, hits, true);
  EXPECT_EQ(hits.values.data(), values);
  EXPECT_EQ(hits.keys.data(), found_keys);
  EXPECT_EQ(hits.offsets.data(), offsets);

  const auto few = to_device<Exec>(std::vector<std::uint32_t>(3, 1));
  const auto fewer = to_device<Exec>(std::vector<std::uint32_t>(2, 1));
  EXPECT_THROW(index.range(space, few, fewer, hits), kindex::Error);
  EXPECT_EQ(hits.values.extent(0), 20u * 1000u) << "untouched by the error";
}

/// More hits than addresses: an exception, and no half result.
TYPED_TEST(Ranges, HitsAreEmptyWhenMemoryRunsOut) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends programs that ask for too much memory";
#endif
  using Exec = TypeParam;
  const Exec space;
  // 2^46 hits of 4 bytes: no machine promises them, however generous.
  const std::size_t n = std::size_t{1} << 23;
  const std::vector<std::uint8_t> keys(n, 7);
  const kindex::SortedArray index(space, kindex::sorted, to_device<Exec>(keys));
  const auto few = to_device<Exec>(std::vector<std::uint8_t>(1, 7));
  auto hits = index.range(space, few, few);
  EXPECT_EQ(hits.values.extent(0), n);
  const auto many = to_device<Exec>(keys);
  EXPECT_ANY_THROW(index.range(space, many, many, hits));
  EXPECT_EQ(hits.offsets.extent(0), 0u);
  EXPECT_EQ(hits.values.extent(0), 0u);
  index.range(space, few, few, hits);
  EXPECT_EQ(hits.values.extent(0), n) << "still usable";
}

}  // namespace
}  // namespace kindex_test
