// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values, keys and states that are legal and rarely thought of.
#include <gtest/gtest.h>

#include <cstdint>
#include <kindex/BPlusTree.hpp>
#include <kindex/Eytzinger.hpp>
#include <kindex/HybridBPlusTree.hpp>
#include <kindex/HybridLearnedIndex.hpp>
#include <kindex/LearnedIndex.hpp>
#include <kindex/PivotTree.hpp>
#include <kindex/RadixTree.hpp>
#include <kindex/RegularBPlusTree.hpp>
#include <kindex/SortedArray.hpp>
#include <utility>

namespace kindex_test {
namespace {

using Host = Kokkos::DefaultHostExecutionSpace;
using Memory = Kokkos::HostSpace;

template <class T>
Kokkos::View<T*, Memory> view(std::size_t size) {
  return Kokkos::View<T*, Memory>("test::view", size);
}

/// Keys 0, 2, 4, ...
Kokkos::View<std::uint32_t*, Memory> even_keys(std::size_t size) {
  const auto keys = view<std::uint32_t>(size);
  for (std::size_t i = 0; i < size; ++i)
    keys(i) = static_cast<std::uint32_t>(2 * i);
  return keys;
}

struct Page {
  char bytes[128 * 1024];
};

struct alignas(32) Vector {
  float lanes[8];
};

/// Trivially copyable, and that is all.
struct Named {
  std::uint32_t name;
  KOKKOS_FUNCTION explicit Named(std::uint32_t n) : name(n) {}
};

TEST(OddValues, ValuesNeedNoDefault) {
  const Host space;
  const auto keys = even_keys(64);
  using Values = Kokkos::View<Named*, Memory>;
  const auto uninitialised = [](std::size_t size) {
    return Values(Kokkos::view_alloc(Kokkos::WithoutInitializing, "test::view"),
                  size);
  };
  const Values values = uninitialised(64);
  for (std::uint32_t i = 0; i < 64; ++i) values(i) = Named(100 + i);
  const kindex::SortedArray<std::uint32_t, Named, Memory> index(space, keys,
                                                                values);
  const auto queries = view<std::uint32_t>(2);
  queries(0) = 10;
  queries(1) = 11;
  const Values found = uninitialised(2);
  index.find(space, queries, found, Named(7));
  const auto hits = index.range(space, queries, queries);
  space.fence();
  EXPECT_EQ(found(0).name, 105U);
  EXPECT_EQ(found(1).name, 7U);
  ASSERT_EQ(hits.values.extent(0), 1U);
  EXPECT_EQ(hits.values(0).name, 105U);
}

TEST(OddValues, LargeValuesBesideTheirKeysAreNotCopiedBySearches) {
  const Host space;
  const auto keys = even_keys(64);
  const kindex::PivotTree<std::uint32_t, Page, Memory, kindex::AoS> index(
      space, keys, view<Page>(64));
  const auto found = view<bool>(2);
  const auto queries = view<std::uint32_t>(2);
  queries(0) = 126;
  queries(1) = 125;
  index.contains(space, queries, found);
  space.fence();
  EXPECT_TRUE(found(0));
  EXPECT_FALSE(found(1));
}

TEST(OddValues, OverAlignedResultsOfPartitionedBatchesAreAligned) {
  const Host space;
  const auto keys = even_keys(64);
  const auto values = view<Vector>(64);
  values(5).lanes[7] = 5;
  const kindex::PivotTree<std::uint32_t, Vector, Memory> index(space, keys,
                                                               values);
  const auto queries = view<std::uint32_t>(1);
  queries(0) = 10;
  const auto found = view<Vector>(1);
  const auto bytes = view<std::byte>(1 << 20);
  index.find(space, queries, found,
             kindex::LookupPolicy()
                 .set_reordering(kindex::Reordering::partitioned)
                 .set_workspace(Kokkos::subview(
                     bytes, Kokkos::pair<std::size_t, std::size_t>(
                                16, bytes.extent(0)))));
  space.fence();
  EXPECT_EQ(found(0).lanes[7], 5);
}

template <class Index>
void expect_empty_after_move() {
  const Host space;
  Index index(space, even_keys(1000));
  const Index taken = std::move(index);
  EXPECT_EQ(taken.size(), 1000U);
  EXPECT_EQ(index.size(), 0U);
  EXPECT_EQ(index.memory_bytes(), 0U);
  if constexpr (requires { index.height(); }) {
    EXPECT_EQ(index.height(), 0);
  }
  if constexpr (requires { index.segments(); }) {
    EXPECT_EQ(index.segments(), 0U);
  }
  const auto queries = view<std::uint32_t>(1);
  const auto ranks = view<kindex::size_type>(1);
  ranks(0) = 7;
  index.upper_bound(space, queries, ranks);
  space.fence();
  EXPECT_EQ(ranks(0), 0U);
}

template <class... Index>
void expect_all_empty_after_move() {
  (expect_empty_after_move<Index>(), ...);
}

TEST(OddValues, AMovedFromIndexIsEmpty) {
  using Key = std::uint32_t;
  expect_all_empty_after_move<kindex::SortedArray<Key, Key, Memory>,
                              kindex::PivotTree<Key, Key, Memory>,
                              kindex::BPlusTree<Key, Key, Memory>,
                              kindex::Eytzinger<Key, Key, Memory>,
                              kindex::LearnedIndex<Key, Key, Memory>,
                              kindex::RadixTree<Key, Key, Memory>,
                              kindex::RegularBPlusTree<Key, Key, Memory>,
                              kindex::HybridBPlusTree<Key, Key, Memory>,
                              kindex::HybridLearnedIndex<Key, Key, Memory>>();
}

TEST(OddValues, CharactersAreNumbers) {
  const Host space;
  const auto keys = view<char16_t>(2);
  keys(0) = u'b';
  keys(1) = u'a';
  const kindex::SortedArray<char16_t, std::uint32_t, Memory> index(space, keys);
  EXPECT_EQ(index.ref().lower_bound(u'b'), 1U);
}

TEST(OddValues, BoundsMayDifferInConstness) {
  const Host space;
  const auto keys = even_keys(4);
  const kindex::SortedArray<std::uint32_t, std::uint32_t, Memory> index(space,
                                                                        keys);
  const Kokkos::View<const std::uint32_t*, Memory> lo = keys;
  EXPECT_EQ(index.range(space, lo, keys).values.extent(0), 4U);
}

TEST(OddValues, TheMissingBoolIsAllBitsOne) {
  EXPECT_TRUE(kindex::default_missing<bool>());
}

}  // namespace
}  // namespace kindex_test
