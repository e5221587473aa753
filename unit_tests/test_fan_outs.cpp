// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every feature of a policy on every fan-out and layout of the trees.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <kindex/Eytzinger.hpp>
#include <kindex/PivotTree.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/Devices.hpp"
#include "support/Queries.hpp"

namespace kindex_test {
namespace {

using kindex::AoS;
using kindex::BasicLookupPolicy;
using kindex::SoA;
using Key = std::uint32_t;
using Row = std::uint32_t;

/// Keys, some of them several times, queries, and what std:: answers.
struct Batch {
  std::vector<Key> keys, queries;
  Ranks lower;
  std::vector<Row> found;

  explicit Batch(std::size_t n) {
    std::mt19937 rng(static_cast<unsigned>(n));
    for (std::size_t i = 0; i < n; ++i)
      keys.push_back(static_cast<Key>(rng() % (2 * n)));
    keys.back() = ~Key{0};
    std::sort(keys.begin(), keys.end());
    for (int i = 0; i < 1025; ++i)
      queries.push_back(static_cast<Key>(rng() % (2 * n + 1)));
    queries[7] = ~Key{0};
    for (const Key query : queries) {
      const auto [first, last] =
          std::equal_range(keys.begin(), keys.end(), query);
      lower.push_back(first - keys.begin());
      found.push_back(first == last ? ~Row{0} : static_cast<Row>(lower.back()));
    }
  }
};

template <class Exec>
class FanOuts : public ::testing::Test {
 public:
  using Memory = typename Exec::memory_space;

  template <class Index>
  static void check_features() {
    for (const std::size_t n : {1, 33, 5000}) {
      const Batch batch(n);
      const Index index(Exec{}, kindex::sorted, to_device<Exec>(batch.keys));
      const auto queries = to_device<Exec>(batch.queries);
      const std::size_t m = batch.queries.size();
      const auto expect = [&](const auto& policy, const char* feature) {
        const auto ranks = filled<size_type, Exec>(m, 0x5a);
        const auto rows = filled<Row, Exec>(m, 0x5a);
        index.lower_bound(Exec{}, queries, ranks, policy);
        index.find(Exec{}, queries, rows, policy);
        EXPECT_TRUE(to_host(ranks) == batch.lower)
            << feature << ", lower_bound of " << n << " keys";
        EXPECT_TRUE(to_host(rows) == batch.found)
            << feature << ", find of " << n << " keys";
      };
      expect(kindex::LookupPolicy(), "nothing");
      expect(kindex::LookupPolicy().set_reordering(
                 kindex::Reordering::partitioned),
             "partitioned");
      expect(BasicLookupPolicy<kindex::PinnedTop>(), "pinned");
      expect(BasicLookupPolicy<kindex::TeamSorted<64, 2>>(), "sorted in teams");
      expect(BasicLookupPolicy<kindex::OneKeyPerLane>(), "one key per lane");
      expect(BasicLookupPolicy<kindex::SortedQueries>(), "a broken promise");
    }
  }

  /// \tparam TreeOf its type by fan-out and layout.
  template <template <int, class> class TreeOf>
  static void check_fan_outs() {
    const auto with = [](auto fan_out) {
      constexpr int K = decltype(fan_out)::value;
      SCOPED_TRACE("K = " + std::to_string(K));
      check_features<TreeOf<K, SoA>>();
      check_features<TreeOf<K, AoS>>();
    };
    with(std::integral_constant<int, 2>());
    with(std::integral_constant<int, 3>());
    with(std::integral_constant<int, 5>());
    with(std::integral_constant<int, 9>());
    with(std::integral_constant<int, 17>());
    with(std::integral_constant<int, 33>());
  }

  template <int K, class Layout>
  using Eytzingers = kindex::Eytzinger<Key, Row, Memory, Layout, K>;
  template <int K, class Layout>
  using PivotTrees = kindex::PivotTree<Key, Row, Memory, Layout, K>;
};
TYPED_TEST_SUITE(FanOuts, Devices, DeviceName);

TYPED_TEST(FanOuts, FeaturesOfEytzinger) {
  TestFixture::template check_fan_outs<TestFixture::template Eytzingers>();
}

TYPED_TEST(FanOuts, FeaturesOfPivotTree) {
  TestFixture::template check_fan_outs<TestFixture::template PivotTrees>();
}

}  // namespace
}  // namespace kindex_test
