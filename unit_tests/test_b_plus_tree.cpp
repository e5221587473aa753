// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is special to B+-trees: full nodes of one line, the ways in which a host
// searches them, lookups in turns, and pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <kindex/BPlusTree.hpp>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "support/Asked.hpp"
#include "support/Devices.hpp"
#include "support/Errors.hpp"
#include "support/Keys.hpp"
#include "support/Recorder.hpp"
#include "support/Values.hpp"

namespace kindex_test {
namespace {

using kindex::AoS;
using kindex::BPlusTreeOptions;
using kindex::NodeSearch;
using kindex::Pages;
using kindex::SoA;

constexpr NodeSearch all_searches[] = {
    NodeSearch::scalar, NodeSearch::linear_avx2, NodeSearch::hierarchical_avx2,
    NodeSearch::linear_avx512, NodeSearch::linear_neon};

std::vector<NodeSearch> searches_here() {
  std::vector<NodeSearch> searches;
  for (const auto how : all_searches)
    if (kindex::is_available(how)) searches.push_back(how);
  return searches;
}

// ---- nodes of a host --------------------------------------------------------

/// Lines of ascending keys, and others around them, of which a few are equal.
template <class Key>
std::vector<Key> draw_keys(std::size_t n, bool few, std::mt19937_64& rng) {
  std::vector<Key> keys = Keys<Key>::extremes();
  while (keys.size() < n)
    keys.push_back(few ? Keys<Key>::of(static_cast<int>(rng() % 7) - 3)
                       : Keys<Key>::random(rng));
  keys.resize(n);
  std::sort(keys.begin(), keys.end(), Keys<Key>::less);
  return keys;
}

template <class Key, class Index>
void expect_same_in_all_ways() {
  constexpr int line = 64 / int(sizeof(Key));
  constexpr int lines = 10, unequal = 1000;
  std::mt19937_64 rng(sizeof(Key));
  for (const bool few : {false, true}) {
    const auto keys = draw_keys<Key>(lines * line, few, rng);
    std::vector<Key> queries = keys;
    for (int i = 0; i < 50; ++i) queries.push_back(Keys<Key>::random(rng));
    for (const Key key : keys) {
      queries.push_back(Keys<Key>::below(key));
      queries.push_back(Keys<Key>::above(key));
    }
    const int m = static_cast<int>(queries.size());
    for (const int stride : {1, 2}) {
      const int leaf_keys = line / stride;
      std::vector<Index> leaves(m), nodes(m), children(m);
      std::vector<unsigned> counts(m), with_equal(m);
      for (int i = 0; i < m; ++i) {
        leaves[i] = static_cast<Index>(rng() % lines);
        // Behind the end, too, which stands for the last.
        nodes[i] = static_cast<Index>(rng() % (lines + 1));
        const Key* const leaf = &keys[leaves[i] * line];
        const Key* const node =
            &keys[std::min<std::size_t>(nodes[i], lines - 1) * line];
        unsigned pivots = 0;
        for (int k = 0; k < line; ++k) pivots += node[k] < queries[i];
        children[i] = static_cast<Index>(
            std::min<std::size_t>(nodes[i], lines - 1) * (line + 1) + pivots);
        for (int k = 0; k < leaf_keys; ++k) {
          counts[i] += leaf[k * stride] < queries[i];
          if (leaf[k * stride] == queries[i]) with_equal[i] = unequal;
        }
        with_equal[i] += counts[i];
      }
      for (const auto how : searches_here()) {
        SCOPED_TRACE(std::string(kindex::name_of(how)) + ", keys of " +
                     std::to_string(sizeof(Key)) + " bytes, stride " +
                     std::to_string(stride));
        std::vector<unsigned> got(m);
        kindex::query::count_in_lines(how, keys.data(), stride, queries.data(),
                                      leaves.data(), got.data(), m, 0U);
        EXPECT_EQ(got, counts);
        kindex::query::count_in_lines(how, keys.data(), stride, queries.data(),
                                      leaves.data(), got.data(), m,
                                      unsigned(unequal));
        EXPECT_EQ(got, with_equal);
        std::vector<Index> went = nodes;
        const kindex::query::PivotLevel level{0, lines};
        kindex::query::descend_lines(how, &level, 1, keys.data(),
                                     queries.data(), went.data(), m, {});
        EXPECT_EQ(went, children);
      }
    }
  }
}

template <class... KeyTypes>
void expect_same_in_all_ways_of() {
  (expect_same_in_all_ways<KeyTypes, std::uint32_t>(), ...);
  (expect_same_in_all_ways<KeyTypes, std::uint64_t>(), ...);
}

TEST(HostNodes, SameInAllWays) {
  expect_same_in_all_ways_of<std::int8_t, std::int16_t, std::int32_t,
                             std::int64_t, std::uint8_t, std::uint16_t,
                             std::uint32_t, std::uint64_t, float, double,
                             kindex::Key128>();
}

TEST(HostNodes, TheFastestIsChosen) {
  EXPECT_TRUE(kindex::is_available(NodeSearch::automatic));
  EXPECT_TRUE(kindex::is_available(NodeSearch::scalar));
  const auto best = kindex::query::chosen_node_search();
  EXPECT_NE(best, NodeSearch::automatic);
  EXPECT_TRUE(kindex::is_available(best));
  for (const auto how : all_searches)
    EXPECT_EQ(kindex::query::chosen_node_search(how), how);
}

// ---- trees ------------------------------------------------------------------

template <class Exec>
class BPlusTrees : public ::testing::Test {
 public:
  template <class Key, class Layout>
  using Tree = kindex::BPlusTree<Key, std::uint32_t,
                                 typename Exec::memory_space, Layout>;
};

TYPED_TEST_SUITE(BPlusTrees, Devices, DeviceName);

BPlusTreeOptions options_of(NodeSearch how, Pages pages = Pages::huge) {
  BPlusTreeOptions options;
  options.node_search = how;
  options.pages = pages;
  return options;
}

/// Nodes, level by level, above leaves of `leaf` entries; the root comes last.
std::vector<size_type> nodes_above(size_type n, size_type leaf,
                                   size_type fan_out) {
  std::vector<size_type> nodes;
  for (size_type below = (n + leaf - 1) / leaf; below > 1;) {
    below = (below + fan_out - 1) / fan_out;
    nodes.push_back(below);
  }
  return nodes;
}

/// Sizes at which a leaf, a node or a level is just full, or just not.
template <class Exec, class Index>
void expect_right_answers(size_type leaf) {
  using Key = typename Index::key_type;
  constexpr size_type fan_out = Index::fan_out;
  static_assert(fan_out == 64 / sizeof(Key) + 1);
  Failures failures;
  std::mt19937_64 rng(leaf);
  std::vector<size_type> sizes{1, 2, 30011};
  for (const size_type full : {leaf, leaf * fan_out, leaf * fan_out * fan_out})
    for (const size_type n : {full - 1, full, full + 1}) sizes.push_back(n);
  for (const size_type n : sizes) {
    for (const bool few : {false, true}) {
      const auto keys = draw_keys<Key>(n, few, rng);
      auto queries = queries_around(keys);
      queries.resize(std::min<std::size_t>(queries.size(), 2000));
      const Asked<Exec, Key> asked(few ? "duplicates" : "random", keys,
                                   queries);
      for (const auto how : searches_here()) {
        const Index index(Exec{}, kindex::sorted, asked.device_keys,
                          kindex::Check::on, options_of(how));
        failures += check_bulk_answers(index, asked, kindex::name_of(how));
        failures += check_ref_answers(index, asked, kindex::name_of(how));
        EXPECT_EQ(index.node_search(), how);
        const auto nodes = nodes_above(n, leaf, fan_out);
        size_type bytes = 0;
        for (const size_type of_level : nodes) bytes += 64 * of_level + 16;
        EXPECT_EQ(index.height(), static_cast<int>(nodes.size()));
        EXPECT_EQ(index.inner_bytes(), bytes);
        EXPECT_EQ(index.memory_bytes(), bytes + index.leaf_bytes());
      }
    }
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

TYPED_TEST(BPlusTrees, AnswerWithKeysOf32Bits) {
  using Exec = TypeParam;
  expect_right_answers<Exec,
                       typename TestFixture::template Tree<std::uint32_t, AoS>>(
      8);
}

TYPED_TEST(BPlusTrees, AnswerWithKeysOf64Bits) {
  using Exec = TypeParam;
  expect_right_answers<Exec, typename TestFixture::template Tree<double, SoA>>(
      8);
}

TYPED_TEST(BPlusTrees, ALeafIsALine) {
  using Exec = TypeParam;
  using Tree = typename TestFixture::template Tree<std::uint32_t, SoA>;
  using Pairs = typename TestFixture::template Tree<std::uint32_t, AoS>;
  for (const size_type n : {1, 7, 8, 9, 16, 17, 1000}) {
    const auto keys = to_device<Exec>(std::vector<std::uint32_t>(n, 1));
    EXPECT_EQ(Tree(Exec{}, kindex::sorted, keys).leaf_bytes(),
              (n + 15) / 16 * 64);
    EXPECT_EQ(Pairs(Exec{}, kindex::sorted, keys).leaf_bytes(),
              (n + 7) / 8 * 64);
  }
  EXPECT_EQ(Tree().memory_bytes(), 0u);
  EXPECT_EQ(Tree().height(), 0);
  EXPECT_EQ(Tree().huge_page_bytes(), 0u);
  const Tree none(Exec{}, to_device<Exec>(std::vector<std::uint32_t>{}));
  EXPECT_EQ(none.memory_bytes(), 0u);
  const Asked<Exec, std::uint32_t> asked("nothing", {}, {0, ~0U});
  const auto failures = check_bulk_answers(none, asked, "no entries");
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// A policy changes how fast a batch is answered.
TYPED_TEST(BPlusTrees, Policies) {
  using Exec = TypeParam;
  std::mt19937_64 rng(3);
  const auto keys = draw_keys<std::uint32_t>(20000, false, rng);
  auto queries = queries_around(keys);
  queries.resize(4999);
  const Asked<Exec, std::uint32_t> asked("random", keys, queries);
  const typename TestFixture::template Tree<std::uint32_t, SoA> index(
      Exec{}, kindex::sorted, asked.device_keys);
  const auto expect = [&](const auto& policy, const char* what) {
    const auto ranks = filled<size_type, Exec>(queries.size());
    index.lower_bound(Exec{}, asked.device_queries, ranks, policy);
    EXPECT_TRUE(to_host(ranks) == asked.lower) << what;
  };
  using kindex::BasicLookupPolicy;
  using kindex::InFlight;
  expect(BasicLookupPolicy<InFlight<1>>(), "one after the other");
  expect(BasicLookupPolicy<InFlight<7>>(), "7 in turns");
  expect(BasicLookupPolicy<InFlight<32>>(), "32 in turns");
  expect(BasicLookupPolicy<kindex::OneKeyPerLane>(), "one key per lane");
  expect(BasicLookupPolicy<kindex::PinnedTop>().set_pinned_steps(2), "pinned");
  static_assert(BasicLookupPolicy<InFlight<7>>::in_flight == 7);
  static_assert(kindex::LookupPolicy::in_flight == 0);
}

TYPED_TEST(BPlusTrees, PagesAreReported) {
  using Exec = TypeParam;
  constexpr size_type n = 1 << 21;
  using Tree = typename TestFixture::template Tree<std::uint64_t, SoA>;
  std::vector<std::uint64_t> keys(n);
  for (size_type i = 0; i < n; ++i) keys[i] = 3 * i;
  const auto device_keys = to_device<Exec>(keys);
  const auto build = [&](Pages pages) {
    return Tree(Exec{}, device_keys, options_of(NodeSearch::automatic, pages));
  };
  const Tree ordinary = build(Pages::ordinary), huge = build(Pages::huge);
  EXPECT_EQ(ordinary.huge_page_bytes(), 0u);
  EXPECT_LE(huge.huge_page_bytes(), huge.memory_bytes());
  EXPECT_EQ(ordinary.memory_bytes(), huge.memory_bytes());
  EXPECT_EQ(huge.huge_page_bytes() > 0, has_huge_pages<Exec>());
  if (has_huge_pages<Exec>()) {
    // All arrays are several such pages.
    EXPECT_GE(huge.huge_page_bytes(), huge.leaf_bytes() / 2);
  }
  const Asked<Exec, std::uint64_t> asked("many", keys, {0, 1, 3, 999999, ~0U});
  auto failures = check_bulk_answers(ordinary, asked, "ordinary pages");
  failures += check_bulk_answers(huge, asked, "huge pages");
  EXPECT_TRUE(failures.empty()) << failures.text();
  // What is moved from is empty.
  Tree from = huge;
  const Tree to = std::move(from);
  EXPECT_EQ(to.huge_page_bytes(), huge.huge_page_bytes());
  EXPECT_EQ(from.size(), 0u);
  EXPECT_EQ(from.memory_bytes() + from.huge_page_bytes(), 0u);
  EXPECT_EQ(from.height(), 0);
}

TYPED_TEST(BPlusTrees, RefuseInstructionsThatAreNotThere) {
  using Exec = TypeParam;
  using Tree = typename TestFixture::template Tree<std::uint32_t, SoA>;
  const auto keys = to_device<Exec>(std::vector<std::uint32_t>{1, 2});
  std::vector<NodeSearch> missing{static_cast<NodeSearch>(99)};
  for (const auto how : all_searches)
    if (!kindex::is_available(how)) missing.push_back(how);
  for (const auto how : missing)
    expect_error([&] { Tree(Exec{}, keys, options_of(how)); },
                 {"BPlusTree", "options.node_search", kindex::name_of(how)});
}

/// The inner nodes take two kernels beside what the entries need, in order on
/// the instance given, and no fence.
TYPED_TEST(BPlusTrees, BuildOfOneKernelForAllLevels) {
  using Exec = TypeParam;
  const auto keys = to_device<Exec>(std::vector<std::uint32_t>(5000, 7));
  Recorder recorder;
  const typename TestFixture::template Tree<std::uint32_t, SoA> tree(
      Exec{}, kindex::sorted, keys, kindex::Check::off);
  std::vector<std::string> kernels;
  for (const auto& event : recorder.stop()) {
    if (event.kind == Event::kernel) kernels.push_back(event.label);
    EXPECT_NE(event.kind, Event::fence) << event.text();
  }
  EXPECT_EQ(kernels,
            (std::vector<std::string>{"kindex::BPlusTree::write_entries",
                                      "kindex::BPlusTree::write_levels",
                                      "kindex::BPlusTree::write_pivots"}));
}

TYPED_TEST(BPlusTrees, TypesAreDeduced) {
  using Exec = TypeParam;
  using Memory = typename Exec::memory_space;
  using kindex::BPlusTree;
  const Exec space;
  const auto keys = to_device<Exec>(std::vector<double>{1, 2});
  const auto values = to_device<Exec>(std::vector<std::int64_t>{1, 2});
  const BPlusTreeOptions options;
  using Rows = BPlusTree<double, std::uint32_t, Memory, SoA>;
  using Values = BPlusTree<double, std::int64_t, Memory, SoA>;
  using kindex::Check;
  using kindex::sorted;
  static_assert(std::is_same_v<Rows, decltype(BPlusTree(space, keys))>);
  static_assert(
      std::is_same_v<Rows, decltype(BPlusTree(space, keys, options))>);
  static_assert(
      std::is_same_v<Values, decltype(BPlusTree(space, keys, values))>);
  static_assert(std::is_same_v<Rows, decltype(BPlusTree(space, sorted, keys,
                                                        Check::on, options))>);
  static_assert(
      std::is_same_v<Values, decltype(BPlusTree(space, sorted, keys, values,
                                                Check::on, options))>);
}

}  // namespace
}  // namespace kindex_test
