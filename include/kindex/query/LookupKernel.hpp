// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_LOOKUPKERNEL_HPP
#define KINDEX_QUERY_LOOKUPKERNEL_HPP

/// \file
/// The bulk engine: the one kernel that runs a batch of lookups, for every
/// index, every verb and every policy.

#include <kindex/query/Engine.hpp>
#include <kindex/query/Pinned.hpp>
#include <kindex/query/TeamSort.hpp>

namespace kindex::query {

/// The search of one host thread for many lookups, not inlined: all verbs share
/// it, which halves what there is to compile and costs a call per batch of W.
template <bool finds, class Ref, class Top, class Key, int N>
[[gnu::noinline]] KOKKOS_FUNCTION void search_apart(const Ref& ref,
                                                    const Top& top,
                                                    const Key (&keys)[N],
                                                    size_type (&positions)[N]) {
  ref.template search<finds>(SingleLane(), top, keys, positions);
}

/// The lookups of a tile in the order of their queries.
struct AsTheyCome {
  /// The query of lookup `i`.
  KOKKOS_FUNCTION size_type operator()(size_type i) const { return i; }
};

/// The lookups of a tile in ascending order of their keys.
struct InSortedOrder {
  const std::uint16_t* order;  ///< the queries' numbers, sorted
  /// The query of lookup `i`.
  KOKKOS_FUNCTION size_type operator()(size_type i) const { return order[i]; }
};

/// Runs the lookups of a tile: each thread brings its own queries, W at once,
/// and the lanes of a group search all of theirs together.
///
/// \tparam Policy whose features the kernel has: see BasicLookupPolicy.
/// \tparam Verb what is asked and where answers go:
///   - `static constexpr int probes`: searches per query, 1 or 2;
///   - `static constexpr bool finds`: whether positions are those of equal
///     entries, or size(), instead of lower bounds;
///   - `static constexpr bool is_reorderable`: whether it is a PointVerb;
///   - `void make_probes(size_type query, Probe<Key> (&)[probes]) const`;
///   - `void store(const Ref&, size_type query, const size_type
///     (&positions)[probes]) const`;
///   - maybe `size_type guess(size_type query, int probe) const`: what
///     `positions` are when `search` is called, otherwise undefined.
template <class Exec, class Policy, class Ref, class Verb>
struct LookupKernel {
  using Traits = DeviceTraits<Exec>;
  using Key = typename Ref::key_type;
  using Pin = typename Ref::pinned_type;
  using Top =
      std::conditional_t<Policy::pins, PinnedKeys<Pin>,
                         std::conditional_t<Policy::broadcasts,
                                            BroadcastKeys<Pin>, NothingPinned>>;
  using Group =
      typename GroupOn<Exec, Policy::one_key_per_lane ? Ref::most_lanes
                                                      : Ref::lanes>::type;

  static constexpr int W = !Traits::is_gpu && Policy::in_flight > 0
                               ? Policy::in_flight
                               : Traits::lookups_in_flight;
  static constexpr int probes = Verb::probes;
  static constexpr bool sorts =
      Policy::sorting_team > 0 && Verb::is_reorderable&& Traits::can_sort_teams;
  static constexpr bool merges =
      Policy::queries_ascend && Verb::is_reorderable && Ref::is_contiguous;
  /// Whether it is known ahead where searches begin.
  static constexpr bool fetches_ahead =
      requires(const Ref& index, const Verb& asked) {
    index.prefetch(asked.guess(0, 0));
  };
  /// Threads that a team must have; 0: any number will do.
  static constexpr int team_size =
      sorts && Traits::is_gpu ? Policy::sorting_team : 0;
  /// Lookups that a team sorts.
  static constexpr int sorted =
      Policy::sorting_team * Policy::sorted_per_thread;
  /// Keys that a team of a GPU reads for ascending queries at once; a host's
  /// caches need no such window.
  static constexpr int window = Traits::is_gpu ? 16384 / int(sizeof(Key)) : 0;
  /// Ascending queries from one that is located in the whole index to the next,
  /// and how many such are located at once.
  static constexpr int stretch = 1024;
  static constexpr int stretches = 32;

  using Sort = TeamSort<Exec, Key, sorts ? Policy::sorting_team : 32,
                        sorts ? Policy::sorted_per_thread : 1>;

  Ref ref;
  Verb verb;
  size_type queries;
  size_type pinned;   ///< keys that are pinned
  bool results_wait;  ///< whether results of sorted lookups are brought back
  size_type tile;
  Top broadcast;  ///< the top of the index, unless teams have their own

  /// Bytes of team scratch.
  std::size_t scratch_bytes() const {
    std::size_t bytes = 0;
    if constexpr (Policy::pins) bytes += scratch_bytes_of<Pin, Exec>(pinned);
    if constexpr (sorts)
      bytes += scratch_bytes_of<std::byte, Exec>(sort_bytes()) +
               scratch_bytes_of<std::uint16_t, Exec>(sorted);
    if constexpr (merges)
      bytes += scratch_bytes_of<size_type, Exec>(stretches + 1) +
               scratch_bytes_of<Key, Exec>(window);
    return bytes;
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    if constexpr (Policy::pins) {
      Pin* const keys = take_scratch<Pin, Exec>(team, pinned);
      pin(team, ref, keys, pinned);
      run_all(team, Top{keys, pinned});
    } else {
      run_all(team, broadcast);
    }
  }

 private:
  template <class Member>
  KOKKOS_FUNCTION void run_all(const Member& team, const Top& top) const {
    if constexpr (sorts) {
      run_sorted(team, top);
    } else if constexpr (merges) {
      run_merged(team, top);
    } else {
      for_each_tile(team, [&](size_type begin, size_type end) {
        run(team, top, verb, AsTheyCome{}, begin, end);
      });
    }
  }

  /// Scratch of the sort, in which results wait when it is done.
  KOKKOS_FUNCTION size_type sort_bytes() const {
    constexpr size_type storage = sizeof(typename Sort::Storage);
    constexpr size_type results = sorted * sizeof(typename Verb::out_type);
    return results_wait && results > storage ? results : storage;
  }

  template <class Member, class Run>
  KOKKOS_FUNCTION void for_each_tile(const Member& team,
                                     const Run& run_tile) const {
    for (size_type begin = team.league_rank() * tile; begin < queries;
         begin += team.league_size() * tile)
      run_tile(begin, begin + tile < queries ? begin + tile : queries);
  }

  /// The lookups [begin, end) of `asked`, in the order of `query_of`.
  template <class Member, class QueryOf>
  KOKKOS_FUNCTION void run(const Member& team, const Top& top,
                           const Verb& asked, const QueryOf& query_of,
                           size_type begin, size_type end) const {
    const auto threads = static_cast<size_type>(team.team_size());
    // Neighbouring threads take neighbouring lookups, and all threads of a team
    // make the same number of rounds: lanes need each other.
    for (size_type round = begin; round < end; round += threads * W) {
      const size_type first = round + team.team_rank();
      if constexpr (fetches_ahead)
        fetch_ahead(asked, query_of, first + W * threads, threads, end);
      Probe<Key> probe[W][probes];
      Key keys[W * probes];
      size_type positions[W * probes];
      for (int w = 0; w < W; ++w) {
        // Spare places of the last round repeat its last lookup.
        const size_type i = first + w * threads;
        const size_type query = query_of(i < end ? i : end - 1);
        asked.make_probes(query, probe[w]);
        for (int p = 0; p < probes; ++p) {
          keys[w * probes + p] = probe[w][p].key;
          if constexpr (requires { asked.guess(query, p); })
            positions[w * probes + p] = asked.guess(query, p);
        }
      }
      if constexpr (W > 1) {
        search_apart<Verb::finds>(ref, top, keys, positions);
      } else {
        ref.template search<Verb::finds>(Group(), top, keys, positions);
      }
      const size_type none = no_position(ref);
      for (int w = 0; w < W; ++w) {
        const size_type i = first + w * threads;
        size_type found[probes];
        for (int p = 0; p < probes; ++p)
          found[p] = is_nowhere(probe[w][p]) && has_nowhere(ref)
                         ? none
                         : positions[w * probes + p];
        if (i < end) asked.store(ref, query_of(i), found);
      }
    }
  }

  /// Fetches what the searches of the next round, from lookup `first` on, read
  /// first: the cores of a host do not see it in time themselves. (Measured: a
  /// third more lookups per second.)
  template <class QueryOf>
  KOKKOS_FUNCTION void fetch_ahead(const Verb& asked, const QueryOf& query_of,
                                   size_type first, size_type threads,
                                   size_type end) const {
    if (ref.size() == 0) return;
    for (int w = 0; w < W; ++w) {
      const size_type i = first + w * threads;
      for (int p = 0; p < probes; ++p)
        if (i < end) ref.prefetch(asked.guess(query_of(i), p));
    }
  }

  /// Whether the search's answer does not count: there is no such key.
  KOKKOS_FUNCTION static bool is_nowhere(const Probe<Key>& probe) {
    return probe.above || (Verb::finds && !probe.exact);
  }

  /// Sorts the lookups of each tile before it runs them.
  template <class Member>
  KOKKOS_FUNCTION void run_sorted(const Member& team, const Top& top) const {
    using Out = typename Verb::out_type;
    auto* const memory = take_scratch<std::byte, Exec>(team, sort_bytes());
    auto& storage = *reinterpret_cast<typename Sort::Storage*>(memory);
    auto* const results = reinterpret_cast<Out*>(memory);
    auto* const order = take_scratch<std::uint16_t, Exec>(team, sorted);
    for_each_tile(team, [&](size_type begin, size_type end) {
      const int size = static_cast<int>(end - begin);
      const Verb asked =
          verb.with(verb.queries.from(begin, end), verb.out.from(begin, end));
      Sort::sort(
          team, storage, size,
          [&](int i) {
            Probe<Key> probe[1];
            asked.make_probes(i, probe);
            return probe[0].key;
          },
          order);
      const InSortedOrder query_of{order};
      if (results_wait) {
        const auto n = static_cast<size_type>(size);
        run(team, top, asked.with(asked.queries, {results, n, 1}), query_of, 0,
            n);
        team.team_barrier();
        for (int i = team.team_rank(); i < size; i += team.team_size())
          asked.out(i) = results[i];
      } else {
        run(team, top, asked, query_of, 0, size);
      }
      team.team_barrier();
    });
  }

  /// Locates every `stretch`-th query, many at once, then searches those
  /// between among the keys between.
  template <class Member>
  KOKKOS_FUNCTION void run_merged(const Member& team, const Top& top) const {
    auto* const bounds = take_scratch<size_type, Exec>(team, stretches + 1);
    Key* const keys = take_scratch<Key, Exec>(team, window);
    for_each_tile(team, [&](size_type tile_begin, size_type end) {
      constexpr size_type step = size_type(stretch) * stretches;
      for (size_type begin = tile_begin; begin < end; begin += step) {
        const auto landmark = [&](size_type i) {
          const size_type query = begin + i * stretch;
          return query < end ? query : end - 1;
        };
        for (size_type i = team.team_rank(); i <= size_type(stretches);
             i += team.team_size())
          if (i == 0 || landmark(i) > landmark(i - 1))
            bounds[i] = locate(probe_of(landmark(i)));
        team.team_barrier();
        for (size_type i = 0;
             i < size_type(stretches) && begin + i * stretch < end; ++i) {
          const size_type next = landmark(i + 1);
          const size_type last = next > landmark(i) ? bounds[i + 1] : bounds[i];
          const size_type stop = begin + (i + 1) * stretch;
          run_stretch(team, top, landmark(i), stop < end ? stop : end, next,
                      bounds[i], last, keys);
          team.team_barrier();
        }
      }
    });
  }

  /// The queries [begin, end). Query `begin` has the lower bound `first`, query
  /// `landmark`, which is not before the last of them, `last`.
  template <class Member>
  KOKKOS_FUNCTION void run_stretch(const Member& team, const Top& top,
                                   size_type begin, size_type end,
                                   size_type landmark, size_type first,
                                   size_type last, Key* keys) const {
    const size_type count = last > first ? last - first : 0;
    const auto threads = static_cast<size_type>(team.team_size());
    const auto thread = static_cast<size_type>(team.team_rank());
    if constexpr (Traits::is_gpu) {
      if (count > size_type(window)) {
        // Far apart, queries have few keys in common.
        run(team, top, verb, AsTheyCome{}, begin, end);
        return;
      }
      copy_keys(first, count, thread, threads, keys);
      team.team_barrier();
    }
    const Probe<Key> lowest = probe_of(begin);
    const Key highest = probe_of(landmark).key;
    constexpr int at_once = Traits::is_gpu ? 4 : 1;
    using Index = std::conditional_t<Traits::is_gpu, unsigned, size_type>;
    for (size_type round = begin + thread; round < end;
         round += at_once * threads) {
      Probe<Key> probe[at_once][1];
      Index below[at_once];
      for (int w = 0; w < at_once; ++w) {
        const size_type i = round + w * threads;
        verb.make_probes(i < end ? i : end - 1, probe[w]);
      }
      count_below_in(
          [&](Index at) {
            return Traits::is_gpu ? keys[at] : ref.key_at(first + at);
          },
          static_cast<Index>(count), probe, below);
      for (int w = 0; w < at_once; ++w) {
        const size_type i = round + w * threads;
        if (i >= end) break;
        const Key key = probe[w][0].key;
        // Outside where the promise of order is broken.
        const bool outside = lowest.above || key < lowest.key || highest < key;
        size_type position[1] = {probe[w][0].above || outside
                                     ? locate(probe[w][0])
                                     : first + below[w]};
        if constexpr (Verb::finds)
          position[0] =
              probe[w][0].exact ? ref.if_equal(position[0], key) : ref.size();
        verb.store(ref, i, position);
      }
    }
  }

  /// Copies `count` keys from position `first`, eight loads at a time.
  KOKKOS_FUNCTION void copy_keys(size_type first, size_type count,
                                 size_type thread, size_type threads,
                                 Key* keys) const {
    constexpr int at_once = 8;
    for (size_type round = thread; round < count; round += at_once * threads) {
      Key loaded[at_once];
      for (int j = 0; j < at_once; ++j) {
        const size_type i = round + j * threads;
        loaded[j] = ref.key_at(first + (i < count ? i : count - 1));
      }
      for (int j = 0; j < at_once; ++j)
        if (round + j * threads < count) keys[round + j * threads] = loaded[j];
    }
  }

  KOKKOS_FUNCTION Probe<Key> probe_of(size_type query) const {
    Probe<Key> probe[1];
    verb.make_probes(query, probe);
    return probe[0];
  }

  /// The position of the lower bound of `probe`, by few instructions: far
  /// fewer queries are located than there are.
  KOKKOS_FUNCTION size_type locate(const Probe<Key>& probe) const {
    if (probe.above) return ref.size();
    const Probe<Key> probes_of[1][1] = {{probe}};
    size_type below[1];
    count_below_in([&](size_type at) { return ref.key_at(at); }, ref.size(),
                   probes_of, below);
    return below[0];
  }

  /// The numbers of the `count` ascending keys `key_of(0...)` below each probe.
  template <class Index, class KeyOf, int N>
  KOKKOS_FUNCTION static void count_below_in(const KeyOf& key_of, Index count,
                                             const Probe<Key> (&probe)[N][1],
                                             Index (&below)[N]) {
    for (int w = 0; w < N; ++w) below[w] = 0;
    if (count == 0) return;
    for (Index length = count; length > 1;) {
      const Index half = length / 2;
      for (int w = 0; w < N; ++w)
        below[w] += key_of(below[w] + half - 1) < probe[w][0].key ? half : 0;
      length -= half;
    }
    for (int w = 0; w < N; ++w)
      below[w] += key_of(below[w]) < probe[w][0].key ? 1 : 0;
  }
};

/// Runs `verb` for `queries` queries on `space`: one kernel, no fence, no
/// allocation; nothing at all for an empty batch.
template <class Exec, class Ref, class Verb, class Policy>
void run_lookups(const std::string& label, const Exec& space, const Ref& ref,
                 const Verb& verb, size_type queries, const Policy& policy) {
  if (queries == 0) return;
  if constexpr (DeviceTraits<Exec>::is_gpu && Ref::sorting_pays &&
                Verb::is_reorderable && std::is_same_v<Policy, LookupPolicy>) {
    // Measured on an H100 (perf/results): a fifth faster at 2^20 to 2^28 keys,
    // if there are enough tiles for all teams.
    if (policy.reordering() == Reordering::automatic &&
        policy.team_size() == 0 && policy.lookups_per_thread() == 0 &&
        queries >= (size_type{1} << 22)) {
      using Sorting = BasicLookupPolicy<TeamSorted<256, 8>>;
      return run_lookups(label, space, ref, verb, queries, Sorting(policy));
    }
  }
  using Kernel = LookupKernel<Exec, Policy, Ref, Verb>;
  LookupPolicy settings(policy);
  if constexpr (Kernel::sorts) {
    constexpr int threads = Kernel::team_size > 0 ? Kernel::team_size : 1;
    settings.set_team_size(threads).set_lookups_per_thread(Kernel::sorted /
                                                           threads);
  }
  if constexpr (Kernel::Group::size > 1 && !Kernel::sorts && !Kernel::merges) {
    // Measured on an H100: 3 % faster beyond the L2 cache than teams of 256,
    // but where a kernel finds keys of 8 bytes, 5 % slower, for want of
    // registers.
    constexpr bool small_teams =
        Verb::finds && sizeof(typename Kernel::Key) >= 8;
    if (settings.team_size() == 0)
      settings.set_team_size(small_teams ? 256 : 512);
    // The same: 2 to 3 % faster from there on, 9 % slower within the cache.
    if (settings.lookups_per_thread() == 0 && DeviceTraits<Exec>::is_gpu &&
        ref.size() * sizeof(typename Kernel::Key) >= (size_type{512} << 20))
      settings.set_lookups_per_thread(1);
  }
  if constexpr (Kernel::merges && DeviceTraits<Exec>::is_gpu) {
    // Too far apart, queries are searched one by one (measured on an H100).
    if (ref.size() / Kernel::window > queries / Kernel::stretch * 3 / 4)
      return run_lookups(label, space, ref, verb, queries,
                         LookupPolicy(policy).set_reordering(Reordering::none));
    // Longer tiles locate more queries at once, if there are enough tiles.
    if (settings.lookups_per_thread() == 0 && queries >= (size_type{1} << 24))
      settings.set_lookups_per_thread(32);
  }
  Kernel kernel{ref, verb, queries, 0, false, 0, {}};
  if constexpr (Kernel::sorts) {
    // Large results are written as they are found.
    using Out = typename Verb::out_type;
    kernel.results_wait = policy.result_order() == ResultOrder::restored &&
                          alignof(Out) <= 16 &&
                          Kernel::sorted * sizeof(Out) <= 16384;
  }
  if constexpr (Policy::pins) {
    // What the sort leaves.
    constexpr std::size_t most = DeviceTraits<Exec>::scratch_bytes;
    const std::size_t used = kernel.scratch_bytes();
    const std::size_t left = used < most ? most - used : 0;
    const std::size_t bytes =
        std::min<std::size_t>(policy.pinned_bytes(), left);
    kernel.pinned = ref.pinned_size(policy.pinned_steps(),
                                    bytes / sizeof(typename Kernel::Pin));
  }
  if constexpr (Policy::broadcasts) {
    static_assert(
        requires { ref.top_on_host(); },
        "kindex: BroadcastTop is for indexes that have their top on the host");
    const auto top = ref.top_on_host();
    auto& copy = kernel.broadcast;
    copy.size =
        std::min(ref.pinned_size(policy.pinned_steps(), Kernel::Top::capacity),
                 top.size);
    std::copy_n(top.first, copy.size, copy.first);
  }
  run_teams(
      space, label, kernel, queries, settings,
      [](Kernel& k, size_type tile) { k.tile = tile; },
      [&](int) { return kernel.scratch_bytes(); });
}

}  // namespace kindex::query

#endif
