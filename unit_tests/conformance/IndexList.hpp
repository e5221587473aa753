// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The indexes of the conformance suite: ONE LINE EACH, and the #include of its
// header.
#ifndef KINDEX_UNIT_TESTS_CONFORMANCE_INDEX_LIST_HPP
#define KINDEX_UNIT_TESTS_CONFORMANCE_INDEX_LIST_HPP

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
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/Values.hpp"

namespace kindex_test {

/// What an index offers beyond find, contains and count.
enum class Offers { everything, points_only };

/// Where an index takes Views, and where its ref() works.
enum class Views { on_the_device, on_the_host };

template <class IndexType, Offers offered = Offers::everything,
          Views views = Views::on_the_device>
struct Entry {
  using Index = IndexType;
  template <class Exec>
  using Home = std::conditional_t<views == Views::on_the_host,
                                  Kokkos::DefaultHostExecutionSpace, Exec>;
  static constexpr bool ranges = offered == Offers::everything;
};

// clang-format off
template <class Key, class MemorySpace>
using OnePerClass = ::testing::Types<
    Entry<kindex::SortedArray<Key, std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::SortedArray<Key, std::uint64_t, MemorySpace, kindex::AoS>>,
    Entry<kindex::SortedArray<Key, Triple,        MemorySpace, kindex::AoS>>,
    Entry<kindex::PivotTree<Key,   std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::PivotTree<Key,   std::uint64_t, MemorySpace, kindex::AoS>>,
    Entry<kindex::BPlusTree<Key,   std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::Eytzinger<Key,   std::uint32_t, MemorySpace, kindex::SoA, 2>>,
    Entry<kindex::Eytzinger<Key,   std::uint64_t, MemorySpace, kindex::SoA, 9>>,
    Entry<kindex::LearnedIndex<Key, std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::LearnedIndex<Key, std::uint64_t, MemorySpace, kindex::AoS>>,
    Entry<kindex::RadixTree<Key,   std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::RadixTree<Key,   std::uint64_t, MemorySpace, kindex::AoS>>,
    Entry<kindex::HybridBPlusTree<Key, std::uint64_t, MemorySpace, kindex::AoS>, Offers::everything, Views::on_the_host>,
    Entry<kindex::RegularBPlusTree<Key, std::uint64_t, MemorySpace>, Offers::everything, Views::on_the_host>,
    Entry<kindex::HybridLearnedIndex<Key, std::uint32_t, MemorySpace, kindex::SoA>, Offers::everything, Views::on_the_host>
>;
// clang-format on

// ---- fan-outs ----

/// A fan-out of a tree and a layout.
template <int K, class LayoutType>
struct Shape {
  static constexpr int fan_out = K;
  using Layout = LayoutType;
};

/// The shapes compared in public, in pairs; those above are left out. All of
/// them with all key types would take too long to compile: some key types have
/// a pair, the others one shape.
using kindex::AoS;
using kindex::SoA;
using EytzingerShapes =
    std::tuple<Shape<2, AoS>, Shape<3, SoA>, Shape<3, AoS>, Shape<5, SoA>,
               Shape<5, AoS>, Shape<17, SoA>, Shape<9, AoS>, Shape<33, SoA>,
               Shape<17, AoS>, Shape<33, AoS>>;
using PivotTreeShapes =
    std::tuple<Shape<2, SoA>, Shape<2, AoS>, Shape<3, SoA>, Shape<3, AoS>,
               Shape<5, SoA>, Shape<5, AoS>, Shape<33, SoA>, Shape<33, AoS>,
               Shape<17, SoA>, Shape<17, AoS>>;

/// The first shape of a key type, and how many.
struct Shapes {
  std::size_t first, count;
};
template <class Key>
inline constexpr Shapes shapes_of{1, 1};
template <>
inline constexpr Shapes shapes_of<std::int8_t>{0, 2};
template <>
inline constexpr Shapes shapes_of<std::uint32_t>{2, 2};
template <>
inline constexpr Shapes shapes_of<std::uint64_t>{4, 2};
template <>
inline constexpr Shapes shapes_of<double>{6, 2};
template <>
inline constexpr Shapes shapes_of<kindex::Key128>{8, 2};
template <>
inline constexpr Shapes shapes_of<float>{3, 1};
template <>
inline constexpr Shapes shapes_of<std::int64_t>{5, 1};

template <class... Lists>
struct Joined;
template <class... A>
struct Joined<::testing::Types<A...>> {
  using type = ::testing::Types<A...>;
};
template <class... A, class... B, class... More>
struct Joined<::testing::Types<A...>, ::testing::Types<B...>, More...>
    : Joined<::testing::Types<A..., B...>, More...> {};

template <class Key, class MemorySpace,
          class = std::make_index_sequence<shapes_of<Key>.count>>
struct FanOuts;
template <class Key, class MemorySpace, std::size_t... i>
struct FanOuts<Key, MemorySpace, std::index_sequence<i...>> {
  template <class Shapes, std::size_t number>
  using At = std::tuple_element_t<shapes_of<Key>.first + number, Shapes>;
  template <class S>
  using Level = Entry<kindex::Eytzinger<Key, std::uint32_t, MemorySpace,
                                        typename S::Layout, S::fan_out>>;
  template <class S>
  using Pivots = Entry<kindex::PivotTree<Key, std::uint32_t, MemorySpace,
                                         typename S::Layout, S::fan_out>>;
  using type = ::testing::Types<Level<At<EytzingerShapes, i>>...,
                                Pivots<At<PivotTreeShapes, i>>...>;
};

template <class Key, class MemorySpace>
using IndexList =
    typename Joined<OnePerClass<Key, MemorySpace>,
                    typename FanOuts<Key, MemorySpace>::type>::type;

}  // namespace kindex_test

#endif
