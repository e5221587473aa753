// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is special to the search layouts Eytzinger and PivotTree: the order in
// which they store keys, their levels, their memory, and the codes of quantised
// levels, attacked with keys that suit rounding badly.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <kindex/Eytzinger.hpp>
#include <kindex/PivotTree.hpp>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "conformance/Checks.hpp"
#include "support/Asked.hpp"
#include "support/Keys.hpp"
#include "support/Queries.hpp"
#include "support/Recorder.hpp"
#include "support/Values.hpp"

namespace kindex_test {
namespace {

using kindex::AoS;
using kindex::LastLevel;
using kindex::PivotTreeOptions;
using kindex::SoA;
using kindex::build::EytzingerShape;

// ---- known answers
// -----------------------------------------------------------

/// Keys 10, 20, ..., 10n for n = 1...33.
template <class Exec, template <class, class, class, class, int> class Index,
          int... FanOuts>
void expect_known_answers() {
  std::vector<std::uint32_t> keys;
  for (std::uint32_t n = 1; n <= 33; ++n) {
    keys.push_back(10 * n);
    const auto device_keys = to_device<Exec>(keys);
    const std::vector<std::uint32_t> queries{
        10 * n + 1, 10 * n, 5, 10, 11, ~std::uint32_t{0}};
    const Ranks lower{n, n - 1, 0, 0, 1, n}, upper{n, n, 0, 1, 1, n};
    const auto expect = [&](const auto& index, const std::string& name) {
      const auto first = filled<size_type, Exec>(queries.size()),
                 last = filled<size_type, Exec>(queries.size());
      index.equal_range(Exec{}, to_device<Exec>(queries), first, last);
      EXPECT_EQ(to_host(first), lower) << name << ", n = " << n;
      EXPECT_EQ(to_host(last), upper) << name << ", n = " << n;
    };
    using Memory = typename Exec::memory_space;
    (expect(Index<std::uint32_t, std::uint32_t, Memory, SoA, FanOuts>(
                Exec{}, kindex::sorted, device_keys),
            "SoA, K = " + std::to_string(FanOuts)),
     ...);
    (expect(Index<std::uint32_t, std::uint32_t, Memory, AoS, FanOuts>(
                Exec{}, kindex::sorted, device_keys),
            "AoS, K = " + std::to_string(FanOuts)),
     ...);
  }
}

// ---- the order of Eytzinger, by recursion
// ------------------------------------

/// Fills the node and all below it in ascending order.
void fill_in_order(size_type node, int fan_out, std::vector<size_type>& ranks,
                   size_type& next) {
  const auto keys = static_cast<size_type>(fan_out - 1);
  if (node * keys >= ranks.size()) return;
  for (size_type child = 0; child <= keys; ++child) {
    fill_in_order(node * fan_out + 1 + child, fan_out, ranks, next);
    if (child < keys && node * keys + child < ranks.size())
      ranks[node * keys + child] = next++;
  }
}

/// The ranks of the keys, slot by slot.
std::vector<size_type> ranks_by_recursion(size_type size, int fan_out) {
  std::vector<size_type> ranks(size);
  size_type next = 0;
  fill_in_order(0, fan_out, ranks, next);
  EXPECT_EQ(next, size);
  return ranks;
}

template <int K>
void expect_order_of_recursion() {
  for (size_type n = 1; n <= 200; ++n) {
    const auto ranks = ranks_by_recursion(n, K);
    const EytzingerShape<K> shape(n);
    ASSERT_EQ(shape.size(), n);
    for (size_type slot = 0; slot < n; ++slot) {
      ASSERT_EQ(shape.rank_of(slot), ranks[slot])
          << "slot " << slot << ", n = " << n << ", K = " << K;
      ASSERT_EQ(shape.slot_of(ranks[slot]), slot)
          << "rank " << ranks[slot] << ", n = " << n << ", K = " << K;
    }
  }
}

TEST(EytzingerOrder, IsThatOfTheRecursion) {
  expect_order_of_recursion<2>();
  expect_order_of_recursion<3>();
  expect_order_of_recursion<5>();
  expect_order_of_recursion<7>();
  expect_order_of_recursion<9>();
  expect_order_of_recursion<17>();
  expect_order_of_recursion<33>();
}

template <int K>
void expect_inverse(size_type n) {
  const EytzingerShape<K> shape(n);
  for (size_type slot = 0; slot < n; ++slot) {
    const size_type rank = shape.rank_of(slot);
    // An inverse from the left of a map into n numbers is an inverse.
    ASSERT_LT(rank, n) << "slot " << slot << ", n = " << n << ", K = " << K;
    ASSERT_EQ(shape.slot_of(rank), slot) << "n = " << n << ", K = " << K;
  }
}

TEST(EytzingerOrder, SlotsAndRanksAreInverse) {
  for (size_type n = 0; n <= 3000; ++n) {
    expect_inverse<2>(n);
    expect_inverse<3>(n);
    expect_inverse<4>(n);
    expect_inverse<5>(n);
    expect_inverse<7>(n);
    expect_inverse<9>(n);
    expect_inverse<17>(n);
    expect_inverse<33>(n);
    expect_inverse<300>(n);
    if (HasFatalFailure()) return;
  }
}

/// Keys in the subtree of `node`, of `n` keys in all; 128 bits hold whatever
/// comes.
size_type subtree_size(__uint128_t node, int fan_out, size_type n) {
  __uint128_t first = node, last = node, size = 0;
  while (first * (fan_out - 1) < n) {
    const __uint128_t end =
        std::min<__uint128_t>((last + 1) * (fan_out - 1), n);
    size += end - first * (fan_out - 1);
    first = first * fan_out + 1;
    last = last * fan_out + fan_out;
  }
  return static_cast<size_type>(size);
}

/// The rank of the key in a slot: what stands before it in its node, and in all
/// nodes on the way to the root.
size_type rank_by_subtrees(size_type slot, int fan_out, size_type n) {
  size_type node = slot / (fan_out - 1);
  const size_type place = slot % (fan_out - 1);
  size_type rank = place;
  for (size_type child = 0; child <= place; ++child)
    rank += subtree_size(__uint128_t(node) * fan_out + 1 + child, fan_out, n);
  while (node > 0) {
    const size_type parent = (node - 1) / fan_out;
    const size_type child = (node - 1) % fan_out;
    rank += child;
    for (size_type before = 0; before < child; ++before)
      rank +=
          subtree_size(__uint128_t(parent) * fan_out + 1 + before, fan_out, n);
    node = parent;
  }
  return rank;
}

template <int K>
void expect_right_where_huge() {
  std::mt19937_64 rng(K);
  size_type power = 1;
  while (power < (size_type{1} << 44) / K) power *= K;
  for (const size_type n :
       {(size_type{1} << 40) + 12345, (size_type{1} << 48) - 1,
        (size_type{1} << 52) + 1, power - 2, power - 1, power,
        power + power / 2 + 1}) {
    const EytzingerShape<K> shape(n);
    ASSERT_EQ(shape.size(), n);
    std::vector<size_type> slots{0, 1, n / K, n / 2, n - 2, n - 1};
    for (int i = 0; i < 60; ++i) slots.push_back(rng() % n);
    for (int i = 0; i < 20; ++i) slots.push_back(rng() >> (20 + 2 * i));
    for (const size_type slot : slots) {
      if (slot >= n) continue;
      const size_type rank = rank_by_subtrees(slot, K, n);
      ASSERT_EQ(shape.rank_of(slot), rank)
          << "slot " << slot << ", n = " << n << ", K = " << K;
      ASSERT_EQ(shape.slot_of(rank), slot) << "n = " << n << ", K = " << K;
    }
    for (const size_type rank : {size_type{0}, size_type{1}, n / 2, n - 1})
      ASSERT_EQ(shape.rank_of(shape.slot_of(rank)), rank)
          << "n = " << n << ", K = " << K;
  }
}

TEST(EytzingerOrder, IsRightWhereSizesAreHuge) {
  // That the reference itself is right is seen where recursion can be seen.
  for (const int fan_out : {2, 3, 17})
    for (const size_type n : {1, 14, 100, 199}) {
      const auto ranks = ranks_by_recursion(n, fan_out);
      for (size_type slot = 0; slot < n; ++slot)
        ASSERT_EQ(rank_by_subtrees(slot, fan_out, n), ranks[slot]);
    }
  expect_right_where_huge<2>();
  expect_right_where_huge<3>();
  expect_right_where_huge<4>();
  expect_right_where_huge<5>();
  expect_right_where_huge<7>();
  expect_right_where_huge<9>();
  expect_right_where_huge<17>();
  expect_right_where_huge<33>();
  expect_right_where_huge<300>();
}

// ---- codes
// -------------------------------------------------------------------

/// Codes are in order for all bits there are, and as fine as 8 bits allow.
template <class Bits>
void expect_codes_in_order(Bits low, Bits high) {
  const kindex::query::Quantiser<Bits> quantiser(low, high);
  const Bits range = high - low;
  constexpr Bits one = 1;
  std::mt19937_64 rng(low ^ high);
  std::vector<Bits> bits{0,
                         Bits(~Bits{0}),
                         low,
                         high,
                         Bits(low - 1),
                         Bits(low + 1),
                         Bits(high - 1),
                         Bits(high + 1)};
  for (int i = 0; i < 8 * int(sizeof(Bits)); ++i) {
    bits.push_back(low + (one << i));
    bits.push_back(low + (one << i) - 1);
    bits.push_back(high - (one << i));
    bits.push_back(static_cast<Bits>(rng()) >> i);
    bits.push_back(low +
                   static_cast<Bits>(rng() % (std::uint64_t{range} / 2 + 1)));
  }
  std::sort(bits.begin(), bits.end());
  int last = 0;
  for (const Bits b : bits) {
    const int code = quantiser.code(b);
    ASSERT_LE(last, code) << low << ", " << high << ", " << b;
    if (b <= low) ASSERT_EQ(code, 0) << low << ", " << high << ", " << b;
    if (b >= high)
      ASSERT_EQ(code, quantiser.code(high)) << low << ", " << high << ", " << b;
    if (range < 256 && b >= low && b <= high)
      ASSERT_EQ(code, int(b - low)) << low << ", " << high;
    last = code;
  }
  if (range >= 128) ASSERT_GE(last, 128) << low << ", " << high;
}

template <class Bits>
void expect_all_codes_in_order() {
  constexpr Bits ones = ~Bits{0};
  std::mt19937_64 rng(1);
  std::vector<Bits> ends{0, 1, 2, ones, ones - 1};
  for (int shift = 2; shift < 8 * int(sizeof(Bits)); ++shift)
    for (const Bits step : {ones, Bits{0}, Bits{1}})
      ends.push_back((Bits{1} << shift) + step);
  for (int i = 0; i < 10; ++i)
    ends.push_back(static_cast<Bits>(rng()) >> (3 * i));
  for (const Bits low : ends)
    for (const Bits high : ends)
      if (low <= high) {
        expect_codes_in_order<Bits>(low, high);
        // The same width at the upper end of all bits.
        expect_codes_in_order<Bits>(ones - (high - low), ones);
      }
}

TEST(PivotCodes, AreInOrder) {
  expect_all_codes_in_order<std::uint32_t>();
  expect_all_codes_in_order<std::uint64_t>();
}

// ---- keys that suit rounding badly
// -------------------------------------------

/// The key with `number` numbers below it, for types of as many bits; Key128 is
/// made in one of three ways.
template <class Key>
Key key_of(std::uint64_t number, int way) {
  if constexpr (std::is_same_v<Key, kindex::Key128>) {
    if (way == 0) return {number, mix(number)};
    if (way == 1) return {5, number};  // the high words, all equal, say nothing
    return {number >> 32, number << 32};
  } else if constexpr (std::is_same_v<Key, double>) {
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    constexpr std::uint64_t infinity = std::uint64_t{0x7FF} << 52;
    number = std::clamp(number, ~(sign | infinity), sign | infinity);
    return Kokkos::bit_cast<double>((number & sign) ? number ^ sign : ~number);
  } else if constexpr (std::is_signed_v<Key>) {
    return static_cast<Key>(number ^
                            (std::uint64_t{1} << (8 * sizeof(Key) - 1)));
  } else {
    return static_cast<Key>(number);
  }
}

/// n numbers of `bits` bits, in many ways.
/// \param leaf keys of a leaf; \param fan_out children of a node.
std::vector<DataSet<std::uint64_t>> hard_numbers(int bits, std::size_t n,
                                                 std::size_t leaf,
                                                 std::size_t fan_out) {
  const std::uint64_t max = ~std::uint64_t{0} >> (64 - bits);
  const std::uint64_t middle = max / 2 + 1;
  std::mt19937_64 rng(n);
  std::vector<DataSet<std::uint64_t>> sets;
  const auto add = [&](const std::string& name, const auto& number) {
    sets.push_back({name, {}});
    for (std::uint64_t i = 0; i < n; ++i)
      sets.back().keys.push_back(std::min<std::uint64_t>(number(i), max));
  };
  add("random", [&](std::uint64_t) { return rng() & max; });
  for (const std::uint64_t all : {std::uint64_t{0}, middle, max})
    add("all " + std::to_string(all), [&](std::uint64_t) { return all; });
  add("clusters at both ends", [&](std::uint64_t i) {
    return i < n / 2 ? std::min(i, middle)
                     : max - std::min<std::uint64_t>(n - 1 - i, middle - 1);
  });
  add("two keys at the ends",
      [&](std::uint64_t i) { return i < n / 3 ? 0 : max; });
  add("powers of two",
      [&](std::uint64_t i) { return std::uint64_t{1} << (i % bits); });
  add("around powers of two", [&](std::uint64_t i) {
    return (std::uint64_t{1} << (i % bits)) + rng() % 5;
  });
  add("powers of two below the largest", [&](std::uint64_t i) {
    return max - (std::uint64_t{1} << (i % bits)) + rng() % 2;
  });
  add("runs over nodes", [&](std::uint64_t i) {
    return middle - 3 + i / (leaf * fan_out + leaf / 2 + 1);
  });
  std::uint64_t run = middle, left = 0;
  add("runs over leaves", [&](std::uint64_t) {
    if (left == 0) {
      left = 1 + rng() % (3 * leaf);
      run += 1 + (rng() % 7 == 0 ? rng() % 1000 : 0);
    }
    --left;
    return run;
  });
  for (const std::uint64_t mask : {1u, 15u, 255u, 4095u})
    add("equal but for " + std::to_string(mask),
        [&](std::uint64_t) { return middle - 1 - mask / 2 + (rng() & mask); });
  add("dense, and the largest",
      [&](std::uint64_t i) { return i + 1 == n ? max : i; });
  add("dense, and the smallest",
      [&](std::uint64_t i) { return i == 0 ? 0 : max - i; });
  add("dense, and both ends", [&](std::uint64_t i) {
    return i == 0 ? 0 : i == 1 ? max : middle - n / 2 + i;
  });
  for (const std::size_t cluster :
       {leaf, leaf * fan_out, leaf * fan_out + 1, leaf * fan_out * fan_out}) {
    const std::uint64_t apart = max / ((n - 1) / cluster + 1);
    if (apart > cluster)
      add("clusters of " + std::to_string(cluster),
          [&](std::uint64_t i) { return i / cluster * apart + i % cluster; });
  }
  for (const int width : {8, 16, 24, 32, 63})
    for (const int step : {-2, -1, 0, 1}) {
      if (width >= bits || (width > 16 && step % 2 != 0)) continue;
      const std::uint64_t range = (std::uint64_t{1} << width) + step;
      const auto even = [&](std::uint64_t i) {
        return static_cast<std::uint64_t>(__uint128_t(range) * i /
                                          std::max<std::size_t>(n - 1, 1));
      };
      const std::string name = "even over " + std::to_string(range);
      add(name, [&](std::uint64_t i) { return middle - range / 2 + even(i); });
      add(name + " at the end",
          [&](std::uint64_t i) { return max - range + even(i); });
    }
  add("even over all", [&](std::uint64_t i) {
    return static_cast<std::uint64_t>(__uint128_t(max) * i /
                                      std::max<std::size_t>(n - 1, 1));
  });
  return sets;
}

/// Nodes of each level of a tree, from the root, whose last level has nodes of
/// `last_fan_out` children.
std::vector<size_type> nodes_of_levels(size_type keys, size_type leaf,
                                       size_type fan_out,
                                       size_type last_fan_out) {
  std::vector<size_type> nodes;
  for (size_type below = (keys - 1) / leaf + 1; below > 1;
       below = nodes.front())
    nodes.insert(nodes.begin(),
                 (below - 1) / (nodes.empty() ? last_fan_out : fan_out) + 1);
  return nodes;
}

int levels_above(size_type keys, size_type leaf, size_type fan_out,
                 size_type last_fan_out) {
  return static_cast<int>(
      nodes_of_levels(keys, leaf, fan_out, last_fan_out).size());
}

/// Children of a node of codes: 17 where groups of four lanes or more read
/// nodes of fewer keys, 4 children a lane.
template <class Key, int K>
constexpr size_type coded_fan_out() {
  constexpr int bytes = (K - 1) * int(sizeof(Key));
  constexpr int lanes = bytes / 16;
  constexpr bool is_shared = bytes % 16 == 0 && lanes > 1 && lanes <= 32 &&
                             std::has_single_bit(unsigned(lanes));
  return is_shared ? std::max(K, std::min(4 * lanes, 16) + 1) : K;
}

/// Levels that a tree with such options has.
template <class Key, int K>
int expected_levels(size_type keys, size_type leaf, int levels,
                    LastLevel last_level) {
  const int coded = levels_above(keys, leaf, K, coded_fan_out<Key, K>());
  if (last_level == LastLevel::quantised && sizeof(Key) > 1 &&
      (levels < 0 || levels >= coded))
    return coded;
  const int all = levels_above(keys, leaf, K, K);
  return levels < 0 ? all : std::min(levels, all);
}

/// A tree of every number of levels, the last one exact or quantised, with all
/// hard keys, at each of `sizes`.
template <class Exec, class Key, class Layout, int K>
void expect_options_change_nothing(size_type leaf,
                                   const std::vector<std::size_t>& sizes) {
  using Index = kindex::PivotTree<Key, std::uint32_t,
                                  typename Exec::memory_space, Layout, K>;
  constexpr int bits = std::min<int>(8 * sizeof(Key), 64);
  constexpr int ways = std::is_same_v<Key, kindex::Key128> ? 3 : 1;
  Failures failures;
  for (const std::size_t n : sizes)
    for (const auto& numbers : hard_numbers(bits, n, leaf, K))
      for (int way = 0; way < ways; ++way) {
        std::vector<Key> keys;
        for (const std::uint64_t number : numbers.keys)
          keys.push_back(key_of<Key>(number, way));
        std::sort(keys.begin(), keys.end(), Keys<Key>::less);
        const Asked<Exec, Key> asked(numbers.name, keys, queries_around(keys));

        const int all = levels_above(n, leaf, K, K);
        std::vector<std::pair<int, LastLevel>> options{
            {-1, LastLevel::automatic}, {-1, LastLevel::exact},
            {-1, LastLevel::quantised}, {all, LastLevel::quantised},
            {0, LastLevel::exact},      {1, LastLevel::quantised},
            {2, LastLevel::exact},      {all - 1, LastLevel::quantised},
            {all / 2, LastLevel::exact}};
        std::sort(options.begin(), options.end());
        options.erase(std::unique(options.begin(), options.end()),
                      options.end());
        for (const auto& [levels, last_level] : options) {
          if (levels > all) continue;
          PivotTreeOptions chosen;
          chosen.levels = levels;
          chosen.last_level = last_level;
          const Index index(Exec{}, kindex::sorted, asked.device_keys,
                            kindex::Check::on, chosen);
          ASSERT_EQ(index.levels(),
                    (expected_levels<Key, K>(n, leaf, levels, last_level)));
          const std::string how =
              "levels = " + std::to_string(levels) + " of " +
              std::to_string(all) + ", last level " +
              std::array{"automatic", "exact", "quantised"}[int(last_level)];
          failures += check_bulk_answers(index, asked, how);
          failures += check_ref_answers(index, asked, how);
        }
      }
  EXPECT_TRUE(failures.empty()) << failures.text();
}

/// leaf·K^power − 1, leaf·K^power, leaf·K^power + 1.
std::vector<std::size_t> around(std::size_t leaf, std::size_t fan_out,
                                int power) {
  std::size_t size = leaf;
  for (int i = 0; i < power; ++i) size *= fan_out;
  return {size - 1, size, size + 1};
}

// ---- policies
// ----------------------------------------------------------------

/// Batches that fill no team or warp, under all policies; nothing is written
/// behind a batch's answers.
template <class Exec, class Index, class Key>
Failures check_policies(const Index& index, const Asked<Exec, Key>& asked,
                        const std::string& how) {
  constexpr std::size_t spare = 64;
  constexpr auto blank = static_cast<size_type>(0xA5A5A5A5A5A5A5A5u);
  constexpr auto blank_row = static_cast<std::uint32_t>(blank);
  Failures failures;
  for (const std::size_t batch : {1, 31, 33, 1000}) {
    const Kokkos::pair<std::size_t, std::size_t> part(0, batch);
    const DeviceView<size_type, Exec> lower("test::lower", batch + spare),
        upper("test::upper", batch + spare);
    const DeviceView<std::uint32_t, Exec> found("test::found", batch + spare);
    Ranks right_lower(asked.lower.begin(), asked.lower.begin() + batch),
        right_upper(asked.upper.begin(), asked.upper.begin() + batch);
    std::vector<std::uint32_t> right_found(asked.found.begin(),
                                           asked.found.begin() + batch);
    right_lower.resize(batch + spare, blank);
    right_upper.resize(batch + spare, blank);
    right_found.resize(batch + spare, blank_row);
    const auto place = [&](std::size_t i) {
      return i < batch ? "query " + to_text(asked.queries[i])
                       : std::string("behind the answers");
    };
    for (const auto scheduling :
         {kindex::Scheduling::dynamic, kindex::Scheduling::fixed,
          kindex::Scheduling::one_per_core})
      for (const int team_size : {0, 1, 32, 33, 96, 1000})
        for (int lookups = 1; lookups <= 16; ++lookups) {
          const auto policy = kindex::LookupPolicy()
                                  .set_scheduling(scheduling)
                                  .set_team_size(team_size)
                                  .set_lookups_per_thread(lookups);
          Kokkos::deep_copy(lower, blank);
          Kokkos::deep_copy(upper, blank);
          Kokkos::deep_copy(found, blank_row);
          const auto queries = Kokkos::subview(asked.device_queries, part);
          index.equal_range(Exec{}, queries, Kokkos::subview(lower, part),
                            Kokkos::subview(upper, part), policy);
          index.find(Exec{}, queries, Kokkos::subview(found, part), policy);
          const std::string on = ", " + how + ", batch of " +
                                 std::to_string(batch) + ", team size " +
                                 std::to_string(team_size) + ", lookups " +
                                 std::to_string(lookups);
          failures.compare("lower bound" + on, right_lower, to_host(lower),
                           place);
          failures.compare("upper bound" + on, right_upper, to_host(upper),
                           place);
          failures.compare("find" + on, right_found, to_host(found), place);
        }
  }
  return failures;
}

// ---- on every device
// ---------------------------------------------------------

template <class Exec>
class Layouts : public ::testing::Test {
 public:
  using Memory = typename Exec::memory_space;

  template <class Key, class Layout, int K>
  using Eytzinger = kindex::Eytzinger<Key, std::uint32_t, Memory, Layout, K>;
  template <class Key, class Layout, int K>
  using PivotTree = kindex::PivotTree<Key, std::uint32_t, Memory, Layout, K>;

  /// `n` keys with duplicates, and at least 1000 queries.
  template <class Key>
  static Asked<Exec, Key> mixed(std::size_t n) {
    std::vector<Key> keys = mixed_keys<Key>(n).keys;
    std::sort(keys.begin(), keys.end(), Keys<Key>::less);
    std::vector<Key> queries = queries_around(keys);
    while (queries.size() < 1000)
      queries.insert(queries.end(), queries.begin(), queries.end());
    return {"mixed", keys, queries};
  }

  static void expect_none(const Failures& failures) {
    EXPECT_TRUE(failures.empty()) << failures.text();
  }
};
TYPED_TEST_SUITE(Layouts, Devices, DeviceName);

TYPED_TEST(Layouts, KnownAnswersOfEytzinger) {
  expect_known_answers<TypeParam, kindex::Eytzinger, 2, 3, 5, 9, 17, 33>();
}

TYPED_TEST(Layouts, KnownAnswersOfPivotTree) {
  expect_known_answers<TypeParam, kindex::PivotTree, 2, 3, 5, 9, 17, 33>();
}

template <class Exec, class Ref>
struct ReadSlots {
  Ref ref;
  DeviceView<std::uint32_t, Exec> keys, values;
  DeviceView<size_type, Exec> ranks, slots;
  KOKKOS_FUNCTION void operator()(size_type slot) const {
    keys(slot) = ref.key_at(slot);
    values(slot) = ref.value_at(slot);
    ranks(slot) = ref.rank_of(slot);
    slots(slot) = ref.position_of(ref.rank_of(slot));
  }
};

// Figure 10 of Henneberg and Schuhknecht: 14 keys, K = 3, and b = 6 of them in
// the incomplete last level.
TYPED_TEST(Layouts, WorkedExample) {
  using Exec = TypeParam;
  const std::vector<std::uint32_t> ascending{2,  3,  6,  6,  7,  7,  9,
                                             10, 12, 12, 13, 14, 17, 17};
  const std::vector<std::uint32_t> order{12, 14,                  // the root
                                         6,  7,  12, 13, 17, 17,  // 3 nodes
                                         2,  3,  6,  7,  9,  10};
  const std::vector<size_type> ranks{8,  11, 2, 5, 9, 10, 12,
                                     13, 0,  1, 3, 4, 6,  7};
  EXPECT_EQ(ranks_by_recursion(14, 3), ranks);

  // The rows of equal keys, in the order of the input, are not neighbours.
  const std::vector<std::uint32_t> input{17, 12, 6,  2, 10, 7, 13,
                                         9,  12, 17, 6, 3,  7, 14};
  const std::vector<std::uint32_t> rows{3, 11, 2, 10, 5,  12, 7,
                                        4, 1,  8, 6,  13, 0,  9};
  using Index = typename TestFixture::template Eytzinger<std::uint32_t, SoA, 3>;
  const Index index(Exec{}, to_device<Exec>(input));
  using Ref = typename Index::Ref;
  const ReadSlots<Exec, Ref> read{index.ref(), filled<std::uint32_t, Exec>(14),
                                  filled<std::uint32_t, Exec>(14),
                                  filled<size_type, Exec>(14),
                                  filled<size_type, Exec>(14)};
  Kokkos::parallel_for("test::ReadSlots",
                       Kokkos::RangePolicy<Exec>(Exec{}, 0, 14), read);
  EXPECT_EQ(to_host(read.keys), order);
  EXPECT_EQ(to_host(read.ranks), ranks);
  const auto values = to_host(read.values);
  const auto slots = to_host(read.slots);
  for (size_type slot = 0; slot < 14; ++slot) {
    EXPECT_EQ(ascending[ranks[slot]], order[slot]);
    EXPECT_EQ(values[slot], rows[ranks[slot]]) << "slot " << slot;
    EXPECT_EQ(slots[slot], slot);
  }

  const std::vector<std::uint32_t> nine{9}, twelve{12};
  EXPECT_EQ(range_counts<Exec>(index, nine, twelve), Ranks{4});
  EXPECT_EQ(range_values<Exec>(index, 9u, 12u),
            (std::vector<std::uint32_t>{7, 4, 1, 8}));
  const auto hits = index.range(Exec{}, to_device<Exec>(nine),
                                to_device<Exec>(twelve), kindex::with_keys);
  EXPECT_EQ(to_host(hits.keys), (std::vector<std::uint32_t>{9, 10, 12, 12}));
  EXPECT_EQ(to_host(hits.offsets), (Ranks{0, 4}));
  EXPECT_EQ(range_values<Exec>(index, 0u, 99u), rows);

  const typename TestFixture::template PivotTree<std::uint32_t, SoA, 3> tree(
      Exec{}, to_device<Exec>(input));
  EXPECT_EQ(range_values<Exec>(tree, 9u, 12u),
            (std::vector<std::uint32_t>{7, 4, 1, 8}));
  EXPECT_EQ(tree.levels(), 2);  // 7 leaves of 2 keys, 3 nodes, the root
}

TYPED_TEST(Layouts, OptionsWithKeysOf8Bits) {
  expect_options_change_nothing<TypeParam, std::uint8_t, SoA, 65>(
      64, {1, 64, 65, 4159, 4160, 4161});
  expect_options_change_nothing<TypeParam, std::uint8_t, SoA, 3>(
      2, around(2, 3, 4));
}

TYPED_TEST(Layouts, OptionsWithKeysOf16Bits) {
  expect_options_change_nothing<TypeParam, std::int16_t, SoA, 33>(
      32, {32, 33, 1055, 1056, 1057, 34849});
  expect_options_change_nothing<TypeParam, std::int16_t, SoA, 3>(
      2, around(2, 3, 5));
}

TYPED_TEST(Layouts, OptionsWithKeysOf32Bits) {
  expect_options_change_nothing<TypeParam, std::uint32_t, SoA, 17>(
      16, {16, 17, 271, 272, 273, 4623, 4624, 4625});
  expect_options_change_nothing<TypeParam, std::uint32_t, SoA, 17>(16, {78609});
}

TYPED_TEST(Layouts, OptionsWithBinaryNodes) {
  expect_options_change_nothing<TypeParam, std::uint32_t, SoA, 2>(
      1, {1, 2, 3, 4, 5, 1023, 1024, 1025});
}

TYPED_TEST(Layouts, OptionsWithWideNodes) {
  expect_options_change_nothing<TypeParam, std::uint32_t, SoA, 33>(
      32, {1056, 1057, 34848, 34849});
}

TYPED_TEST(Layouts, OptionsWithKeysBesideValues) {
  expect_options_change_nothing<TypeParam, std::uint32_t, AoS, 17>(
      8, {8, 9, 136, 137, 2311, 2312, 2313});
}

TYPED_TEST(Layouts, OptionsWithKeysOf64Bits) {
  expect_options_change_nothing<TypeParam, std::uint64_t, SoA, 9>(
      8, {8, 9, 72, 73, 136, 137, 648, 649, 1223, 1224, 1225, 5832, 11017});
  expect_options_change_nothing<TypeParam, std::uint64_t, SoA, 3>(
      2, around(2, 3, 6));
}

TYPED_TEST(Layouts, OptionsWithFloatingPointKeys) {
  expect_options_change_nothing<TypeParam, double, SoA, 9>(
      8, {8, 9, 72, 73, 647, 648, 649, 5833});
}

TYPED_TEST(Layouts, OptionsWithKeysOf128Bits) {
  expect_options_change_nothing<TypeParam, kindex::Key128, SoA, 5>(
      4, {4, 5, 21, 68, 69, 100, 101, 339, 340, 341, 1701, 2501});
}

TYPED_TEST(Layouts, PoliciesChangeNothing) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  const auto asked = TestFixture::template mixed<Key>(5000);
  using Tree = typename TestFixture::template PivotTree<Key, SoA, 17>;
  for (const auto last_level : {LastLevel::exact, LastLevel::quantised})
    TestFixture::expect_none(
        check_policies<Exec>(Tree(Exec{}, kindex::sorted, asked.device_keys,
                                  kindex::Check::on, {-1, last_level}),
                             asked, "PivotTree"));
  using Pairs = typename TestFixture::template PivotTree<Key, AoS, 17>;
  TestFixture::expect_none(
      check_policies<Exec>(Pairs(Exec{}, kindex::sorted, asked.device_keys),
                           asked, "PivotTree of pairs"));
  using Wide = typename TestFixture::template PivotTree<Key, SoA, 33>;
  TestFixture::expect_none(
      check_policies<Exec>(Wide(Exec{}, kindex::sorted, asked.device_keys),
                           asked, "PivotTree, K = 33"));
  using Level = typename TestFixture::template Eytzinger<Key, SoA, 17>;
  TestFixture::expect_none(
      check_policies<Exec>(Level(Exec{}, kindex::sorted, asked.device_keys),
                           asked, "Eytzinger, K = 17"));
}

template <class Exec, class Index, class Key>
Failures check_fan_out(const Asked<Exec, Key>& asked, int fan_out) {
  const Index index(Exec{}, kindex::sorted, asked.device_keys);
  const std::string how =
      std::string(Index::name()) + ", K = " + std::to_string(fan_out);
  Failures failures = check_bulk_answers(index, asked, how);
  failures += check_ref_answers(index, asked, how);
  return failures;
}

TYPED_TEST(Layouts, AnyFanOut) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  using Fixture = TestFixture;
  for (const std::size_t n : {1, 298, 299, 300, 1000, 4000, 89701}) {
    const auto asked = Fixture::template mixed<Key>(n);
    Fixture::expect_none(
        check_fan_out<Exec, typename Fixture::template Eytzinger<Key, SoA, 4>>(
            asked, 4));
    Fixture::expect_none(
        check_fan_out<Exec, typename Fixture::template PivotTree<Key, SoA, 7>>(
            asked, 7));
    Fixture::expect_none(
        check_fan_out<Exec,
                      typename Fixture::template Eytzinger<Key, SoA, 300>>(
            asked, 300));
    Fixture::expect_none(
        check_fan_out<Exec,
                      typename Fixture::template PivotTree<Key, SoA, 300>>(
            asked, 300));
  }
}

// 32 lanes whose counts add up to 256: one more than a byte holds.
TYPED_TEST(Layouts, SumsOfManyLanes) {
  using Exec = TypeParam;
  using Key = std::uint16_t;
  using Fixture = TestFixture;
  for (const std::size_t n : {255, 256, 257, 65791, 65792, 65793, 70000}) {
    const auto asked = Fixture::template mixed<Key>(n);
    Fixture::expect_none(
        check_fan_out<Exec,
                      typename Fixture::template Eytzinger<Key, SoA, 257>>(
            asked, 257));
    Fixture::expect_none(
        check_fan_out<Exec,
                      typename Fixture::template PivotTree<Key, SoA, 257>>(
            asked, 257));
  }
}

TYPED_TEST(Layouts, MemoryOfEytzinger) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  constexpr size_type n = 1001;
  const auto keys = to_device<Exec>(std::vector<Key>(n, 5));
  const auto values = to_device<Exec>(std::vector<std::uint32_t>(n, 5));
  using Binary = typename TestFixture::template Eytzinger<Key, SoA, 2>;
  using Wide = typename TestFixture::template Eytzinger<Key, SoA, 9>;
  using Pairs = typename TestFixture::template Eytzinger<Key, AoS, 2>;
  using WidePairs = typename TestFixture::template Eytzinger<Key, AoS, 9>;
  const auto bytes = [&](const auto& index) { return index.memory_bytes(); };
  EXPECT_EQ(bytes(Binary(Exec{}, kindex::sorted, keys, values)),
            (n + 1) * (8 + 4));
  EXPECT_EQ(bytes(Binary(Exec{}, kindex::sorted, keys)), (n + 1) * 8)
      << "row ids are implicit";
  EXPECT_EQ(bytes(Wide(Exec{}, kindex::sorted, keys, values)),
            (n + 1) * (8 + 4));
  EXPECT_EQ(bytes(Wide(Exec{}, keys)), (n + 1) * (8 + 4));
  EXPECT_EQ(bytes(Wide(Exec{}, kindex::sorted, keys)), (n + 1) * 8);
  EXPECT_EQ(bytes(Pairs(Exec{}, kindex::sorted, keys)), (n + 1) * 16);
  EXPECT_EQ(bytes(WidePairs(Exec{}, kindex::sorted, keys)), (n + 1) * 16);
  EXPECT_EQ(Binary().memory_bytes(), 0u);
}

template <class Exec, class Key, int K>
void expect_tree_memory(size_type n) {
  using Index = kindex::PivotTree<Key, std::uint32_t,
                                  typename Exec::memory_space, SoA, K>;
  constexpr size_type leaf = K - 1;
  const auto keys = to_device<Exec>(std::vector<Key>(n, Keys<Key>::of(3)));
  const int all = levels_above(n, leaf, K, K);
  const size_type padded = (n + leaf - 1) / leaf * leaf;
  for (int levels = -1; levels <= all + 1; ++levels)
    for (const auto last_level : {LastLevel::exact, LastLevel::quantised}) {
      PivotTreeOptions options;
      options.levels = levels;
      options.last_level = last_level;
      constexpr size_type last_fan_out = coded_fan_out<Key, K>();
      const int stored = expected_levels<Key, K>(n, leaf, levels, last_level);
      const bool codes = last_level == LastLevel::quantised &&
                         stored == levels_above(n, leaf, K, last_fan_out);
      const auto nodes = nodes_of_levels(n, leaf, K, codes ? last_fan_out : K);
      const int exact = codes ? std::max(stored - 1, 0) : stored;
      size_type bytes = padded * sizeof(Key) + exact * 16;
      for (int level = 0; level < stored; ++level)
        bytes += codes && level == stored - 1
                     ? nodes[level] * (last_fan_out - 1)
                     : nodes[level] * (K - 1) * sizeof(Key);
      const Index rows(Exec{}, kindex::sorted, keys, kindex::Check::off,
                       options);
      EXPECT_EQ(rows.levels(), stored) << "n = " << n << ", K = " << K;
      EXPECT_EQ(rows.memory_bytes(), bytes)
          << "n = " << n << ", K = " << K << ", levels = " << levels
          << (codes ? ", quantised" : "");
      const Index stored_rows(Exec{}, keys, options);
      EXPECT_EQ(stored_rows.levels(), stored);
      EXPECT_GE(stored_rows.memory_bytes(), bytes + n * 4);
      EXPECT_LE(stored_rows.memory_bytes(), bytes + padded * 4);
    }
}

TYPED_TEST(Layouts, MemoryOfPivotTree) {
  using Exec = TypeParam;
  for (const size_type n : {1, 8, 9, 72, 73, 136, 137, 1000, 1224, 1225, 5833})
    expect_tree_memory<Exec, std::uint64_t, 9>(n);
  for (const size_type n : {1, 2, 3, 1024, 1025})
    expect_tree_memory<Exec, std::uint32_t, 2>(n);

  // As 24 levels above 2^28 keys: 4 are left out.
  constexpr size_type n = size_type{1} << 16;
  const auto keys = to_device<Exec>(std::vector<std::uint32_t>(n, 1));
  PivotTreeOptions options;
  options.levels = 12;
  const typename TestFixture::template PivotTree<std::uint32_t, SoA, 2> binary(
      Exec{}, keys, options);
  EXPECT_EQ(binary.levels(), 12);
  EXPECT_LE(binary.memory_bytes() * 1000, n * 8 * 1032);
  // The fastest: all levels, and nothing stored beside keys.
  const typename TestFixture::template PivotTree<std::uint32_t, SoA, 17> wide(
      Exec{}, kindex::sorted, keys, kindex::Check::on, {-1, LastLevel::exact});
  EXPECT_LE(wide.memory_bytes() * 100, n * 4 * 107);

  // A leaf of pairs has as many bytes as a node.
  using Pairs =
      typename TestFixture::template PivotTree<std::uint32_t, AoS, 17>;
  options.levels = 0;
  for (const size_type size : {1, 7, 8, 9, 1000, 1001}) {
    const Pairs pairs(Exec{}, kindex::sorted,
                      to_device<Exec>(std::vector<std::uint32_t>(size, 1)),
                      kindex::Check::on, options);
    EXPECT_EQ(pairs.levels(), 0);
    EXPECT_EQ(pairs.memory_bytes(), (size + 7) / 8 * 64);
  }
}

template <class Exec, class Index>
void expect_nothing_inside(const Index& index) {
  const std::vector<std::uint32_t> queries{0, 7, ~std::uint32_t{0}};
  EXPECT_TRUE(index.empty());
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(index.memory_bytes(), 0u);
  const Asked<Exec, std::uint32_t> asked("nothing", {}, queries);
  Failures failures = check_bulk_answers(index, asked, Index::name());
  failures += check_ref_answers(index, asked, Index::name());
  EXPECT_TRUE(failures.empty()) << failures.text();
}

TYPED_TEST(Layouts, Empty) {
  using Exec = TypeParam;
  using Level =
      typename TestFixture::template Eytzinger<std::uint32_t, SoA, 17>;
  using Binary =
      typename TestFixture::template Eytzinger<std::uint32_t, AoS, 2>;
  using Tree = typename TestFixture::template PivotTree<std::uint32_t, SoA, 17>;
  const auto none = to_device<Exec>(std::vector<std::uint32_t>{});
  expect_nothing_inside<Exec>(Level());
  expect_nothing_inside<Exec>(Level(Exec{}, none));
  expect_nothing_inside<Exec>(Binary(Exec{}, kindex::sorted, none));
  expect_nothing_inside<Exec>(Tree());
  expect_nothing_inside<Exec>(Tree(Exec{}, none));
  expect_nothing_inside<Exec>(Tree(Exec{}, kindex::sorted, none));
  EXPECT_EQ(Tree(Exec{}, none, {3, LastLevel::quantised}).levels(), 0);
}

template <class Exec, class Index>
void expect_shallow_copies(Index&& built) {
  using Stored = std::decay_t<Index>;
  const std::vector<std::uint32_t> queries{1, 2, 3, 4}, keys{1, 2, 3};
  auto first = std::make_unique<Stored>(std::move(built));
  Stored copy, moved;
  {
    Recorder recorder;
    copy = *first;
    Stored other = copy;
    moved = std::move(other);
    first.reset();
    const auto events = recorder.stop();
    EXPECT_EQ(events.size(), 0u)
        << (events.empty() ? "" : events.front().text());
  }
  const Asked<Exec, std::uint32_t> asked("copies", keys, queries);
  Failures failures = check_bulk_answers(copy, asked, Stored::name());
  moved = Stored();
  failures += check_bulk_answers(copy, asked, Stored::name());
  EXPECT_TRUE(failures.empty()) << failures.text();
  Recorder recorder;
  copy = Stored();
  EXPECT_GE(number_of(recorder.stop(), Event::deallocation), 1u)
      << "the last copy did not free the index";
}

TYPED_TEST(Layouts, CopiesAreShallowAndCounted) {
  using Exec = TypeParam;
  const auto keys = to_device<Exec>(std::vector<std::uint32_t>{1, 2, 3});
  using Level =
      typename TestFixture::template Eytzinger<std::uint32_t, SoA, 17>;
  using Tree = typename TestFixture::template PivotTree<std::uint32_t, SoA, 2>;
  expect_shallow_copies<Exec>(Level(Exec{}, kindex::sorted, keys));
  for (const auto last_level : {LastLevel::exact, LastLevel::quantised})
    expect_shallow_copies<Exec>(Tree(Exec{}, kindex::sorted, keys,
                                     kindex::Check::on, {-1, last_level}));
}

TYPED_TEST(Layouts, InputMayChangeAfterTheBuild) {
  using Exec = TypeParam;
  const std::vector<std::uint32_t> host{1, 2, 2, 7};
  const auto keys = to_device<Exec>(host);
  using Level =
      typename TestFixture::template Eytzinger<std::uint32_t, SoA, 17>;
  using Tree = typename TestFixture::template PivotTree<std::uint32_t, SoA, 2>;
  const Level level(Exec{}, kindex::sorted, keys);
  const Tree tree(Exec{}, kindex::sorted, keys, kindex::Check::on,
                  {-1, LastLevel::quantised});
  Exec{}.fence("test::build");
  Kokkos::deep_copy(keys, 100);
  const Asked<Exec, std::uint32_t> asked("changed input", host,
                                         {0, 1, 2, 3, 7, 8});
  this->expect_none(check_bulk_answers(level, asked, "Eytzinger"));
  this->expect_none(check_bulk_answers(tree, asked, "PivotTree"));
}

template <class Expected, class Index>
constexpr bool is_deduced = std::is_same_v<Expected, Index>;

TYPED_TEST(Layouts, TypesAreDeduced) {
  using Exec = TypeParam;
  using Memory = typename Exec::memory_space;
  using kindex::Check;
  using kindex::Eytzinger;
  using kindex::PivotTree;
  using kindex::sorted;
  const Exec space{};
  const auto keys = to_device<Exec>(std::vector<double>{1, 2});
  const DeviceView<const double, Exec> const_keys(keys);
  const auto values = to_device<Exec>(std::vector<std::int64_t>{1, 2});
  const PivotTreeOptions options;

  using Rows = Eytzinger<double, std::uint32_t, Memory, SoA, 9>;
  using Values = Eytzinger<double, std::int64_t, Memory, SoA, 9>;
  static_assert(is_deduced<Rows, decltype(Eytzinger(space, keys))>);
  static_assert(is_deduced<Rows, decltype(Eytzinger(space, const_keys))>);
  static_assert(is_deduced<Values, decltype(Eytzinger(space, keys, values))>);
  static_assert(is_deduced<Rows, decltype(Eytzinger(space, sorted, keys))>);
  static_assert(
      is_deduced<Rows, decltype(Eytzinger(space, sorted, keys, Check::off))>);
  static_assert(
      is_deduced<Values, decltype(Eytzinger(space, sorted, keys, values))>);
  static_assert(is_deduced<Values, decltype(Eytzinger(space, sorted, keys,
                                                      values, Check::off))>);

  using TreeRows = PivotTree<double, std::uint32_t, Memory, SoA, 9>;
  using TreeValues = PivotTree<double, std::int64_t, Memory, SoA, 9>;
  static_assert(is_deduced<TreeRows, decltype(PivotTree(space, keys))>);
  static_assert(is_deduced<TreeRows, decltype(PivotTree(space, const_keys))>);
  static_assert(
      is_deduced<TreeRows, decltype(PivotTree(space, keys, options))>);
  static_assert(
      is_deduced<TreeValues, decltype(PivotTree(space, keys, values))>);
  static_assert(is_deduced<TreeValues,
                           decltype(PivotTree(space, keys, values, options))>);
  static_assert(is_deduced<TreeRows, decltype(PivotTree(space, sorted, keys))>);
  static_assert(is_deduced<TreeRows, decltype(PivotTree(space, sorted, keys,
                                                        Check::off, options))>);
  static_assert(
      is_deduced<TreeValues, decltype(PivotTree(space, sorted, keys, values))>);
  static_assert(
      is_deduced<TreeValues, decltype(PivotTree(space, sorted, keys, values,
                                                Check::off, options))>);

  static_assert(
      std::is_same_v<kindex::PivotTree<kindex::Key128>,
                     kindex::PivotTree<
                         kindex::Key128, std::uint32_t,
                         Kokkos::DefaultExecutionSpace::memory_space, SoA, 5>>);
  static_assert(std::is_trivially_copyable_v<typename Values::Ref> &&
                std::is_trivially_copyable_v<typename TreeValues::Ref>);
  using Triples = PivotTree<kindex::Key128, Triple, Memory, AoS>;
  static_assert(std::is_trivially_copyable_v<typename Triples::Ref>);
  static_assert(std::is_default_constructible_v<typename Rows::Ref> &&
                std::is_default_constructible_v<typename TreeRows::Ref>);
}

}  // namespace
}  // namespace kindex_test
