// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The indexes of the conformance suite: ONE LINE EACH, and the #include of its
// header.
#ifndef KINDEX_UNIT_TESTS_CONFORMANCE_INDEX_LIST_HPP
#define KINDEX_UNIT_TESTS_CONFORMANCE_INDEX_LIST_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <kindex/Eytzinger.hpp>
#include <kindex/HybridLearnedIndex.hpp>
#include <kindex/LearnedIndex.hpp>
#include <kindex/PivotTree.hpp>
#include <kindex/SortedArray.hpp>

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
using IndexList = ::testing::Types<
    Entry<kindex::SortedArray<Key, std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::SortedArray<Key, std::uint64_t, MemorySpace, kindex::AoS>>,
    Entry<kindex::SortedArray<Key, Triple,        MemorySpace, kindex::AoS>>,
    Entry<kindex::PivotTree<Key,   std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::PivotTree<Key,   std::uint64_t, MemorySpace, kindex::AoS>>,
    Entry<kindex::Eytzinger<Key,   std::uint32_t, MemorySpace, kindex::SoA, 2>>,
    Entry<kindex::Eytzinger<Key,   std::uint64_t, MemorySpace, kindex::SoA, 9>>,
    Entry<kindex::LearnedIndex<Key, std::uint32_t, MemorySpace, kindex::SoA>>,
    Entry<kindex::LearnedIndex<Key, std::uint64_t, MemorySpace, kindex::AoS>>,
    Entry<kindex::HybridLearnedIndex<Key, std::uint32_t, MemorySpace, kindex::SoA>, Offers::everything, Views::on_the_host>
>;
// clang-format on

}  // namespace kindex_test

#endif
