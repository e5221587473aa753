// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_RANGES_HPP
#define KINDEX_QUERY_RANGES_HPP

/// \file
/// The second half of a range query: hits, once the bounds are known.

#include <kindex/query/Engine.hpp>
#include <kindex/query/Strided.hpp>
#include <kindex/query/Verbs.hpp>

#include <string>
#include <utility>

namespace kindex {

/// The hits of a batch of m range queries in compressed-sparse-row form: the
/// hits of query i are `values(offsets(i))` to `values(offsets(i + 1) - 1)`, in
/// ascending order of keys, equal keys in the order of the input; those of
/// `reverse_range` the other way round.
template <class Key, class Value, class MemorySpace>
struct RangeHits {
  Kokkos::View<size_type*, MemorySpace> offsets;  ///< m + 1 offsets
  Kokkos::View<Value*, MemorySpace> values;       ///< one value per hit
  /// One key per hit if asked for by `with_keys`, otherwise empty.
  Kokkos::View<Key*, MemorySpace> keys;

  /// What `offsets`, `values` and `keys` are the first elements of: kept for
  /// the next batch.
  struct Memory {
    Kokkos::View<size_type*, MemorySpace> offsets;  ///< at least m + 1
    Kokkos::View<Value*, MemorySpace> values;       ///< at least one per hit
    Kokkos::View<Key*, MemorySpace> keys;           ///< the same, or none
  };
  Memory memory;  ///< owned together with the views
};

namespace query {

/// Makes `view` `size` elements of `memory`, which is allocated anew if it is
/// too small; contents are undefined.
template <class Exec, class View>
void resize_within(const Exec& space, const std::string& label, View& view,
                   View& memory, size_type size) {
  if (memory.extent(0) < size) {
    // The old memory first: there may not be room for both.
    view = memory = {};
    memory = View(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, label),
                  size);
  }
  view = Kokkos::subview(memory, Kokkos::pair<size_type, size_type>(0, size));
}

/// The value of an entry, for FillHits.
struct ValueOfRank {
  /// Of the entry of rank `rank`.
  template <class Ref>
  KOKKOS_FUNCTION auto operator()(const Ref& ref, size_type rank) const {
    return ref.value(rank);
  }
  /// Of the entry at `position`.
  template <class Ref>
  KOKKOS_FUNCTION static auto at(const Ref& ref, size_type position) {
    return ref.value_at(position);
  }
};

/// The key of an entry, for FillHits.
struct KeyOfRank {
  /// Of the entry of rank `rank`.
  template <class Ref>
  KOKKOS_FUNCTION auto operator()(const Ref& ref, size_type rank) const {
    return ref.key(rank);
  }
  /// Of the entry at `position`.
  template <class Ref>
  KOKKOS_FUNCTION static auto at(const Ref& ref, size_type position) {
    return ref.key_at(position);
  }
};

/// The same entries counted from the last: place 0 is that of rank size() - 1.
template <class PartOf>
struct FromTheLast {
  /// Of the entry in place `place`.
  template <class Ref>
  KOKKOS_FUNCTION auto operator()(const Ref& ref, size_type place) const {
    return PartOf{}(ref, ref.size() - 1 - place);
  }
};

/// Hits in ascending order.
struct Ascending {
  static constexpr PairForm form = PairForm::first_and_count;  ///< of bounds
  using Value = ValueOfRank;                                   ///< of a hit
  using Key = KeyOfRank;                                       ///< of a hit
};

/// Hits in descending order.
struct Descending {
  static constexpr PairForm form = PairForm::last_and_count;  ///< of bounds
  using Value = FromTheLast<ValueOfRank>;                     ///< of a hit
  using Key = FromTheLast<KeyOfRank>;                         ///< of a hit
};

/// Copies the values or the keys of the hits of ranges in ascending order: a
/// warp (on hosts, a thread) fills a share of consecutive hits, whichever
/// ranges they belong to, so that one long range and a million short ones are
/// equally balanced. Per hit it moves what is copied once in and once out, and
/// per share it searches the offsets.
///
/// \tparam PartOf ValueOfRank or KeyOfRank, maybe FromTheLast. Not both at
///   once, which would take the registers that keep loads on their way.
/// \tparam Lanes threads of a warp, which fill neighbouring places.
template <class Ref, class PartOf, int Lanes>
struct FillHits {
  using T = decltype(PartOf{}(std::declval<const Ref&>(), 0));

  Ref ref;
  const size_type* first;    ///< per query: rank of the first hit
  const size_type* offsets;  ///< per query: index of the first hit in `out`
  T* out;
  size_type queries;
  size_type hits;
  size_type tile;

  /// A query among whose hits a lane is.
  struct Place {
    size_type query;
    size_type end;    ///< index behind its last hit
    size_type shift;  ///< from the index of a hit to its rank, modulo 2^64
  };

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

  /// The same for a hit of a query in (begin, end). To a single lane, that is
  /// most often the next; lanes of a warp have those between.
  KOKKOS_FUNCTION size_type owner_behind(size_type hit, size_type begin,
                                         size_type end) const {
    ++begin;
    if (Lanes == 1 && offsets[begin + 1] > hit) return begin;
    return owner(hit, begin, end);
  }

  KOKKOS_FUNCTION Place place_at(size_type query) const {
    return {query, offsets[query + 1], first[query] - offsets[query]};
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto threads = static_cast<size_type>(team.team_size());
    const auto thread = static_cast<size_type>(team.team_rank());
    const size_type share = tile / threads * Lanes;
    for (size_type begin = team.league_rank() * tile + thread / Lanes * share;
         begin < hits; begin += team.league_size() * tile)
      fill(begin, begin + share < hits ? begin + share : hits, thread % Lanes);
  }

  /// Lane `lane`'s part of the hits [begin, end).
  KOKKOS_FUNCTION void fill(size_type begin, size_type end,
                            size_type lane) const {
    constexpr PartOf part_of;
    Place place = place_at(owner(begin, 0, queries));
    const size_type last =
        place.end < end ? owner(end - 1, place.query, queries) + 1 : queries;
    const auto rank_of = [&](size_type hit) {
      if (hit >= place.end)
        place = place_at(owner_behind(hit, place.query, last));
      return hit + place.shift;
    };
    size_type hit = begin + lane;
    if constexpr (Lanes == 1) {
      // A plain loop per range: compilers turn it into vectors.
      while (hit < end) {
        const size_type shift = rank_of(hit) - hit;
        const size_type stop = place.end < end ? place.end : end;
        if constexpr (requires {
                        ref.positions_from(hit);
                        PartOf::at(ref, hit);
                      }) {
          while (hit < stop) {
            const auto run = ref.positions_from(hit + shift);
            const size_type left = stop - hit, length = run.second - run.first;
            const size_type until = hit + (length < left ? length : left);
            const size_type to = run.first - hit;
            for (; hit < until; ++hit) out[hit] = PartOf::at(ref, hit + to);
          }
        } else {
          for (; hit < stop; ++hit) out[hit] = part_of(ref, hit + shift);
        }
      }
    } else {
      // Four hits at once: one load per thread leaves memory idle. Registers
      // hold no four large ones, and stacks not any; and an array needs what
      // some types lack.
      constexpr int ahead =
          sizeof(T) <= 32 && std::is_default_constructible_v<T> ? 4 : 1;
      constexpr size_type step = Lanes;
      if constexpr (ahead > 1) {
        for (; hit + (ahead - 1) * step < end; hit += ahead * step) {
          T loaded[ahead];
          if (hit + (ahead - 1) * step < place.end) {
            // Of one range, most often: offsets known to the compiler.
            const size_type rank = hit + place.shift;
            for (int h = 0; h < ahead; ++h)
              loaded[h] = part_of(ref, rank + h * step);
          } else {
            for (int h = 0; h < ahead; ++h)
              loaded[h] = part_of(ref, rank_of(hit + h * step));
          }
          for (int h = 0; h < ahead; ++h) out[hit + h * step] = loaded[h];
        }
      }
      for (; hit < end; hit += step) out[hit] = part_of(ref, rank_of(hit));
    }
  }
};

/// Calls `visit(query, key, value)` for the hits of a batch of ranges, run of
/// positions by run. A group (a warp; on hosts, a thread) takes one range per
/// lane: each lane finds the bounds of its own and visits up to `alone` hits of
/// a run, then the lanes finish the longer runs together, one after the other,
/// so that they read neighbouring entries (Henneberg and Schuhknecht, "Is
/// Binary Search Really All You Need?", 2025). Where nodes are wide enough for
/// lanes to share, they share whole runs.
template <class Group, class Ref, class Query, class Visit>
struct VisitHits {
  using Key = typename Ref::key_type;
  using Value = typename Ref::value_type;

  Ref ref;
  Strided<const Query> lo;
  Strided<const Query> hi;
  Visit visit;
  size_type tile;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto threads = static_cast<size_type>(team.team_size());
    const auto thread = static_cast<size_type>(team.team_rank());
    const Group group{};
    for (size_type begin = team.league_rank() * tile; begin < lo.size;
         begin += team.league_size() * tile) {
      const size_type end = begin + tile < lo.size ? begin + tile : lo.size;
      // Lanes behind the last query stay: the others need them.
      for (size_type query = begin + thread; query - group.lane() < end;
           query += threads)
        visit_ranges(group, query, query < end);
    }
  }

  /// Visits the ranges of a group, of which this lane's is `query` if `exists`.
  KOKKOS_FUNCTION void visit_ranges(const Group& group, size_type query,
                                    bool exists) const {
    constexpr size_type alone = Group::size == 1  ? ~size_type{0}
                                : Ref::lanes == 1 ? 32
                                                  : 0;
    Kokkos::pair<size_type, size_type> ranks(0, 0);
    if (exists) ranks = ref.range(lo(query), hi(query));
    size_type left = ranks.second - ranks.first;
    const int runs = ref.runs();
    for (int i = 0; i < runs && group.which(left > 0) != 0; ++i) {
      const auto run = ref.run(i, ranks.first, ranks.second);
      left -= run.second - run.first;
      size_type position = run.first;
      const size_type stop =
          run.second - position > alone ? position + alone : run.second;
      for (; position < stop; ++position) visit_one(query, position);
      if constexpr (Group::size > 1) {
        unsigned unfinished = group.which(position < run.second);
        for (int lane = 0; unfinished != 0; ++lane, unfinished >>= 1)
          if ((unfinished & 1) != 0)
            visit_together(group, group.broadcast(query, lane),
                           group.broadcast(position, lane),
                           group.broadcast(run.second, lane));
      }
    }
  }

  KOKKOS_FUNCTION void visit_one(size_type query, size_type position) const {
    visit(query, ref.key_at(position), ref.value_at(position));
  }

  /// This lane's part of the positions [begin, end) of one range.
  KOKKOS_FUNCTION void visit_together(const Group& group, size_type query,
                                      size_type begin, size_type end) const {
    constexpr size_type step = Group::size;
    size_type position = begin + group.lane();
    if constexpr (sizeof(Value) <= 32) {
      // Four hits at once: one load per thread leaves memory idle.
      for (; position + 3 * step < end; position += 4 * step) {
        const Key keys[4] = {ref.key_at(position), ref.key_at(position + step),
                             ref.key_at(position + 2 * step),
                             ref.key_at(position + 3 * step)};
        const Value values[4] = {ref.value_at(position),
                                 ref.value_at(position + step),
                                 ref.value_at(position + 2 * step),
                                 ref.value_at(position + 3 * step)};
        for (int h = 0; h < 4; ++h) visit(query, keys[h], values[h]);
      }
    }
    for (; position < end; position += step) visit_one(query, position);
  }
};

}  // namespace query
}  // namespace kindex

#endif
