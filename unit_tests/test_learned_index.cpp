// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is special to LearnedIndex: every error bound and strategy on keys that
// suit lines badly, what it refuses, and what it holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <kindex/LearnedIndex.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/Asked.hpp"
#include "support/Devices.hpp"
#include "support/Errors.hpp"
#include "support/Keys.hpp"
#include "support/Values.hpp"

namespace kindex_test {
namespace {

using kindex::AoS;
using kindex::LearnedIndex;
using kindex::LearnedIndexOptions;
using kindex::SoA;
using kindex::Strategy;

template <class Exec>
class LearnedIndexes : public ::testing::Test {};

TYPED_TEST_SUITE(LearnedIndexes, Devices, DeviceName);

LearnedIndexOptions options_of(size_type epsilon, Strategy strategy,
                               size_type chunks = 0) {
  LearnedIndexOptions options;
  options.epsilon = epsilon;
  options.strategy = strategy;
  options.chunks = chunks;
  return options;
}

/// Keys to which lines fit badly, or too well.
template <class Key>
std::vector<std::pair<std::string, std::vector<Key>>> hard_sets(std::size_t n) {
  std::vector<std::pair<std::string, std::vector<Key>>> sets;
  std::mt19937_64 rng(n);
  const auto add = [&](const std::string& name, const auto& key_of) {
    std::vector<Key> keys;
    for (std::size_t i = 0; i < n; ++i) keys.push_back(key_of(i));
    std::sort(keys.begin(), keys.end(), Keys<Key>::less);
    sets.emplace_back(name, std::move(keys));
  };
  const auto number = [](std::uint64_t x) {
    if constexpr (std::is_same_v<Key, kindex::Key128>)
      return kindex::Key128{x >> 20, x << 44};
    else
      return static_cast<Key>(x);
  };
  add("random", [&](std::size_t) { return Keys<Key>::random(rng); });
  add("dense", [&](std::size_t i) { return number(i % 120); });
  add("squares", [&](std::size_t i) { return number(i * i); });
  add("equal", [&](std::size_t) { return number(7); });
  add("clusters at both ends", [&](std::size_t i) {
    Key key = i % 2 == 0 ? Keys<Key>::min() : Keys<Key>::max();
    for (std::size_t j = 0; j < i % 37; ++j)
      key = i % 2 == 0 ? Keys<Key>::above(key) : Keys<Key>::below(key);
    return key;
  });
  add("long runs", [&](std::size_t i) { return number(i / 600 * 3); });
  add("runs and singles",
      [&](std::size_t i) { return number(rng() % 3 == 0 ? rng() % 100 : i); });
  add("outliers", [&](std::size_t i) {
    return i % 997 == 5 ? Keys<Key>::random(rng) : number(i / 2);
  });
  Key next = number(1);
  add("one apart", [&](std::size_t) { return next = Keys<Key>::above(next); });
  return sets;
}

template <class Exec, class Key, class Layout>
void expect_right_answers(const std::vector<std::size_t>& sizes) {
  using Index =
      LearnedIndex<Key, std::uint32_t, typename Exec::memory_space, Layout>;
  Failures failures;
  for (const std::size_t n : sizes)
    for (const auto& [name, keys] : hard_sets<Key>(n)) {
      const Asked<Exec, Key> asked(name, keys, queries_around(keys));
      for (const size_type epsilon : {1, 4, 16, 64, 128, 2048})
        for (const auto strategy :
             {Strategy::complete, Strategy::concise, Strategy::automatic}) {
          const Index index(Exec{}, kindex::sorted, asked.device_keys,
                            kindex::Check::on,
                            options_of(epsilon, strategy, epsilon % 7));
          const std::string how = "epsilon = " + std::to_string(epsilon) +
                                  ", strategy " +
                                  std::to_string(static_cast<int>(strategy));
          failures += check_bulk_answers(index, asked, how);
          failures += check_ref_answers(index, asked, how);
        }
    }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

TYPED_TEST(LearnedIndexes, AnswerWithKeysOf8Bits) {
  expect_right_answers<TypeParam, std::int8_t, SoA>({1, 2, 300});
}

TYPED_TEST(LearnedIndexes, AnswerWithKeysOf32Bits) {
  expect_right_answers<TypeParam, std::uint32_t, SoA>({1, 2, 17, 3000});
}

TYPED_TEST(LearnedIndexes, AnswerWithKeysOf64Bits) {
  expect_right_answers<TypeParam, std::uint64_t, SoA>({3, 3000});
  expect_right_answers<TypeParam, std::int64_t, AoS>({1000});
}

TYPED_TEST(LearnedIndexes, AnswerWithFloatingPointKeys) {
  expect_right_answers<TypeParam, double, SoA>({3, 3000});
  expect_right_answers<TypeParam, float, AoS>({1000});
}

TYPED_TEST(LearnedIndexes, AnswerWithKeysOf128Bits) {
  expect_right_answers<TypeParam, kindex::Key128, SoA>({3, 2000});
}

/// Squares with the least error, in pieces.
TYPED_TEST(LearnedIndexes, SquaresInPieces) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  std::vector<Key> keys;
  for (Key i = 0; i <= 65536; ++i) keys.push_back(i * i);
  const Asked<Exec, Key> asked("squares", keys, queries_around(keys));
  Failures failures;
  for (const size_type chunks : {0, 1, 2, 7})
    for (const auto strategy : {Strategy::complete, Strategy::concise}) {
      const LearnedIndex<Key, std::uint32_t, typename Exec::memory_space> index(
          Exec{}, kindex::sorted, asked.device_keys, kindex::Check::on,
          options_of(1, strategy, chunks));
      const std::string how = "chunks = " + std::to_string(chunks);
      failures += check_bulk_answers(index, asked, how);
      EXPECT_LE(index.segments(), keys.size() / 2);
      EXPECT_GT(index.height(), 1);
    }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// Doubles next to each other, far beyond where they can count.
TYPED_TEST(LearnedIndexes, KeysOneUlpApart) {
  using Exec = TypeParam;
  std::vector<double> keys;
  for (double key = 1e300; keys.size() < 5000; key = std::nextafter(key, 2e300))
    keys.push_back(key);
  const Asked<Exec, double> asked("doubles", keys, queries_around(keys));
  const LearnedIndex<double, std::uint32_t, typename Exec::memory_space> index(
      Exec{}, kindex::sorted, asked.device_keys, kindex::Check::on,
      options_of(16, Strategy::complete));
  EXPECT_EQ(index.segments(), 1u) << "the line is straight";
  const Failures failures = check_bulk_answers(index, asked, "doubles");
  EXPECT_TRUE(failures.empty()) << failures.text();
}

TYPED_TEST(LearnedIndexes, SegmentsAreFewAndCounted) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  using Index = LearnedIndex<Key, std::uint32_t, typename Exec::memory_space>;
  std::vector<Key> keys;
  std::mt19937_64 rng(3);
  for (int i = 0; i < 200000; ++i) keys.push_back(static_cast<Key>(rng()));
  std::sort(keys.begin(), keys.end());
  const auto device_keys = to_device<Exec>(keys);
  size_type last = keys.size();
  for (const size_type epsilon : {1, 4, 16, 64, 256}) {
    const Index index(Exec{}, kindex::sorted, device_keys, kindex::Check::on,
                      options_of(epsilon, Strategy::complete));
    EXPECT_EQ(index.epsilon(), epsilon);
    EXPECT_LE(index.segments(), keys.size() / (2 * epsilon) + 1);
    EXPECT_LT(index.segments(), last) << "a larger error takes fewer";
    last = index.segments();
    EXPECT_EQ(index.strategy(), Strategy::complete);
    EXPECT_EQ(index.memory_bytes(), index.data_bytes() + index.model_bytes());
    EXPECT_EQ(index.data_bytes(), (keys.size() + 15) / 16 * 64);
    // 16 bytes a segment, few more for levels above, and the levels' table.
    EXPECT_GE(index.model_bytes(), 16 * index.segments());
    EXPECT_LE(index.model_bytes(), 16 * index.segments() * 5 / 4 + 1000);
    const Index table(Exec{}, kindex::sorted, device_keys, kindex::Check::on,
                      options_of(epsilon, Strategy::concise));
    EXPECT_EQ(table.strategy(), Strategy::concise);
    EXPECT_EQ(table.segments(), index.segments());
    EXPECT_GT(table.model_bytes(), index.model_bytes());
    EXPECT_LE(table.model_bytes(), index.model_bytes() + 8 * index.segments());
    const Index chosen(Exec{}, kindex::sorted, device_keys, kindex::Check::on,
                       options_of(epsilon, Strategy::automatic));
    EXPECT_EQ(chosen.model_bytes(), chosen.strategy() == Strategy::concise
                                        ? table.model_bytes()
                                        : index.model_bytes());
  }
  EXPECT_EQ(Index().height(), 0);
  EXPECT_EQ(Index().memory_bytes(), 0u);
}

/// Keys whose density changes every forty need a segment each time, unless the
/// error bound is as large.
TYPED_TEST(LearnedIndexes, ChosenErrorBoundsKeepModelsSmall) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  using Index = LearnedIndex<Key, std::uint32_t, typename Exec::memory_space>;
  std::vector<Key> keys;
  std::mt19937_64 rng(7);
  for (Key key = 0, i = 0; i < 70000; ++i) {
    const int bits = static_cast<int>(i / 40 * 7 % 31) + 1;
    keys.push_back(key += rng() >> (64 - bits));
  }
  const Asked<Exec, Key> asked("of changing density", keys,
                               queries_around(keys));
  const std::size_t m = asked.queries.size();
  const Index chosen(Exec{}, kindex::sorted, asked.device_keys);
  LearnedIndexOptions options;
  options.epsilon = 8;
  const Index exact(Exec{}, kindex::sorted, asked.device_keys,
                    kindex::Check::on, options);
  EXPECT_EQ(exact.epsilon(), 8u);
  EXPECT_GT(exact.model_bytes() * 100, exact.data_bytes() * 5);
  EXPECT_GT(chosen.epsilon(), 8u);
  EXPECT_LT(chosen.model_bytes() * 100, chosen.data_bytes() * 4);
  const auto lower = filled<size_type, Exec>(m),
             upper = filled<size_type, Exec>(m);
  const auto found = filled<std::uint32_t, Exec>(m);
  chosen.equal_range(Exec{}, asked.device_queries, lower, upper);
  chosen.find(Exec{}, asked.device_queries, found, ~std::uint32_t{0});
  const Failures failures =
      asked.compare("chosen", to_host(lower), to_host(upper), to_host(found));
  EXPECT_TRUE(failures.empty()) << failures.text();
  // Few keys have room for any model.
  const auto few = Kokkos::subview(asked.device_keys,
                                   Kokkos::pair<size_type, size_type>(0, 4000));
  EXPECT_EQ(Index(Exec{}, kindex::sorted, few).epsilon(), 8u);
}

TYPED_TEST(LearnedIndexes, ErrorBoundsAreChecked) {
  using Exec = TypeParam;
  using Index = LearnedIndex<int, std::uint32_t, typename Exec::memory_space>;
  const auto keys = to_device<Exec>(std::vector<int>{1, 2, 3});
  const auto refusal_of = [&](const LearnedIndexOptions& options) {
    return message_of([&] {
      const Index index(Exec{}, kindex::sorted, keys, kindex::Check::on,
                        options);
    });
  };
  EXPECT_EQ(refusal_of(options_of(0, Strategy::automatic)),
            "kindex::LearnedIndex: options.epsilon is 0, not in 1...1048576");
  LearnedIndexOptions options;
  options.upper_epsilon = 1048577;
  EXPECT_EQ(refusal_of(options),
            "kindex::LearnedIndex: options.upper_epsilon is 1048577, not in "
            "1...1048576");
  EXPECT_EQ(refusal_of(options_of(4, Strategy::automatic, 1048577)),
            "kindex::LearnedIndex: options.chunks is 1048577, not in "
            "1...1048576");
}

TYPED_TEST(LearnedIndexes, TuningKeepsToTheObjective) {
  using Exec = TypeParam;
  using Index =
      LearnedIndex<double, std::uint32_t, typename Exec::memory_space>;
  std::mt19937_64 rng(7);
  std::vector<double> keys;
  for (int i = 0; i < 20000; ++i) keys.push_back(std::ldexp(rng(), -70));
  const auto device_keys = to_device<Exec>(keys);
  keys.resize(500);
  const auto sample = to_device<Exec>(keys);
  const Exec space{};
  using kindex::Objective;
  const auto fast =
      Index::tune(space, device_keys, sample, Objective::throughput());
  ASSERT_EQ(fast.trials.size(), 18u);
  double most = 0;
  for (const auto& trial : fast.trials) {
    EXPECT_GT(trial.segments, 0u);
    EXPECT_GT(trial.lookups_per_second, 0);
    most = std::max(most, trial.lookups_per_second);
    if (trial.options.epsilon == fast.options.epsilon &&
        trial.options.strategy == fast.options.strategy) {
      EXPECT_GE(trial.lookups_per_second, most) << "of those before";
    }
  }
  const size_type bytes = fast.trials[8].model_bytes;
  const auto small =
      Index::tune(space, device_keys, sample, Objective::memory_below(bytes));
  const Index index(space, device_keys, small.options);
  EXPECT_LE(index.model_bytes(), bytes);
  EXPECT_EQ(index.size(), 20000u);

  EXPECT_EQ(
      message_of([&] {
        Index::tune(space, device_keys, sample, Objective::memory_below(5));
      }).substr(0, 66),
      "kindex::LearnedIndex::tune: objective admits models up to 5 bytes,");
  const DeviceView<double, Exec> none("none", 0);
  EXPECT_EQ(message_of([&] {
              Index::tune(space, none, sample, Objective::throughput());
            }),
            "kindex::LearnedIndex::tune: keys is empty");
  EXPECT_EQ(message_of([&] {
              Index::tune(space, device_keys, none, Objective::throughput());
            }),
            "kindex::LearnedIndex::tune: sample is empty");
}

/// Pinned models change nothing, whatever part of them fits.
TYPED_TEST(LearnedIndexes, PinnedModelsChangeNothing) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  using Index = LearnedIndex<Key, std::uint32_t, typename Exec::memory_space>;
  std::vector<Key> keys;
  std::mt19937_64 rng(5);
  for (int i = 0; i < 30000; ++i) keys.push_back(rng());
  std::sort(keys.begin(), keys.end());
  const Asked<Exec, Key> asked("random", keys, queries_around(keys));
  const std::size_t m = asked.queries.size();
  for (const auto strategy : {Strategy::complete, Strategy::concise}) {
    const Index index(Exec{}, kindex::sorted, asked.device_keys,
                      kindex::Check::on, options_of(4, strategy));
    ASSERT_GT(index.height(), 2);
    const auto check = [&](const auto& policy, const std::string& what) {
      const auto lower = filled<size_type, Exec>(m),
                 upper = filled<size_type, Exec>(m);
      const auto found = filled<std::uint32_t, Exec>(m);
      index.equal_range(Exec{}, asked.device_queries, lower, upper, policy);
      index.find(Exec{}, asked.device_queries, found, ~std::uint32_t{0},
                 policy);
      const Failures failures =
          asked.compare(what, to_host(lower), to_host(upper), to_host(found));
      EXPECT_TRUE(failures.empty()) << failures.text();
    };
    for (const int steps : {-1, 0, 1, 2, 100}) {
      const std::string what = "steps " + std::to_string(steps);
      for (const size_type bytes : {0, 16, 100, 4096, 32768})
        check(kindex::BasicLookupPolicy<kindex::PinnedTop>()
                  .set_pinned_steps(steps)
                  .set_pinned_bytes(bytes),
              what + ", bytes " + std::to_string(bytes));
      check(kindex::BasicLookupPolicy<kindex::BroadcastTop>().set_pinned_steps(
                steps),
            what + ", broadcast");
    }
  }
}

}  // namespace
}  // namespace kindex_test
