// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_REGISTRY_HPP
#define KINDEX_PERF_REGISTRY_HPP

/// \file
/// Everything that kindex_bench compares. A new index is one line here (and its
/// include).

#include "AnyIndex.hpp"
#include "OnHost.hpp"
#include "Spaces.hpp"
#include "Tuned.hpp"
#include "baselines/KokkosUnorderedMap.hpp"
#include "baselines/StdLowerBound.hpp"
#ifdef KINDEX_PERF_HAVE_ABSL
#include "baselines/AbslBtree.hpp"
#endif
#ifdef KINDEX_PERF_HAVE_ART_TREE
#include "baselines/ArtTree.hpp"
#endif
#ifdef KINDEX_PERF_HAVE_ART
#include "baselines/Libart.hpp"
#endif
#ifdef KINDEX_PERF_HAVE_PGM
#include "baselines/PgmIndex.hpp"
#endif
#ifdef KOKKOS_ENABLE_CUDA
#include "cuda/ThrustLowerBound.hpp"
#endif

#include <kindex/BPlusTree.hpp>
#include <kindex/Eytzinger.hpp>
#include <kindex/HybridBPlusTree.hpp>
#include <kindex/HybridLearnedIndex.hpp>
#include <kindex/LearnedIndex.hpp>
#include <kindex/PivotTree.hpp>
#include <kindex/RadixTree.hpp>
#include <kindex/RegularBPlusTree.hpp>
#include <kindex/SortedArray.hpp>

namespace kindex::perf {

#ifdef KINDEX_PERF_ABLATIONS
// What Ablations.hpp lists, compiled in sources of its own.
template <class Key, class Value, class Exec>
void add_sorted_array_ablations(IndexList<Key, Value, Exec>& all);
template <class Key, class Value, class Exec>
void add_eytzinger_ablations(IndexList<Key, Value, Exec>& all);
template <class Key, class Value, class Exec>
void add_pivot_tree_ablations(IndexList<Key, Value, Exec>& all);
template <class Key, class Value, class Exec>
void add_learned_index_ablations(IndexList<Key, Value, Exec>& all);
template <class Key, class Value, class Exec>
void add_radix_tree_ablations(IndexList<Key, Value, Exec>& all);
template <class Key, class Value, class Exec>
void add_b_plus_tree_ablations(IndexList<Key, Value, Exec>& all);
#endif

template <class Key, class Value, class Exec>
IndexList<Key, Value, Exec> registered_indexes() {
  using Memory = typename Exec::memory_space;
  IndexList<Key, Value, Exec> all;

  // ---- the library's indexes
  all.template add<SortedArray<Key, Value, Memory>>("sorted_array");
  all.template add<SortedArray<Key, Value, Memory, AoS>>("sorted_array_aos");
  all.template add<PivotTree<Key, Value, Memory>>("pivot_tree");
  all.template add<PivotTree<Key, Value, Memory, AoS>>("pivot_tree_aos");
  all.template add<BPlusTree<Key, Value, Memory>>("b_plus_tree");
  all.template add<BPlusTree<Key, Value, Memory, AoS>>("b_plus_tree_aos");
  all.template add<Eytzinger<Key, Value, Memory>>("eytzinger");
  all.template add<LearnedIndex<Key, Value, Memory>>("learned_index");
  all.template add<RadixTree<Key, Value, Memory>>("radix_tree");
  if constexpr (is_host<Exec> && (sizeof(Key) == 4 || sizeof(Key) == 8))
    all.template add<RegularBPlusTree<Key, Value, Memory>>(
        "regular_b_plus_tree");
  if constexpr (!is_host<Exec> && (sizeof(Key) == 4 || sizeof(Key) == 8)) {
    all.template add<OnHost<HybridLearnedIndex<Key, Value, Memory>>>(
        "hybrid_learned_index");
    all.template add<OnHost<HybridBPlusTree<Key, Value, Memory>>>(
        "hybrid_b_plus_tree");
    all.template add<OnHost<RegularBPlusTree<Key, Value, Memory>>>(
        "regular_b_plus_tree");
    constexpr int half_line = 32 / sizeof(Key) + 1;
    using Narrow = PivotTree<Key, Value, Memory, SoA, half_line>;
    using NarrowAoS = PivotTree<Key, Value, Memory, AoS, half_line>;
    all.template add<Narrow>("pivot_tree_32b");
    const Tuning<LookupPolicy> partitioned{
        LookupPolicy().set_reordering(Reordering::partitioned)};
    const auto add_partitioned = [&]<class Index>(const char* name) {
      all.template add<Tuned<Index, LookupPolicy, Op::find, Op::lower_bound>>(
          name, partitioned);
    };
    add_partitioned.template operator()<PivotTree<Key, Value, Memory>>(
        "pivot_tree_partitioned");
    add_partitioned.template operator()<PivotTree<Key, Value, Memory, AoS>>(
        "pivot_tree_aos_partitioned");
    add_partitioned.template operator()<Narrow>("pivot_tree_32b_partitioned");
    add_partitioned.template operator()<LearnedIndex<Key, Value, Memory>>(
        "learned_index_partitioned");
    add_partitioned.template operator()<RadixTree<Key, Value, Memory>>(
        "radix_tree_partitioned");
    add_partitioned.template operator()<NarrowAoS>(
        "pivot_tree_32b_aos_partitioned");
  }

  // ---- baselines
  all.template add<KokkosUnorderedMap<Key, Value, Memory>>(
      "kokkos_unordered_map");
  if constexpr (is_host<Exec>) {
    all.template add<StdLowerBound<Key, Value>>("std_lower_bound");
#ifdef KINDEX_PERF_HAVE_ABSL
    all.template add<AbslBtree<Key, Value>>("absl_btree");
#endif
#ifdef KINDEX_PERF_HAVE_ART_TREE
    if constexpr (is_wide_unsigned<Key> && sizeof(Key) <= 8 &&
                  sizeof(Value) == 4)
      all.template add<ArtTree<Key>>("art_tree");
#endif
#ifdef KINDEX_PERF_HAVE_ART
    if constexpr (is_wide_unsigned<Key> && sizeof(Value) == 4)
      all.template add<Libart<Key>>("libart");
#endif
#ifdef KINDEX_PERF_HAVE_PGM
    // What that library's segments are tested for.
    if constexpr (std::is_same_v<Key, std::uint32_t> ||
                  std::is_same_v<Key, std::uint64_t>)
      all.template add<PgmIndex<Key, Value>>("pgm_index");
#endif
  }
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>)
    all.template add<ThrustLowerBound<Key, Value>>("thrust_lower_bound");
#endif

#ifdef KINDEX_PERF_ABLATIONS
  // ---- ablations
  constexpr bool is_ablated =
      std::is_same_v<Key, std::uint32_t> || std::is_same_v<Key, std::uint64_t>;
  if constexpr (is_ablated && sizeof(Value) == 4) {
    add_sorted_array_ablations(all);
    add_eytzinger_ablations(all);
    add_pivot_tree_ablations(all);
    add_learned_index_ablations(all);
    add_radix_tree_ablations(all);
    add_b_plus_tree_ablations(all);
  }
#endif
  return all;
}

}  // namespace kindex::perf

#endif
