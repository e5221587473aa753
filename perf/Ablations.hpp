// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_ABLATIONS_HPP
#define KINDEX_PERF_ABLATIONS_HPP

/// \file
/// What each optimisation of a lookup is worth: indexes that differ from a
/// plain one in one setting, named `INDEX+SETTING`, and their fan-outs, named
/// `INDEX_kK`. A new one is one line here; report.py groups them by name.

#include "AnyIndex.hpp"
#include "OneThread.hpp"
#include "Spaces.hpp"
#include "Tuned.hpp"

#include <kindex/BPlusTree.hpp>
#include <kindex/Eytzinger.hpp>
#include <kindex/LearnedIndex.hpp>
#include <kindex/PivotTree.hpp>
#include <kindex/RadixTree.hpp>
#include <kindex/SortedArray.hpp>

#include <initializer_list>
#include <string>

namespace kindex::perf {

/// Adds variants of one index to a list.
template <class Index, class List>
class Variants {
 public:
  Variants(List& all, std::string name) : all_(all), name_(std::move(name)) {}

  template <class Policy, class BuildOptions = PivotTreeOptions>
  void add(const std::string& setting, const Policy& policy,
           const BuildOptions& build = {}) {
    using Variant = Tuned<Index, Policy, Op::lower_bound>;
    all_.template add_ablation<Variant>(
        name_ + '+' + setting, Tuning<Policy, BuildOptions>{policy, build});
  }

  /// The index itself under this name.
  void add_plain() {
    using Variant = Tuned<Index, LookupPolicy, Op::lower_bound, Op::range,
                          Op::for_each_in_range>;
    all_.template add_ablation<Variant>(name_, Tuning<LookupPolicy>{});
  }

  void add_scheduling() {
    const LookupPolicy dynamic =
        LookupPolicy().set_scheduling(Scheduling::dynamic);
    const LookupPolicy fixed = LookupPolicy().set_scheduling(Scheduling::fixed);
    for (int team : {128, 256, 512, 1024})
      add("dynamic+team_" + std::to_string(team),
          LookupPolicy(dynamic).set_team_size(team));
    for (int team : {128, 256, 512, 1024})
      add("fixed+team_" + std::to_string(team),
          LookupPolicy(fixed).set_team_size(team));
    const LookupPolicy one_per_core =
        LookupPolicy().set_scheduling(Scheduling::one_per_core);
    for (int team : {256, 512, 1024})
      add("one_per_core+team_" + std::to_string(team),
          LookupPolicy(one_per_core).set_team_size(team));
    for (int lookups : {1, 4, 16})
      add("dynamic+lookups_" + std::to_string(lookups),
          LookupPolicy(dynamic).set_lookups_per_thread(lookups));
  }

  /// The given numbers of steps, and as many as fit into the given KiB.
  void add_pinning(std::initializer_list<int> steps,
                   std::initializer_list<int> kibs) {
    for (int step : steps)
      add("fixed+pinned_" + std::to_string(step),
          fixed_pinned(32).set_pinned_steps(step));
    for (int kib : kibs)
      add("fixed+pinned_" + std::to_string(kib) + "_kib", fixed_pinned(kib));
    add("dynamic+pinned_16_kib",
        fixed_pinned(16).set_scheduling(Scheduling::dynamic));
  }

  void add_reordering() {
    using Sorted = BasicLookupPolicy<TeamSorted<>>;
    add("team_sorted", Sorted());
    add("team_sorted_as_found",
        Sorted().set_result_order(ResultOrder::as_found));
    add("partitioned", LookupPolicy().set_reordering(Reordering::partitioned));
  }

  /// Pinning and reordering together.
  void add_combination() {
    using Both = BasicLookupPolicy<PinnedTop, TeamSorted<>>;
    add("fixed+pinned_16_kib+team_sorted",
        Both().set_scheduling(Scheduling::fixed).set_pinned_bytes(16384));
  }

  /// How nodes are read, where it is not by 16 bytes a lane.
  void add_cooperation() {
    add("one_key_per_lane", BasicLookupPolicy<OneKeyPerLane>());
    all_.template add_ablation<OneThread<Index>>(name_ + "+one_thread");
  }

  void add_levels(std::initializer_list<int> levels) {
    for (int level : levels)
      add("levels_" + std::to_string(level), LookupPolicy(), {level});
  }

  /// All levels, the last one as whole keys and as codes of 8 bits.
  void add_last_level() {
    add("levels_all_exact", LookupPolicy(), {-1, LastLevel::exact});
    add("levels_all_quantised", LookupPolicy(), {-1, LastLevel::quantised});
  }

  void add_sorted_queries() {
    add("sorted_queries", BasicLookupPolicy<SortedQueries>());
  }

 private:
  using Pinned = BasicLookupPolicy<PinnedTop>;

  static Pinned fixed_pinned(int kib) {
    return Pinned()
        .set_scheduling(Scheduling::fixed)
        .set_pinned_bytes(size_type(kib) << 10);
  }

  List& all_;
  std::string name_;
};

/// Children of a node whose keys fill 64 bytes.
template <class Key>
inline constexpr int line_fan_out = 64 / int(sizeof(Key)) + 1;

/// Calls `f.template operator()<K>()` for the fan-outs compared.
template <class F>
void for_each_fan_out(F&& f) {
  f.template operator()<2>();
  f.template operator()<3>();
  f.template operator()<5>();
  f.template operator()<9>();
  f.template operator()<17>();
  f.template operator()<33>();
}

template <class Key, class Value, class Exec>
void add_sorted_array_ablations(IndexList<Key, Value, Exec>& all) {
  using Index = SortedArray<Key, Value, typename Exec::memory_space>;
  Variants<Index, IndexList<Key, Value, Exec>> variants(all, "sorted_array");
  variants.add_scheduling();
  variants.add_pinning({0, 4, 6, 8, 10, 12}, {8, 16, 32});
  variants.add_reordering();
  variants.add("team_sorted_2048", BasicLookupPolicy<TeamSorted<512, 4>>());
  variants.add_combination();
  variants.add_sorted_queries();
}

template <class Key, class Value, class Exec>
void add_eytzinger_ablations(IndexList<Key, Value, Exec>& all) {
  using List = IndexList<Key, Value, Exec>;
  using Memory = typename Exec::memory_space;
  Variants<Eytzinger<Key, Value, Memory, SoA, 2>, List> binary(all,
                                                               "eytzinger_k2");
  binary.add_pinning({0, 4, 8, 12}, {16});
  binary.add_reordering();
  binary.add_combination();
  all.template add_ablation<
      Tuned<Eytzinger<Key, Value, Memory, AoS>, LookupPolicy, Op::find,
            Op::lower_bound, Op::range, Op::for_each_in_range>>(
      "eytzinger+aos", Tuning<LookupPolicy>{});

  for_each_fan_out([&]<int K>() {
    using Index = Eytzinger<Key, Value, Memory, SoA, K>;
    const std::string name = "eytzinger_k" + std::to_string(K);
    Variants<Index, List> variants(all, name);
    variants.add_plain();
    if constexpr (K == line_fan_out<Key>) variants.add_cooperation();
  });
}

template <class Key, class Value, class Exec>
void add_pivot_tree_ablations(IndexList<Key, Value, Exec>& all) {
  using List = IndexList<Key, Value, Exec>;
  using Memory = typename Exec::memory_space;
  Variants<PivotTree<Key, Value, Memory>, List> wide(all, "pivot_tree");
  wide.add_scheduling();
  wide.add_pinning({0, 1, 2, 3}, {16});
  wide.add_reordering();
  wide.add_combination();
  wide.add_cooperation();
  wide.add_levels({0, 1, 2, 3, 4, 5});
  wide.add_last_level();
  wide.add_sorted_queries();

  for_each_fan_out([&]<int K>() {
    using Index = PivotTree<Key, Value, Memory, SoA, K>;
    Variants<Index, List> variants(all, "pivot_tree_k" + std::to_string(K));
    variants.add_plain();
    if constexpr (K == 2) {
      variants.add_pinning({0, 8, 12}, {16});
      variants.add_reordering();
      variants.add_combination();
      variants.add_levels({0, 8, 16, 20, 24});
    }
  });
}

template <class Key, class Value, class Exec>
void add_learned_index_ablations(IndexList<Key, Value, Exec>& all) {
  using Index = LearnedIndex<Key, Value, typename Exec::memory_space>;
  Variants<Index, IndexList<Key, Value, Exec>> variants(all, "learned_index");
  for (int epsilon : {4, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048})
    for (const auto& [name, strategy] :
         {std::pair("concise", Strategy::concise),
          std::pair("complete", Strategy::complete)}) {
      LearnedIndexOptions options;
      options.epsilon = static_cast<size_type>(epsilon);
      options.strategy = strategy;
      const std::string setting =
          "epsilon_" + std::to_string(epsilon) + '+' + name;
      variants.add(setting, LookupPolicy(), options);
      if (epsilon == 16 || epsilon == 128) {
        variants.add(setting + "+pinned_8_kib",
                     BasicLookupPolicy<PinnedTop>().set_pinned_bytes(8192),
                     options);
        variants.add(setting + "+pinned_32_kib",
                     BasicLookupPolicy<PinnedTop>().set_pinned_bytes(32768),
                     options);
        variants.add(setting + "+broadcast", BasicLookupPolicy<BroadcastTop>(),
                     options);
        variants.add(setting + "+partitioned",
                     LookupPolicy().set_reordering(Reordering::partitioned),
                     options);
      }
    }
  variants.add_scheduling();
}

/// How many keys should share a leaf (1: the tree of its authors), what narrow
/// references are worth, and a pinned root.
template <class Key, class Value, class Exec>
void add_radix_tree_ablations(IndexList<Key, Value, Exec>& all) {
  using Index = RadixTree<Key, Value, typename Exec::memory_space>;
  Variants<Index, IndexList<Key, Value, Exec>> variants(all, "radix_tree");
  for (size_type entries : {1, 2, 4, 8, 16, 32, 64})
    variants.add("leaf_" + std::to_string(entries), LookupPolicy(),
                 RadixTreeOptions{.leaf_entries = entries});
  variants.add("wide_references", LookupPolicy(),
               RadixTreeOptions{.wide_references = true});
  if constexpr (is_host<Exec>)
    variants.add("ordinary_pages", LookupPolicy(),
                 RadixTreeOptions{.pages = Pages::ordinary});
  variants.add("pinned_root", BasicLookupPolicy<PinnedTop>(),
               RadixTreeOptions());
  variants.add("partitioned",
               LookupPolicy().set_reordering(Reordering::partitioned),
               RadixTreeOptions());
}

/// What a host gains by how it searches nodes, by lookups in turns and by
/// pages; on a GPU, lanes with one key each, as the authors of the tree have
/// them.
template <class Key, class Value, class Exec>
void add_b_plus_tree_ablations(IndexList<Key, Value, Exec>& all) {
  using Index = BPlusTree<Key, Value, typename Exec::memory_space>;
  Variants<Index, IndexList<Key, Value, Exec>> variants(all, "b_plus_tree");
  if constexpr (is_host<Exec>) {
    for (const auto how : {NodeSearch::scalar, NodeSearch::linear_avx2,
                           NodeSearch::hierarchical_avx2,
                           NodeSearch::linear_avx512, NodeSearch::linear_neon})
      if (is_available(how))
        variants.add(name_of(how), LookupPolicy(),
                     BPlusTreeOptions{how, Pages::huge});
    variants.add("ordinary_pages", LookupPolicy(),
                 BPlusTreeOptions{NodeSearch::automatic, Pages::ordinary});
    const auto add_depth = [&]<int Lookups>() {
      variants.add("in_flight_" + std::to_string(Lookups),
                   BasicLookupPolicy<InFlight<Lookups>>(), BPlusTreeOptions());
    };
    add_depth.template operator()<1>();
    add_depth.template operator()<2>();
    add_depth.template operator()<4>();
    add_depth.template operator()<8>();
    add_depth.template operator()<16>();
    add_depth.template operator()<32>();
  } else {
    variants.add_cooperation();
  }
}

}  // namespace kindex::perf

#endif
