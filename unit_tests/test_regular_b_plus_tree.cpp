// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RegularBPlusTree: batches of operations against std::multimap, readers while
// they go on, and what they do to nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <kindex/BPlusTree.hpp>
#include <kindex/RegularBPlusTree.hpp>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/Asked.hpp"
#include "support/Devices.hpp"
#include "support/Divisions.hpp"
#include "support/Errors.hpp"
#include "support/FailingAllocation.hpp"
#include "support/HostViews.hpp"
#include "support/Keys.hpp"
#include "support/Recorder.hpp"

namespace kindex_test {
namespace {

using kindex::RegularBPlusTreeOptions;
using kindex::UpdateMethod;
using kindex::UpdateOptions;
using kindex::UpdateReport;
using kindex::WorkDivision;
using kindex::query::Hybrid;

using Host = Kokkos::DefaultHostExecutionSpace;
using Value = std::uint32_t;
template <class Key>
using Tree = kindex::RegularBPlusTree<Key, Value, Kokkos::HostSpace>;
template <class Key, class Exec>
using HybridTree =
    kindex::RegularBPlusTree<Key, Value, typename Exec::memory_space, Hybrid>;

UpdateOptions by(UpdateMethod method, size_type group_size = 1 << 14) {
  UpdateOptions options;
  options.method = method;
  options.group_size = group_size;
  return options;
}

RegularBPlusTreeOptions filled_to(double fill) {
  RegularBPlusTreeOptions options;
  options.fill = fill;
  return options;
}

// ---- against std::multimap --------------------------------------------------

/// An index, and what it should be.
template <class IndexType, class ExecType = Host>
struct Pair {
  using Index = IndexType;
  using Exec = ExecType;
  using Key = typename Index::key_type;
  struct Less {
    bool operator()(const Key& a, const Key& b) const {
      return Keys<Key>::less(a, b);
    }
  };

  Index index;
  std::multimap<Key, Value, Less> expected;
  Value next = 0;  // value, so that all are different

  std::vector<Value> values_for(std::size_t n) {
    std::vector<Value> values(n);
    for (Value& value : values) value = ++next;
    return values;
  }

  UpdateReport insert(const std::vector<Key>& keys,
                      const UpdateOptions& options) {
    const auto values = values_for(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
      expected.emplace(keys[i], values[i]);
    return index.insert(Exec{}, to_device<Host>(keys), to_device<Host>(values),
                        options);
  }
  UpdateReport erase(const std::vector<Key>& keys,
                     const UpdateOptions& options) {
    for (const Key& key : keys) expected.erase(key);
    return index.erase(Exec{}, to_device<Host>(keys), options);
  }
  UpdateReport update(const std::vector<Key>& keys,
                      const UpdateOptions& options) {
    const auto values = values_for(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto range = expected.equal_range(keys[i]);
      for (auto at = range.first; at != range.second; ++at)
        at->second = values[i];
    }
    return index.update(Exec{}, to_device<Host>(keys), to_device<Host>(values),
                        options);
  }

  /// Every entry, in order, and searches for some keys.
  void expect_equal(const std::string& when) const {
    std::vector<Key> keys;
    std::vector<Value> values;
    for (const auto& [key, value] : expected) {
      keys.push_back(key);
      values.push_back(value);
    }
    ASSERT_EQ(index.size(), keys.size()) << when;
    ASSERT_EQ(index.empty(), keys.empty()) << when;
    const auto lo = to_device<Host>(std::vector<Key>{Keys<Key>::min()});
    const auto hi = to_device<Host>(std::vector<Key>{Keys<Key>::max()});
    const auto hits = index.range(Exec{}, lo, hi, kindex::with_keys);
    ASSERT_TRUE(to_host(hits.keys) == keys) << when;
    ASSERT_TRUE(to_host(hits.values) == values) << when;

    std::vector<Key> queries = Keys<Key>::extremes();
    std::mt19937_64 rng(keys.size());
    for (int i = 0; i < 60 && !keys.empty(); ++i) {
      const Key key = keys[rng() % keys.size()];
      for (const Key q : {key, Keys<Key>::below(key), Keys<Key>::above(key)})
        queries.push_back(q);
    }
    if (!keys.empty()) queries.push_back(keys.back());
    std::vector<size_type> lower, upper;
    std::vector<Value> first;
    for (const Key& q : queries) {
      const auto range =
          std::equal_range(keys.begin(), keys.end(), q, Keys<Key>::less);
      lower.push_back(range.first - keys.begin());
      upper.push_back(range.second - keys.begin());
      first.push_back(lower.back() == upper.back() ? ~Value{0}
                                                   : values[lower.back()]);
    }
    const auto asked = to_device<Host>(queries);
    const auto l = filled<size_type, Host>(queries.size());
    const auto u = filled<size_type, Host>(queries.size());
    const auto f = filled<Value, Host>(queries.size());
    index.find(Exec{}, asked, f);
    index.equal_range(Exec{}, asked, l, u);
    ASSERT_TRUE(to_host(f) == first) << when;
    ASSERT_TRUE(to_host(l) == lower) << when;
    ASSERT_TRUE(to_host(u) == upper) << when;
    const auto ref = index.ref();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      ASSERT_EQ(ref.find(queries[i]), first[i]) << when;
      ASSERT_EQ(ref.count(queries[i]), upper[i] - lower[i]) << when;
    }
    expect_same_on_device(when);
  }

  void expect_same_on_device(const std::string& when) const {
    ASSERT_EQ(index.snapshot().nodes_out_of_step(Exec{}), 0u) << when;
  }
};

enum class Pattern { random, few, ascending, descending, equal };

template <class Key>
std::vector<Key> draw(Pattern pattern, std::size_t n, std::size_t before,
                      std::mt19937_64& rng) {
  std::vector<Key> keys(n);
  for (std::size_t i = 0; i < n; ++i) {
    const int at = static_cast<int>(before + i);
    switch (pattern) {
      case Pattern::random: keys[i] = Keys<Key>::random(rng); break;
      case Pattern::few:
        keys[i] = Keys<Key>::of(static_cast<int>(rng() % 50));
        break;
      case Pattern::ascending: keys[i] = Keys<Key>::of(at); break;
      case Pattern::descending: keys[i] = Keys<Key>::of(-at); break;
      case Pattern::equal: keys[i] = Keys<Key>::of(7); break;
    }
  }
  return keys;
}

/// Batches of all kinds and sizes, from nothing, up and down again.
template <class P>
void expect_traces(const std::vector<std::size_t>& sizes, std::size_t largest) {
  using Key = typename P::Key;
  for (const auto method : {UpdateMethod::asynchronous,
                            UpdateMethod::synchronised, UpdateMethod::in_place})
    for (const auto pattern :
         {Pattern::random, Pattern::few, Pattern::ascending,
          Pattern::descending, Pattern::equal}) {
      P pair;
      std::mt19937_64 rng(static_cast<unsigned>(pattern));
      const auto how = by(method, 5000);
      UpdateReport all;
      for (int step = 0; step < 24; ++step) {
        const std::string when = "pattern " + std::to_string(int(pattern)) +
                                 ", method " + std::to_string(int(method)) +
                                 ", step " + std::to_string(step);
        const std::size_t n = sizes[rng() % sizes.size()];
        // More insertions at first, more erasures then.
        const auto kind = rng() % 10;
        const bool grows = step < 14;
        auto keys = draw<Key>(pattern, n, pair.next, rng);
        if (!pair.expected.empty() && pattern != Pattern::few &&
            (!grows || kind >= 7)) {
          // Most are there.
          std::vector<Key> present;
          for (const auto& entry : pair.expected)
            present.push_back(entry.first);
          for (std::size_t i = 0; i < n; ++i)
            if (rng() % 8 != 0) keys[i] = present[rng() % present.size()];
        }
        UpdateReport report;
        const size_type before = pair.expected.size();
        if (pair.expected.size() < largest && kind < (grows ? 7 : 3)) {
          report = pair.insert(keys, how);
          EXPECT_EQ(report.entries_added, n);
        } else if (kind < 8) {
          report = pair.erase(keys, how);
          EXPECT_EQ(report.entries_erased, before - pair.expected.size());
        } else {
          report = pair.update(keys, how);
          EXPECT_EQ(report.leaf_splits + report.leaf_merges, 0u);
        }
        EXPECT_EQ(report.operations, n);
        EXPECT_LE(report.deferred, n);
        all += report;
        ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
      }
      // Down to nothing, and up again.
      std::vector<Key> rest;
      for (const auto& entry : pair.expected) rest.push_back(entry.first);
      std::shuffle(rest.begin(), rest.end(), rng);
      all += pair.erase(rest, how);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal("emptied"));
      EXPECT_EQ(pair.index.height(), 0);
      all += pair.insert(rest, how);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal("refilled"));
      EXPECT_GT(all.leaves_written, 0u);
      EXPECT_EQ(all.nodes_in_place > 0, method == UpdateMethod::in_place);
      if (pattern != Pattern::few && largest > 5000) {
        EXPECT_GT(all.leaf_splits * all.leaf_merges, 0u) << int(pattern);
      }
    }
}

TEST(RegularBPlusTree, TracesWithKeysOf32Bits) {
  expect_traces<Pair<Tree<std::int32_t>>>({1, 7, 600, 3000}, 12000);
}

TEST(RegularBPlusTree, TracesWithKeysOf8Bits) {
  expect_traces<Pair<Tree<std::uint8_t>>>({1, 7, 600, 9000}, 30000);
}

TEST(RegularBPlusTree, TracesWithKeysOf128Bits) {
  expect_traces<Pair<Tree<kindex::Key128>>>({1, 7, 60, 2000}, 8000);
}

template <class Exec>
class RegularHybrids : public ::testing::Test {
 public:
  template <class Key>
  using Both = Pair<HybridTree<Key, Exec>, Exec>;
};

TYPED_TEST_SUITE(RegularHybrids, Devices, DeviceName);

TYPED_TEST(RegularHybrids, TracesWithKeysOf64Bits) {
  expect_traces<typename TestFixture::template Both<std::uint64_t>>(
      {1, 7, 600, 3000}, 12000);
}

TYPED_TEST(RegularHybrids, TracesWithFloatingPointKeys) {
  expect_traces<typename TestFixture::template Both<double>>({1, 7, 600, 3000},
                                                             12000);
}

/// One method after the other, while snapshots of some versions are held.
TYPED_TEST(RegularHybrids, MethodsTakeTurns) {
  using Key = std::uint64_t;
  using Both = typename TestFixture::template Both<Key>;
  using Snapshot = typename decltype(Both::index)::Snapshot;
  Both pair;
  std::mt19937_64 rng(45);
  pair.index = HybridTree<Key, TypeParam>(filled_to(0.5));
  struct Held {
    Snapshot snapshot;
    std::vector<Key> keys;
    std::vector<Value> values;
  };
  std::vector<Held> held;
  UpdateReport all;
  for (int step = 0; step < 150; ++step) {
    const auto method =
        std::array{UpdateMethod::asynchronous, UpdateMethod::synchronised,
                   UpdateMethod::in_place, UpdateMethod::automatic,
                   UpdateMethod::in_place}[rng() % 5];
    const auto how = by(method, 700);
    const std::size_t n = std::array{1, 5, 300, 2500}[rng() % 4];
    std::vector<Key> keys(n);
    for (Key& key : keys) key = rng() % 40000;
    const bool nobody_reads = held.empty();
    const auto kind = rng() % 5;
    const auto report = kind < (step < 90 ? 3 : 1) ? pair.insert(keys, how)
                        : kind < 4                 ? pair.erase(keys, how)
                                                   : pair.update(keys, how);
    all += report;
    if (!nobody_reads || method == UpdateMethod::asynchronous) {
      EXPECT_EQ(report.nodes_in_place, 0u);
    }
    const std::string when = "step " + std::to_string(step);
    if (step % 10 == 0) ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
    ASSERT_NO_FATAL_FAILURE(pair.expect_same_on_device(when));
    if (rng() % 8 == 0) {
      Held& one = held.emplace_back();
      one.snapshot = pair.index.snapshot();
      for (const auto& [key, value] : pair.expected) {
        one.keys.push_back(key);
        one.values.push_back(value);
      }
    }
    if (rng() % 6 == 0) {
      // Versions of which some are older than the newest.
      for (const Held& one : held) {
        const auto hits = one.snapshot.range(
            TypeParam{}, to_device<Host>(std::vector<Key>{0}),
            to_device<Host>(std::vector<Key>{40000}), kindex::with_keys);
        ASSERT_TRUE(to_host(hits.keys) == one.keys) << when;
        ASSERT_TRUE(to_host(hits.values) == one.values) << when;
      }
      // The newest, the oldest, or all.
      if (rng() % 3 == 0 && !held.empty()) held.pop_back();
      if (rng() % 3 == 0 && !held.empty()) held.erase(held.begin());
      if (rng() % 2 == 0) held.clear();
    }
  }
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("in the end"));
  EXPECT_GT(all.nodes_in_place, 100u);
  EXPECT_GT(all.leaf_splits * all.leaf_merges, 0u);
}

/// Groups that are just full or just not, and batches far larger than the tree.
TYPED_TEST(RegularHybrids, BatchesOfAllSizes) {
  using Both = typename TestFixture::template Both<std::uint64_t>;
  for (const auto method :
       {UpdateMethod::asynchronous, UpdateMethod::synchronised,
        UpdateMethod::in_place, UpdateMethod::automatic})
    for (const std::size_t n :
         {std::size_t{1}, std::size_t{7}, std::size_t{16383},
          std::size_t{16384}, std::size_t{16385}, std::size_t{100000}}) {
      Both pair;
      std::mt19937_64 rng(n);
      const auto how = by(method);
      const std::string when = std::to_string(n) + " operations, method " +
                               std::to_string(int(method));
      const auto keys = draw<std::uint64_t>(Pattern::random, n, 0, rng);
      auto report = pair.insert(keys, how);
      if (method == UpdateMethod::synchronised) {
        EXPECT_EQ(report.groups, (n + 16383) / 16384);
      }
      if (method == UpdateMethod::asynchronous) {
        EXPECT_EQ(report.groups, 1u);
      }
      if (method == UpdateMethod::automatic) {
        EXPECT_EQ(report.groups, 1u);  // one group, or all at once
      }
      EXPECT_GT(report.bytes_to_device, 0u);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
      pair.insert(draw<std::uint64_t>(Pattern::random, n, 0, rng), how);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
      pair.update(keys, how);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
      pair.erase(keys, how);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
    }
}

TYPED_TEST(RegularHybrids, AnswersAfterBuildsAtAnyFill) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  using Index = HybridTree<Key, Exec>;
  std::mt19937_64 rng(5);
  Failures failures;
  // A leaf, an inner node or a level just full, or just not.
  for (const size_type n : {1, 2, 511, 512, 513, 32767, 32768, 32769, 70001})
    for (const double fill : {1.0, 0.75, 0.3, 1e-3}) {
      if (n > 1000 && fill < 0.01) continue;
      auto keys = draw<Key>(Pattern::random, n, 0, rng);
      std::sort(keys.begin(), keys.end());
      auto queries = queries_around(keys);
      queries.resize(std::min<std::size_t>(queries.size(), 2000));
      const Asked<Host, Key> asked("random", keys, queries);
      const Index index(Exec{}, kindex::sorted, asked.device_keys,
                        kindex::Check::on, filled_to(fill));
      const auto per_leaf =
          std::max(size_type{1}, static_cast<size_type>(512 * fill));
      const size_type leaves = (n + per_leaf - 1) / per_leaf;
      EXPECT_EQ(index.leaf_bytes(), leaves * (512 * 12 + 4));
      EXPECT_EQ(index.snapshot().nodes_out_of_step(Exec{}), 0u);
      EXPECT_EQ(index.height() > 1, leaves > 1);
      EXPECT_EQ(index.device_bytes(),
                index.inner_bytes() -
                    (index.inner_bytes() - leaves * 576) / (576 + 256 + 4) * 4);
      failures +=
          check_bulk_answers(index, asked, std::to_string(fill), Exec{});
      failures += check_ref_answers(index, asked, std::to_string(fill));
    }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// Buckets that are full or not, and more of them than buffers.
TYPED_TEST(RegularHybrids, BucketsOfAllSizes) {
  using Exec = TypeParam;
  std::mt19937_64 rng(15);
  auto keys = draw<std::uint64_t>(Pattern::random, 50000, 0, rng);
  std::sort(keys.begin(), keys.end());
  auto queries = queries_around(keys);
  const HybridTree<std::uint64_t, Exec> index(Exec{}, kindex::sorted,
                                              to_device<Host>(keys));
  Failures failures;
  for (const size_type bucket : {16384, 64, 7, 1}) {
    queries.resize(std::min<std::size_t>(queries.size(), 50 * bucket + 3));
    const Asked<Host, std::uint64_t> asked("random", keys, queries);
    const kindex::HostBatches batches(
        Exec{}, kindex::PipelineOptions().set_bucket_size(bucket));
    failures +=
        check_bulk_answers(index, asked, std::to_string(bucket), batches);
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

template <class Index>
concept IsDivisible = requires(Index& index, WorkDivision division) {
  index.set_division(division);
};
// On hosts, there is nobody to divide work with.
static_assert(!IsDivisible<Tree<int>> &&
              IsDivisible<HybridTree<int, Kokkos::DefaultExecutionSpace>>);

template <class Key, class Exec>
void expect_any_division(Failures& failures) {
  std::mt19937_64 rng(25);
  auto keys = draw<Key>(Pattern::random, 20000, 0, rng);
  std::fill_n(keys.begin(), 300, keys[400]);
  std::sort(keys.begin(), keys.end(), Keys<Key>::less);
  auto queries = queries_around(keys);
  std::shuffle(queries.begin(), queries.end(), rng);
  queries.resize(700);
  for (const Key query : Keys<Key>::extremes()) queries.push_back(query);
  const Asked<Host, Key> asked("random", keys, queries);
  HybridTree<Key, Exec> index(Exec{}, kindex::sorted, asked.device_keys,
                              kindex::Check::on, filled_to(0.02));
  EXPECT_GE(index.height(), 3);
  for_each_division<Exec>(
      index, [&](const auto& batches, const std::string& how) {
        failures += check_bulk_answers(index, asked, how, batches);
      });
}

/// Whatever part of the inner nodes the host follows, of whatever share.
TYPED_TEST(RegularHybrids, AnswerHoweverWorkIsDivided) {
  Failures failures;
  expect_any_division<std::uint32_t, TypeParam>(failures);
  expect_any_division<std::uint64_t, TypeParam>(failures);
  expect_any_division<double, TypeParam>(failures);
  expect_any_division<kindex::Key128, TypeParam>(failures);
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// Trees that become lower than what the host was to follow, and higher.
TYPED_TEST(RegularHybrids, DivisionsOutliveLevels) {
  using Both = typename TestFixture::template Both<std::uint64_t>;
  Both pair;
  pair.index = HybridTree<std::uint64_t, TypeParam>(filled_to(0.02));
  std::mt19937_64 rng(35);
  const auto keys = draw<std::uint64_t>(Pattern::random, 60000, 0, rng);
  pair.insert(keys, {});
  const int height = pair.index.height();
  ASSERT_GE(height, 2);
  pair.index.set_division({height - 1, 0.5});
  const auto before = pair.index.snapshot();
  const auto expect = [&](const char* when) {
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
    EXPECT_EQ(pair.index.division(), (WorkDivision{height - 1, 0.5}));
  };
  expect("high");
  pair.erase({keys.begin() + 10, keys.end()}, {});
  EXPECT_LT(pair.index.height(), height);
  expect("low");
  pair.erase(keys, {});
  EXPECT_EQ(pair.index.height(), 0);
  expect("empty");
  pair.insert(keys, {});
  EXPECT_GE(pair.index.height(), height - 1);
  expect("high again");
  EXPECT_EQ(before.size(), keys.size());
  // Copies share entries, each with a division of its own.
  auto copy = pair.index;
  copy.set_division({});
  EXPECT_EQ(copy.division(), WorkDivision());
  EXPECT_EQ(pair.index.division(), (WorkDivision{height - 1, 0.5}));
}

TYPED_TEST(RegularHybrids, KernelsOfDividedSearches) {
  expect_kernels_of_divided_searches<HybridTree<std::uint64_t, TypeParam>,
                                     TypeParam>();
}

TYPED_TEST(RegularHybrids, DivisionsAreFound) {
  expect_divisions_are_found_and_checked<HybridTree<std::uint64_t, TypeParam>,
                                         TypeParam>();
}

TYPED_TEST(RegularHybrids, DividedSearchesAboveAllKeys) {
  expect_divided_searches_above_all_keys<HybridTree<std::uint64_t, TypeParam>,
                                         TypeParam>();
}

/// Ways that lines are searched never change a result.
TEST(RegularBPlusTree, SameInAllWays) {
  std::mt19937_64 rng(6);
  auto keys = draw<float>(Pattern::random, 40000, 0, rng);
  std::sort(keys.begin(), keys.end());
  const Asked<Host, float> asked("random", keys, queries_around(keys));
  Failures failures;
  for (const auto how :
       {kindex::NodeSearch::scalar, kindex::NodeSearch::linear_avx2,
        kindex::NodeSearch::hierarchical_avx2,
        kindex::NodeSearch::linear_avx512, kindex::NodeSearch::linear_neon}) {
    RegularBPlusTreeOptions options;
    options.node_search = how;
    options.pages = kindex::Pages::ordinary;
    if (!kindex::is_available(how)) {
      EXPECT_THROW(Tree<float>{options}, kindex::Error);
      continue;
    }
    const Tree<float> index(Host{}, kindex::sorted, asked.device_keys,
                            kindex::Check::on, options);
    EXPECT_EQ(index.node_search(), how);
    failures += check_bulk_answers(index, asked, kindex::name_of(how));
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

// ---- what operations mean ---------------------------------------------------

/// The result of a batch is that of its operations one after the other.
TEST(RegularBPlusTree, OneKeyManyTimesInABatch) {
  for (const auto method :
       {UpdateMethod::asynchronous, UpdateMethod::synchronised,
        UpdateMethod::in_place}) {
    Pair<Tree<std::int32_t>> pair;
    const auto how = by(method, 100);
    std::vector<std::int32_t> keys;
    for (int i = 0; i < 3000; ++i) keys.push_back(i % 3);
    pair.insert(keys, how);
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal("inserted"));
    EXPECT_EQ(pair.index.ref().find(0), 1u);  // the first that came
    pair.update({1, 2, 1, 5, 1}, how);
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal("updated"));
    EXPECT_EQ(pair.index.ref().find(1), 3005u);
    pair.erase({1, 1, 1, 9}, how);
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal("erased"));
    EXPECT_EQ(pair.index.size(), 2000u);
    pair.insert({1, 0, 1}, how);
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal("inserted again"));
  }
}

/// More equal keys than a leaf has places, between others.
TEST(RegularBPlusTree, DuplicatesLongerThanALeaf) {
  for (const auto method :
       {UpdateMethod::asynchronous, UpdateMethod::synchronised,
        UpdateMethod::in_place}) {
    Pair<Tree<std::int32_t>> pair;
    const auto how = by(method, 1500);
    std::mt19937_64 rng(9);
    for (int round = 0; round < 6; ++round) {
      std::vector<std::int32_t> keys(5000, 100);
      for (std::size_t i = 0; i < keys.size(); i += 3)
        keys[i] = static_cast<std::int32_t>(rng() % 200);
      pair.insert(keys, how);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal("inserted"));
      pair.update({100, 99, 101}, how);
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal("updated"));
    }
    pair.erase({99, 100}, how);
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal("erased"));
    pair.insert(std::vector<std::int32_t>(4000, 100), how);
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal("inserted again"));
  }
}

template <class Key>
void expect_extremes() {
  Pair<Tree<Key>> pair;
  const auto how = by(UpdateMethod::asynchronous);
  const auto extremes = Keys<Key>::extremes();
  for (int i = 0; i < 5; ++i) {
    pair.insert(extremes, how);
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal("extremes"));
  }
  // Leaves of nothing but the largest and the smallest.
  pair.insert(std::vector<Key>(2500, Keys<Key>::max()), how);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("largest"));
  pair.insert(std::vector<Key>(2500, Keys<Key>::min()), how);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("smallest"));
  pair.update({Keys<Key>::max(), Keys<Key>::min()}, how);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("updated"));
  pair.erase({Keys<Key>::max()}, how);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("without the largest"));
  pair.erase({Keys<Key>::min()}, how);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("without the smallest"));
  pair.erase(extremes, how);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("nothing"));
  EXPECT_TRUE(pair.index.empty());
}

TEST(RegularBPlusTree, ExtremeKeys) {
  expect_extremes<std::int32_t>();
  expect_extremes<float>();
  expect_extremes<kindex::Key128>();
}

// ---- nodes ------------------------------------------------------------------

/// Splits and joins of nodes on both levels, by count.
TEST(RegularBPlusTree, NodesSplitAndJoin) {
  constexpr int leaf = Tree<std::int32_t>::leaf_entries;
  constexpr int fan_out = Tree<std::int32_t>::fan_out;
  static_assert(leaf == 1024 && fan_out == 256);
  const auto how = by(UpdateMethod::asynchronous);
  Pair<Tree<std::int32_t>> pair;
  std::vector<std::int32_t> keys;
  for (int i = 0; i < leaf * fan_out; ++i) keys.push_back(2 * i);
  for (const auto key : keys) pair.expected.emplace(key, ++pair.next);
  pair.index = Tree<std::int32_t>(
      Host{}, kindex::sorted, to_device<Host>(keys), to_device<Host>([&] {
        std::vector<Value> values(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
          values[i] = static_cast<Value>(i + 1);
        return values;
      }()),
      kindex::Check::on, filled_to(1));
  ASSERT_EQ(pair.index.height(), 2);

  // Full: one more splits a leaf, which is one child too many.
  auto report = pair.insert({1001}, how);
  EXPECT_EQ(report.leaf_splits, 1u);
  EXPECT_EQ(report.leaf_merges, 0u);
  EXPECT_EQ(report.leaves_written, 2u);
  EXPECT_EQ(report.inner_splits, 1u);
  EXPECT_EQ(report.deferred, 1u);
  EXPECT_EQ(pair.index.height(), 3);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("split"));

  // There is room now.
  report = pair.insert({1003, 999, 1005}, how);
  EXPECT_EQ(report.leaf_splits + report.leaf_merges, 0u);
  EXPECT_EQ(report.deferred, 0u);
  EXPECT_EQ(report.inner_nodes_written, 2u);
  report = pair.update({0, 2, 4}, how);
  EXPECT_EQ(report.leaves_written, 1u);
  EXPECT_EQ(report.entries_updated, 3u);
  // What is not there changes nothing.
  report = pair.erase({1, 3, 5, -7, 1 << 30}, how);
  EXPECT_EQ(report.leaves_written, 0u);
  EXPECT_EQ(report.entries_erased, 0u);
  report = pair.update({1, 3, 5}, how);
  EXPECT_EQ(report.leaves_written, 0u);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("in place"));

  // A leaf that is nearly empty joins the next.
  std::vector<std::int32_t> some;
  for (int i = 20 * leaf; i < 21 * leaf - 3; ++i) some.push_back(2 * i);
  report = pair.erase(some, how);
  EXPECT_EQ(report.leaf_merges, 0u);  // which is full: two leaves again
  EXPECT_EQ(report.leaves_written, 2u);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("balanced"));
  some.clear();
  for (int i = 21 * leaf - 3; i < 22 * leaf - 5; ++i) some.push_back(2 * i);
  report = pair.erase(some, how);
  EXPECT_GE(report.leaf_merges, 1u);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("joined"));

  // Inner nodes, and the root in the end.
  some.assign(keys.begin() + 40 * leaf, keys.end() - 9);
  report = pair.erase(some, how);
  EXPECT_GE(report.leaf_merges, 200u);
  EXPECT_GE(report.inner_merges, 1u);
  EXPECT_EQ(pair.index.height(), 2);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("the root has become less"));
  some.assign(keys.begin() + 5, keys.end());
  pair.erase(some, how);
  EXPECT_EQ(pair.index.height(), 1);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("a leaf"));
}

/// What is written where it is, and what is not, by count.
TYPED_TEST(RegularHybrids, NodesChangeInPlace) {
  using Key = std::uint64_t;
  using Index = HybridTree<Key, TypeParam>;
  constexpr int leaf = Index::leaf_entries;
  static_assert(leaf == 512 && Index::fan_out == 64);
  const auto how = by(UpdateMethod::in_place);
  typename TestFixture::template Both<Key> pair;
  // A root above 3 nodes above 150 leaves, each full but for one place.
  std::vector<Key> keys;
  for (Key i = 0; i < 150 * (leaf - 1); ++i) keys.push_back(10 * i);
  for (const auto key : keys) pair.expected.emplace(key, pair.next++);
  pair.index = Index(TypeParam{}, kindex::sorted, to_device<Host>(keys),
                     kindex::Check::on, filled_to((leaf - 1 + 0.5) / leaf));
  --pair.next;
  ASSERT_EQ(pair.index.height(), 3);
  const auto position = [&](Key key) {
    const auto ref = pair.index.ref();
    return ref.position_of(ref.lower_bound(key));
  };
  const auto expect = [&](const UpdateReport& report, size_type in_place,
                          size_type leaves, size_type inner, const char* when) {
    EXPECT_EQ(report.nodes_in_place, in_place) << when;
    EXPECT_EQ(report.leaves_written, leaves) << when;
    EXPECT_EQ(report.inner_nodes_written, inner) << when;
    const bool has_values_only = report.entries_updated > 0;
    EXPECT_EQ(report.bytes_to_device > 0, leaves > 0 && !has_values_only)
        << when;
    ASSERT_NO_FATAL_FAILURE(pair.expect_equal(when));
  };
  // Values, in two leaves: no key moves.
  const size_type before = position(keys[5 * leaf]);
  expect(pair.update({keys[3], keys[5 * leaf], 7}, how), 2, 2, 0, "values");
  EXPECT_EQ(position(keys[5 * leaf]), before);
  // There is a place, and the leaf's largest key stays.
  expect(pair.insert({keys[5 * leaf] - 1}, how), 1, 1, 0, "inserted");
  EXPECT_EQ(position(keys[5 * leaf]), before + 1);
  // The largest key of a leaf is one of its parent's.
  const Key largest = keys[leaf - 2];
  expect(pair.erase({largest}, how), 2, 1, 1, "largest erased");
  // That of the last leaf below a node is one of the node above, too: 50 each.
  const Key last = keys[50 * (leaf - 1) - 1];
  expect(pair.erase({last}, how), 3, 1, 2, "last of a node");
  // Above all.
  expect(pair.insert({keys.back() + 1}, how), 3, 1, 2, "above all");
  // What is not there.
  expect(pair.erase({1, 2, 3}, how), 0, 0, 0, "nothing");
  expect(pair.update({1, 2, 3}, how), 0, 0, 0, "nothing");
  // Two leaves for one that is full: only they are in other places.
  auto report = pair.insert({keys[5 * leaf] - 2, keys[5 * leaf] - 3}, how);
  EXPECT_EQ(report.leaf_splits, 1u);
  EXPECT_EQ(report.deferred, 2u);
  expect(report, 1, 2, 1, "split");
  // One that is emptied, the next that shares with a third: all but their
  // parent are in other places.
  std::vector<Key> some(keys.begin() + 60 * (leaf - 1),
                        keys.begin() + 62 * (leaf - 1) - 50);
  report = pair.erase(some, how);
  EXPECT_EQ(report.leaf_merges, 1u);
  EXPECT_EQ(report.leaf_splits, 0u);
  expect(report, 1, 2, 1, "joined");

  // Whoever reads, whatever version: nothing is written where it is.
  {
    const auto newest = pair.index.snapshot();
    const auto value = newest.ref().find(keys[3]);
    report = pair.update({keys[3]}, how);
    EXPECT_EQ(report.nodes_in_place, 0u);
    const auto copy = newest;
    report = pair.update({keys[3]}, by(UpdateMethod::automatic));
    EXPECT_EQ(report.nodes_in_place, 0u);
    EXPECT_EQ(copy.ref().find(keys[3]), value);
    EXPECT_EQ(pair.index.ref().find(keys[3]), pair.next);
  }
  report = pair.update({keys[3]}, by(UpdateMethod::automatic));
  EXPECT_EQ(report.nodes_in_place, 1u);
  // A root that splits is a new one.
  std::vector<Key> many;
  for (Key i = 0; i < 70 * 70 * leaf; ++i) many.push_back(10 * i + 5);
  report = pair.insert(many, how);
  EXPECT_EQ(report.nodes_in_place, 0u);
  EXPECT_EQ(pair.index.height(), 4);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("higher"));
}

/// Nearly all of a batch is resolved in leaves.
TEST(RegularBPlusTree, MostOperationsNeedNoSplit) {
  std::mt19937_64 rng(4);
  const auto keys = draw<std::uint64_t>(Pattern::random, 400000, 0, rng);
  const auto more = draw<std::uint64_t>(Pattern::random, 16384, 0, rng);
  for (const auto method :
       {UpdateMethod::asynchronous, UpdateMethod::in_place}) {
    Tree<std::uint64_t> index(Host{}, to_device<Host>(keys));
    const auto report =
        index.insert(Host{}, to_device<Host>(more),
                     to_device<Host>(std::vector<Value>(16384, 1)), by(method));
    EXPECT_LE(report.deferred, report.operations / 100);
    EXPECT_EQ(report.nodes_in_place > 0, method == UpdateMethod::in_place);
  }
}

/// A root is never left with one child.
TEST(RegularBPlusTree, TreesBecomeLower) {
  for (const auto method : {UpdateMethod::asynchronous, UpdateMethod::in_place,
                            UpdateMethod::synchronised})
    for (const std::uint64_t left : {10, 700, 20000}) {
      Pair<Tree<std::uint64_t>> pair;
      std::vector<std::uint64_t> keys(100000);
      std::iota(keys.begin(), keys.end(), std::uint64_t{0});
      pair.insert(keys, by(method));
      ASSERT_EQ(pair.index.height(), 3);
      keys.erase(keys.begin(), keys.begin() + static_cast<long>(left));
      pair.erase(keys, by(method));
      EXPECT_EQ(pair.index.height(), left == 10 ? 1 : 2) << left;
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal("lower"));
    }
}

TEST(RegularBPlusTree, PagesAreReported) {
  std::vector<std::uint64_t> keys(1 << 21);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  const auto build = [&](kindex::Pages pages) {
    RegularBPlusTreeOptions options;
    options.pages = pages;
    return Tree<std::uint64_t>(Host{}, kindex::sorted, to_device<Host>(keys),
                               kindex::Check::on, options);
  };
  const auto ordinary = build(kindex::Pages::ordinary);
  const auto huge = build(kindex::Pages::huge);
  EXPECT_EQ(ordinary.huge_page_bytes(), 0u);
  EXPECT_LE(huge.huge_page_bytes(), huge.memory_bytes());
  // As of trees whose pages are known to be reported.
  const kindex::BPlusTree<std::uint64_t, std::uint32_t, Kokkos::HostSpace>
      other(Host{}, kindex::sorted, to_device<Host>(keys));
  EXPECT_EQ(huge.huge_page_bytes() > 0, other.huge_page_bytes() > 0);
  if (huge.huge_page_bytes() > 0) {
    EXPECT_GE(huge.huge_page_bytes(), huge.leaf_bytes() / 2);
  }
  EXPECT_EQ(Tree<std::uint64_t>().huge_page_bytes(), 0u);
}

/// What comes out is the same whoever did it: node by node.
TEST(RegularBPlusTree, SameByOneThreadOrAll) {
  std::mt19937_64 rng(8);
  Pair<Tree<std::uint64_t>> all, one;
  for (int step = 0; step < 12; ++step) {
    auto keys = draw<std::uint64_t>(Pattern::random, 20000, 0, rng);
    for (auto& key : keys) key %= 30000;
    const auto change = [&](auto& pair, UpdateMethod method) {
      const auto how = by(method, 1 << 20);
      return step % 3 == 2   ? pair.erase(keys, how)
             : step % 3 == 1 ? pair.update(keys, how)
                             : pair.insert(keys, how);
    };
    const auto a = change(all, UpdateMethod::asynchronous);
    const auto b = change(one, UpdateMethod::synchronised);
    EXPECT_EQ(a.leaves_written, b.leaves_written);
    EXPECT_EQ(a.inner_nodes_written, b.inner_nodes_written);
    EXPECT_EQ(a.leaf_splits, b.leaf_splits);
    EXPECT_EQ(a.leaf_merges, b.leaf_merges);
    EXPECT_EQ(a.deferred, b.deferred);
    ASSERT_NO_FATAL_FAILURE(all.expect_equal("all"));
    ASSERT_NO_FATAL_FAILURE(one.expect_equal("one"));
    // Positions are numbers of nodes and places in them.
    const auto ref_a = all.index.ref();
    const auto ref_b = one.index.ref();
    for (size_type rank = 0; rank < ref_a.size(); rank += 37)
      ASSERT_EQ(ref_a.position_of(rank), ref_b.position_of(rank));
  }
}

TYPED_TEST(RegularHybrids, NodesAreUsedAgain) {
  typename TestFixture::template Both<std::uint64_t> pair;
  std::mt19937_64 rng(3);
  auto keys = draw<std::uint64_t>(Pattern::random, 30000, 0, rng);
  pair.insert(keys, {});
  for (int round = 0; round < 3; ++round)
    pair.update(keys, by(UpdateMethod::asynchronous));
  const size_type bytes = pair.index.memory_bytes();
  for (int round = 0; round < 20; ++round) {
    pair.update(keys, by(round % 2 == 0 ? UpdateMethod::asynchronous
                                        : UpdateMethod::synchronised,
                         3000));
    const auto some = std::vector<std::uint64_t>(
        keys.begin() + 1000 * round, keys.begin() + 1000 * (round + 1));
    pair.erase(some, {});
    pair.insert(some, {});
  }
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("after many"));
  EXPECT_LE(pair.index.memory_bytes(), 4 * bytes);
  // Versions that are held keep theirs.
  std::vector<typename decltype(pair.index)::Snapshot> held;
  std::vector<Value> values;
  for (int round = 0; round < 12; ++round) {
    held.push_back(pair.index.snapshot());
    values.push_back(held.back().ref().find(keys[5]));
    pair.update(keys, {});
  }
  EXPECT_GT(pair.index.memory_bytes(), 5 * bytes);
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(held[i].ref().find(keys[5]), values[i]);
    EXPECT_EQ(held[i].size(), keys.size());
  }
}

// ---- readers ----------------------------------------------------------------

/// Counts the keys that stay, and notes what is out of order or wrong.
struct ScanStayers {
  size_type* touched;
  int* last;
  bool* right;
  template <class Key>
  KOKKOS_FUNCTION void operator()(const Key& key, Value value) const {
    const int at = static_cast<int>(key);
    *right = *right && *last < at;
    *last = at;
    if (at % 4 != 0) return;
    ++*touched;
    *right = *right && value == Value(at);
  }
};

/// While batches go on, readers see each key that nobody touches, one of the
/// values of those that are updated, and all of a group or nothing.
template <class Index, class Exec>
void expect_readers_are_right(UpdateMethod method, size_type group) {
  using Key = typename Index::key_type;
  constexpr int n = 20000, rounds = 25;
  // Of four keys: the first stays, the second is updated, the third comes and
  // goes, the fourth is never there.
  std::vector<Key> keys, stay, change, come;
  std::vector<Value> values;
  for (int i = 0; i < n; ++i) {
    const Key key = Keys<Key>::of(i);
    if (i % 4 < 2) {
      keys.push_back(key);
      values.push_back(i % 4 == 0 ? static_cast<Value>(i) : 0);
    }
    if (i % 4 == 0) stay.push_back(key);
    if (i % 4 == 1) change.push_back(key);
    if (i % 4 == 2) come.push_back(key);
  }
  Index index(Exec{}, kindex::sorted, to_device<Host>(keys),
              to_device<Host>(values));
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0, seen = 0;
  std::vector<std::thread> readers;
  const auto all_at_once = group >= change.size();
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&, r] {
      std::mt19937_64 rng(r);
      Value newest = 0;
      while (!done || seen < 3) {
        const auto snapshot = index.snapshot();
        const auto ref = snapshot.ref();
        bool right = ref.size() >= keys.size();
        const Value first = ref.find(change[0]);
        right = right && first >= newest && first <= rounds;
        newest = first;
        for (int i = 0; i < 200; ++i) {
          const auto at = rng() % stay.size();
          right = right && ref.find(stay[at]) == 4 * at;
          const Value value = ref.find(change[rng() % change.size()]);
          right = right && value <= rounds && (!all_at_once || value == first);
          right = right && !ref.contains(Keys<Key>::of(int(4 * at + 3)));
        }
        // A scan over all leaves: in order, and nothing is lost or doubled.
        size_type touched = 0;
        int last = -1;
        ref.for_each_in_range(stay.front(), stay.back(),
                              ScanStayers{&touched, &last, &right});
        right = right && touched == stay.size();
        // By the verbs of the index itself, in bulk.
        if (r == 0) {
          const auto found = filled<Value, Host>(stay.size());
          index.find(Exec{}, to_device<Host>(stay), found);
          const auto got = elements_of(found);
          for (std::size_t i = 0; i < got.size(); ++i)
            right = right && got[i] == 4 * i;
          const auto counts = filled<size_type, Host>(stay.size());
          index.count(Exec{}, to_device<Host>(stay), counts);
          for (const size_type count : elements_of(counts))
            right = right && count == 1;
        }
        if (!right) ++wrong;
        ++seen;
      }
    });
  const auto how = by(method, group);
  const auto device_change = to_device<Host>(change);
  const auto device_come = to_device<Host>(come);
  for (int round = 1; round <= rounds; ++round) {
    index.update(Exec{}, device_change,
                 to_device<Host>(std::vector<Value>(change.size(), round)),
                 how);
    index.insert(Exec{}, device_come,
                 to_device<Host>(std::vector<Value>(come.size(), round)), how);
    index.erase(Exec{}, device_come, how);
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(index.size(), keys.size());
  EXPECT_EQ(index.snapshot().nodes_out_of_step(Exec{}), 0u);
}

TYPED_TEST(RegularHybrids, ReadersDuringSynchronisedUpdates) {
  using Exec = TypeParam;
  using Index = HybridTree<std::uint64_t, Exec>;
  expect_readers_are_right<Index, Exec>(UpdateMethod::synchronised, 300);
  expect_readers_are_right<Index, Exec>(UpdateMethod::synchronised, 1 << 14);
}

TYPED_TEST(RegularHybrids, ReadersDuringAsynchronousUpdates) {
  using Exec = TypeParam;
  using Index = HybridTree<std::uint64_t, Exec>;
  expect_readers_are_right<Index, Exec>(UpdateMethod::asynchronous, 1 << 14);
}

/// Which wait, or are waited for by none.
TYPED_TEST(RegularHybrids, ReadersDuringUpdatesInPlace) {
  using Exec = TypeParam;
  using Index = HybridTree<std::uint64_t, Exec>;
  expect_readers_are_right<Index, Exec>(UpdateMethod::in_place, 1 << 14);
  expect_readers_are_right<Index, Exec>(UpdateMethod::automatic, 1 << 14);
}

TEST(RegularBPlusTree, ReadersOnTheHost) {
  expect_readers_are_right<Tree<std::int32_t>, Host>(UpdateMethod::synchronised,
                                                     300);
}

TEST(RegularBPlusTree, WritersFollowEachOther) {
  Pair<Tree<std::uint64_t>> pair;
  std::vector<std::vector<std::uint64_t>> parts(4);
  for (std::uint64_t i = 0; i < 40000; ++i) parts[i % 4].push_back(i);
  std::vector<std::thread> writers;
  for (const auto& part : parts)
    writers.emplace_back([&] {
      const auto keys = to_device<Host>(part);
      const auto values = to_device<Host>(std::vector<Value>(part.size(), 1));
      pair.index.insert(Host{}, keys, values,
                        by(UpdateMethod::synchronised, 1000));
    });
  for (auto& writer : writers) writer.join();
  for (std::uint64_t i = 0; i < 40000; ++i) pair.expected.emplace(i, 1);
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("four writers"));
}

// ---- the rest ---------------------------------------------------------------

TEST(RegularBPlusTree, CopiesShareAndSnapshotsStay) {
  Tree<std::uint64_t> index;
  const Tree<std::uint64_t> copy = index;
  const auto nothing = index.snapshot();
  const auto keys = to_device<Host>(std::vector<std::uint64_t>{3, 1, 2});
  const auto values = to_device<Host>(std::vector<Value>{30, 10, 20});
  index.insert(Host{}, keys, values);
  EXPECT_EQ(copy.size(), 3u);
  EXPECT_EQ(copy.ref().find(2), 20u);
  EXPECT_EQ(nothing.size(), 0u);
  EXPECT_FALSE(nothing.ref().contains(2));
  const auto three = copy.snapshot();
  index.erase(Host{}, keys);
  EXPECT_TRUE(copy.empty());
  EXPECT_EQ(three.size(), 3u);
  EXPECT_EQ(three.ref().find(3), 30u);
  EXPECT_EQ(three.ref().key(0), 1u);

  Tree<std::uint64_t> from = index;
  Tree<std::uint64_t> to = std::move(from);
  EXPECT_EQ(from.size(), 0u);
  EXPECT_EQ(from.memory_bytes(), 0u);
  EXPECT_EQ(from.height(), 0);
  EXPECT_FALSE(from.ref().contains(1));
  from.insert(Host{}, keys, values);  // an index of its own
  EXPECT_EQ(from.size(), 3u);
  EXPECT_EQ(to.size(), 0u);
}

TYPED_TEST(RegularHybrids, RefuseBadInput) {
  using Exec = TypeParam;
  using Index = HybridTree<double, Exec>;
  typename TestFixture::template Both<double> pair;
  std::mt19937_64 rng(2);
  pair.insert(draw<double>(Pattern::random, 5000, 0, rng), {});
  auto keys = draw<double>(Pattern::random, 100, 0, rng);
  keys[71] = std::numeric_limits<double>::quiet_NaN();
  const auto bad = to_device<Host>(keys);
  const auto values = to_device<Host>(std::vector<Value>(100, 1));
  const auto few = to_device<Host>(std::vector<Value>(99, 1));
  const auto good = to_device<Host>(std::vector<double>(100, 1));
  for (const auto method :
       {UpdateMethod::asynchronous, UpdateMethod::synchronised,
        UpdateMethod::in_place}) {
    const auto how = by(method, 10);
    const std::string at = "keys(71) is not a number";
    expect_error([&] { pair.index.insert(Exec{}, bad, values, how); },
                 {"kindex::RegularBPlusTree::insert", at});
    expect_error([&] { pair.index.update(Exec{}, bad, values, how); },
                 {"kindex::RegularBPlusTree::update", at});
    expect_error([&] { pair.index.erase(Exec{}, bad, how); },
                 {"kindex::RegularBPlusTree::erase", at});
    expect_error([&] { pair.index.insert(Exec{}, good, few, how); },
                 {"kindex::RegularBPlusTree::insert",
                  "values has 99 elements for 100 keys"});
    expect_error([&] { pair.index.erase(Exec{}, good, by(method, 0)); },
                 {"kindex::RegularBPlusTree::erase", "options.group_size"});
  }
  ASSERT_NO_FATAL_FAILURE(pair.expect_equal("after errors"));
  expect_error([&] { const Index index(Exec{}, bad); },
               {"kindex::RegularBPlusTree", "keys(71)"});
  for (const double fill :
       {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()})
    expect_error([&] { const Index index(Exec{}, good, filled_to(fill)); },
                 {"kindex::RegularBPlusTree", "options.fill"});
  RegularBPlusTreeOptions options;
  options.node_search = static_cast<kindex::NodeSearch>(99);
  expect_error([&] { const Index index(Exec{}, good, options); },
               {"kindex::RegularBPlusTree", "options.node_search"});
  expect_error(
      [&] {
        const Index index(Exec{}, kindex::sorted,
                          to_device<Host>(std::vector<double>{1, 3, 2}));
      },
      {"kindex::RegularBPlusTree", "keys(2)"});
}

/// Wherever memory runs out, a batch, or a group of it, is whole or not there.
TYPED_TEST(RegularHybrids, MemoryRunsOut) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  typename TestFixture::template Both<Key> pair;
  std::mt19937_64 rng(12);
  auto keys = draw<Key>(Pattern::random, 40000, 0, rng);
  std::sort(keys.begin(), keys.end());
  const auto build = [&] {
    pair.next = 0;
    pair.expected.clear();
    const auto values = pair.values_for(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
      pair.expected.emplace(keys[i], values[i]);
    pair.index = HybridTree<Key, Exec>(
        Exec{}, kindex::sorted, to_device<Host>(keys), to_device<Host>(values),
        kindex::Check::on, filled_to(1));
    // Makes room, but not enough for what follows.
    pair.update({keys[5]}, by(UpdateMethod::asynchronous));
  };
  const auto more = draw<Key>(Pattern::random, 2000, 0, rng);
  const auto device_more = to_device<Host>(more);
  for (const auto how :
       {by(UpdateMethod::asynchronous), by(UpdateMethod::in_place),
        by(UpdateMethod::synchronised), by(UpdateMethod::synchronised, 500)}) {
    int lost = 0;
    bool is_reached = true;
    for (int i = 0; is_reached; ++i) {
      // Where there is no room for twice as much, less may do.
      const int failures = i / 2;
      const bool all_later = i % 2 == 1;
      build();
      const auto values = pair.values_for(more.size());
      const auto device_values = to_device<Host>(values);
      bool failed = false;
      {
        const FailingAllocation failing(failures, all_later);
        try {
          pair.index.insert(Exec{}, device_more, device_values, how);
        } catch (const std::exception&) {
          failed = true;
        }
        is_reached = failing.has_failed();
      }
      const size_type added = pair.index.size() - pair.expected.size();
      ASSERT_EQ(added % std::min<size_type>(how.group_size, more.size()), 0u);
      if (!failed) {
        EXPECT_EQ(added, more.size());
      }
      for (std::size_t i = 0; i < added; ++i)
        pair.expected.emplace(more[i], values[i]);
      ASSERT_NO_FATAL_FAILURE(
          pair.expect_equal("allocation " + std::to_string(failures)));
      EXPECT_TRUE(failed || !all_later || !is_reached);
      lost += failed ? 1 : 0;
      if (failed && added == 0) {
        // What did with the room that there was still does.
        const std::string pool = "kindex::RegularBPlusTree::";
        const FailingAllocation growth(
            {pool + "keys", pool + "values", pool + "last_inner_nodes",
             pool + "entries_of_leaves", pool + "inner_nodes",
             pool + "children", pool + "numbers_of_children"});
        pair.erase({keys[700]}, how);
        pair.update({keys[900]}, how);
      }
      ASSERT_NO_FATAL_FAILURE(pair.expect_equal("afterwards"));
      ASSERT_LT(failures, 200);
    }
    EXPECT_GT(lost, 10);
  }
}

/// More lines than 32 bits number: guesses leave bits out, never of the leaf.
TEST(RegularBPlusTree, GuessesOfManyEntriesFit) {
  using Router = kindex::query::RegularRouter<std::uint64_t>;
  for (const int bits : {10, 30, 31, 32, 33, 36, 39}) {
    const size_type entries = (size_type{1} << bits) - 1;
    for (const size_type leaves :
         {entries / 512 + 1, entries / 128 + 1, size_type{0xffffffff}}) {
      Router router;
      router.fit_guesses(entries, leaves);
      for (const size_type leaf : {size_type{0}, leaves / 3, leaves - 1})
        for (const size_type line : {0, 1, 37, 63}) {
          const size_type exact = leaf * 64 + line;
          const size_type guess = router.guess_of(exact);
          // What the engine keeps of it.
          const int shift = bits > 32 ? bits - 32 : 0;
          const auto kept = static_cast<std::uint32_t>(guess >> shift);
          const size_type back = router.line_of(size_type{kept} << shift);
          EXPECT_LE(back, exact);
          EXPECT_EQ(back / 64, leaf);
          if (leaves < (size_type{1} << 26)) {
            EXPECT_EQ(back, exact);
          }
        }
    }
  }
}

/// Trivially copyable, and that is all.
struct Named {
  std::uint32_t name;
  KOKKOS_FUNCTION explicit Named(std::uint32_t n) : name(n) {}
};

/// Positions of entries are beyond size(), as leaves have room.
TYPED_TEST(RegularHybrids, ChainsAndDescendingRanges) {
  using Key = std::uint64_t;
  constexpr Key n = 4000;
  const HostView<Key> keys("test::keys", n), parents("test::parents", n);
  for (Key i = 0; i < n; ++i) {
    keys(i) = i;
    parents(i) = i + 1;
  }
  const auto check = [&](const auto& space, const auto& index) {
    const Kokkos::View<Key**, Kokkos::HostSpace> chains("test::chains", n, 3);
    const HostView<int> lengths("test::lengths", n);
    index.parent_chain(Host{}, keys, chains, lengths);
    for (Key i = 0; i < n; ++i) {
      ASSERT_EQ(lengths(i), static_cast<int>(std::min(n - i, Key{3}))) << i;
      for (int l = 0; l < lengths(i); ++l)
        ASSERT_EQ(chains(i, l), i + static_cast<Key>(l) + 1) << i;
    }
    const HostView<Key> lo("test::lo", 2), hi("test::hi", 2);
    lo(0) = 10, hi(0) = 3500, lo(1) = 7, hi(1) = 6;
    const auto hits = index.reverse_range(space, lo, hi, kindex::with_keys);
    ASSERT_EQ(hits.values.extent(0), 3491u);
    EXPECT_EQ(hits.offsets(2), 3491u);
    for (std::size_t i = 0; i < 3491; ++i) {
      ASSERT_EQ(hits.keys(i), 3500 - i);
      ASSERT_EQ(hits.values(i), 3501 - i);
    }
  };
  check(Host{}, kindex::RegularBPlusTree<Key, Key, Kokkos::HostSpace>(
                    Host{}, keys, parents));
  const kindex::RegularBPlusTree<Key, Key, typename TypeParam::memory_space,
                                 Hybrid>
      hybrid(TypeParam{}, keys, parents);
  check(TypeParam{}, hybrid);
  check(TypeParam{}, hybrid.snapshot());
}

TEST(RegularBPlusTree, ValuesNeedNoDefault) {
  using Values = Kokkos::View<Named*, Kokkos::HostSpace>;
  const auto values_of = [](std::size_t n, std::uint32_t first) {
    const Values values(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, "test::values"), n);
    for (std::uint32_t i = 0; i < n; ++i) values(i) = Named(first + i);
    return values;
  };
  kindex::RegularBPlusTree<int, Named, Kokkos::HostSpace> index(
      Host{}, to_device<Host>(std::vector<int>{5, 3}), values_of(2, 100));
  index.insert(Host{}, to_device<Host>(std::vector<int>{4, 3}),
               values_of(2, 200));
  index.update(Host{}, to_device<Host>(std::vector<int>{5}), values_of(1, 300));
  const Values found = values_of(4, 0);
  index.find(Host{}, to_device<Host>(std::vector<int>{3, 4, 5, 6}), found,
             Named(7));
  EXPECT_EQ(found(0).name, 101u);
  EXPECT_EQ(found(1).name, 200u);
  EXPECT_EQ(found(2).name, 300u);
  EXPECT_EQ(found(3).name, 7u);
}

TEST(RegularBPlusTree, TypesAreDeduced) {
  using kindex::RegularBPlusTree;
  const Host space;
  const auto keys = to_device<Host>(std::vector<double>{1, 2});
  const auto values = to_device<Host>(std::vector<std::uint64_t>{1, 2});
  using Rows = RegularBPlusTree<double, std::uint32_t, Kokkos::HostSpace>;
  using Values = RegularBPlusTree<double, std::uint64_t, Kokkos::HostSpace>;
  using kindex::sorted;
  static_assert(std::is_same_v<Rows, decltype(RegularBPlusTree(space, keys))>);
  static_assert(
      std::is_same_v<Values, decltype(RegularBPlusTree(space, keys, values))>);
  static_assert(
      std::is_same_v<Rows, decltype(RegularBPlusTree(space, sorted, keys))>);
  static_assert(std::is_same_v<Values, decltype(RegularBPlusTree(
                                           space, sorted, keys, values))>);
}

}  // namespace
}  // namespace kindex_test
