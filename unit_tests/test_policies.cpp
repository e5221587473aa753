// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The features of a lookup policy change no result. (What LookupPolicy chooses
// at run time is part of the conformance suite.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <kindex/Eytzinger.hpp>
#include <kindex/PivotTree.hpp>
#include <kindex/RadixTree.hpp>
#include <kindex/SortedArray.hpp>
#include <limits>
#include <random>
#include <vector>

#include "support/Devices.hpp"
#include "support/Keys.hpp"
#include "support/Queries.hpp"

namespace kindex_test {
namespace {

using kindex::AoS;
using kindex::BasicLookupPolicy;
using kindex::OneKeyPerLane;
using kindex::PinnedTop;
using kindex::ResultOrder;
using kindex::Scheduling;
using kindex::SoA;
using kindex::SortedQueries;
using kindex::TeamSorted;

/// Keys, queries and the right answers.
template <class Key>
struct Batch {
  std::vector<Key> keys, queries;
  Ranks lower, upper, counts;
  std::vector<std::uint32_t> found;
};

enum class Queries { random, ascending, ascending_but_one };

/// Writes the answers.
template <class Key>
void answer(Batch<Key>& batch) {
  const std::vector<Key> queries = batch.queries;
  batch = {batch.keys, queries, {}, {}, {}, {}};
  for (const Key& query : queries) {
    const auto range =
        std::equal_range(batch.keys.begin(), batch.keys.end(), query);
    batch.lower.push_back(range.first - batch.keys.begin());
    batch.upper.push_back(range.second - batch.keys.begin());
    batch.counts.push_back(range.second - range.first);
    batch.found.push_back(range.first == range.second
                              ? ~std::uint32_t{0}
                              : static_cast<std::uint32_t>(batch.lower.back()));
  }
}

template <class Key>
Batch<Key> make_batch(std::size_t n, std::size_t m, Queries kind) {
  std::mt19937_64 rng(n * 31 + m);
  Batch<Key> batch;
  // Near enough to each other for duplicates and hits.
  const auto draw = [&] {
    return Keys<Key>::of(static_cast<int>(rng() % (2 * n + 3)));
  };
  for (std::size_t i = 0; i < n; ++i) batch.keys.push_back(draw());
  if (n > 3) batch.keys[0] = batch.keys[1] = Keys<Key>::max();
  std::sort(batch.keys.begin(), batch.keys.end());
  for (std::size_t i = 0; i < m; ++i) batch.queries.push_back(draw());
  if (m > 2) batch.queries[m / 2] = Keys<Key>::max();
  if (kind != Queries::random)
    std::sort(batch.queries.begin(), batch.queries.end());
  if (kind == Queries::ascending_but_one && m > 2)
    std::swap(batch.queries[m / 3], batch.queries[m - 1]);
  answer(batch);
  return batch;
}

template <class Exec, class Index, class Key, class Policy>
void expect_answers(const Index& index, const Batch<Key>& batch,
                    const Policy& policy, const char* what) {
  SCOPED_TRACE(std::string(what) + " of " + Index::name() + ", " +
               std::to_string(batch.keys.size()) + " keys, " +
               std::to_string(batch.queries.size()) + " queries");
  const Exec space;
  const std::size_t m = batch.queries.size();
  const auto queries = to_device<Exec>(batch.queries);
  const auto ranks = filled<size_type, Exec>(m, 0x5a);
  index.lower_bound(space, queries, ranks, policy);
  EXPECT_TRUE(to_host(ranks) == batch.lower) << "lower_bound";
  index.upper_bound(space, queries, ranks, policy);
  EXPECT_TRUE(to_host(ranks) == batch.upper) << "upper_bound";
  const auto values = filled<std::uint32_t, Exec>(m, 0x5a);
  index.find(space, queries, values, policy);
  EXPECT_TRUE(to_host(values) == batch.found) << "find";
  index.count(space, queries, ranks, policy);
  EXPECT_TRUE(to_host(ranks) == batch.counts) << "count";
}

template <class Exec, class Index, class Policies>
void for_each_batch(const Policies& policies) {
  using Key = typename Index::key_type;
  for (const std::size_t n : {0, 1, 2, 40, 1000, 30000})
    for (const std::size_t m : {0, 1, 33, 1025, 5001})
      for (const auto kind :
           {Queries::random, Queries::ascending, Queries::ascending_but_one}) {
        const auto batch = make_batch<Key>(n, m, kind);
        const Index index(Exec{}, kindex::sorted, to_device<Exec>(batch.keys));
        policies(index, batch);
      }
}

template <class Exec>
class Policies : public ::testing::Test {
 public:
  using Memory = typename Exec::memory_space;
  using Row = std::uint32_t;

  template <class Index>
  static void pinned() {
    using Pinned = BasicLookupPolicy<PinnedTop>;
    for_each_batch<Exec, Index>([](const auto& index, const auto& batch) {
      for (const int steps : {-1, 0, 1, 3, 100})
        expect_answers<Exec>(index, batch, Pinned().set_pinned_steps(steps),
                             "pinned steps");
      for (const size_type bytes : {0, 17, 100, 32768})
        expect_answers<Exec>(
            index, batch,
            Pinned().set_pinned_bytes(bytes).set_scheduling(Scheduling::fixed),
            "pinned bytes");
    });
  }

  template <class Index>
  static void sorted_in_teams() {
    using Sorted = BasicLookupPolicy<TeamSorted<128, 3>>;
    for_each_batch<Exec, Index>([](const auto& index, const auto& batch) {
      for (const auto order : {ResultOrder::restored, ResultOrder::as_found})
        expect_answers<Exec>(index, batch, Sorted().set_result_order(order),
                             "sorted in teams");
    });
  }

  template <class Index>
  static void ascending() {
    for_each_batch<Exec, Index>([](const auto& index, const auto& batch) {
      for (const int lookups : {0, 1, 200})
        expect_answers<Exec>(
            index, batch,
            BasicLookupPolicy<SortedQueries>().set_lookups_per_thread(lookups),
            "ascending");
    });
  }

  template <class Index>
  static void one_key_per_lane() {
    for_each_batch<Exec, Index>([](const auto& index, const auto& batch) {
      expect_answers<Exec>(index, batch, BasicLookupPolicy<OneKeyPerLane>(),
                           "one key per lane");
    });
  }
};
TYPED_TEST_SUITE(Policies, Devices, DeviceName);

TYPED_TEST(Policies, Pinned) {
  using M = typename TestFixture::Memory;
  using Row = std::uint32_t;
  using F = TestFixture;
  F::template pinned<kindex::SortedArray<std::uint64_t, Row, M, SoA>>();
  F::template pinned<kindex::SortedArray<std::uint16_t, Row, M, AoS>>();
  F::template pinned<kindex::PivotTree<std::uint32_t, Row, M, SoA, 17>>();
  F::template pinned<kindex::Eytzinger<std::uint32_t, Row, M, SoA, 2>>();
  F::template pinned<kindex::Eytzinger<double, Row, M, AoS, 5>>();
}

/// Batches of several tiles among keys that crowd in few cells of the table of
/// splitters, and among keys that do not.
template <class Exec, class Index, class Draw>
void expect_same_in_partitions(const Draw& draw) {
  using Key = typename Index::key_type;
  const auto partitioned =
      kindex::LookupPolicy().set_reordering(kindex::Reordering::partitioned);
  for (const std::size_t n : {1, 2, 40, 257, 30000}) {
    Batch<Key> batch = make_batch<Key>(n, 20011, Queries::random);
    const auto expect = [&](const char* what) {
      answer(batch);
      const Index index(Exec{}, kindex::sorted, to_device<Exec>(batch.keys));
      expect_answers<Exec>(index, batch, partitioned, what);
    };
    expect("partitions of crowded keys");
    for (Key& key : batch.keys) key = draw();
    std::sort(batch.keys.begin(), batch.keys.end());
    for (std::size_t i = 0; i < batch.queries.size(); ++i)
      batch.queries[i] = i % 3 == 0 ? draw() : batch.keys[i % n];
    expect("partitions of spread keys");
  }
}

TYPED_TEST(Policies, Partitioned) {
  using M = typename TestFixture::Memory;
  using Row = std::uint32_t;
  std::mt19937_64 rng(5);
  const auto bits = [&] { return rng(); };
  expect_same_in_partitions<TypeParam,
                            kindex::SortedArray<std::uint8_t, Row, M>>(
      [&] { return static_cast<std::uint8_t>(bits()); });
  expect_same_in_partitions<TypeParam, kindex::PivotTree<std::int32_t, Row, M>>(
      [&] { return static_cast<std::int32_t>(bits()); });
  expect_same_in_partitions<TypeParam,
                            kindex::Eytzinger<std::uint64_t, Row, M>>(bits);
  expect_same_in_partitions<TypeParam,
                            kindex::RadixTree<std::uint64_t, Row, M>>(bits);
  expect_same_in_partitions<TypeParam,
                            kindex::SortedArray<double, Row, M, AoS>>([&] {
    const double magnitude = std::ldexp(1.0, static_cast<int>(bits() % 600));
    return bits() % 64 == 0  ? std::numeric_limits<double>::infinity()
           : bits() % 2 == 0 ? -magnitude
                             : magnitude;
  });
  // Of equal upper halves in part.
  expect_same_in_partitions<TypeParam,
                            kindex::PivotTree<kindex::Key128, Row, M>>([&] {
    return kindex::Key128{bits() % 2 == 0 ? 7 : bits(), bits()};
  });
}

TYPED_TEST(Policies, SortedInTeams) {
  using M = typename TestFixture::Memory;
  using Row = std::uint32_t;
  using F = TestFixture;
  F::template sorted_in_teams<kindex::SortedArray<double, Row, M, SoA>>();
  F::template sorted_in_teams<
      kindex::PivotTree<std::uint32_t, Row, M, SoA, 9>>();
  F::template sorted_in_teams<
      kindex::Eytzinger<kindex::Key128, Row, M, SoA, 5>>();
}

TYPED_TEST(Policies, AscendingQueries) {
  using M = typename TestFixture::Memory;
  using Row = std::uint32_t;
  using F = TestFixture;
  F::template ascending<kindex::SortedArray<float, Row, M, AoS>>();
  F::template ascending<kindex::PivotTree<std::uint64_t, Row, M, SoA, 9>>();
  F::template ascending<kindex::Eytzinger<std::uint32_t, Row, M, SoA, 17>>();
}

TYPED_TEST(Policies, OneKeyPerLane) {
  using M = typename TestFixture::Memory;
  using Row = std::uint32_t;
  using F = TestFixture;
  F::template one_key_per_lane<
      kindex::PivotTree<std::uint32_t, Row, M, SoA, 17>>();
  F::template one_key_per_lane<
      kindex::Eytzinger<std::uint64_t, Row, M, SoA, 9>>();
}

/// Ascending queries that do not: the answers are right all the same.
template <class Exec, class Key, class Query>
void expect_same_when_promised(const std::vector<Key>& keys,
                               const std::vector<Query>& queries) {
  const kindex::SortedArray index(Exec{}, kindex::sorted,
                                  to_device<Exec>(keys));
  const auto q = to_device<Exec>(queries);
  const auto ranks = filled<size_type, Exec>(queries.size(), 0x5a);
  const auto there = filled<int, Exec>(queries.size(), 0x5a);
  const BasicLookupPolicy<SortedQueries> promised;
  index.lower_bound(Exec{}, q, ranks, promised);
  EXPECT_TRUE(to_host(ranks) == lower_bounds<Exec>(index, queries));
  index.upper_bound(Exec{}, q, ranks, promised);
  EXPECT_TRUE(to_host(ranks) == upper_bounds<Exec>(index, queries));
  index.contains(Exec{}, q, there, promised);
  for (std::size_t i = 0; i < queries.size(); ++i)
    EXPECT_EQ(to_host(there)[i],
              std::count(keys.begin(), keys.end(), queries[i]) > 0 ? 1 : 0);
}

TYPED_TEST(Policies, PromisesThatAreBroken) {
  using Exec = TypeParam;
  const auto most = ~std::uint32_t{0};
  expect_same_when_promised<Exec, std::uint32_t, std::uint32_t>(
      {1, 5, most, most}, {most, most - 1});
  const std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  expect_same_when_promised<Exec, std::int32_t, double>({1, 5, largest},
                                                        {3e9, 2147483647.0});
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_same_when_promised<Exec, float, float>({1, 5, inf}, {nan, 1, inf});
}

/// A value that a team's scratch cannot hold, or not aligned.
struct alignas(32) Wide {
  float x[8];
};

TYPED_TEST(Policies, LargeAndAlignedValues) {
  using Exec = TypeParam;
  std::vector<std::uint32_t> keys(3000);
  std::vector<Wide> values(keys.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    keys[i] = 3 * i;
    values[i].x[0] = static_cast<float>(i);
  }
  const kindex::SortedArray index(Exec{}, kindex::sorted, to_device<Exec>(keys),
                                  to_device<Exec>(values));
  const auto queries = to_device<Exec>(keys);
  const auto expect = [&](const auto& policy) {
    const auto found = filled<Wide, Exec>(keys.size(), 0x5a);
    index.find(Exec{}, queries, found, Wide{}, policy);
    const auto host = to_host(found);
    for (std::uint32_t i = 0; i < keys.size(); ++i)
      ASSERT_EQ(host[i].x[0], static_cast<float>(i));
  };
  expect(
      BasicLookupPolicy<TeamSorted<64, 2>, PinnedTop>().set_pinned_bytes(16));
  expect(BasicLookupPolicy<TeamSorted<256, 8>, PinnedTop>().set_pinned_bytes(
      32768));
}

/// Enough queries for what LookupPolicy chooses only for large batches.
TYPED_TEST(Policies, LargeBatchesOfSortedArray) {
  using Exec = TypeParam;
  const auto batch = make_batch<std::uint32_t>(
      10000, (std::size_t{1} << 22) + 5, Queries::random);
  const kindex::SortedArray index(Exec{}, kindex::sorted,
                                  to_device<Exec>(batch.keys));
  expect_answers<Exec>(index, batch, kindex::LookupPolicy(), "large");
}

/// Who gives what workspace_bytes says gives enough for what may be chosen.
TYPED_TEST(Policies, WorkspaceCoversWhatIsChosen) {
  const kindex::SortedArray index(TypeParam{},
                                  to_device<TypeParam>(std::vector<int>{1, 2}));
  using kindex::LookupPolicy;
  using kindex::Reordering;
  const size_type m = 1000;
  const auto bytes = [&](Reordering reordering) {
    return index.workspace_bytes(m, LookupPolicy().set_reordering(reordering));
  };
  EXPECT_EQ(bytes(Reordering::none), index.workspace_bytes(m));
  EXPECT_EQ(bytes(Reordering::automatic), bytes(Reordering::partitioned));
  EXPECT_GT(bytes(Reordering::automatic), 8 * m);
}

TYPED_TEST(Policies, RefuseWhatIsOutsideTheirRange) {
  BasicLookupPolicy<PinnedTop> policy;
  EXPECT_THROW(policy.set_pinned_steps(-2), kindex::Error);
  EXPECT_THROW(policy.set_pinned_bytes(32769), kindex::Error);
  EXPECT_EQ(policy.pinned_steps(), -1);
  EXPECT_EQ(policy.pinned_bytes(), 16384U);
  using Both = BasicLookupPolicy<TeamSorted<>, PinnedTop>;
  const auto both = Both().set_team_size(64).set_pinned_steps(2);
  static_assert(std::is_same_v<decltype(both), const Both>, "setters chain");
  EXPECT_EQ(kindex::LookupPolicy(both).team_size(), 64);
}

}  // namespace
}  // namespace kindex_test
