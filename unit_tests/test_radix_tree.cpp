// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is special to RadixTree: its tree is the one that grows by one key at a
// time, every form of node and the sizes at which forms change, what it holds
// and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <kindex/RadixTree.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/Asked.hpp"
#include "support/Devices.hpp"
#include "support/Errors.hpp"
#include "support/Keys.hpp"
#include "support/RadixReference.hpp"
#include "support/Recorder.hpp"

namespace kindex_test {
namespace {

using kindex::RadixNodeCounts;
using kindex::RadixTree;
using kindex::RadixTreeOptions;

template <class Exec>
class RadixTrees : public ::testing::Test {};

TYPED_TEST_SUITE(RadixTrees, Devices, DeviceName);

RadixTreeOptions options_of(size_type leaf_entries, bool wide = false) {
  RadixTreeOptions options;
  options.leaf_entries = leaf_entries;
  options.wide_references = wide;
  return options;
}

template <class Key, class Exec>
using TreeOn = RadixTree<Key, std::uint32_t, typename Exec::memory_space>;

/// Nodes in the order node4, node16, node48, node256, ranks, bits.
KindCounts counts_of(const RadixNodeCounts& c) {
  return {c.node4, c.node16, c.node48, c.node256, c.ranks, c.bits};
}

template <class Exec, class Key>
TreeOn<Key, Exec> tree_of(const std::vector<Key>& keys, size_type leaf_entries,
                          bool wide = false) {
  return TreeOn<Key, Exec>(Exec{}, to_device<Exec>(keys),
                           options_of(leaf_entries, wide));
}

/// Keys that share bytes in all places, or hardly any.
template <class Key>
std::vector<std::pair<std::string, std::vector<Key>>> shapes(std::size_t n) {
  std::vector<std::pair<std::string, std::vector<Key>>> sets;
  std::mt19937_64 rng(n);
  const auto add = [&](const std::string& name, const auto& key_of) {
    std::vector<Key> keys;
    for (std::size_t i = 0; i < n; ++i) keys.push_back(key_of(i));
    std::shuffle(keys.begin(), keys.end(), rng);
    sets.emplace_back(name, std::move(keys));
  };
  add("random", [&](std::size_t) { return Keys<Key>::random(rng); });
  add("dense", [&](std::size_t i) { return Keys<Key>::of(int(i % 30000)); });
  add("equal", [&](std::size_t) { return Keys<Key>::of(7); });
  add("runs", [&](std::size_t i) { return Keys<Key>::of(int(i / 37)); });
  add("ends", [&](std::size_t i) {
    Key key = i % 2 == 0 ? Keys<Key>::min() : Keys<Key>::max();
    for (std::size_t j = 0; j < i % 51; ++j)
      key = i % 2 == 0 ? Keys<Key>::above(key) : Keys<Key>::below(key);
    return key;
  });
  if constexpr (std::is_integral_v<Key>) {
    // Few different bytes in each place.
    for (const unsigned bytes : {2U, 3U, 9U, 33U})
      add(std::to_string(bytes) + " bytes", [&](std::size_t) {
        std::uint64_t bits = 0;
        for (int b = 0; b < 8; ++b) bits = bits << 8 | rng() % bytes * 7;
        return static_cast<Key>(bits);
      });
    // Each differs from the one before in any byte.
    add("chains", [&](std::size_t i) {
      return static_cast<Key>(std::uint64_t{1} << (i % 64) | rng() % 3);
    });
  }
  return sets;
}

template <class Exec, class Key>
void expect_right_trees(const std::vector<std::size_t>& sizes) {
  Failures failures;
  for (const std::size_t n : sizes)
    for (const auto& [name, keys] : shapes<Key>(n)) {
      auto ascending = keys;
      std::sort(ascending.begin(), ascending.end(), Keys<Key>::less);
      const Asked<Exec, Key> asked(name, ascending, queries_around(ascending));
      for (const size_type leaf : {1, 3, 16, 100})
        for (const bool wide : {false, true}) {
          const auto index =
              TreeOn<Key, Exec>(Exec{}, kindex::sorted, asked.device_keys,
                                kindex::Check::on, options_of(leaf, wide));
          const std::string how = "leaves of " + std::to_string(leaf) +
                                  (wide ? ", 64-bit references" : "");
          EXPECT_EQ(differences_from_growth(index, keys), "")
              << name << ", n = " << n << ", " << how;
          failures += check_bulk_answers(index, asked, how);
          failures += check_ref_answers(index, asked, how);
        }
    }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

TYPED_TEST(RadixTrees, GrowAsByOneKeyAtATimeWithKeysOf8And16Bits) {
  expect_right_trees<TypeParam, std::uint8_t>({1, 2, 300});
  expect_right_trees<TypeParam, std::int16_t>({700});
}

TYPED_TEST(RadixTrees, GrowAsByOneKeyAtATimeWithKeysOf32Bits) {
  expect_right_trees<TypeParam, std::uint32_t>({1, 2, 17, 5000});
}

TYPED_TEST(RadixTrees, GrowAsByOneKeyAtATimeWithKeysOf64Bits) {
  expect_right_trees<TypeParam, std::uint64_t>({4000});
  expect_right_trees<TypeParam, std::int64_t>({900});
}

TYPED_TEST(RadixTrees, GrowAsByOneKeyAtATimeWithFloatingPointKeys) {
  expect_right_trees<TypeParam, double>({2500});
}

TYPED_TEST(RadixTrees, GrowAsByOneKeyAtATimeWithKeysOf128Bits) {
  expect_right_trees<TypeParam, kindex::Key128>({2500});
}

/// The same tree from any order and any number of threads, and large enough for
/// nodes whose bytes are searched instead of read.
TYPED_TEST(RadixTrees, DoNotDependOnTheOrderOfKeys) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  std::vector<Key> keys;
  std::mt19937_64 rng(3);
  for (int i = 0; i < 60000; ++i)
    keys.push_back(static_cast<Key>(rng() >> (rng() % 20 + 32)));
  const auto in_order = tree_of<Exec>(keys, 16);
  EXPECT_EQ(differences_from_growth(in_order, keys), "");
  std::shuffle(keys.begin(), keys.end(), rng);
  const auto shuffled = tree_of<Exec>(keys, 16);
  for (int k = 0; k < kindex::query::radix_kinds; ++k) {
    const auto kind = static_cast<RadixKind>(k);
    EXPECT_EQ(in_order.levels().count(kind), shuffled.levels().count(kind));
  }
  EXPECT_EQ(differences_from_growth(shuffled, keys), "");
  for (auto& instance : distinct_instances<Exec>(2)) {
    const TreeOn<Key, Exec> index(instance, to_device<Exec>(keys),
                                  options_of(16));
    EXPECT_EQ(differences_from_growth(index, keys), "");
  }
}

/// A node of `children` children, each a node of two different keys.
std::vector<std::uint16_t> node_over_nodes(int children) {
  std::vector<std::uint16_t> keys;
  for (int i = 0; i < children; ++i)
    for (const int low : {3, 250})
      keys.push_back(static_cast<std::uint16_t>((i * 255 / 255) << 8 | low));
  return keys;
}

/// Forms change where a node outgrows the smaller one, and back.
TYPED_TEST(RadixTrees, HaveTheSmallestFormThatFits) {
  using Exec = TypeParam;
  const auto form_over_nodes = [](int children) {
    const auto counts =
        counts_of(tree_of<Exec>(node_over_nodes(children), 1).node_counts());
    // The nodes of two keys apart.
    return KindCounts{counts[0] - size_type(children),
                      counts[1],
                      counts[2],
                      counts[3],
                      counts[4],
                      counts[5]};
  };
  using Counts = KindCounts;
  for (const int n : {2, 3, 4})
    EXPECT_EQ(form_over_nodes(n), (Counts{1, 0, 0, 0, 0, 0})) << n;
  for (const int n : {5, 6, 15, 16})
    EXPECT_EQ(form_over_nodes(n), (Counts{0, 1, 0, 0, 0, 0})) << n;
  for (const int n : {17, 18, 47, 48})
    EXPECT_EQ(form_over_nodes(n), (Counts{0, 0, 1, 0, 0, 0})) << n;
  for (const int n : {49, 50, 255, 256})
    EXPECT_EQ(form_over_nodes(n), (Counts{0, 0, 0, 1, 0, 0})) << n;

  // Two equal keys for each child: leaves of more than one entry.
  const auto form_over_leaves = [](int children, int copies,
                                   size_type leaf_entries = 1) {
    std::vector<std::uint8_t> keys;
    for (int i = 0; i < children * copies; ++i)
      keys.push_back(static_cast<std::uint8_t>(i % children));
    return counts_of(tree_of<Exec>(keys, leaf_entries).node_counts());
  };
  EXPECT_EQ(form_over_leaves(48, 2), (Counts{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(form_over_leaves(49, 2), (Counts{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(form_over_leaves(256, 2), (Counts{0, 0, 0, 0, 1, 0}));
  // 27 leaves of nine are 243 ranks apart in a block, of ten 270.
  EXPECT_EQ(form_over_leaves(256, 9), (Counts{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(form_over_leaves(256, 10), (Counts{0, 0, 0, 1, 0, 0}));
  // Single entries.
  EXPECT_EQ(form_over_leaves(4, 1), (Counts{1, 0, 0, 0, 0, 0}));
  for (const int n : {5, 16, 17, 48, 49, 256})
    EXPECT_EQ(form_over_leaves(n, 1), (Counts{0, 0, 0, 0, 0, 1})) << n;
  // Leaves of up to 16 different keys.
  EXPECT_EQ(form_over_leaves(16, 1, 16), Counts{});
  EXPECT_EQ(form_over_leaves(17, 1, 16), (Counts{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(form_over_leaves(1, 300, 16), Counts{});
}

/// Nodes of many entries have a child for each byte, unless they have hardly
/// any; with and without a byte in common to all, and paths below.
TYPED_TEST(RadixTrees, CountNoBytesWhereManyPass) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  for (const std::size_t parts : {4, 8})
    for (const int shift : {24, 16})
      for (const std::size_t n : {8191, 8192}) {
        const std::size_t size = 8192 / parts;
        std::vector<Key> keys;
        for (std::size_t i = 0; i < n; ++i)
          keys.push_back(
              static_cast<Key>(1 << 30 | i / size << shift | i % size));
        const auto index = tree_of<Exec>(keys, 1);
        // The root, one node of 4 or 8 children for each part, and sets.
        const size_type busy = parts == 8 && n == 8192 ? 1 : 0;
        EXPECT_EQ(counts_of(index.node_counts()),
                  (parts == 4 ? KindCounts{1, 4, 0, 0, 0, 32}
                              : KindCounts{8, 1 - busy, 0, busy, 0, 32}));
        EXPECT_EQ(differences_from_growth(index, keys), "");
        const Asked<Exec, Key> asked("parts", keys, queries_around(keys));
        const Failures failures =
            check_bulk_answers(index, asked, std::to_string(n) + " keys");
        EXPECT_TRUE(failures.empty()) << failures.text();
      }
}

/// A way without branches costs no node, nor does one that leads to one key.
TYPED_TEST(RadixTrees, CompressPathsAndExpandLate) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  const std::vector<Key> keys{0x0102030405060708, 0x0102030405060709,
                              0x0102030499999999, 0x8000000000000000};
  const auto index = tree_of<Exec>(keys, 1);
  // One where bytes 0 differ, one at byte 4, one at byte 7.
  EXPECT_EQ(counts_of(index.node_counts()), (KindCounts{3, 0, 0, 0, 0, 0}));
  EXPECT_EQ(index.height(), 3);
  EXPECT_EQ(differences_from_growth(index, keys), "");
  // All bytes but the last in common.
  const auto last = tree_of<Exec>(std::vector<Key>{2, 3, 4}, 1);
  EXPECT_EQ(last.height(), 1);
  const std::vector<Key> queries{0, 1, 2, 3, 4, 5, 256, 258, Key{1} << 56};
  EXPECT_EQ(lower_bounds<Exec>(last, queries),
            (Ranks{0, 0, 0, 1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<Key>{0x0102030400000000}),
            (Ranks{0}));
  EXPECT_EQ(lower_bounds<Exec>(
                index, std::vector<Key>{0x0102030405060700, 0x0102030406000000,
                                        0x0102030500000000}),
            (Ranks{0, 2, 3}));
  // One key, or one repeated, is a leaf: no node at all.
  EXPECT_EQ(tree_of<Exec>(std::vector<Key>{5}, 1).height(), 0);
  const auto repeated = tree_of<Exec>(std::vector<Key>(1000, 5), 1);
  EXPECT_EQ(repeated.height(), 0);
  EXPECT_EQ(repeated.tree_bytes(), 0u);
}

/// Known answers.
TYPED_TEST(RadixTrees, OrderBytesAsUnsigned) {
  using Exec = TypeParam;
  for (const size_type leaf : {1, 2, 16}) {
    std::vector<std::uint8_t> bytes;
    for (int b = 0x78; b <= 0x81; ++b)
      bytes.push_back(static_cast<std::uint8_t>(b));
    EXPECT_EQ(lower_bounds<Exec>(tree_of<Exec>(bytes, leaf),
                                 std::vector<std::uint8_t>{0x80}),
              (Ranks{8}));
    const auto signs = tree_of<Exec>(std::vector<std::int64_t>{-1, 0, 1}, leaf);
    EXPECT_EQ(lower_bounds<Exec>(signs, std::vector<std::int64_t>{0}),
              (Ranks{1}));
    const auto zeros =
        tree_of<Exec>(std::vector<double>{0.0, -0.0, -1.0, 1.0}, leaf);
    EXPECT_EQ(lower_bounds<Exec>(zeros, std::vector<double>{-0.0, 0.0}),
              (Ranks{1, 1}));
    EXPECT_EQ(upper_bounds<Exec>(zeros, std::vector<double>{-0.0, 0.0}),
              (Ranks{3, 3}));
    EXPECT_EQ(lower_bounds<Exec>(zeros, std::vector<double>{std::nan("")}),
              (Ranks{4}));
  }
}

/// Runs longer than a search reads before it doubles its steps.
TYPED_TEST(RadixTrees, SearchLongRuns) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  for (const int length : {3, 4, 5, 16, 17, 31, 32, 33, 100, 5000}) {
    std::vector<Key> keys{1};
    keys.insert(keys.end(), std::size_t(length), Key{77});
    keys.push_back(78);
    keys.insert(keys.end(), std::size_t(length), Key{Key{1} << 40});
    const Asked<Exec, Key> asked("runs", keys, queries_around(keys));
    for (const size_type leaf : {1, 16, 65536}) {
      const auto index = tree_of<Exec>(keys, leaf);
      const Failures failures =
          check_bulk_answers(index, asked, "leaves of " + std::to_string(leaf));
      EXPECT_TRUE(failures.empty()) << failures.text();
    }
  }
}

TYPED_TEST(RadixTrees, MemoryIsWhatNodesTake) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  constexpr std::size_t n = std::size_t{1} << 18;
  std::vector<Key> sparse, dense;
  std::mt19937_64 rng(11);
  for (std::size_t i = 0; i < n; ++i) {
    // As dense as 2^26 keys in the whole range.
    sparse.push_back(static_cast<Key>(rng() % (std::uint64_t{n} << 6)));
    dense.push_back(static_cast<Key>(i));
  }
  const auto device_values = to_device<Exec>(std::vector<std::uint32_t>(n, 5));
  for (const bool is_dense : {false, true}) {
    const TreeOn<Key, Exec> index(
        Exec{}, to_device<Exec>(is_dense ? dense : sparse), device_values);
    const auto c = index.node_counts();
    EXPECT_EQ(index.tree_bytes(), c.node4 * 32 + c.node16 * 96 +
                                      c.node48 * 240 + c.node256 * 1040 +
                                      c.ranks * 352 + c.bits * 48);
    EXPECT_EQ(index.data_bytes(), 8 * n);
    EXPECT_EQ(index.memory_bytes(), index.data_bytes() + index.tree_bytes());
    EXPECT_LE(double(index.memory_bytes()), (is_dense ? 8.5 : 14.0) * n);
    // Without values, what is left of them: the position is the answer.
    std::sort(sparse.begin(), sparse.end());
    const TreeOn<Key, Exec> rows(Exec{}, kindex::sorted,
                                 to_device<Exec>(is_dense ? dense : sparse));
    EXPECT_EQ(rows.memory_bytes(), index.memory_bytes() - 4 * n);
  }
  const TreeOn<Key, Exec> none;
  EXPECT_EQ(none.memory_bytes(), 0u);
  EXPECT_EQ(none.height(), 0);
}

TYPED_TEST(RadixTrees, BuildWithAFencePerLevel) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  const Exec space = distinct_instances<Exec>(2)[1];
  std::vector<Key> keys;
  std::mt19937_64 rng(2);
  for (int i = 0; i < 5000; ++i) keys.push_back(rng() & 0x0303030303030303);
  std::sort(keys.begin(), keys.end());
  const auto device_keys = to_device<Exec>(keys);
  Recorder recorder;
  const TreeOn<Key, Exec> index(space, kindex::sorted, device_keys,
                                kindex::Check::off, options_of(1));
  const auto events = recorder.stop();
  space.fence("test::build");
  EXPECT_GT(index.height(), 5);
  size_type fences = 0;
  for (const Event& event : events)
    fences += event.kind == Event::fence &&
              event.device == Kokkos::Tools::Experimental::device_id(space);
  EXPECT_LE(fences, size_type(index.height()));
  EXPECT_EQ(number_of(events, Event::copy), 0u);
  EXPECT_EQ(
      joined(violations(events, Kokkos::Tools::Experimental::device_id(space),
                        Fences::of_the_instance_or_of_frees)),
      "");
}

TYPED_TEST(RadixTrees, OptionsAndKeysAreChecked) {
  using Exec = TypeParam;
  const std::vector<double> keys{1, 3, 2, std::nan("")};
  EXPECT_EQ(message_of([&] { tree_of<Exec>(keys, 0); }),
            "kindex::RadixTree: options.leaf_entries is 0, not in 1...65536");
  EXPECT_EQ(message_of([&] { tree_of<Exec>(keys, 65537); }),
            "kindex::RadixTree: options.leaf_entries is 65537, not in "
            "1...65536");
  EXPECT_EQ(message_of([&] { tree_of<Exec>(keys, 1); }),
            "kindex::RadixTree: keys(3) is not a number; an index has no place "
            "for NaN");
  EXPECT_EQ(message_of([&] {
              TreeOn<double, Exec>(Exec{}, kindex::sorted,
                                   to_device<Exec>(keys));
            }),
            "kindex::RadixTree: keys are promised sorted, but keys(2) = 2 is "
            "below keys(1) = 3");
}

TYPED_TEST(RadixTrees, PagesAreReported) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  constexpr size_type n = 1 << 20;
  std::mt19937_64 rng(21);
  std::vector<Key> keys(n);
  for (Key& key : keys) key = rng();
  const auto device_keys = to_device<Exec>(keys);
  const auto build = [&](kindex::Pages pages) {
    RadixTreeOptions options = options_of(1);
    options.pages = pages;
    return TreeOn<Key, Exec>(Exec{}, device_keys, options);
  };
  const auto ordinary = build(kindex::Pages::ordinary);
  auto huge = build(kindex::Pages::huge);
  EXPECT_EQ(ordinary.huge_page_bytes(), 0u);
  EXPECT_LE(huge.huge_page_bytes(), huge.memory_bytes());
  const auto expect_answers = [&](const auto& index, const char* what) {
    const auto found = filled<std::uint32_t, Exec>(n);
    index.find(Exec{}, device_keys, found);
    const auto rows = to_host(found);
    for (size_type i = 0; i < n; ++i) ASSERT_EQ(rows[i], i) << what;
  };
  expect_answers(ordinary, "ordinary pages");
  expect_answers(huge, "huge pages");
  EXPECT_EQ(huge.huge_page_bytes() > 0, has_huge_pages<Exec>());
  if (!has_huge_pages<Exec>()) return;
  // Keys, values and large arenas are several such pages.
  EXPECT_GE(huge.huge_page_bytes(), huge.memory_bytes() / 3);
  // So are what updates take, and what is left when room is given back.
  huge.reserve(Exec{}, 4 * n);
  EXPECT_GE(huge.huge_page_bytes(), huge.memory_bytes() / 3);
  huge.shrink_to_fit(Exec{});
  EXPECT_GE(huge.huge_page_bytes(), huge.memory_bytes() / 3);
  expect_answers(huge, "after reserve and shrink_to_fit");
  const auto moved = std::move(huge);
  EXPECT_EQ(huge.huge_page_bytes(), 0u);
  EXPECT_GT(moved.huge_page_bytes(), 0u);
}

// ---- ranges, prefixes, hierarchies ------------------------------------------

TYPED_TEST(RadixTrees, GoForwardAndBackward) {
  using Exec = TypeParam;
  const auto index =
      tree_of<Exec>(std::vector<int>{500, 300, 100, 400, 200}, 1);
  const auto at = [](int key) {
    return to_device<Exec>(std::vector<int>{key});
  };
  constexpr int least = std::numeric_limits<int>::min();
  constexpr int most = std::numeric_limits<int>::max();
  using Keys = std::vector<int>;
  const auto forward =
      index.range(Exec{}, at(250), at(most), kindex::with_keys);
  EXPECT_EQ(to_host(forward.keys), (Keys{300, 400, 500}));
  EXPECT_EQ(to_host(forward.values), (std::vector<std::uint32_t>{1, 3, 0}));
  const auto backward =
      index.reverse_range(Exec{}, at(least), at(250), kindex::with_keys);
  EXPECT_EQ(to_host(backward.keys), (Keys{200, 100}));
  EXPECT_EQ(to_host(backward.values), (std::vector<std::uint32_t>{4, 2}));
  EXPECT_EQ(to_host(index.reverse_range(Exec{}, at(200), at(400)).values),
            (std::vector<std::uint32_t>{3, 1, 4}));
  EXPECT_EQ(index.reverse_range(Exec{}, at(5), at(4)).values.extent(0), 0u);
}

/// Reverse ranges are the ranges of the same queries, each turned around.
TYPED_TEST(RadixTrees, ReverseRangesAreRangesTurnedAround) {
  using Exec = TypeParam;
  using Key = std::uint16_t;
  std::mt19937_64 rng(8);
  std::vector<Key> keys, lo, hi;
  for (int i = 0; i < 3000; ++i) keys.push_back(static_cast<Key>(rng() % 2000));
  for (int i = 0; i < 300; ++i) {
    lo.push_back(static_cast<Key>(rng() % 2100));
    hi.push_back(static_cast<Key>(lo.back() + rng() % 300 - 20));
  }
  const auto index = tree_of<Exec>(keys, 16);
  const auto device_lo = to_device<Exec>(lo), device_hi = to_device<Exec>(hi);
  const auto forward =
      index.range(Exec{}, device_lo, device_hi, kindex::with_keys);
  const auto backward =
      index.reverse_range(Exec{}, device_lo, device_hi, kindex::with_keys);
  const auto offsets = to_host(forward.offsets);
  EXPECT_EQ(offsets, to_host(backward.offsets));
  EXPECT_GT(offsets.back(), 10000u);
  auto values = to_host(forward.values);
  auto hit_keys = to_host(forward.keys);
  for (std::size_t i = 0; i < lo.size(); ++i) {
    const auto first = std::ptrdiff_t(offsets[i]);
    const auto last = std::ptrdiff_t(offsets[i + 1]);
    std::reverse(values.begin() + first, values.begin() + last);
    std::reverse(hit_keys.begin() + first, hit_keys.begin() + last);
  }
  EXPECT_EQ(values, to_host(backward.values));
  EXPECT_EQ(hit_keys, to_host(backward.keys));
}

template <class Key>
std::string memory_bits(Key key) {
  std::string bits;
  for (const char c : radix_bytes(key))
    for (int b = 7; b >= 0; --b)
      bits += static_cast<char>('0' + (static_cast<unsigned char>(c) >> b & 1));
  return bits;
}

template <class Exec, class Key>
void expect_right_prefixes() {
  using kindex::Prefix;
  using kindex::PrefixMatch;
  constexpr int width = 8 * int(sizeof(Key));
  std::mt19937_64 rng(4);
  for (const bool few_bits : {false, true}) {
    std::vector<Key> keys = Keys<Key>::extremes();
    for (int i = 0; i < 1500; ++i)
      keys.push_back(few_bits ? Keys<Key>::of(static_cast<int>(rng() % 120))
                              : Keys<Key>::random(rng));
    std::sort(keys.begin(), keys.end(), Keys<Key>::less);
    std::vector<Key> queries;
    std::vector<Prefix<Key>> prefixes;
    std::vector<std::string> bits;
    for (const Key& key : keys) bits.push_back(memory_bits(key));
    Ranks lower, upper;
    std::vector<size_type> rank, common;
    for (int i = 0; i < 300; ++i) {
      queries.push_back(i % 2 == 0 ? keys[rng() % keys.size()]
                                   : Keys<Key>::random(rng));
      prefixes.push_back({queries.back(), int(rng() % (width + 1))});
      const std::string own = memory_bits(queries.back());
      const std::string prefix =
          own.substr(0, std::size_t(prefixes.back().bits));
      const auto below = [&](const std::string& a, const std::string& b) {
        return a.substr(0, prefix.size()) < b.substr(0, prefix.size());
      };
      lower.push_back(
          size_type(std::lower_bound(bits.begin(), bits.end(), own, below) -
                    bits.begin()));
      upper.push_back(
          size_type(std::upper_bound(bits.begin(), bits.end(), own, below) -
                    bits.begin()));
      size_type best = 0;
      std::vector<size_type> shared;
      for (const auto& of_key : bits) {
        shared.push_back(size_type(
            std::mismatch(own.begin(), own.end(), of_key.begin()).first -
            own.begin()));
        best = std::max(best, shared.back());
      }
      common.push_back(best);
      const auto bound = size_type(
          std::lower_bound(bits.begin(), bits.end(), own) - bits.begin());
      rank.push_back(bound < keys.size() && shared[bound] == best ? bound
                                                                  : bound - 1);
    }
    const RadixTree<Key, std::uint32_t, typename Exec::memory_space> index(
        Exec{}, kindex::sorted, to_device<Exec>(keys));
    EXPECT_EQ(lower_bounds<Exec>(index, prefixes), lower);
    EXPECT_EQ(upper_bounds<Exec>(index, prefixes), upper);
    const auto device_prefixes = to_device<Exec>(prefixes);
    const auto hits = index.prefix_range(Exec{}, device_prefixes);
    const auto values = to_host(hits.values);
    const auto offsets = to_host(hits.offsets);
    const auto matches = filled<PrefixMatch, Exec>(queries.size());
    index.longest_prefix_match(Exec{}, to_device<Exec>(queries), matches);
    const auto found = to_host(matches);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      EXPECT_EQ(offsets[i + 1] - offsets[i], upper[i] - lower[i]);
      for (size_type hit = offsets[i]; hit < offsets[i + 1]; ++hit)
        EXPECT_EQ(values[hit], lower[i] + (hit - offsets[i]));
      EXPECT_EQ(found[i].rank, rank[i]) << to_text(queries[i]);
      EXPECT_EQ(found[i].bits, common[i]) << to_text(queries[i]);
    }
  }
}

TYPED_TEST(RadixTrees, AnswerPrefixes) {
  expect_right_prefixes<TypeParam, std::uint8_t>();
  expect_right_prefixes<TypeParam, std::int32_t>();
  expect_right_prefixes<TypeParam, double>();
  expect_right_prefixes<TypeParam, kindex::Key128>();
}

TYPED_TEST(RadixTrees, NothingMatchesNoEntries) {
  using Exec = TypeParam;
  const TreeOn<int, Exec> index;
  const auto matches = filled<kindex::PrefixMatch, Exec>(1);
  index.longest_prefix_match(Exec{}, to_device<Exec>(std::vector<int>{7}),
                             matches);
  EXPECT_EQ(to_host(matches)[0].rank, 0u);
  EXPECT_EQ(to_host(matches)[0].bits, 0u);
}

/// Ten children each, as in the paper, and chains that end otherwise.
TYPED_TEST(RadixTrees, FollowChainsOfParents) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  std::vector<Key> keys, parents;
  constexpr Key most = 20000;
  for (Key key = 2; key < most; ++key) {
    keys.push_back(key);
    parents.push_back(key < 10 ? 1 : key / 10);
  }
  // A root that is its own parent, and a circle.
  const std::vector<std::pair<Key, Key>> links{
      {50000, 50001}, {50001, 50001}, {60000, 60001}, {60001, 60000}};
  for (const auto& [key, parent] : links) {
    keys.push_back(key);
    parents.push_back(parent);
  }
  const RadixTree<Key, Key, typename Exec::memory_space> index(
      Exec{}, to_device<Exec>(keys), to_device<Exec>(parents));
  std::vector<Key> queries{0, 1, 2, 9, 10, 12345, 19999, 30000};
  for (const auto& link : links) queries.push_back(link.first);
  const std::vector<std::vector<Key>> expected{
      {},
      {},
      {1},
      {1},
      {1},
      {1234, 123, 12, 1},
      {1999, 199, 19, 1},
      {},
      {50001},
      {},
      {60001, 60000, 60001, 60000, 60001},
      {60000, 60001, 60000, 60001, 60000}};
  const auto check = [&](const auto& chains) {
    const auto lengths = filled<int, Exec>(queries.size());
    index.parent_chain(Exec{}, to_device<Exec>(queries), chains, lengths);
    const auto found = to_host(lengths);
    const auto host =
        Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, chains);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      std::vector<Key> chain;
      for (int l = 0; l < found[i]; ++l) chain.push_back(host(i, l));
      EXPECT_EQ(chain, expected[i]) << queries[i];
      for (int l = found[i]; l < 5; ++l) EXPECT_EQ(host(i, l), 77u);
    }
  };
  const Kokkos::View<Key**, Kokkos::LayoutLeft, Exec> left("test::chains",
                                                           queries.size(), 5);
  const Kokkos::View<Key**, Kokkos::LayoutRight, Exec> right("test::chains",
                                                             queries.size(), 5);
  Kokkos::deep_copy(left, 77);
  Kokkos::deep_copy(right, 77);
  check(left);
  check(right);
  const auto lengths = filled<int, Exec>(3);
  const auto three = to_device<Exec>(std::vector<Key>{1, 2, 3});
  EXPECT_THROW(index.parent_chain(Exec{}, three, left, lengths), kindex::Error);
  EXPECT_THROW(
      index.parent_chain(Exec{}, to_device<Exec>(queries), left, lengths),
      kindex::Error);
  const Kokkos::View<Key**, Exec> wide("test::chains", 3, 128);
  EXPECT_THROW(
      index.parent_chain(Exec{}, three, wide, filled<std::int8_t, Exec>(3)),
      kindex::Error);
}

/// The same verbs inside kernels.
template <class Exec, class Ref>
struct WalkKernel {
  Ref ref;
  DeviceView<size_type, Exec> seen;
  KOKKOS_FUNCTION void operator()(int) const {
    int n = 0;
    const auto note = [&](size_type what) { seen(n++) = what; };
    ref.for_each_in_reverse_range(20, 40,
                                  [&](int key, int) { note(size_type(key)); });
    ref.for_each_parent(40, 10, [&](int key) { note(size_type(key)); });
    note(ref.count(kindex::Prefix<int>{16, 28}));
    constexpr int least = -2147483647 - 1;  // as no bits, without overflow
    note(ref.count(kindex::Prefix<int>{16, least}) == ref.size());
    const auto match = ref.longest_prefix_match(41);
    note(match.rank);
    note(match.bits);
    note(size_type(n));
  }
};

TYPED_TEST(RadixTrees, AnswerInsideKernels) {
  using Exec = TypeParam;
  const RadixTree<int, int, typename Exec::memory_space> index(
      Exec{}, to_device<Exec>(std::vector<int>{10, 20, 30, 40, 50}),
      to_device<Exec>(std::vector<int>{10, 10, 20, 30, 30}));
  const auto seen = filled<size_type, Exec>(16, 0);
  Kokkos::parallel_for(
      "test::WalkKernel", Kokkos::RangePolicy<Exec>(0, 1),
      WalkKernel<Exec, std::decay_t<decltype(index.ref())>>{index.ref(), seen});
  EXPECT_EQ(to_host(seen),
            (Ranks{40, 30, 20, 30, 20, 10, 2, 1, 3, 31, 10, 0, 0, 0, 0, 0}));
}

/// Pinned, the root's children come from scratch memory, whatever its form.
TYPED_TEST(RadixTrees, PinnedRootsChangeNothing) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  using Pinned = kindex::BasicLookupPolicy<kindex::PinnedTop>;
  Failures failures;
  for (const auto& [name, keys] : shapes<Key>(3000)) {
    auto ascending = keys;
    std::sort(ascending.begin(), ascending.end());
    const Asked<Exec, Key> asked(name, ascending, queries_around(ascending));
    const std::size_t m = asked.queries.size();
    for (const size_type leaf : {1, 16}) {
      const TreeOn<Key, Exec> index(Exec{}, kindex::sorted, asked.device_keys,
                                    kindex::Check::on, options_of(leaf));
      EXPECT_EQ(index.ref().pinned_size(-1, 5000),
                index.height() > 0 ? 256u : 0u);
      EXPECT_EQ(index.ref().pinned_size(-1, 255), 0u);
      EXPECT_EQ(index.ref().pinned_size(0, 5000), 0u);
      const auto lower = filled<size_type, Exec>(m),
                 upper = filled<size_type, Exec>(m);
      const auto found = filled<std::uint32_t, Exec>(m);
      index.equal_range(Exec{}, asked.device_queries, lower, upper, Pinned());
      index.find(Exec{}, asked.device_queries, found, ~std::uint32_t{0},
                 Pinned());
      failures += asked.compare("pinned", to_host(lower), to_host(upper),
                                to_host(found));
    }
  }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

}  // namespace
}  // namespace kindex_test
