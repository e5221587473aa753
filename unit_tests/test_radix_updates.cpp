// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches of changes to a RadixTree, against a sorted vector.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <kindex/RadixTree.hpp>
#include <map>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/Asked.hpp"
#include "support/Devices.hpp"
#include "support/FailingAllocation.hpp"
#include "support/Keys.hpp"
#include "support/RadixReference.hpp"
#include "support/Recorder.hpp"

namespace kindex_test {
namespace {

template <class Exec>
class RadixUpdates : public ::testing::Test {};

TYPED_TEST_SUITE(RadixUpdates, Devices, DeviceName);

template <class Key, class Exec>
using TreeOn =
    kindex::RadixTree<Key, std::uint32_t, typename Exec::memory_space>;

/// With a leaf for each key.
template <class Exec, class Key>
TreeOn<Key, Exec> tree_of(const std::vector<Key>& keys) {
  kindex::RadixTreeOptions options;
  options.leaf_entries = 1;
  return TreeOn<Key, Exec>(Exec{}, to_device<Exec>(keys), options);
}

KindCounts counts_of(const kindex::RadixNodeCounts& c) {
  return {c.node4, c.node16, c.node48, c.node256, c.ranks, c.bits};
}

/// Entries as they should be: keys ascend, equal keys in the order of
/// insertion.
template <class Key>
class Model {
 public:
  using Batch = std::vector<std::pair<Key, std::uint32_t>>;

  void insert(const Batch& batch) {
    for (const auto& entry : batch)
      entries.insert(
          std::upper_bound(entries.begin(), entries.end(), entry, below),
          entry);
  }
  void erase(const Batch& batch) {
    for (const auto& entry : batch) {
      const auto range =
          std::equal_range(entries.begin(), entries.end(), entry, below);
      entries.erase(range.first, range.second);
    }
  }
  void update(const Batch& batch) {
    for (const auto& entry : batch) {
      const auto range =
          std::equal_range(entries.begin(), entries.end(), entry, below);
      for (auto it = range.first; it != range.second; ++it)
        it->second = entry.second;
    }
  }
  void insert_or_assign(const Batch& batch) {
    update(batch);
    for (std::size_t i = batch.size(); i-- > 0;)
      if (!std::binary_search(entries.begin(), entries.end(), batch[i], below))
        insert({batch[i]});
  }
  std::vector<Key> keys() const {
    std::vector<Key> all;
    for (const auto& entry : entries) all.push_back(entry.first);
    return all;
  }
  std::vector<std::uint32_t> values() const {
    std::vector<std::uint32_t> all;
    for (const auto& entry : entries) all.push_back(entry.second);
    return all;
  }

  Batch entries;

 private:
  static bool below(const std::pair<Key, std::uint32_t>& a,
                    const std::pair<Key, std::uint32_t>& b) {
    return a.first < b.first;
  }
};

/// All entries of `index` are those of `model`.
template <class Exec, class Index, class Key>
void expect_same_answers(const Index& index, const Model<Key>& model) {
  ASSERT_EQ(index.size(), model.entries.size());
  const auto all = index.range(
      Exec{}, to_device<Exec>(std::vector<Key>{Keys<Key>::min()}),
      to_device<Exec>(std::vector<Key>{Keys<Key>::max()}), kindex::with_keys);
  EXPECT_EQ(to_host(all.keys), model.keys());
  EXPECT_EQ(to_host(all.values), model.values());
  const Asked<Exec, Key> asked("updated", model.keys(),
                               queries_around(model.keys()));
  EXPECT_EQ(lower_bounds<Exec>(index, asked.queries), asked.lower);
}

/// The same, and its tree is theirs.
template <class Exec, class Index, class Key>
void expect_same_entries(const Index& index, const Model<Key>& model) {
  expect_same_answers<Exec>(index, model);
  EXPECT_EQ(differences_from_growth(index, model.keys(), NodeOrder::any), "");
}

template <class Exec, class Key, class Layout>
void expect_right_updates(std::uint64_t range) {
  using Batch = typename Model<Key>::Batch;
  kindex::RadixTree<Key, std::uint32_t, typename Exec::memory_space, Layout>
      index;
  Model<Key> model;
  std::mt19937_64 rng(range);
  std::uint32_t next = 0;
  for (int step = 0; step < 60; ++step) {
    Batch batch;
    const std::size_t size = step % 7 == 6 ? 0 : rng() % 300 + 1;
    for (std::size_t i = 0; i < size; ++i)
      batch.emplace_back(static_cast<Key>(rng() % range), next++);
    std::vector<Key> keys;
    std::vector<std::uint32_t> values;
    for (const auto& [key, value] : batch) {
      keys.push_back(key);
      values.push_back(value);
    }
    const auto device_keys = to_device<Exec>(keys);
    const auto device_values = to_device<Exec>(values);
    const auto copy = index;
    const auto before = model;
    switch (step < 5 ? 0 : rng() % 4) {
      case 0:
      case 1:
        index.insert(Exec{}, device_keys, device_values);
        model.insert(batch);
        break;
      case 2:
        index.update(Exec{}, device_keys, device_values);
        model.update(batch);
        break;
      default: index.erase(Exec{}, device_keys); model.erase(batch);
    }
    expect_same_entries<Exec>(index, model);
    if (step % 10 == 0) expect_same_entries<Exec>(copy, before);
  }
  // Down to nothing, and from there.
  index.erase(Exec{}, to_device<Exec>(model.keys()));
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(index.tree_bytes(), 0u);
  index.insert(Exec{}, to_device<Exec>(std::vector<Key>{5, 4}),
               to_device<Exec>(std::vector<std::uint32_t>{50, 40}));
  EXPECT_EQ(finds<Exec>(index, std::vector<Key>{4, 5}),
            (std::vector<std::uint32_t>{40, 50}));
}

TYPED_TEST(RadixUpdates, UpdateAsAMultimapDoes) {
  expect_right_updates<TypeParam, std::uint32_t, kindex::SoA>(800);
  expect_right_updates<TypeParam, std::int64_t, kindex::AoS>(3000000);
}

/// Batches of which the last of equal keys wins, against std::map.
template <class Exec, class Key, class Layout>
void expect_right_assignments(std::uint64_t range) {
  kindex::RadixTree<Key, std::uint32_t, typename Exec::memory_space, Layout>
      index;
  std::map<Key, std::uint32_t> expected;
  std::mt19937_64 rng(range);
  std::uint32_t next = 0;
  for (int step = 0; step < 50; ++step) {
    std::vector<Key> keys;
    std::vector<std::uint32_t> values;
    const std::size_t size = step % 9 == 8 ? 0 : rng() % 400 + 1;
    for (std::size_t i = 0; i < size; ++i) {
      keys.push_back(static_cast<Key>(rng() % range) - Key(range / 2));
      // Several times, and those that are there.
      if (i > 0 && rng() % 4 == 0) keys.back() = keys[rng() % i];
      if (!expected.empty() && rng() % 4 == 0)
        keys.back() = expected.begin()->first;
      values.push_back(next++);
    }
    const auto device_keys = to_device<Exec>(keys);
    if (step % 3 == 2) {
      index.erase(Exec{}, device_keys);
      for (const Key& key : keys) expected.erase(key);
    } else {
      index.insert_or_assign(Exec{}, device_keys, to_device<Exec>(values));
      for (std::size_t i = 0; i < size; ++i)
        expected.insert_or_assign(keys[i], values[i]);
    }
    Model<Key> model;
    model.entries.assign(expected.begin(), expected.end());
    ASSERT_NO_FATAL_FAILURE(expect_same_entries<Exec>(index, model)) << step;
  }
  // Of several that are there, all; of what is there only, no new memory.
  Model<Key> model;
  model.entries.assign(expected.begin(), expected.end());
  const auto copy = index;
  const Key key = expected.begin()->first;
  const auto one = to_device<Exec>(std::vector<Key>{key});
  index.insert(Exec{}, one, to_device<Exec>(std::vector<std::uint32_t>{1}));
  const auto before = index.capacity();
  index.insert_or_assign(Exec{}, one,
                         to_device<Exec>(std::vector<std::uint32_t>{2}));
  EXPECT_EQ(index.capacity(), before);
  expect_same_entries<Exec>(copy, model);
  model.insert({{key, 2}});
  model.update({{key, 2}});
  expect_same_entries<Exec>(index, model);
}

TYPED_TEST(RadixUpdates, AssignAsAMapDoes) {
  expect_right_assignments<TypeParam, std::int32_t, kindex::SoA>(900);
  expect_right_assignments<TypeParam, std::int64_t, kindex::AoS>(5000000);
  expect_right_assignments<TypeParam, double, kindex::SoA>(70);
}

/// Keys of clusters in clusters, so that there are paths, nodes of all forms
/// and some that many entries are below.
template <class Key>
Key clustered(std::mt19937_64& rng) {
  using Bits = typename kindex::KeyTraits<Key>::bits_type;
  std::uint64_t bits = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    const std::uint64_t kinds[] = {0, 1, 3, 9, 30, 255};
    // The deeper, the more.
    const auto most = kinds[std::min<std::uint64_t>(
        rng() % 6, shift < 24 ? 5 : 2 + rng() % 2)];
    bits |= rng() % (most + 1) << shift;
  }
  if constexpr (std::is_same_v<Bits, kindex::Key128>) {
    return kindex::Key128{bits, rng() % 3 << 62 | rng() % 40};
  } else {
    return kindex::KeyTraits<Key>::from_bits(
        static_cast<Bits>(bits >> (64 - 8 * sizeof(Bits))));
  }
}

/// Batches that no copy of the index makes write elsewhere.
template <class Exec, class Key>
void expect_right_changes(const kindex::RadixTreeOptions& options,
                          std::size_t most, std::uint64_t seed) {
  using Batch = typename Model<Key>::Batch;
  std::mt19937_64 rng(seed);
  std::vector<Key> first;
  for (std::size_t i = 0; i < most / 2; ++i)
    first.push_back(clustered<Key>(rng));
  Model<Key> model;
  std::uint32_t next = 0;
  for (const Key& key : first) model.entries.emplace_back(key, next++);
  std::stable_sort(model.entries.begin(), model.entries.end(),
                   [](const auto& a, const auto& b) {
                     return Keys<Key>::less(a.first, b.first);
                   });
  kindex::RadixTree<Key, std::uint32_t, typename Exec::memory_space> index(
      Exec{}, to_device<Exec>(first), options);
  for (int step = 0; step < 24; ++step) {
    Batch batch;
    const std::size_t sizes[] = {1, 2, 40, most / 30, most / 8};
    const std::size_t size = sizes[rng() % 5];
    const bool erases = step % 8 >= 4;
    for (std::size_t i = 0; i < size; ++i) {
      const bool is_there = !model.entries.empty() && rng() % 4 != 0;
      batch.emplace_back(erases && is_there
                             ? model.entries[rng() % model.entries.size()].first
                             : clustered<Key>(rng),
                         next++);
    }
    // Whole subtrees go, too.
    if (erases && rng() % 2 == 0 && !model.entries.empty()) {
      const std::size_t from = rng() % model.entries.size();
      const std::size_t to =
          std::min(model.entries.size(), from + most / (1 + rng() % 20));
      batch.insert(batch.end(), model.entries.begin() + from,
                   model.entries.begin() + to);
    }
    std::vector<Key> keys;
    std::vector<std::uint32_t> values;
    for (const auto& [key, value] : batch) {
      keys.push_back(key);
      values.push_back(value);
    }
    if (erases) {
      index.erase(Exec{}, to_device<Exec>(keys));
      model.erase(batch);
    } else {
      index.insert(Exec{}, to_device<Exec>(keys), to_device<Exec>(values));
      model.insert(batch);
    }
    ASSERT_EQ(differences_from_growth(index, model.keys(), NodeOrder::any), "")
        << "step " << step;
    if (step % 5 == 0) expect_same_answers<Exec>(index, model);
    if (step % 11 == 10) index.shrink_to_fit(Exec{});
  }
  expect_same_answers<Exec>(index, model);
}

TYPED_TEST(RadixUpdates, NodesChangeAsIfGrown) {
  using Exec = TypeParam;
  kindex::RadixTreeOptions one, wide, some;
  one.leaf_entries = 1;
  wide.wide_references = true;
  some.leaf_entries = 5;
  expect_right_changes<Exec, std::uint64_t>(one, 30000, 1);
  expect_right_changes<Exec, std::uint64_t>(wide, 20000, 2);
  expect_right_changes<Exec, std::uint32_t>({}, 40000, 3);
  expect_right_changes<Exec, std::uint16_t>(some, 20000, 4);
  expect_right_changes<Exec, std::uint8_t>(one, 600, 5);
  expect_right_changes<Exec, kindex::Key128>(some, 8000, 6);
}

/// What is below a node: so many children, each with `low` keys, of which two
/// share a leaf; and so many times as many of one of them.
struct Contents {
  int children;
  int low;
  int extra = 0;

  KindCounts counts() const {
    KindCounts counts{};
    // More than a leaf holds: a node of its own.
    const bool has_nodes = low > 2;
    if (has_nodes) counts[0] += size_type(children);
    const bool is_busy = children * low + extra >= 8192;
    ++counts[children <= 4               ? 0
             : low == 1 && extra == 0    ? 5
             : children > 48 && low == 2 ? 4
             : is_busy || children > 48  ? 3
             : children > 16             ? 2
                                         : 1];
    // The key that is there so often is the third of its child.
    if (extra > 0 && low == 2) ++counts[0];
    return counts;
  }
  int kind() const {
    auto of_own = counts();
    of_own[0] -= size_type(low > 2 ? children : extra > 0 && low == 2 ? 1 : 0);
    return int(std::max_element(of_own.begin(), of_own.end()) - of_own.begin());
  }
};

/// A node becomes another form, or keeps its own, by one batch that inserts and
/// one that erases, where it is: in all pairs of forms that there are. Behind
/// it are nodes of all forms whose ranks move, and no more.
template <class Exec>
void expect_all_passages(const kindex::RadixTreeOptions& options) {
  using Key = std::uint32_t;
  using Batch = typename Model<Key>::Batch;
  const auto add = [](Batch& batch, Key node, const Contents& of) {
    for (int c = 0; c < of.children; ++c)
      for (int l = 0; l < of.low; ++l)
        batch.emplace_back(node << 16 | Key(c) << 8 | Key(5 + l), batch.size());
    for (int e = 0; e < of.extra; ++e)
      batch.emplace_back(node << 16 | 99, batch.size());
  };
  const Contents all[] = {{3, 1},  {4, 2},  {4, 3},  {10, 1},      {60, 1},
                          {10, 2}, {10, 3}, {30, 2}, {30, 3},      {60, 2},
                          {90, 2}, {60, 3}, {90, 3}, {10, 2, 8300}};
  std::map<std::pair<int, int>, int> grown, shrunk;
  for (const Contents& less : all)
    for (const Contents& more : all) {
      if (less.children > more.children || less.low > more.low ||
          less.extra > more.extra)
        continue;
      if (less.children == more.children && less.low == more.low &&
          less.extra == more.extra)
        continue;
      const int from = less.kind(), to = more.kind();
      SCOPED_TRACE(testing::Message() << less.children << "x" << less.low << "+"
                                      << less.extra << " to " << more.children
                                      << "x" << more.low << "+" << more.extra);
      Batch there, grows, comes;
      KindCounts of_others{};
      Key next = 0x8000;
      const auto add_other = [&](const Contents& of) {
        add(there, next++, of);
        for (int k = 0; k < kindex::query::radix_kinds; ++k)
          of_others[k] += of.counts()[k];
      };
      for (const Contents& of : all)
        if (of.extra == 0) add_other(of);
      // So many that they are not all made anew.
      while (next < 0x8000 + (more.extra > less.extra ? 200 : 60))
        add_other({12, 3});
      add(there, 1, less);
      add(grows, 1, more);
      const auto is_there = [&](const auto& entry) {
        return std::any_of(there.begin(), there.end(), [&](const auto& other) {
          return other.first == entry.first;
        });
      };
      std::copy_if(grows.begin(), grows.end(), std::back_inserter(comes),
                   [&](const auto& entry) { return !is_there(entry); });
      Model<Key> model;
      model.entries = there;
      std::stable_sort(
          model.entries.begin(), model.entries.end(),
          [](const auto& a, const auto& b) { return a.first < b.first; });
      const auto keys_of = [](const Batch& batch) {
        std::vector<Key> keys;
        for (const auto& entry : batch) keys.push_back(entry.first);
        return to_device<Exec>(keys);
      };
      const auto values_of = [](const Batch& batch) {
        std::vector<std::uint32_t> values;
        for (const auto& entry : batch) values.push_back(entry.second);
        return to_device<Exec>(values);
      };
      kindex::RadixTree<Key, std::uint32_t, typename Exec::memory_space> index(
          Exec{}, keys_of(there), values_of(there), options);
      const auto expect_state = [&](const Contents& of, Recorder& recorder) {
        const auto events = recorder.stop();
        EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](auto& event) {
          return event.label == "kindex::RadixTree::shift_nodes";
        })) << "all nodes were made anew";
        auto counts = counts_of(index.node_counts());
        for (int k = 0; k < kindex::query::radix_kinds; ++k)
          counts[k] -= of_others[k];
        // The root of them all, and one above the others.
        const bool has_root = counts[0] + counts[1] + counts[2] + counts[3] > 0;
        EXPECT_TRUE(has_root);
        --counts[0];
        --counts[3];
        EXPECT_EQ(counts, of.counts());
        ASSERT_NO_FATAL_FAILURE(expect_same_entries<Exec>(index, model));
      };
      {
        Recorder recorder;
        index.insert(Exec{}, keys_of(comes), values_of(comes));
        model.insert(comes);
        expect_state(more, recorder);
        ++grown[{from, to}];
      }
      {
        Recorder recorder;
        index.erase(Exec{}, keys_of(comes));
        model.erase(comes);
        expect_state(less, recorder);
        ++shrunk[{to, from}];
      }
    }
  // Forms are numbered as in RadixKind. What has leaves only, or single
  // entries, never has more of them by less.
  enum { node4, node16, node48, node256, ranks, bits };
  for (const auto& [from, to] :
       {std::pair{node4, node4}, {node4, node16},    {node4, node48},
        {node4, node256},        {node4, ranks},     {node4, bits},
        {node16, node16},        {node16, node48},   {node16, node256},
        {node16, ranks},         {node48, node48},   {node48, node256},
        {node48, ranks},         {node256, node256}, {ranks, ranks},
        {ranks, node256},        {bits, bits},       {bits, node16},
        {bits, node48},          {bits, node256},    {bits, ranks}}) {
    EXPECT_GT((grown[{from, to}]), 0) << from << " to " << to;
    EXPECT_GT((shrunk[{to, from}]), 0) << to << " to " << from;
  }
}

/// A tree into which keys come one at a time, in any order, is the one that is
/// built of all.
TYPED_TEST(RadixUpdates, OneByOneMakesTheTreeOfAll) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  std::mt19937_64 rng(12);
  std::vector<Key> keys;
  for (Key i = 0; i < 100; ++i) keys.push_back(i);
  for (Key i = 0; i < 20; ++i) keys.push_back(0x01020000 + 2 * i);
  for (Key i = 0; i < 100; ++i) keys.push_back(0x7fff0000 + Key(rng() % 256));
  for (int i = 0; i < 100; ++i) keys.push_back(static_cast<Key>(rng()));
  auto shuffled = keys;
  std::shuffle(shuffled.begin(), shuffled.end(), rng);
  auto descending = keys;
  std::sort(descending.rbegin(), descending.rend());
  const auto at_once = tree_of<Exec>(keys);
  for (const auto& order : {descending, shuffled}) {
    auto index = tree_of<Exec>(std::vector<Key>());
    Model<Key> model;
    for (std::uint32_t row = 0; row < order.size(); ++row) {
      index.insert(Exec{}, to_device<Exec>(std::vector<Key>{order[row]}),
                   to_device<Exec>(std::vector<std::uint32_t>{row}));
      model.insert({{order[row], row}});
    }
    expect_same_answers<Exec>(index, model);
    EXPECT_EQ(differences_from_growth(index, order, NodeOrder::any), "");
    EXPECT_EQ(counts_of(index.node_counts()), counts_of(at_once.node_counts()));
    EXPECT_EQ(index.height(), at_once.height());
  }
}

TYPED_TEST(RadixUpdates, NodesPassBetweenAllForms) {
  kindex::RadixTreeOptions narrow, wide;
  narrow.leaf_entries = wide.leaf_entries = 2;
  wide.wide_references = true;
  expect_all_passages<TypeParam>(narrow);
  expect_all_passages<TypeParam>(wide);
}

/// Batches leave nodes where they are that have the same entries below, and
/// those that keep their form; places of others are taken again.
TYPED_TEST(RadixUpdates, PlacesOfNodesAreUsedAgain) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  using kindex::query::RadixKind;
  // 64 nodes of 4 children each below the root, and of 20 below one of them.
  std::vector<Key> keys;
  for (Key node = 0; node < 64; ++node)
    for (Key child = 0; child < (node == 9 ? 20u : 4u); ++child)
      keys.push_back(node << 24 | child << 16);
  auto index = tree_of<Exec>(keys);
  const KindCounts built = counts_of(index.node_counts());
  EXPECT_EQ(built, (KindCounts{63, 0, 0, 1, 0, 1}));
  const auto words = [&] {
    using Node = kindex::query::RadixNode256<Key, std::uint32_t>;
    const auto arena = to_host(index.levels().arena(RadixKind::node256));
    Node root;
    std::memcpy(&root, arena.data(), sizeof root);
    std::vector<std::uint32_t> all;
    for (int b = 0; b < 64; ++b) all.push_back(root.children[b].word());
    return all;
  };
  const auto values = to_device<Exec>(std::vector<std::uint32_t>{1});
  const auto one = [](Key key) {
    return to_device<Exec>(std::vector<Key>{key});
  };
  auto expected = words();
  // One child more: another form, in that node's arena, and a free place.
  index.insert(Exec{}, one(3u << 24 | 7u << 16), values);
  EXPECT_TRUE(index.levels().has_free_places());
  EXPECT_EQ(counts_of(index.node_counts()), (KindCounts{62, 0, 0, 1, 0, 2}));
  auto got = words();
  EXPECT_NE(got[3], expected[3]);
  const auto freed = expected[3];
  expected[3] = got[3];
  EXPECT_EQ(got, expected);
  // A node that is new takes the place.
  const Key away = 60u << 24 | 2u << 16;
  index.insert(Exec{}, one(away | 5), values);
  EXPECT_EQ(counts_of(index.node_counts()), (KindCounts{63, 0, 0, 1, 0, 2}));
  EXPECT_FALSE(index.levels().has_free_places());
  EXPECT_EQ(words(), expected);
  // It goes; then, the node with a child less is back in it.
  index.erase(Exec{}, one(away | 5));
  EXPECT_TRUE(index.levels().has_free_places());
  index.erase(Exec{}, one(3u << 24 | 7u << 16));
  expected[3] = freed;
  EXPECT_EQ(words(), expected);
  EXPECT_EQ(counts_of(index.node_counts()), built);
  // Ever so often, in the same memory.
  Model<Key> model;
  for (std::uint32_t i = 0; i < keys.size(); ++i) model.insert({{keys[i], i}});
  std::mt19937_64 rng(8);
  size_type most = 0;
  for (int round = 0; round < 60; ++round) {
    typename Model<Key>::Batch batch;
    std::vector<Key> some;
    std::vector<std::uint32_t> of_some;
    for (int i = 0; i < 12; ++i) {
      some.push_back(static_cast<Key>(rng()));
      of_some.push_back(static_cast<std::uint32_t>(i));
      batch.emplace_back(some.back(), i);
    }
    index.insert(Exec{}, to_device<Exec>(some), to_device<Exec>(of_some));
    model.insert(batch);
    index.erase(Exec{}, to_device<Exec>(some));
    model.erase(batch);
    if (round == 10) most = index.memory_bytes();
    if (round % 20 == 19) expect_same_entries<Exec>(index, model);
  }
  EXPECT_LE(index.memory_bytes(), 2 * most);
  EXPECT_EQ(counts_of(index.node_counts()), built);
  // And what is free is given back.
  index.shrink_to_fit(Exec{});
  expect_same_entries<Exec>(index, model);
  EXPECT_FALSE(index.levels().has_free_places());
  EXPECT_EQ(index.memory_bytes(), index.data_bytes() + index.tree_bytes());
}

/// One child more or less at a time, in both directions.
TYPED_TEST(RadixUpdates, GrowAndShrinkThroughAllForms) {
  using Exec = TypeParam;
  using Key = std::uint16_t;
  auto index = tree_of<Exec>(std::vector<Key>{});
  const auto form = [&](int children) {
    auto counts = counts_of(index.node_counts());
    // Below each child are two keys: a node of its own.
    if (children > 1) counts[0] -= size_type(children);
    return counts;
  };
  const auto expected = [](int children) {
    KindCounts counts{};
    if (children > 0)
      ++counts[children <= 4 ? 0 : children <= 16 ? 1 : children <= 48 ? 2 : 3];
    return counts;
  };
  const auto keys_of = [](int child) {
    return to_device<Exec>(std::vector<Key>{static_cast<Key>(child * 256 + 9),
                                            static_cast<Key>(child * 256 + 2)});
  };
  const auto values = to_device<Exec>(std::vector<std::uint32_t>{1, 2});
  for (int children = 1; children <= 256; ++children) {
    index.insert(Exec{}, keys_of(children - 1), values);
    EXPECT_EQ(form(children), expected(children)) << children;
  }
  for (int children = 255; children >= 0; --children) {
    index.erase(Exec{}, keys_of(children));
    EXPECT_EQ(form(children), expected(children)) << children;
  }
}

/// A key that leaves a path splits it; without that key, it is whole again.
TYPED_TEST(RadixUpdates, SplitAndMergePaths) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  auto index =
      tree_of<Exec>(std::vector<Key>{0x1122334455667701, 0x1122334455667702});
  EXPECT_EQ(index.height(), 1);
  const auto away = to_device<Exec>(std::vector<Key>{0x1122330000000000});
  const auto seven = to_device<Exec>(std::vector<std::uint32_t>{7});
  index.insert(Exec{}, away, seven);
  EXPECT_EQ(index.height(), 2);
  EXPECT_EQ(counts_of(index.node_counts()), (KindCounts{2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(finds<Exec>(index, std::vector<Key>{0x1122330000000000,
                                                0x1122334455667702}),
            (std::vector<std::uint32_t>{7, 1}));
  index.erase(Exec{}, away);
  EXPECT_EQ(index.height(), 1);
  EXPECT_EQ(counts_of(index.node_counts()), (KindCounts{1, 0, 0, 0, 0, 0}));
}

/// Where nodes are, and how many entries there is room for.
template <class Index>
std::pair<const void*, size_type> room_of(const Index& index) {
  return {index.levels().arena(kindex::query::RadixKind::node4).data(),
          index.capacity()};
}

/// Entries and nodes stay in their memory while there is room, which then
/// doubles; nothing is lost on the way.
TYPED_TEST(RadixUpdates, RoomIsUsedAgainAndDoubles) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  Model<Key> model;
  auto index = tree_of<Exec>(std::vector<Key>{});
  std::mt19937_64 rng(12);
  const auto insert = [&](std::size_t size) {
    typename Model<Key>::Batch batch;
    std::vector<Key> keys;
    std::vector<std::uint32_t> values;
    for (std::size_t i = 0; i < size; ++i) {
      keys.push_back(static_cast<Key>(rng()));
      values.push_back(static_cast<std::uint32_t>(i));
      batch.emplace_back(keys.back(), values.back());
    }
    index.insert(Exec{}, to_device<Exec>(keys), to_device<Exec>(values));
    model.insert(batch);
    expect_same_entries<Exec>(index, model);
    return batch;
  };
  insert(1000);
  EXPECT_EQ(index.capacity(), 1000u);
  insert(1);
  EXPECT_EQ(index.capacity(), 2000u);
  insert(800);  // doubles the arenas
  const auto room = room_of(index);
  const auto batch = insert(100);
  EXPECT_EQ(room_of(index), room);
  const size_type held = index.memory_bytes();
  EXPECT_GT(held, index.data_bytes() + index.tree_bytes());
  // Fewer entries do not give memory back, but on demand.
  std::vector<Key> gone;
  for (const auto& entry : batch) gone.push_back(entry.first);
  index.erase(Exec{}, to_device<Exec>(gone));
  model.erase(batch);
  expect_same_entries<Exec>(index, model);
  EXPECT_EQ(room_of(index), room);
  EXPECT_EQ(index.memory_bytes(), held);
  index.shrink_to_fit(Exec{});
  Kokkos::fence();
  expect_same_entries<Exec>(index, model);
  EXPECT_EQ(index.memory_bytes(), index.data_bytes() + index.tree_bytes());
  // Room that is reserved lasts.
  index.reserve(Exec{}, 5000);
  EXPECT_EQ(index.capacity(), 5000u);
  // Nodes have as much in proportion, and their copies answer the same.
  EXPECT_GE(index.levels().memory_bytes() + 6,
            index.tree_bytes() * 5000 / index.size());
  expect_same_entries<Exec>(index, model);
  for (int i = 0; i < 4; ++i) insert(700);
  EXPECT_EQ(index.capacity(), 5000u);
  // A copy keeps its memory, and what is in it.
  const auto copy = index;
  const auto before = model;
  const auto shared = room_of(copy);
  insert(10);
  expect_same_entries<Exec>(copy, before);
  EXPECT_EQ(room_of(copy), shared);
  EXPECT_NE(room_of(index).first, shared.first);
  // What there is of room, a shared one keeps, and less is not taken.
  for (int i = 0; i < 3; ++i) {
    const auto snapshot = index;
    insert(1);
    EXPECT_EQ(index.capacity(), 5000u);
  }
  {
    const auto snapshot = index;
    index.reserve(Exec{}, 0);
    expect_same_entries<Exec>(index, model);
    EXPECT_EQ(index.capacity(), 5000u);
    // Nothing is shared any more.
    EXPECT_NE(room_of(index).first, room_of(snapshot).first);
  }
  for (const size_type huge :
       {~size_type{0}, ~size_type{0} - 6, size_type{1} << 62})
    EXPECT_THROW(index.reserve(Exec{}, huge), kindex::Error);
  expect_same_entries<Exec>(index, model);
  TreeOn<Key, Exec> rows(Exec{}, kindex::sorted,
                         to_device<Exec>(std::vector<Key>{3, 4, 5}));
  rows.reserve(Exec{}, 1);
  EXPECT_EQ(finds<Exec>(rows, std::vector<Key>{5, 3}),
            (std::vector<std::uint32_t>{2, 0}));
  // What was moved from begins anew.
  auto moved = std::move(index);
  expect_same_entries<Exec>(moved, model);
  index = {};
  model = {};
  EXPECT_EQ(index.capacity(), 0u);
  EXPECT_EQ(index.memory_bytes(), 0u);
  insert(300);
  index.erase(Exec{}, to_device<Exec>(model.keys()));
  index.shrink_to_fit(Exec{});
  EXPECT_EQ(index.memory_bytes(), 0u);
}

/// Edits in more pieces than one, of entries whose values were row ids.
TYPED_TEST(RadixUpdates, EditManyEntries) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  using Entry = std::pair<Key, std::uint32_t>;
  const auto is_below = [](const Entry& a, const Entry& b) {
    return a.first < b.first;
  };
  std::vector<Key> keys((std::size_t{1} << 22) + 5);
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = 3 * i + 1;
    entries.emplace_back(keys[i], static_cast<std::uint32_t>(i));
  }
  TreeOn<Key, Exec> index(Exec{}, kindex::sorted, to_device<Exec>(keys));
  const auto expect_entries = [&] {
    const auto all = index.range(Exec{}, to_device<Exec>(std::vector<Key>{0}),
                                 to_device<Exec>(std::vector<Key>{~Key{0}}),
                                 kindex::with_keys);
    const auto got_keys = to_host(all.keys);
    const auto got_values = to_host(all.values);
    ASSERT_EQ(index.size(), entries.size());
    ASSERT_EQ(got_keys.size(), entries.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (Entry(got_keys[i], got_values[i]) != entries[i]) ++wrong;
    EXPECT_EQ(wrong, 0u);
  };
  // Before all, among them, in runs and behind all.
  std::vector<Key> batch{0, ~Key{0}};
  for (Key i = 0; i < 1000; ++i) {
    batch.push_back(i * i * 12);
    batch.push_back(7000000 + i % 3);
  }
  for (const Key key : batch) entries.emplace_back(key, 7);
  std::stable_sort(entries.begin(), entries.end(), is_below);
  index.insert(Exec{}, to_device<Exec>(batch),
               to_device<Exec>(std::vector<std::uint32_t>(batch.size(), 7)));
  expect_entries();
  std::sort(batch.begin(), batch.end());
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [&](const Entry& entry) {
                                 return std::binary_search(
                                     batch.begin(), batch.end(), entry.first);
                               }),
                entries.end());
  EXPECT_LT(entries.size(), keys.size());  // a key that was there before
  index.erase(Exec{}, to_device<Exec>(batch));
  expect_entries();
  index.update(Exec{}, to_device<Exec>(keys),
               to_device<Exec>(std::vector<std::uint32_t>(keys.size(), 5)));
  for (Entry& entry : entries) entry.second = 5;
  expect_entries();
}

/// Wherever memory runs out, a batch is whole or not there.
TYPED_TEST(RadixUpdates, MemoryRunsOut) {
  using Exec = TypeParam;
  using Key = std::uint32_t;
  typename Model<Key>::Batch batch;
  std::vector<Key> keys, more;
  std::mt19937_64 rng(3);
  for (std::uint32_t i = 0; i < 3000; ++i)
    keys.push_back(static_cast<Key>(rng()));
  for (std::uint32_t i = 0; i < 2000; ++i) {
    more.push_back(static_cast<Key>(rng()));
    batch.emplace_back(more.back(), i);
  }
  // And one that is there.
  more.push_back(keys[4]);
  batch.emplace_back(keys[4], 2000);
  const auto device_more = to_device<Exec>(more);
  std::vector<std::uint32_t> ids;
  for (const auto& entry : batch) ids.push_back(entry.second);
  const auto device_ids = to_device<Exec>(ids);
  enum { inserts, assigns, erases };
  for (const int what : {inserts, assigns, erases}) {
    int failures = 0;
    for (bool failed = true; failed; ++failures) {
      ASSERT_LT(failures, 100);
      Model<Key> model;
      for (std::uint32_t i = 0; i < keys.size(); ++i)
        model.insert({{keys[i], i}});
      auto index = tree_of<Exec>(keys);
      if (what == erases) {
        index.insert(Exec{}, device_more, device_ids);
        model.insert(batch);
      }
      auto changed = model;
      what == erases    ? changed.erase(batch)
      : what == assigns ? changed.insert_or_assign(batch)
                        : changed.insert(batch);
      failed = false;
      try {
        const FailingAllocation failing(failures);
        if (what == erases) {
          index.erase(Exec{}, device_more);
        } else if (what == assigns) {
          index.insert_or_assign(Exec{}, device_more, device_ids);
        } else {
          index.insert(Exec{}, device_more, device_ids);
        }
      } catch (const std::exception&) {
        failed = true;
      }
      const bool is_changed = index.size() == changed.entries.size();
      EXPECT_TRUE(is_changed || failed);
      expect_same_answers<Exec>(index, is_changed ? changed : model);
      // The next update makes the tree whole again.
      const std::vector<Key> one{Keys<Key>::max()};
      index.insert(Exec{}, to_device<Exec>(one),
                   to_device<Exec>(std::vector<std::uint32_t>{1}));
      auto with_one = is_changed ? changed : model;
      with_one.insert({{one[0], 1}});
      expect_same_entries<Exec>(index, with_one);
    }
    // What was inserted has left memory for most of what erases.
    EXPECT_GT(failures, what == erases ? 3 : 8);
  }
}

/// Memory that batches need meanwhile is kept for the next ones.
TYPED_TEST(RadixUpdates, AllocateNothingOnceTheyHave) {
  using Exec = TypeParam;
  using Key = std::uint64_t;
  std::mt19937_64 rng(21);
  std::vector<Key> keys(5000), some(300);
  for (Key& key : keys) key = rng();
  for (Key& key : some) key = rng();
  auto index = tree_of<Exec>(keys);
  EXPECT_EQ(index.scratch_bytes(), 0u);
  index.reserve(Exec{}, 6000);
  const auto device_some = to_device<Exec>(some);
  const auto values =
      to_device<Exec>(std::vector<std::uint32_t>(some.size(), 1));
  std::vector<Event> events;
  for (int round = 0; round < 4; ++round) {
    Recorder recorder;
    index.insert(Exec{}, device_some, values);
    index.update(Exec{}, device_some, values);
    index.insert_or_assign(Exec{}, device_some, values);
    index.erase(Exec{}, device_some);
    index.insert_or_assign(Exec{}, device_some, values);
    index.erase(Exec{}, device_some);
    events = recorder.stop();
    EXPECT_EQ(index.size(), keys.size());
  }
  for (const Event& event : events)
    if (event.label.rfind("kindex::", 0) == 0) {
      EXPECT_FALSE(event.kind == Event::allocation ||
                   event.kind == Event::deallocation)
          << event.text();
    }
  EXPECT_GT(index.scratch_bytes(), 0u);
  // A copy may be changed at the same time.
  EXPECT_EQ(decltype(index)(index).scratch_bytes(), 0u);
  index.shrink_to_fit(Exec{});
  EXPECT_EQ(index.scratch_bytes(), 0u);
}

TYPED_TEST(RadixUpdates, RefusedUpdatesChangeNothing) {
  using Exec = TypeParam;
  auto index = tree_of<Exec>(std::vector<double>{1, 2, 3});
  const auto odd = to_device<Exec>(std::vector<double>{4, std::nan("")});
  const auto one = to_device<Exec>(std::vector<std::uint32_t>{1});
  const auto two = to_device<Exec>(std::vector<std::uint32_t>{1, 2});
  EXPECT_THROW(index.insert(Exec{}, odd, two), kindex::Error);
  EXPECT_THROW(index.insert(Exec{}, odd, one), kindex::Error);
  EXPECT_THROW(index.update(Exec{}, odd, two), kindex::Error);
  EXPECT_THROW(index.insert_or_assign(Exec{}, odd, two), kindex::Error);
  EXPECT_THROW(index.insert_or_assign(Exec{}, odd, one), kindex::Error);
  EXPECT_THROW(index.erase(Exec{}, odd), kindex::Error);
  EXPECT_EQ(index.size(), 3u);
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<double>{2.5}), (Ranks{2}));
}

}  // namespace
}  // namespace kindex_test
