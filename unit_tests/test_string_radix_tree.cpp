// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Byte strings: any bytes, no byte, strings that others begin with; their
// order, their tree and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <kindex/StringRadixTree.hpp>
#include <map>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/Devices.hpp"
#include "support/Errors.hpp"
#include "support/FailingAllocation.hpp"
#include "support/Queries.hpp"
#include "support/RadixReference.hpp"

namespace kindex_test {
namespace {

using kindex::Bytes;
using kindex::RadixTreeOptions;
using kindex::StringRadixTree;
using Strings = std::vector<std::string>;

template <class Exec>
class StringRadixTrees : public ::testing::Test {};

TYPED_TEST_SUITE(StringRadixTrees, Devices, DeviceName);

/// Strings on the device, as offsets and chars and as queries.
template <class Exec>
struct DeviceStrings {
  DeviceView<size_type, Exec> offsets;
  DeviceView<char, Exec> chars;
  DeviceView<Bytes, Exec> queries;

  explicit DeviceStrings(const Strings& strings) {
    std::vector<size_type> ends{3};
    // Strings need not begin at the first char.
    std::vector<char> all{'x', 'y', 'z'};
    for (const auto& string : strings) {
      all.insert(all.end(), string.begin(), string.end());
      ends.push_back(all.size());
    }
    offsets = to_device<Exec>(ends);
    chars = to_device<Exec>(all);
    queries = kindex::as_bytes(Exec{}, offsets, chars);
  }
};

RadixTreeOptions options_of(size_type leaf_entries) {
  RadixTreeOptions options;
  options.leaf_entries = leaf_entries;
  return options;
}

template <class Exec>
using TreeOn = StringRadixTree<std::uint32_t, typename Exec::memory_space>;

template <class Exec>
TreeOn<Exec> tree_of(const Strings& strings, size_type leaf_entries) {
  const DeviceStrings<Exec> on_device(strings);
  return TreeOn<Exec>(Exec{}, on_device.offsets, on_device.chars,
                      options_of(leaf_entries));
}

bool begins_with(const std::string& string, const std::string& prefix) {
  return string.compare(0, prefix.size(), prefix) == 0;
}

/// Everything an index of `strings` should answer, and does not.
template <class Exec>
void expect_right_answers(const std::string& name, const Strings& strings,
                          const Strings& queries, size_type leaf_entries) {
  SCOPED_TRACE(name + ", " + std::to_string(strings.size()) +
               " strings, leaves of " + std::to_string(leaf_entries));
  const auto index = tree_of<Exec>(strings, leaf_entries);
  std::vector<std::uint32_t> rows(strings.size());
  std::iota(rows.begin(), rows.end(), 0U);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](auto a, auto b) { return strings[a] < strings[b]; });
  Strings ascending;
  for (const auto row : rows) ascending.push_back(strings[row]);

  Ranks lower, upper, first, last, match_rank;
  std::vector<std::uint32_t> found;
  std::vector<std::uint64_t> match_bits;
  for (const auto& query : queries) {
    const auto range =
        std::equal_range(ascending.begin(), ascending.end(), query);
    lower.push_back(size_type(range.first - ascending.begin()));
    upper.push_back(size_type(range.second - ascending.begin()));
    found.push_back(lower.back() < upper.back() ? rows[lower.back()]
                                                : ~std::uint32_t{0});
    first.push_back(lower.back());
    last.push_back(lower.back());
    while (last.back() < ascending.size() &&
           begins_with(ascending[last.back()], query))
      ++last.back();
    match_rank.push_back(strings.size());
    match_bits.push_back(0);
    for (std::size_t rank = ascending.size(); rank-- > 0;)
      if (begins_with(query, ascending[rank]) &&
          (match_rank.back() == strings.size() ||
           ascending[rank].size() * 8 >= match_bits.back())) {
        match_rank.back() = rank;
        match_bits.back() = ascending[rank].size() * 8;
      }
  }
  const DeviceStrings<Exec> asked(queries);
  const std::size_t m = queries.size();
  const auto got_lower = filled<size_type, Exec>(m),
             got_upper = filled<size_type, Exec>(m);
  const auto got_found = filled<std::uint32_t, Exec>(m);
  index.equal_range(Exec{}, asked.queries, got_lower, got_upper);
  EXPECT_EQ(to_host(got_lower), lower);
  EXPECT_EQ(to_host(got_upper), upper);
  using Pinned = kindex::BasicLookupPolicy<kindex::PinnedTop>;
  index.lower_bound(Exec{}, asked.queries, got_lower, Pinned());
  EXPECT_EQ(to_host(got_lower), lower);
  index.find(Exec{}, asked.queries, got_found);
  EXPECT_EQ(to_host(got_found), found);
  const auto contained = filled<bool, Exec>(m);
  index.contains(Exec{}, asked.queries, contained);
  const auto host_contained = to_host(contained);
  for (std::size_t i = 0; i < m; ++i)
    EXPECT_EQ(host_contained[i] != 0, lower[i] < upper[i]);

  std::vector<kindex::Prefix<Bytes>> prefixes;
  for (const auto& query : to_host(asked.queries)) prefixes.push_back({query});
  const auto device_prefixes = to_device<Exec>(prefixes);
  index.equal_range(Exec{}, device_prefixes, got_lower, got_upper);
  EXPECT_EQ(to_host(got_lower), first);
  EXPECT_EQ(to_host(got_upper), last);
  const auto hits = index.prefix_range(Exec{}, device_prefixes);
  const auto reverse =
      index.reverse_range(Exec{}, device_prefixes, device_prefixes);
  const auto offsets = to_host(hits.offsets);
  const auto values = to_host(hits.values);
  const auto reverse_values = to_host(reverse.values);
  const auto matches = filled<kindex::PrefixMatch, Exec>(m);
  index.longest_prefix_match(Exec{}, asked.queries, matches);
  const auto got_matches = to_host(matches);
  for (std::size_t i = 0; i < m; ++i) {
    ASSERT_EQ(offsets[i + 1] - offsets[i], last[i] - first[i]);
    for (size_type hit = 0; hit < last[i] - first[i]; ++hit) {
      EXPECT_EQ(values[offsets[i] + hit], rows[first[i] + hit]);
      EXPECT_EQ(reverse_values[offsets[i] + hit], rows[last[i] - 1 - hit]);
    }
    EXPECT_EQ(got_matches[i].rank, match_rank[i]) << queries[i];
    EXPECT_EQ(got_matches[i].bits, match_bits[i]) << queries[i];
  }

  RadixReference reference(leaf_entries);
  for (const auto& string : strings) reference.insert(string);
  EXPECT_EQ(differences_from<std::uint32_t>(reference, index, -1), "");
}

/// The strings, their beginnings, and what is next to them.
Strings queries_around(const Strings& strings) {
  Strings queries{"", std::string(1, '\0'), "\xff\xff\xff\xff\xff\xff\xff\xff"};
  for (std::size_t i = 0; i < strings.size(); i += strings.size() / 300 + 1) {
    const auto& string = strings[i];
    queries.push_back(string);
    queries.push_back(string + '\0');
    queries.push_back(string + '\xff');
    queries.push_back(string.substr(0, string.size() / 2));
    if (string.empty()) continue;
    queries.push_back(string.substr(0, string.size() - 1));
    for (const int by : {-1, 1}) {
      queries.push_back(string);
      auto& byte = queries.back()[i % string.size()];
      byte = static_cast<char>(byte + by);
    }
  }
  return queries;
}

TYPED_TEST(StringRadixTrees, AnswerKnownQuestions) {
  using Exec = TypeParam;
  const Strings strings{"", "hello", "hello2", "test", "tester"};
  for (const size_type leaf : {1, 2, 4, 16}) {
    const auto index = tree_of<Exec>(strings, leaf);
    const auto asked = [&](const Strings& queries) {
      return DeviceStrings<Exec>(queries);
    };
    const auto found = filled<std::uint32_t, Exec>(6);
    const auto rows = asked({"", "hello", "hello2", "test", "tester", "tes"});
    index.find(Exec{}, rows.queries, found);
    EXPECT_EQ(to_host(found),
              (std::vector<std::uint32_t>{0, 1, 2, 3, 4, ~std::uint32_t{0}}));
    const auto bound = filled<size_type, Exec>(1);
    const auto hello1 = asked({"hello1"});
    index.lower_bound(Exec{}, hello1.queries, bound);
    EXPECT_EQ(to_host(bound), (Ranks{2}));
    Strings bytes;
    for (int b = 0x78; b <= 0x81; ++b)
      bytes.push_back(std::string(1, static_cast<char>(b)));
    const auto of_bytes = tree_of<Exec>(bytes, leaf);
    const auto high = asked({"\x80"});
    of_bytes.lower_bound(Exec{}, high.queries, bound);
    EXPECT_EQ(to_host(bound), (Ranks{8}));
  }
}

TYPED_TEST(StringRadixTrees, AnswerAsSortedStringsDo) {
  using Exec = TypeParam;
  std::mt19937_64 rng(6);
  std::vector<std::pair<std::string, Strings>> sets{
      {"none", {}}, {"empty", {""}}, {"empties", Strings(20, "")}};
  const auto add = [&](const std::string& name, int n, const auto& make) {
    sets.emplace_back(name, Strings());
    for (int i = 0; i < n; ++i) sets.back().second.push_back(make(i));
  };
  const auto text = [&](std::size_t size, int letters, int first = 0) {
    std::string string;
    for (std::size_t c = 0; c < size; ++c)
      string += static_cast<char>(first + int(rng() % unsigned(letters)));
    return string;
  };
  add("any bytes", 2000, [&](int) { return text(rng() % 12, 256); });
  add("zeros and ones", 700, [&](int) { return text(rng() % 9, 2); });
  add("high bytes", 500, [&](int) { return text(rng() % 5, 6, 253 - 3); });
  add("one letter", 300,
      [&](int i) { return std::string(std::size_t(i * 7 % 300), 'a'); });
  add("zeros", 200,
      [&](int i) { return std::string(std::size_t(i * 7 % 100), '\0'); });
  add("long shared beginnings", 1500, [&](int i) {
    return std::string(std::size_t(i % 3) * 40, 'p') + "/" +
           std::string(20, static_cast<char>('a' + i % 4)) + text(3, 26, 'a');
  });
  add("duplicates", 1000,
      [&](int i) { return "key" + std::to_string(i % 37); });
  for (const auto& [name, strings] : sets) {
    const auto queries = queries_around(strings);
    for (const size_type leaf : {1, 4, 50})
      expect_right_answers<Exec>(name, strings, queries, leaf);
  }
}

/// For two places of a string that differ in one byte, or none, how many
/// bytes they have in common.
struct CountCommon {
  const unsigned char* chars;  ///< two halves of `half` bytes
  std::uint32_t half;
  std::uint32_t* common;

  /// What to compare: of the halves from `begin` and `other` on, `size` bytes.
  struct Case {
    std::uint32_t begin, other, size;
  };
  static constexpr std::uint32_t most = 40;
  static constexpr std::uint32_t places = 8;

  KOKKOS_FUNCTION static Case at(size_type i) {
    return {std::uint32_t(i % places), std::uint32_t(i / places % places),
            std::uint32_t(i / places / places)};
  }
  KOKKOS_FUNCTION void operator()(size_type i) const {
    const Case asked = at(i);
    const Bytes own{chars + asked.begin, asked.size, kindex::Edge::at};
    const Bytes other{chars + half + asked.other, asked.size, kindex::Edge::at};
    common[i] = common_bytes(own, other);
  }
};

TYPED_TEST(StringRadixTrees, CompareFromAnyByteOn) {
  using Exec = TypeParam;
  constexpr std::uint32_t half = 8 * 8;
  constexpr size_type cases =
      CountCommon::places * CountCommon::places * (CountCommon::most + 1);
  for (std::uint32_t differs = 0; differs <= CountCommon::most; ++differs) {
    // Equal bytes but for those from `differs` on behind where either begins.
    for (std::uint32_t begin = 0; begin < CountCommon::places; ++begin) {
      std::vector<unsigned char> chars(2 * half, 0xff);
      std::fill(chars.begin() + half + begin + differs, chars.end(), 0x7f);
      const auto on_device = to_device<Exec>(chars);
      const auto common = filled<std::uint32_t, Exec>(cases);
      Kokkos::parallel_for("kindex_test::count_common",
                           Kokkos::RangePolicy<Exec>(0, cases),
                           CountCommon{on_device.data(), half, common.data()});
      const auto got = to_host(common);
      for (size_type i = 0; i < cases; ++i) {
        const auto asked = CountCommon::at(i);
        const std::uint32_t first =
            std::max(begin + differs, asked.other) - asked.other;
        ASSERT_EQ(got[i], std::min(first, asked.size))
            << asked.size << " bytes from " << asked.begin << " and "
            << asked.other;
      }
    }
  }
}

/// Keys that are not there, but for one byte anywhere on a path, or that end
/// there or go on.
TYPED_TEST(StringRadixTrees, AreNotLedAstrayByPaths) {
  using Exec = TypeParam;
  std::mt19937_64 rng(8);
  Strings strings;
  for (int group = 0; group < 6; ++group) {
    const std::string begin =
        "https://" + std::string(std::size_t(3 + 9 * group), 'm') + "/";
    for (int i = 0; i < 12; ++i)
      strings.push_back(begin + std::to_string(rng() % 3) +
                        std::string(17, 'q') + std::to_string(rng() % 40));
  }
  Strings queries;
  for (std::size_t i = 0; i < strings.size(); i += 5)
    for (std::size_t c = 0; c < strings[i].size(); ++c) {
      queries.push_back(strings[i].substr(0, c));
      for (const int by : {-1, 1}) {
        queries.push_back(strings[i]);
        queries.back()[c] = static_cast<char>(queries.back()[c] + by);
        // Behind all children, or in front of them, of nodes further down.
        const std::string begin = queries.back().substr(0, c + 1);
        for (const char byte : {'\xff', '\0'})
          queries.push_back(begin + std::string(40, byte));
      }
    }
  for (const size_type leaf : {1, 4, 20})
    expect_right_answers<Exec>("paths", strings, queries, leaf);
  // The leaf of no strings behind all.
  for (const size_type leaf : {1, 2})
    expect_right_answers<Exec>(
        "the end", {"aba", "abb"},
        {"aa\xff", "Aa\xff", "a\x01\xff", "ab\xff", "ac", "b\xff"}, leaf);
  auto index = tree_of<Exec>({"aba", "abb"}, 1);
  const DeviceStrings<Exec> more(Strings{"aa\xff"});
  index.insert(Exec{}, more.offsets, more.chars,
               to_device<Exec>(std::vector<std::uint32_t>{2}));
  const DeviceStrings<Exec> asked(Strings{"aa\xff", "aba", "abb"});
  const auto found = filled<std::uint32_t, Exec>(3);
  index.find(Exec{}, asked.queries, found);
  EXPECT_EQ(to_host(found), (std::vector<std::uint32_t>{2, 0, 1}));
}

TYPED_TEST(StringRadixTrees, PagesAreReported) {
  using Exec = TypeParam;
  constexpr std::uint32_t n = 1 << 18;
  Strings strings;
  std::vector<std::uint32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0U);
  for (const auto row : rows)
    strings.push_back("a string of some length: " +
                      std::to_string(row * 2654435761U));
  const DeviceStrings<Exec> on_device(strings);
  const auto build = [&](kindex::Pages pages) {
    RadixTreeOptions options = options_of(1);
    options.pages = pages;
    return TreeOn<Exec>(Exec{}, on_device.offsets, on_device.chars, options);
  };
  const auto expect_answers = [&](const TreeOn<Exec>& index) {
    const auto found = filled<std::uint32_t, Exec>(n);
    index.find(Exec{}, on_device.queries, found);
    EXPECT_EQ(to_host(found), rows);
  };
  const auto ordinary = build(kindex::Pages::ordinary);
  auto huge = build(kindex::Pages::huge);
  EXPECT_EQ(ordinary.huge_page_bytes(), 0u);
  EXPECT_EQ(ordinary.memory_bytes(), huge.memory_bytes());
  expect_answers(ordinary);
  expect_answers(huge);
  EXPECT_EQ(huge.huge_page_bytes() > 0, has_huge_pages<Exec>());
  if (!has_huge_pages<Exec>()) return;
  EXPECT_GE(huge.huge_page_bytes(), huge.memory_bytes() / 3);
  EXPECT_LE(huge.huge_page_bytes(), huge.memory_bytes());
  // So are other strings.
  const DeviceStrings<Exec> one(Strings{"one more"});
  huge.insert(Exec{}, one.offsets, one.chars,
              to_device<Exec>(std::vector<std::uint32_t>{n}));
  EXPECT_GE(huge.huge_page_bytes(), huge.memory_bytes() / 3);
  expect_answers(huge);
}

/// Nodes of every size, and strings that end in them.
TYPED_TEST(StringRadixTrees, HaveEveryForm) {
  using Exec = TypeParam;
  const auto form = [](int children, bool with_own, int copies) {
    Strings strings;
    if (with_own) strings.push_back("p");
    for (int i = 0; i < children; ++i)
      for (int c = 0; c < copies; ++c)
        strings.push_back(
            std::string("p") +
            static_cast<char>(i * 255 / std::max(children - 1, 1)));
    const auto index = tree_of<Exec>(strings, 1);
    const auto c = index.node_counts();
    expect_right_answers<Exec>("forms", strings, queries_around(strings), 1);
    EXPECT_EQ(index.tree_bytes(), c.node4 * 32 + c.node16 * 96 +
                                      c.node48 * 240 + c.node256 * 1040 +
                                      c.ranks * 352 + c.bits * 48);
    return KindCounts{c.node4, c.node16, c.node48, c.node256, c.ranks, c.bits};
  };
  for (const bool own : {false, true}) {
    EXPECT_EQ(form(4, own, 2), (KindCounts{1, 0, 0, 0, 0, 0}));
    EXPECT_EQ(form(5, own, 2), (KindCounts{0, 1, 0, 0, 0, 0}));
    EXPECT_EQ(form(16, own, 2), (KindCounts{0, 1, 0, 0, 0, 0}));
    EXPECT_EQ(form(17, own, 2), (KindCounts{0, 0, 1, 0, 0, 0}));
    EXPECT_EQ(form(48, own, 2), (KindCounts{0, 0, 1, 0, 0, 0}));
    EXPECT_EQ(form(49, own, 2), (KindCounts{0, 0, 0, 0, 1, 0}));
    EXPECT_EQ(form(256, own, 2), (KindCounts{0, 0, 0, 0, 1, 0}));
    EXPECT_EQ(form(256, own, 10), (KindCounts{0, 0, 0, 1, 0, 0}));
    // 8195 strings, many for so few children.
    EXPECT_EQ(form(5, own, 1639), (KindCounts{0, 0, 0, 1, 0, 0}));
  }
  // One entry each, unless one ends above them.
  EXPECT_EQ(form(5, false, 1), (KindCounts{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(form(5, true, 1), (KindCounts{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(form(256, false, 1), (KindCounts{0, 0, 0, 0, 0, 1}));
}

TYPED_TEST(StringRadixTrees, KeepValuesAndThePromiseOfOrder) {
  using Exec = TypeParam;
  const DeviceStrings<Exec> ascending({"a", "ab", "ab", "b"});
  const auto values = to_device<Exec>(std::vector<double>{1, 2, 3, 4});
  const StringRadixTree<double, typename Exec::memory_space> index(
      Exec{}, kindex::sorted, ascending.offsets, ascending.chars, values);
  const auto found = filled<double, Exec>(4);
  index.find(Exec{}, ascending.queries, found);
  EXPECT_EQ(to_host(found), (std::vector<double>{1, 2, 2, 4}));
  // 5 offsets, 6 chars, 4 values; no row ids are stored.
  EXPECT_EQ(index.data_bytes(), 5 * 8 + 6 + 4 * 8u);
  const TreeOn<Exec> rows(Exec{}, kindex::sorted, ascending.offsets,
                          ascending.chars);
  EXPECT_EQ(rows.memory_bytes(), 5 * 8 + 6u);
  EXPECT_EQ(rows.height(), 0);
}

using StringEntries = std::vector<std::pair<std::string, std::uint32_t>>;

/// Strings with values: in order, duplicates as they came.
struct StringModel {
  StringEntries entries;

  void insert(const StringEntries& batch) {
    entries.insert(entries.end(), batch.begin(), batch.end());
    std::stable_sort(
        entries.begin(), entries.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  void erase(const StringEntries& batch) {
    for (const auto& gone : batch)
      std::erase_if(entries, [&](const auto& entry) {
        return entry.first == gone.first;
      });
  }
  void insert_or_assign(const StringEntries& batch) {
    update(batch);
    std::map<std::string, std::uint32_t> last;
    for (const auto& [string, value] : batch) last[string] = value;
    for (const auto& entry : entries) last.erase(entry.first);
    insert({last.begin(), last.end()});
  }
  void update(const StringEntries& batch) {
    for (const auto& change : batch)
      for (auto& entry : entries)
        if (entry.first == change.first) entry.second = change.second;
  }
};

template <class Exec>
void expect_strings(const TreeOn<Exec>& index, const StringModel& model) {
  Strings strings;
  std::vector<std::uint32_t> values;
  for (const auto& [string, value] : model.entries) {
    strings.push_back(string);
    values.push_back(value);
  }
  ASSERT_EQ(index.size(), strings.size());
  // All begin with nothing.
  const auto everything =
      to_device<Exec>(std::vector<kindex::Prefix<Bytes>>{{Bytes{}}});
  const auto all = index.range(Exec{}, everything, everything);
  EXPECT_EQ(to_host(all.values), values);
  const Strings queries = queries_around(strings);
  Ranks lower, upper;
  for (const auto& query : queries) {
    const auto range = std::equal_range(strings.begin(), strings.end(), query);
    lower.push_back(size_type(range.first - strings.begin()));
    upper.push_back(size_type(range.second - strings.begin()));
  }
  const DeviceStrings<Exec> asked(queries);
  const auto got_lower = filled<size_type, Exec>(queries.size()),
             got_upper = filled<size_type, Exec>(queries.size());
  index.equal_range(Exec{}, asked.queries, got_lower, got_upper);
  EXPECT_EQ(to_host(got_lower), lower);
  EXPECT_EQ(to_host(got_upper), upper);
  RadixReference reference(index.leaf_entries());
  for (const auto& string : strings) reference.insert(string);
  EXPECT_EQ(differences_from<std::uint32_t>(reference, index, -1), "");
}

enum class StringChange { insert, insert_or_assign, erase, update };

template <class Exec>
void change(TreeOn<Exec>& index, StringChange what,
            const StringEntries& batch) {
  Strings strings;
  std::vector<std::uint32_t> values;
  for (const auto& [string, value] : batch) {
    strings.push_back(string);
    values.push_back(value);
  }
  const DeviceStrings<Exec> on_device(strings);
  const auto device_values = to_device<Exec>(values);
  switch (what) {
    case StringChange::insert:
      index.insert(Exec{}, on_device.offsets, on_device.chars, device_values);
      break;
    case StringChange::insert_or_assign:
      index.insert_or_assign(Exec{}, on_device.offsets, on_device.chars,
                             device_values);
      break;
    case StringChange::erase:
      index.erase(Exec{}, on_device.offsets, on_device.chars);
      break;
    case StringChange::update:
      index.update(Exec{}, on_device.offsets, on_device.chars, device_values);
  }
}

void change(StringModel& model, StringChange what, const StringEntries& batch) {
  what == StringChange::insert             ? model.insert(batch)
  : what == StringChange::insert_or_assign ? model.insert_or_assign(batch)
  : what == StringChange::erase            ? model.erase(batch)
                                           : model.update(batch);
}

/// Batches that insert, erase and give values, of strings that begin others,
/// that are empty, have zeros, and come several times.
TYPED_TEST(StringRadixTrees, UpdateAsAMultimapDoes) {
  using Exec = TypeParam;
  for (const unsigned letters : {2, 256}) {
    std::mt19937_64 rng(letters);
    std::uint32_t next = 0;
    TreeOn<Exec> index;
    StringModel model;
    for (int step = 0; step < 50; ++step) {
      StringEntries batch;
      const std::size_t size = step % 7 == 6 ? 0 : rng() % 200 + 1;
      for (std::size_t i = 0; i < size; ++i) {
        std::string string(rng() % (letters == 2 ? 9 : 3), '\0');
        for (char& c : string) c = static_cast<char>(rng() % letters);
        if (rng() % 4 == 0) string.insert(0, 30, 'p');
        if (!model.entries.empty() && rng() % 3 == 0)
          string = model.entries[rng() % model.entries.size()].first;
        batch.emplace_back(string, next++);
      }
      const auto copy = index;
      const auto before = model;
      const auto what = step < 4 ? StringChange::insert
                                 : static_cast<StringChange>(rng() % 4);
      change<Exec>(index, what, batch);
      change(model, what, batch);
      ASSERT_NO_FATAL_FAILURE(expect_strings<Exec>(index, model)) << step;
      if (step % 10 == 0) expect_strings<Exec>(copy, before);
    }
    // Down to nothing, and from there.
    change<Exec>(index, StringChange::erase, model.entries);
    EXPECT_EQ(index.size(), 0u);
    EXPECT_EQ(index.memory_bytes(), 0u);
    change<Exec>(index, StringChange::update, model.entries);
    change<Exec>(index, StringChange::insert, {{"b", 2}, {"", 1}});
    model = {};
    model.insert({{"b", 2}, {"", 1}});
    expect_strings<Exec>(index, model);
  }
}

TYPED_TEST(StringRadixTrees, LeaveNothingWhereTheyAreMovedFrom) {
  using Exec = TypeParam;
  auto index = tree_of<Exec>({"b", "a", "ab"}, 1);
  TreeOn<Exec> taken = std::move(index);
  StringModel model;
  model.insert({{"b", 0}, {"a", 1}, {"ab", 2}});
  expect_strings<Exec>(taken, model);
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(index.memory_bytes(), 0u);
  change<Exec>(index, StringChange::insert, {{"c", 7}});
  StringModel one;
  one.insert({{"c", 7}});
  expect_strings<Exec>(index, one);
  taken = std::move(index);
  expect_strings<Exec>(taken, one);
  EXPECT_EQ(index.size(), 0u);
}

/// Row ids that are not stored become values.
TYPED_TEST(StringRadixTrees, RowIdsBecomeValues) {
  using Exec = TypeParam;
  const DeviceStrings<Exec> ascending({"a", "ab", "ab", "b"});
  TreeOn<Exec> index(Exec{}, kindex::sorted, ascending.offsets,
                     ascending.chars);
  const auto copy = index;
  StringModel model, before;
  before.entries = model.entries = {{"a", 0}, {"ab", 1}, {"ab", 2}, {"b", 3}};
  change<Exec>(index, StringChange::update, {{"ab", 8}, {"ab", 9}, {"x", 5}});
  model.update({{"ab", 8}, {"ab", 9}, {"x", 5}});
  expect_strings<Exec>(index, model);
  expect_strings<Exec>(copy, before);
  change<Exec>(index, StringChange::insert, {{"ab", 7}});
  model.insert({{"ab", 7}});
  expect_strings<Exec>(index, model);
  expect_strings<Exec>(copy, before);
}

/// A batch that is refused, or for which there is no memory, changes nothing.
TYPED_TEST(StringRadixTrees, UpdatesAreWholeOrNotThere) {
  using Exec = TypeParam;
  StringModel model;
  TreeOn<Exec> index;
  StringEntries some, more;
  for (std::uint32_t i = 0; i < 300; ++i) {
    some.emplace_back("some" + std::to_string(i % 90), i);
    more.emplace_back("more" + std::to_string(i) + "than seven bytes", i);
  }
  change<Exec>(index, StringChange::insert, some);
  model.insert(some);
  const DeviceStrings<Exec> good({"x", "y"});
  const auto one = to_device<Exec>(std::vector<std::uint32_t>{1});
  const auto bad = to_device<Exec>(std::vector<int>{0, 2, 1});
  const auto two = to_device<Exec>(std::vector<std::uint32_t>{1, 2});
  for (const bool inserts : {true, false}) {
    const auto run = [&](const auto& offsets, const auto& values) {
      return message_of([&] {
        inserts ? index.insert(Exec{}, offsets, good.chars, values)
                : index.update(Exec{}, offsets, good.chars, values);
      });
    };
    EXPECT_EQ(run(good.offsets, one),
              "kindex::StringRadixTree: values has 1 elements for 2 keys");
    EXPECT_EQ(run(bad, two),
              "kindex::StringRadixTree: offsets(2) = 1 is below offsets(1) = "
              "2");
  }
  EXPECT_EQ(message_of([&] { index.erase(Exec{}, bad, good.chars); }),
            "kindex::StringRadixTree: offsets(2) = 1 is below offsets(1) = 2");
  expect_strings<Exec>(index, model);
  more.emplace_back(some[7].first, 1);
  for (const auto what : {StringChange::insert, StringChange::insert_or_assign,
                          StringChange::update, StringChange::erase}) {
    const bool inserts =
        what == StringChange::insert || what == StringChange::insert_or_assign;
    const auto& batch = inserts ? more : some;
    int failures = 0;
    for (bool failed = true; failed; ++failures) {
      auto changed = index;
      failed = false;
      try {
        const FailingAllocation failing(failures);
        change<Exec>(changed, what, batch);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      auto expected = model;
      if (!failed) change(expected, what, batch);
      expect_strings<Exec>(changed, expected);
      expect_strings<Exec>(index, model);
      ASSERT_LT(failures, 100);
    }
    EXPECT_GT(failures, 8);
  }
}

TYPED_TEST(StringRadixTrees, InputIsChecked) {
  using Exec = TypeParam;
  const DeviceStrings<Exec> strings({"b", std::string("a\0\"", 3)});
  const auto build = [&](const std::vector<int>& offsets) {
    return message_of(
        [&] { TreeOn<Exec>(Exec{}, to_device<Exec>(offsets), strings.chars); });
  };
  EXPECT_EQ(build({0, 1, 3}), "nothing was thrown");
  EXPECT_EQ(build({}), "nothing was thrown");
  EXPECT_EQ(build({0, 2, 1}),
            "kindex::StringRadixTree: offsets(2) = 1 is below offsets(1) = 2");
  EXPECT_EQ(build({0, 2, 8}),
            "kindex::StringRadixTree: offsets(2) = 8, but chars has 7 "
            "elements");
  EXPECT_EQ(build({9}),
            "kindex::StringRadixTree: offsets(0) = 9, but chars has 7 "
            "elements");
  EXPECT_EQ(build({-7, 2}),
            "kindex::StringRadixTree: offsets(0) = -7, but chars has 7 "
            "elements");
  const auto refer = [&](const std::vector<signed char>& offsets) {
    return message_of([&] {
      kindex::as_bytes(Exec{}, to_device<Exec>(offsets), strings.chars);
    });
  };
  EXPECT_EQ(refer({0, 1, 7}), "nothing was thrown");
  EXPECT_EQ(refer({0, 3, 2, 4}),
            "kindex::as_bytes: offsets(2) = 2 is below offsets(1) = 3");
  EXPECT_EQ(refer({0, 3, 99}),
            "kindex::as_bytes: offsets(2) = 99, but chars has 7 elements");
  const Kokkos::View<unsigned char**, Kokkos::LayoutRight, Exec> apart(
      "test::apart", 5, 3);
  EXPECT_EQ(message_of([&] {
              kindex::as_bytes(Exec{},
                               to_device<Exec>(std::vector<int>{0, 1, 2}),
                               Kokkos::subview(apart, Kokkos::ALL, 1));
            }),
            "kindex::as_bytes: chars has a stride of 3; the bytes of a string "
            "stand one behind the other");
  EXPECT_EQ(message_of([&] {
              TreeOn<Exec>(Exec{}, kindex::sorted, strings.offsets,
                           strings.chars);
            }),
            "kindex::StringRadixTree: strings are promised sorted, but string "
            "1, \"a\\x00\\x22\", is below string 0, \"b\"");
  EXPECT_EQ(message_of([&] {
              TreeOn<Exec>(Exec{}, strings.offsets, strings.chars,
                           to_device<Exec>(std::vector<std::uint32_t>{1}));
            }),
            "kindex::StringRadixTree: values has 1 elements for 2 keys");
  EXPECT_EQ(message_of([&] {
              TreeOn<Exec>(Exec{}, strings.offsets, strings.chars,
                           options_of(0));
            }),
            "kindex::StringRadixTree: options.leaf_entries is 0, not in "
            "1...65536");
}

}  // namespace
}  // namespace kindex_test
