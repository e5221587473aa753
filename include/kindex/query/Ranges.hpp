// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_RANGES_HPP
#define KINDEX_QUERY_RANGES_HPP

/// \file
/// The second half of a range query: hits, once the bounds are known.

#include <kindex/query/Engine.hpp>
#include <kindex/query/Strided.hpp>

namespace kindex {

/// The hits of a batch of m range queries in compressed-sparse-row form: the
/// hits of query i are `values(offsets(i))` to `values(offsets(i + 1) - 1)`, in
/// ascending order of keys, equal keys in the order of the input.
template <class Key, class Value, class MemorySpace>
struct RangeHits {
  Kokkos::View<size_type*, MemorySpace> offsets;  ///< m + 1 offsets
  Kokkos::View<Value*, MemorySpace> values;       ///< one value per hit
  /// One key per hit if asked for by `with_keys`, otherwise empty.
  Kokkos::View<Key*, MemorySpace> keys;
};

namespace query {

/// Copies the hits of ranges that are runs of positions: a team fills one tile
/// of consecutive hits, whichever ranges they belong to, so that one long
/// range and a million short ones are equally balanced. Per hit it moves its
/// value (and key) once in and once out, and per tile it searches the offsets.
template <class Ref>
struct FillHits {
  using Key = typename Ref::key_type;
  using Value = typename Ref::value_type;

  Ref ref;
  const size_type* first;    ///< per query: rank of the first hit
  const size_type* offsets;  ///< per query: index of the first hit in `values`
  Value* values;
  Key* keys;  ///< null: not asked for
  size_type queries;
  size_type hits;
  size_type tile;

  /// The query in [begin, end) to which hit `hit` belongs.
  KOKKOS_FUNCTION size_type owner(size_type hit, size_type begin,
                                  size_type end) const {
    for (size_type length = end - begin; length > 1;) {
      const size_type half = length / 2;
      begin += offsets[begin + half] <= hit ? half : 0;
      length -= half;
    }
    return begin;
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto threads = static_cast<size_type>(team.team_size());
    for (size_type begin = team.league_rank() * tile; begin < hits;
         begin += team.league_size() * tile) {
      const size_type end = begin + tile < hits ? begin + tile : hits;
      const size_type last = owner(end - 1, 0, queries) + 1;
      size_type hit = begin + team.team_rank();
      if (hit >= end) continue;
      size_type query = owner(begin, 0, last);
      while (hit < end) {
        query = owner(hit, query, last);
        const size_type start = offsets[query];
        const size_type stop =
            offsets[query + 1] < end ? offsets[query + 1] : end;
        for (; hit < stop; hit += threads) {
          const size_type position =
              ref.position_of(first[query] + (hit - start));
          values[hit] = ref.value_at(position);
          if (keys != nullptr) keys[hit] = ref.key_at(position);
        }
      }
    }
  }
};

/// Calls `visit(query, key, value)` for the hits of a batch of ranges. A team
/// takes one range per thread: each thread finds its range's bounds and visits
/// up to `alone` hits, then the team finishes the longer ranges together, one
/// after the other.
template <class Exec, class Ref, class Query, class Visit>
struct VisitHits {
  using Scratch = Kokkos::View<size_type*, typename Exec::scratch_memory_space,
                               Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  static constexpr size_type alone = 32;

  Ref ref;
  Strided<const Query> lo;
  Strided<const Query> hi;
  Visit visit;

  KOKKOS_FUNCTION void visit_rank(size_type query, size_type rank) const {
    const size_type position = ref.position_of(rank);
    visit(query, ref.key_at(position), ref.value_at(position));
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto threads = static_cast<size_type>(team.team_size());
    const auto thread = static_cast<size_type>(team.team_rank());
    const Scratch next(team_scratch<Exec>(team), threads);
    const Scratch last(team_scratch<Exec>(team), threads);
    for (size_type begin = team.league_rank() * threads; begin < lo.size;
         begin += team.league_size() * threads) {
      const size_type query = begin + thread;
      next(thread) = last(thread) = 0;
      if (query < lo.size) {
        const auto ranks = ref.range(lo(query), hi(query));
        size_type rank = ranks.first;
        const size_type stop =
            ranks.second - rank > alone ? rank + alone : ranks.second;
        for (; rank < stop; ++rank) visit_rank(query, rank);
        next(thread) = rank;
        last(thread) = ranks.second;
      }
      team.team_barrier();
      for (size_type other = 0; other < threads; ++other)
        for (size_type rank = next(other) + thread; rank < last(other);
             rank += threads)
          visit_rank(begin + other, rank);
      team.team_barrier();
    }
  }
};

}  // namespace query
}  // namespace kindex

#endif
