// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Indexes whose model is on a device while entries, queries and results are in
// host memory: the answers are those of std::, whatever the buckets and however
// wrong the device's guesses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <kindex/HybridBPlusTree.hpp>
#include <kindex/HybridLearnedIndex.hpp>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/Asked.hpp"
#include "support/Devices.hpp"
#include "support/Divisions.hpp"
#include "support/Errors.hpp"
#include "support/HostViews.hpp"
#include "support/Keys.hpp"
#include "support/Recorder.hpp"
#include "support/Values.hpp"

namespace kindex_test {
namespace {

using kindex::AoS;
using kindex::BPlusTreeOptions;
using kindex::HostBatches;
using kindex::HybridBPlusTree;
using kindex::HybridLearnedIndex;
using kindex::LearnedIndexOptions;
using kindex::LookupPolicy;
using kindex::PipelineOptions;
using kindex::SoA;
using kindex::Strategy;
using kindex::WorkDivision;

using Host = Kokkos::DefaultHostExecutionSpace;

template <class Exec>
class Hybrids : public ::testing::Test {};

TYPED_TEST_SUITE(Hybrids, Devices, DeviceName);

template <class Exec, class Key, class Value = std::uint32_t,
          class Layout = SoA>
using IndexOn =
    HybridLearnedIndex<Key, Value, typename Exec::memory_space, Layout>;

LearnedIndexOptions options_of(size_type epsilon, Strategy strategy) {
  LearnedIndexOptions options;
  options.epsilon = epsilon;
  options.strategy = strategy;
  return options;
}

template <class T>
bool is_untouched(const HostView<T>& view) {
  return elements_of(view) == elements_of(filled<T, Host>(view.extent(0)));
}

/// Sums what is visited.
struct SumVisits {
  HostView<std::uint64_t> visits, rows;
  template <class Key>
  KOKKOS_FUNCTION void operator()(size_type i, const Key&,
                                  std::uint32_t row) const {
    Kokkos::atomic_add(&visits(i), std::uint64_t{1});
    Kokkos::atomic_add(&rows(i), std::uint64_t{row});
  }
};

/// Every verb, of an index of ascending keys with their row ids.
template <class Space, class Index, class Key>
Failures check_verbs(const Space& space, const Index& index,
                     const Asked<Host, Key>& asked, const std::string& how) {
  const std::size_t m = asked.queries.size();
  // Ranges from one query to the next: of all lengths, and backwards.
  std::vector<Key> ends = asked.queries;
  if (m > 0) std::rotate(ends.begin(), ends.begin() + 1, ends.end());
  std::vector<size_type> counts, range_counts, offsets{0};
  std::vector<std::uint32_t> hits;
  std::vector<std::uint64_t> sums;
  std::vector<unsigned char> contained;
  for (std::size_t i = 0; i < m; ++i) {
    const size_type first = asked.lower[i];
    const size_type last = std::max(asked.upper[(i + 1) % m], first);
    counts.push_back(asked.upper[i] - first);
    contained.push_back(counts[i] > 0);
    range_counts.push_back(last - first);
    offsets.push_back(offsets.back() + last - first);
    sums.push_back(0);
    for (size_type rank = first; rank < last; ++rank) {
      hits.push_back(static_cast<std::uint32_t>(rank));
      sums.back() += rank;
    }
  }
  Failures failures = check_bulk_answers(index, asked, how, space);
  const auto compare = [&](const char* verb, const auto& expected,
                           const auto& got) {
    failures.compare(verb + (", " + how + ", " + asked.name), expected, got,
                     [](std::size_t i) { return std::to_string(i); });
  };
  const auto& lo = asked.device_queries;
  const auto hi = to_device<Host>(ends);
  const auto ranks = filled<size_type, Host>(m);
  index.lower_bound(space, lo, ranks);
  compare("lower_bound", asked.lower, to_host(ranks));
  index.upper_bound(space, lo, ranks);
  compare("upper_bound", asked.upper, to_host(ranks));
  index.count(space, lo, ranks);
  compare("count", counts, to_host(ranks));
  index.range_count(space, lo, hi, ranks);
  compare("range_count", range_counts, to_host(ranks));
  const auto flags = filled<bool, Host>(m);
  index.contains(space, lo, flags);
  compare("contains", contained, to_host(flags));
  auto found = index.range(space, lo, hi);
  static_assert(std::is_same_v<typename decltype(found.values)::memory_space,
                               Kokkos::HostSpace>);
  compare("range: offsets", offsets, to_host(found.offsets));
  compare("range: values", hits, to_host(found.values));
  const auto* const memory = found.memory.values.data();
  index.range(space, lo, hi, found);
  compare("range again: offsets", offsets, to_host(found.offsets));
  compare("range again: values", hits, to_host(found.values));
  if (memory != found.memory.values.data())
    failures.lines.push_back("range allocated again, " + how);
  const SumVisits visit{HostView<std::uint64_t>("test::visits", m),
                        HostView<std::uint64_t>("test::rows", m)};
  index.for_each_in_range(space, lo, hi, visit);
  compare("for_each_in_range: visits",
          std::vector<std::uint64_t>(range_counts.begin(), range_counts.end()),
          to_host(visit.visits));
  compare("for_each_in_range: rows", sums, to_host(visit.rows));
  return failures;
}

/// Ascending keys of all kinds.
template <class Key>
std::map<std::string, std::vector<Key>> key_sets(std::size_t n) {
  std::mt19937_64 rng(n);
  std::map<std::string, std::vector<Key>> sets;
  sets["empty"] = {};
  sets["one"] = {Keys<Key>::of(5)};
  sets["extremes"] = Keys<Key>::extremes();
  for (std::size_t i = 0; i < n; ++i) {
    sets["random"].push_back(Keys<Key>::random(rng));
    sets["duplicates"].push_back(
        Keys<Key>::of(static_cast<int>(rng() % (n / 30))));
    sets["equal"].push_back(Keys<Key>::of(7));
    sets["squares"].push_back(Keys<Key>::of(static_cast<int>(i * i)));
  }
  for (auto& [name, keys] : sets)
    std::sort(keys.begin(), keys.end(), Keys<Key>::less);
  return sets;
}

template <class Exec, class Key, class Layout>
void expect_right_answers(std::size_t n) {
  Failures failures;
  for (const auto& [name, keys] : key_sets<Key>(n)) {
    auto queries = queries_around(keys);
    queries.resize(std::min<std::size_t>(queries.size(), 1500));
    const Asked<Host, Key> asked(name, keys, queries);
    for (const size_type epsilon : {1, 12, 2048})
      for (const auto strategy : {Strategy::complete, Strategy::concise}) {
        const IndexOn<Exec, Key, std::uint32_t, Layout> index(
            Exec{}, kindex::sorted, asked.device_keys, kindex::Check::on,
            options_of(epsilon, strategy));
        const std::string how = "epsilon = " + std::to_string(epsilon) +
                                ", strategy " +
                                std::to_string(static_cast<int>(strategy));
        failures += check_verbs(Exec{}, index, asked, how);
        failures += check_ref_answers(index, asked, how);
      }
    const IndexOn<Exec, Key, std::uint32_t, Layout> index(
        Exec{}, kindex::sorted, asked.device_keys);
    EXPECT_EQ(index.size(), keys.size());
    EXPECT_EQ(index.empty(), keys.empty());
    // A bucket costs a launch or two: few of the smallest.
    queries.resize(std::min<std::size_t>(queries.size(), 100));
    const Asked<Host, Key> few(name, keys, queries);
    for (const size_type bucket : {1, 3, 1000})
      for (const int buffers : {1, 3}) {
        const HostBatches batches(
            Exec{},
            PipelineOptions().set_bucket_size(bucket).set_buffers(buffers));
        failures += check_verbs(batches, index, bucket < 1000 ? few : asked,
                                "buckets of " + std::to_string(bucket));
      }
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

TYPED_TEST(Hybrids, AnswerWithKeysOf32Bits) {
  expect_right_answers<TypeParam, std::uint32_t, SoA>(1000);
}

TYPED_TEST(Hybrids, AnswerWithKeysOf64Bits) {
  expect_right_answers<TypeParam, std::uint64_t, AoS>(3000);
}

TYPED_TEST(Hybrids, AnswerWithFloatingPointKeys) {
  expect_right_answers<TypeParam, double, SoA>(1000);
}

/// Enough keys that Strategy::automatic measures, and values that are stored.
TYPED_TEST(Hybrids, AnswerWithManyKeysInAnyOrder) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  const std::size_t n = 200000, m = 70000;
  std::mt19937_64 rng(3);
  std::vector<Key> keys, queries;
  for (std::size_t i = 0; i < n; ++i) keys.push_back(rng() % (2 * n));
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(~i << 7);
  std::map<Key, std::uint64_t> first;
  for (std::size_t i = 0; i < n; ++i) first.emplace(keys[i], values[i]);
  const kindex::HybridLearnedIndex index(Exec{}, to_device<Host>(keys),
                                         to_device<Host>(values));
  static_assert(std::is_same_v<std::decay_t<decltype(index)>,
                               IndexOn<Exec, Key, std::uint64_t>>);
  for (std::size_t i = 0; i < m; ++i) queries.push_back(rng() % (2 * n + 5));
  std::vector<std::uint64_t> expected;
  for (const Key q : queries)
    expected.push_back(first.count(q) > 0 ? first[q] : 12345);
  const auto found = filled<std::uint64_t, Host>(m);
  index.find(Exec{}, to_device<Host>(queries), found, 12345);
  EXPECT_TRUE(to_host(found) == expected);
}

TYPED_TEST(Hybrids, StridedViews) {
  using Exec = TypeParam;
  const std::size_t m = 5000;
  const auto keys = host_output<StridedView<std::uint32_t>>(1000);
  for (std::size_t i = 0; i < 1000; ++i)
    keys(i) = static_cast<std::uint32_t>(3 * i + 1);
  const auto queries = host_output<StridedView<std::uint32_t>>(m);
  std::vector<std::uint32_t> rows;
  std::vector<std::uint16_t> ranks;
  for (std::size_t i = 0; i < m; ++i) {
    const auto q = static_cast<std::uint32_t>(i * 7919 % 3100);
    queries(i) = q;
    ranks.push_back(
        static_cast<std::uint16_t>(std::min<std::uint32_t>((q + 1) / 3, 1000)));
    rows.push_back(q % 3 == 1 && q < 3000 ? q / 3 : 9999);
  }
  const IndexOn<Exec, std::uint32_t> index(Exec{}, kindex::sorted, keys);
  const HostBatches batches(Exec{}, PipelineOptions().set_bucket_size(700));
  const auto found = host_output<StridedView<std::uint32_t>>(m);
  index.find(batches, queries, found, 9999);
  EXPECT_TRUE(elements_of(found) == rows);
  const auto lower = host_output<StridedView<std::uint16_t>>(m);
  index.lower_bound(batches, queries, lower);
  EXPECT_TRUE(elements_of(lower) == ranks);
  // What lies between the elements is the caller's.
  for (std::size_t i = 0; i + 1 < m; ++i)
    ASSERT_EQ(found.data()[3 * i + 1], 0xA5A5A5A5U) << i;
}

TYPED_TEST(Hybrids, QueriesOfAnotherType) {
  using Exec = TypeParam;
  const IndexOn<Exec, std::uint32_t> index(
      Exec{}, kindex::sorted,
      to_device<Host>(std::vector<std::uint32_t>{1, 5, 5, 9}));
  const HostBatches batches(Exec{}, PipelineOptions().set_bucket_size(2));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto queries =
      to_device<Host>(std::vector<double>{-1, 1, 4.5, 5, 1e20, nan, 9});
  const auto ranks = filled<int, Host>(7);
  index.lower_bound(batches, queries, ranks);
  EXPECT_EQ(to_host(ranks), (std::vector<int>{0, 0, 1, 1, 4, 4, 3}));
  index.upper_bound(batches, queries, ranks);
  EXPECT_EQ(to_host(ranks), (std::vector<int>{0, 1, 1, 3, 4, 4, 4}));
  const auto rows = filled<std::int64_t, Host>(7);
  index.find(batches, queries, rows, 100);
  EXPECT_EQ(to_host(rows),
            (std::vector<std::int64_t>{100, 0, 100, 1, 100, 100, 3}));
  // Ranges that end, and that begin, at NaN.
  const auto lo = to_device<Host>(std::vector<double>{nan, 4, 5, 9});
  const auto hi = to_device<Host>(std::vector<double>{9, nan, 8, 5});
  const SumVisits visit{HostView<std::uint64_t>("test::visits", 4),
                        HostView<std::uint64_t>("test::rows", 4)};
  index.for_each_in_range(batches, lo, hi, visit);
  EXPECT_EQ(to_host(visit.visits), (std::vector<std::uint64_t>{0, 0, 2, 0}));
  EXPECT_EQ(to_host(index.range(batches, lo, hi).offsets),
            (Ranks{0, 0, 0, 2, 2}));
}

TYPED_TEST(Hybrids, PoliciesOfTheDevice) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  const auto keys = key_sets<Key>(3000)["random"];
  const Asked<Host, Key> asked("random", keys, queries_around(keys));
  const auto check = [&](const auto& policy, Strategy strategy,
                         const char* what) {
    const IndexOn<Exec, Key> index(Exec{}, kindex::sorted, asked.device_keys,
                                   kindex::Check::on, options_of(4, strategy));
    const auto found = filled<std::uint32_t, Host>(asked.queries.size());
    index.find(Exec{}, asked.device_queries, found, policy);
    EXPECT_TRUE(to_host(found) == asked.found) << what;
    const auto counts = filled<size_type, Host>(asked.queries.size());
    index.count(Exec{}, asked.device_queries, counts, policy);
    const auto got = to_host(counts);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], asked.upper[i] - asked.lower[i]) << what;
  };
  for (const auto strategy : {Strategy::complete, Strategy::concise}) {
    check(kindex::BasicLookupPolicy<kindex::PinnedTop>(), strategy, "pinned");
    check(kindex::BasicLookupPolicy<kindex::PinnedTop>().set_pinned_steps(1),
          strategy, "the root pinned");
    check(kindex::BasicLookupPolicy<kindex::BroadcastTop>(), strategy,
          "broadcast");
    check(kindex::BasicLookupPolicy<kindex::SortedQueries>(), strategy,
          "an untrue promise");
    check(kindex::BasicLookupPolicy<kindex::TeamSorted<128, 4>>(), strategy,
          "sorted in teams");
    check(LookupPolicy().set_reordering(kindex::Reordering::partitioned),
          strategy, "partitioned");
    check(LookupPolicy().set_team_size(64).set_lookups_per_thread(3), strategy,
          "another schedule");
  }
  const LookupPolicy policy;
  EXPECT_EQ((IndexOn<Exec, Key>().workspace_bytes(1000, policy)), 8000u);
}

TYPED_TEST(Hybrids, RangesIntoAWorkspace) {
  using Exec = TypeParam;
  const IndexOn<Exec, int> index(
      Exec{}, kindex::sorted,
      to_device<Host>(std::vector<int>{2, 3, 3, 4, 10}));
  const auto lo = to_device<Host>(std::vector<int>{3, 5, -7});
  const auto hi = to_device<Host>(std::vector<int>{4, 9, 20});
  const HostView<std::byte> workspace("test::workspace",
                                      index.workspace_bytes(3));
  const auto hits = index.range(Exec{}, lo, hi, kindex::with_keys,
                                LookupPolicy().set_workspace(workspace));
  EXPECT_EQ(to_host(hits.offsets), (Ranks{0, 3, 3, 8}));
  EXPECT_EQ(to_host(hits.values),
            (std::vector<std::uint32_t>{1, 2, 3, 0, 1, 2, 3, 4}));
  EXPECT_EQ(to_host(hits.keys), (std::vector<int>{3, 3, 4, 2, 3, 3, 4, 10}));
}

TYPED_TEST(Hybrids, ErrorsComeBeforeAnythingIsWritten) {
  using Exec = TypeParam;
  const Exec space;
  std::vector<int> numbers(300);
  for (int i = 0; i < 300; ++i) numbers[i] = i;
  const auto keys = to_device<Host>(numbers);
  const IndexOn<Exec, int> index(space, kindex::sorted, keys);
  const auto queries = to_device<Host>(std::vector<int>{1, 2, 3});
  const auto other = to_device<Host>(std::vector<int>{1, 2, 3, 4});
  const auto good = filled<size_type, Host>(3),
             bad = filled<size_type, Host>(4);
  const auto rows = filled<std::uint32_t, Host>(2);
  const auto flags = filled<bool, Host>(4);
  const auto narrow = filled<unsigned char, Host>(3);
  const SumVisits visit{HostView<std::uint64_t>("test::visits", 3),
                        HostView<std::uint64_t>("test::rows", 3)};
  expect_error([&] { index.find(space, queries, rows); },
               {"find", "out has 2 elements for 3 queries"});
  expect_error([&] { index.contains(space, queries, flags); },
               {"contains", "out has 4"});
  expect_error([&] { index.lower_bound(space, queries, bad); },
               {"lower_bound", "ranks has 4"});
  expect_error([&] { index.upper_bound(space, queries, narrow); },
               {"upper_bound", "ranks", "255", "300"});
  expect_error([&] { index.equal_range(space, queries, good, bad); },
               {"equal_range", "last has 4"});
  expect_error([&] { index.equal_range(space, queries, bad, good); },
               {"equal_range", "first has 4"});
  expect_error([&] { index.count(space, queries, bad); },
               {"count", "counts has 4"});
  expect_error([&] { index.range_count(space, queries, other, good); },
               {"range_count", "hi has 4 elements and lo 3"});
  expect_error([&] { index.range(space, queries, other); },
               {"range", "hi has 4"});
  expect_error([&] { index.for_each_in_range(space, queries, other, visit); },
               {"for_each_in_range", "hi has 4"});
  const HostView<std::byte> small("test::workspace", 23);
  expect_error(
      [&] {
        index.range(space, queries, queries,
                    LookupPolicy().set_workspace(small));
      },
      {"range", "workspace", "23", "24"});
  EXPECT_TRUE(is_untouched(good) && is_untouched(bad) && is_untouched(rows) &&
              is_untouched(narrow));
  std::swap(numbers[7], numbers[8]);
  const auto unsorted = to_device<Host>(numbers);
  expect_error([&] { IndexOn<Exec, int>(space, kindex::sorted, unsorted); },
               {"LearnedIndex"});
  expect_error(
      [&] {
        IndexOn<Exec, int>(space, keys, options_of(0, Strategy::automatic));
      },
      {"epsilon"});
}

TYPED_TEST(Hybrids, SayWhatTheyHold) {
  using Exec = TypeParam;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 20000; ++i) keys.push_back(i * i);
  IndexOn<Exec, std::uint64_t> index(Exec{}, kindex::sorted,
                                     to_device<Host>(keys), kindex::Check::on,
                                     options_of(16, Strategy::complete));
  const kindex::LearnedIndex<std::uint64_t, std::uint32_t, Kokkos::HostSpace>
      on_host(Host{}, kindex::sorted, to_device<Host>(keys), kindex::Check::on,
              options_of(16, Strategy::complete));
  constexpr bool is_shared =
      std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>;
  EXPECT_EQ(index.size(), 20000u);
  EXPECT_EQ(index.segments(), on_host.segments());
  EXPECT_EQ(index.height(), on_host.height());
  EXPECT_EQ(index.epsilon(), 16u);
  const IndexOn<Exec, std::uint64_t> chosen(Exec{}, kindex::sorted,
                                            to_device<Host>(keys));
  EXPECT_EQ(chosen.epsilon(), 4u);
  EXPECT_EQ(index.strategy(), Strategy::complete);
  EXPECT_EQ(index.data_bytes(), on_host.data_bytes());
  EXPECT_EQ(index.model_bytes(), on_host.model_bytes());
  EXPECT_EQ(index.memory_bytes(),
            on_host.memory_bytes() + (is_shared ? 0 : on_host.model_bytes()));
  // Moved from, it is empty; moved to, it answers.
  const auto moved = std::move(index);
  EXPECT_EQ(moved.size(), 20000u);
  EXPECT_TRUE(index.empty());
  const auto queries = to_device<Host>(std::vector<std::uint64_t>{400000000});
  const auto ranks = filled<size_type, Host>(1);
  moved.lower_bound(Exec{}, queries, ranks);
  EXPECT_EQ(ranks(0), 20000u);
  index.lower_bound(Exec{}, queries, ranks);
  EXPECT_EQ(ranks(0), 0u);
}

/// The guess is made where the model is, the search ends on the host, and both
/// say of whom they are.
TYPED_TEST(Hybrids, KernelsOfBothStages) {
  using Exec = TypeParam;
  const IndexOn<Exec, int> index(Exec{}, kindex::sorted,
                                 to_device<Host>(std::vector<int>{2, 3, 4}));
  const auto queries = to_device<Host>(std::vector<int>{1, 2, 3, 4, 5});
  const auto found = filled<std::uint32_t, Host>(5);
  const HostBatches batches(Exec{}, PipelineOptions().set_bucket_size(2));
  index.find(batches, queries, found);
  Recorder recorder;
  index.find(batches, queries, found);
  const auto events = recorder.stop();
  int routes = 0, finishes = 0;
  for (const auto& event : events) {
    routes += event.kind == Event::kernel &&
              event.label == "kindex::HybridLearnedIndex::find::route";
    finishes += event.kind == Event::kernel &&
                event.label == "kindex::HybridLearnedIndex::find::finish";
  }
  EXPECT_EQ(routes, 3);
  EXPECT_EQ(finishes, 3);
  EXPECT_TRUE(allocations(events).empty());
}

// ---- trees ------------------------------------------------------------------

template <class Exec, class Layout = SoA>
using TreeOn = HybridBPlusTree<std::uint64_t, std::uint32_t,
                               typename Exec::memory_space, Layout>;

/// Sizes with and without inner nodes, buckets of all sizes, the last one
/// short.
TYPED_TEST(Hybrids, TreesAnswer) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  Failures failures;
  for (const std::size_t n : {35, 3000}) {
    for (const auto& [name, keys] : key_sets<Key>(n)) {
      auto queries = queries_around(keys);
      queries.resize(std::min<std::size_t>(queries.size(), 1500));
      const Asked<Host, Key> asked(name, keys, queries);
      queries.resize(std::min<std::size_t>(queries.size(), 100));
      const Asked<Host, Key> few(name, keys, queries);
      const TreeOn<Exec> index(Exec{}, kindex::sorted, asked.device_keys);
      EXPECT_EQ(index.size(), keys.size());
      failures += check_verbs(Exec{}, index, asked, "tree");
      failures += check_ref_answers(index, asked, "tree");
      for (const size_type bucket : {1, 7, 64, 16384}) {
        const HostBatches batches(
            Exec{}, PipelineOptions().set_bucket_size(bucket).set_buffers(
                        bucket == 7 ? 1 : 3));
        failures += check_verbs(batches, index, bucket < 64 ? few : asked,
                                "buckets of " + std::to_string(bucket));
      }
    }
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// Three buckets of the size that the method's authors use, the last one short;
/// with one key per lane; and what the caller owns may be overwritten at once.
TYPED_TEST(Hybrids, TreesAnswerInLargeBuckets) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  constexpr std::size_t m = 40000;
  std::vector<Key> keys(100000), queries(m);
  std::vector<size_type> expected;
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i / 2 * 6;
  std::mt19937_64 rng(40);
  for (Key& query : queries) {
    query = rng() % 310000;
    expected.push_back(std::lower_bound(keys.begin(), keys.end(), query) -
                       keys.begin());
  }
  const TreeOn<Exec> index(Exec{}, kindex::sorted, to_device<Host>(keys));
  const auto expect = [&](auto given, auto ranks, const auto& policy,
                          int buffers) {
    const HostBatches batches(
        Exec{}, PipelineOptions().set_bucket_size(16384).set_buffers(buffers));
    index.lower_bound(batches, given, ranks, policy);
    const auto results = elements_of(ranks);
    std::fill_n(given.data(), m, Key{0});
    std::fill_n(ranks.data(), m, size_type{77});
    Kokkos::fence("test::late_work");
    EXPECT_TRUE(results == expected) << buffers << " buffers";
    EXPECT_TRUE(elements_of(ranks) == std::vector<size_type>(m, 77));
    EXPECT_EQ(batches.pipeline().latency().buckets, 3u);
  };
  for (const int buffers : {0, 1, 2, 3, 4}) {
    expect(host_input<HostView<Key>>(queries),
           host_output<HostView<size_type>>(m), LookupPolicy(), buffers);
    expect(host_input<PinnedView<Key>>(queries),
           host_output<PinnedView<size_type>>(m), LookupPolicy(), buffers);
    expect(host_input<HostView<Key>>(queries),
           host_output<HostView<size_type>>(m),
           kindex::BasicLookupPolicy<kindex::OneKeyPerLane>(), buffers);
  }
}

/// Whatever part of the inner nodes the host follows, of whatever share.
TYPED_TEST(Hybrids, TreesAnswerHoweverWorkIsDivided) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  Failures failures;
  for (const char* name : {"random", "duplicates", "empty"}) {
    const auto keys = key_sets<Key>(3000)[name];
    auto queries = queries_around(keys);
    queries.resize(std::min<std::size_t>(queries.size(), 500));
    const Asked<Host, Key> asked(name, keys, queries);
    TreeOn<Exec> index(Exec{}, kindex::sorted, asked.device_keys);
    EXPECT_EQ(index.height(), keys.empty() ? 0 : 3);
    for_each_division<Exec>(
        index, [&](const HostBatches<Exec>& batches, const std::string& how) {
          failures += check_verbs(batches, index, asked, how);
          const auto ranks = filled<size_type, Host>(asked.queries.size());
          index.lower_bound(batches, asked.device_queries, ranks,
                            kindex::BasicLookupPolicy<kindex::PinnedTop>());
          EXPECT_TRUE(to_host(ranks) == asked.lower) << "pinned";
        });
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// Queries that are narrower than what the host hands on with them, and wider.
TYPED_TEST(Hybrids, DividedQueriesOfOtherTypes) {
  using Exec = TypeParam;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 5000; ++i) keys.push_back(2 * i);
  TreeOn<Exec> index(Exec{}, kindex::sorted, to_device<Host>(keys));
  index.set_division({1, 0.5});
  const HostBatches batches(Exec{}, PipelineOptions().set_bucket_size(77));
  const auto expect = [&](const auto& queries) {
    const auto ranks = filled<size_type, Host>(queries.size());
    index.lower_bound(batches, to_device<Host>(queries), ranks);
    for (std::size_t i = 0; i < queries.size(); ++i)
      ASSERT_EQ(ranks(i), (static_cast<size_type>(queries[i]) + 1) / 2);
  };
  std::vector<std::uint8_t> narrow;
  std::vector<double> wide;
  for (int i = 0; i < 1001; ++i) {
    narrow.push_back(static_cast<std::uint8_t>(i));
    wide.push_back(7 * i);
  }
  expect(narrow);
  expect(wide);
}

TYPED_TEST(Hybrids, DivisionsAreFound) {
  using Exec = TypeParam;
  // What the slower of both spends, with the host at `host` levels of 8 where
  // both take the same time.
  for (const double host : {0.0, 0.4, 1.0, 2.7, 3.9, 8.0}) {
    const auto cost = [&](const kindex::WorkDivision& division) {
      const double levels = division.levels + division.share;
      EXPECT_TRUE(levels >= 0 && levels <= 8 && division.share < 1);
      return std::max(10 + levels - host, 10 + 2 * (host - levels));
    };
    const auto found = kindex::query::find_division(8, cost);
    EXPECT_NEAR(found.levels + found.share, host, 1.0 / 32);
  }
  // What is less by chance only is not taken.
  const auto none =
      kindex::query::find_division(4, [](const kindex::WorkDivision& division) {
        return division == kindex::WorkDivision{} ? 10 : 9.8;
      });
  EXPECT_EQ(none, kindex::WorkDivision{});
  expect_divisions_are_found_and_checked<TreeOn<Exec>, Exec>();
}

TYPED_TEST(Hybrids, KernelsOfDividedSearches) {
  expect_kernels_of_divided_searches<TreeOn<TypeParam>, TypeParam>();
}

TYPED_TEST(Hybrids, DividedSearchesAboveAllKeys) {
  expect_divided_searches_above_all_keys<TreeOn<TypeParam>, TypeParam>();
}

TYPED_TEST(Hybrids, TreesSayWhatTheyHold) {
  using Exec = TypeParam;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 20000; ++i) keys.push_back(i * i);
  const auto given = to_device<Host>(keys);
  const TreeOn<Exec> index(Exec{}, kindex::sorted, given, kindex::Check::on,
                           BPlusTreeOptions{kindex::NodeSearch::scalar});
  const kindex::BPlusTree<std::uint64_t, std::uint32_t, Kokkos::HostSpace>
      on_host(Host{}, kindex::sorted, given);
  constexpr bool is_shared =
      std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>;
  EXPECT_EQ(index.size(), 20000u);
  EXPECT_EQ(index.height(), on_host.height());
  EXPECT_EQ(index.node_search(), kindex::NodeSearch::scalar);
  EXPECT_EQ(index.leaf_bytes(), on_host.leaf_bytes());
  EXPECT_EQ(index.inner_bytes(), on_host.inner_bytes());
  EXPECT_EQ(index.memory_bytes(),
            on_host.memory_bytes() + (is_shared ? 0 : on_host.inner_bytes()));
  static_assert(
      std::is_same_v<decltype(HybridBPlusTree(Exec{}, kindex::sorted, given)),
                     TreeOn<Exec>>);
  expect_error(
      [&] {
        const TreeOn<Exec> refused(
            Exec{}, given,
            BPlusTreeOptions{static_cast<kindex::NodeSearch>(99)});
      },
      {"BPlusTree", "options.node_search"});
}

/// Positions of large indexes come rounded down.
TYPED_TEST(Hybrids, TreesEndSearchesFromEarlierLeaves) {
  if (!std::is_same_v<TypeParam, Host>) GTEST_SKIP() << "a test of the host";
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 1000; ++i) keys.push_back(10 * (i / 3));
  const TreeOn<Host> index(Host{}, kindex::sorted, to_device<Host>(keys));
  const auto ref = index.ref();
  for (std::uint64_t q = 0; q < 3400; ++q) {
    const std::uint64_t asked[1] = {q};
    const size_type rank =
        std::lower_bound(keys.begin(), keys.end(), q) - keys.begin();
    for (const size_type back : {0, 8, 64, 1000}) {
      size_type positions[1] = {(rank > back ? rank - back : 0) / 8 * 8};
      ref.template finish<false>(kindex::query::SingleLane(), asked, positions);
      ASSERT_EQ(positions[0], rank) << q << ", " << back;
    }
  }
}

// ---- guesses, whatever they are ---------------------------------------------

/// Says anything.
struct WildRouter {
  using pinned_type = int;
  static constexpr int lanes = 1;
  size_type spread;
  size_type pinned_size(int, size_type) const { return 0; }
  KOKKOS_FUNCTION int pinned_key(size_type) const { return 0; }
  template <class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void route(const Group&, const Top&, const int (&keys)[Own],
                             Index (&guesses)[Own]) const {
    for (int o = 0; o < Own; ++o)
      guesses[o] = static_cast<Index>(static_cast<size_type>(keys[o]) *
                                      0x9E3779B97F4A7C15U % spread);
  }
};

/// A LearnedIndex on the host, and guesses from elsewhere.
template <class Exec>
class WildIndex
    : public kindex::query::BulkQueries<WildIndex<Exec>, int, std::uint32_t,
                                        typename Exec::memory_space,
                                        kindex::query::Hybrid> {
 public:
  using OnHost =
      kindex::LearnedIndex<int, std::uint32_t, Kokkos::HostSpace, SoA>;
  using Ref = typename OnHost::Ref;
  static constexpr const char* name() { return "WildIndex"; }
  WildIndex(const OnHost& index, size_type spread)
      : index_(index), spread_(spread) {}
  size_type size() const { return index_.size(); }
  Ref ref() const { return index_.ref(); }
  WildRouter router() const { return {spread_}; }

 private:
  OnHost index_;
  size_type spread_;
};

TYPED_TEST(Hybrids, WrongGuessesCostTimeOnly) {
  using Exec = TypeParam;
  Failures failures;
  for (const auto& [name, keys] : key_sets<int>(2000)) {
    auto queries = queries_around(keys);
    queries.resize(std::min<std::size_t>(queries.size(), 1500));
    const Asked<Host, int> asked(name, keys, queries);
    const typename WildIndex<Exec>::OnHost on_host(Host{}, kindex::sorted,
                                                   asked.device_keys);
    for (const size_type spread :
         {size_type{1}, size_type{100}, size_type{2000}, ~size_type{0}})
      failures += check_verbs(Exec{}, WildIndex<Exec>(on_host, spread), asked,
                              "spread " + std::to_string(spread));
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// Guesses the middle of what a key of 2^20 ranks covers.
struct CoarseRouter {
  using pinned_type = int;
  static constexpr int lanes = 1;
  size_type pinned_size(int, size_type) const { return 0; }
  KOKKOS_FUNCTION int pinned_key(size_type) const { return 0; }
  template <class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void route(const Group&, const Top&,
                             const std::uint32_t (&keys)[Own],
                             Index (&guesses)[Own]) const {
    for (int o = 0; o < Own; ++o)
      guesses[o] = (static_cast<Index>(keys[o]) << 20) + 12345;
  }
};

/// Believes every guess.
struct TrustingRef
    : kindex::query::RefVerbs<TrustingRef, std::uint32_t, size_type> {
  static constexpr int lanes = 1, most_lanes = 1;
  static constexpr bool sorting_pays = false, is_contiguous = true;
  size_type entries;
  KOKKOS_FUNCTION size_type size() const { return entries; }
  KOKKOS_FUNCTION size_type rank_of(size_type position) const {
    return position;
  }
  KOKKOS_FUNCTION size_type value_at(size_type position) const {
    return position + 1;
  }
  template <bool finds, class Group, int Own>
  KOKKOS_FUNCTION void finish(const Group&, const std::uint32_t (&)[Own],
                              size_type (&)[Own]) const {}
};

template <class Exec>
class TrustingIndex
    : public kindex::query::BulkQueries<TrustingIndex<Exec>, std::uint32_t,
                                        size_type, typename Exec::memory_space,
                                        kindex::query::Hybrid> {
 public:
  static constexpr const char* name() { return "TrustingIndex"; }
  explicit TrustingIndex(size_type size) : size_(size) {}
  size_type size() const { return size_; }
  TrustingRef ref() const {
    TrustingRef ref;
    ref.entries = size_;
    return ref;
  }
  CoarseRouter router() const { return {}; }

 private:
  size_type size_;
};

/// What the device says is what the host begins with: all of it up to 2^32
/// entries, and from there on but for the bits that do not fit.
TYPED_TEST(Hybrids, GuessesReachTheHost) {
  using Exec = TypeParam;
  const std::size_t m = 1000;
  const HostBatches batches(Exec{}, PipelineOptions().set_bucket_size(300));
  struct Case {
    size_type size, most_key;
    int lost;
  };
  for (const auto& [size, most_key, lost] :
       {Case{size_type{1} << 31, 2000, 0}, Case{~std::uint32_t{0}, 4000, 0},
        Case{size_type{1} << 32, 4000, 1}, Case{size_type{1} << 40, 1 << 19, 9},
        Case{(size_type{1} << 40) - 1, 1 << 19, 8}}) {
    SCOPED_TRACE(size);
    const TrustingIndex<Exec> index(size);
    std::mt19937 rng(5);
    std::vector<std::uint32_t> lo, hi;
    Ranks first, upper, counts, found;
    const auto guess_of = [&, shift = lost](std::uint32_t key) {
      return ((size_type{key} << 20) + 12345) >> shift << shift;
    };
    for (std::size_t i = 0; i < m; ++i) {
      lo.push_back(static_cast<std::uint32_t>(rng() % most_key));
      hi.push_back(lo.back() + static_cast<std::uint32_t>(rng() % 5));
      first.push_back(guess_of(lo[i]));
      upper.push_back(guess_of(lo[i] + 1));
      found.push_back(first[i] + 1);
      counts.push_back(guess_of(hi[i] + 1) - first[i]);
    }
    const auto queries = to_device<Host>(lo), ends = to_device<Host>(hi);
    const auto out = filled<size_type, Host>(m),
               more = filled<size_type, Host>(m);
    index.lower_bound(batches, queries, out);
    EXPECT_TRUE(to_host(out) == first);
    index.upper_bound(batches, queries, out);
    EXPECT_TRUE(to_host(out) == upper);
    index.find(batches, queries, out);
    EXPECT_TRUE(to_host(out) == found);
    index.equal_range(batches, queries, out, more);
    EXPECT_TRUE(to_host(out) == first);
    EXPECT_TRUE(to_host(more) == upper);
    index.range_count(batches, queries, ends, out);
    EXPECT_TRUE(to_host(out) == counts);
  }
}

}  // namespace
}  // namespace kindex_test
