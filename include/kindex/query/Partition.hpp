// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_PARTITION_HPP
#define KINDEX_QUERY_PARTITION_HPP

/// \file
/// Batches partitioned by key: the lookups of one partition after the other's,
/// so that the part of the index that is being read stays in the cache.

#include <kindex/query/LookupKernel.hpp>
#include <kindex/query/Node.hpp>
#include <kindex/query/Strided.hpp>

namespace kindex::query {

/// How a batch is partitioned, and what the pass after the lookups needs to
/// bring results back to the caller's order. All memory is the caller's.
template <class Key, class Query, std::size_t OutBytes>
struct PartitionedBatch {
  /// Partitions. 256: enough that one's part of an index of any size that a GPU
  /// holds fits its L2 cache, few enough that a tile's runs fill sectors.
  static constexpr int parts = 256;
  /// Queries of a tile: with what else a team needs, their keys or results fill
  /// the 40 KiB that Kokkos gives a team on every GPU.
  static constexpr int tile =
      std::min<int>(8192, 28672 / std::max(sizeof(Query), OutBytes));

  /// Cells of keys whose top bits are equal.
  static constexpr int cells = 1024;

  size_type queries;      ///< queries of the batch
  Key* splitters;         ///< parts − 1 keys, at equal distances of rank
  std::uint16_t* firsts;  ///< per cell: splitters in cells before; + all
  size_type* offsets;     ///< [part][tile]: where the tile's run begins; + end
  std::uint16_t* begins;  ///< [tile][part]: where the part begins in the tile
  std::uint16_t* slots;   ///< per query: its place among its tile's
  Query* permuted;        ///< the queries, partition by partition
  std::byte* results;     ///< their results

  /// Tiles of the batch.
  KOKKOS_FUNCTION size_type tiles() const {
    return (queries + tile - 1) / tile;
  }
  /// Tiles of a batch of `queries` queries.
  static size_type tiles_of(size_type queries) {
    return (queries + tile - 1) / tile;
  }
  /// Queries of tile `t`.
  KOKKOS_FUNCTION int tile_size(size_type t) const {
    const size_type left = queries - t * tile;
    return left < size_type(tile) ? int(left) : tile;
  }

  /// Bytes of temporary memory for a batch of `queries` queries.
  static size_type bytes(size_type queries) {
    const auto round = [](size_type b) { return (b + 15) / 16 * 16; };
    return round(parts * sizeof(Key)) +
           round((cells + 1) * sizeof(std::uint16_t)) +
           round((parts * tiles_of(queries) + 1) * sizeof(size_type)) +
           round(parts * tiles_of(queries) * sizeof(std::uint16_t)) +
           round(queries * sizeof(std::uint16_t)) +
           round(queries * sizeof(Query)) + round(queries * OutBytes);
  }

  /// Lays a batch of `queries` queries out in `memory`, which has
  /// bytes(queries) bytes.
  PartitionedBatch(std::byte* memory, size_type queries_) : queries(queries_) {
    const auto take = [&](size_type b) {
      std::byte* const begin = memory;
      memory += (b + 15) / 16 * 16;
      return begin;
    };
    splitters = reinterpret_cast<Key*>(take(parts * sizeof(Key)));
    firsts = reinterpret_cast<std::uint16_t*>(
        take((cells + 1) * sizeof(std::uint16_t)));
    offsets = reinterpret_cast<size_type*>(
        take((parts * tiles() + 1) * sizeof(size_type)));
    begins = reinterpret_cast<std::uint16_t*>(
        take(parts * tiles() * sizeof(std::uint16_t)));
    slots =
        reinterpret_cast<std::uint16_t*>(take(queries * sizeof(std::uint16_t)));
    permuted = reinterpret_cast<Query*>(take(queries * sizeof(Query)));
    results = take(queries * OutBytes);
  }
};

/// Which cell a key is in: the top bits of its distance from the first
/// splitter, so that few splitters share a cell unless keys are clustered.
template <class Key>
class CellOfKey {
  using X = CodeBits<Key>;

 public:
  /// \param first, last of the splitters.
  /// \param cells a power of two.
  KOKKOS_FUNCTION CellOfKey(const Key& first, const Key& last, int cells)
      : least_(code_bits(first)), last_cell_(cells - 1) {
    const auto range = static_cast<std::uint64_t>(X(code_bits(last) - least_));
    const int more = Kokkos::bit_width(range) -
                     Kokkos::bit_width(static_cast<unsigned>(last_cell_));
    shift_ = more > 0 ? more : 0;
  }

  /// Does not fall from one key to the next.
  KOKKOS_FUNCTION int operator()(const Key& key) const {
    const X x = code_bits(key);
    if (x <= least_) return 0;
    const auto cell = static_cast<std::uint64_t>(X(x - least_)) >> shift_;
    return cell < static_cast<std::uint64_t>(last_cell_)
               ? static_cast<int>(cell)
               : last_cell_;
  }

 private:
  X least_;
  int last_cell_;
  int shift_;
};

/// Finds the partitions of keys: by a table, and among what splitters share the
/// key's cell. In team scratch.
template <class Exec, class Batch, class Key>
class PartOfKey {
 public:
  static std::size_t scratch_bytes() {
    return scratch_bytes_of<Key, Exec>(Batch::parts) +
           scratch_bytes_of<std::uint16_t, Exec>(Batch::cells + 1);
  }

  /// Reads the table; the team must meet a barrier before it is used.
  template <class Member>
  KOKKOS_FUNCTION PartOfKey(const Member& team, const Batch& batch)
      : splitters_(take_scratch<Key, Exec>(team, Batch::parts)),
        firsts_(take_scratch<std::uint16_t, Exec>(team, Batch::cells + 1)),
        cell_of_(batch.splitters[0], batch.splitters[Batch::parts - 2],
                 Batch::cells) {
    const int threads = team.team_size();
    for (int i = team.team_rank(); i < Batch::parts - 1; i += threads)
      splitters_[i] = batch.splitters[i];
    for (int i = team.team_rank(); i <= Batch::cells; i += threads)
      firsts_[i] = batch.firsts[i];
  }

  /// The number of splitters below `key`.
  KOKKOS_FUNCTION int operator()(const Key& key) const {
    const int cell = cell_of_(key);
    int part = firsts_[cell];
    for (int end = firsts_[cell + 1]; part < end;) {
      const int middle = (part + end) / 2;
      if (splitters_[middle] < key) {
        part = middle + 1;
      } else {
        end = middle;
      }
    }
    return part;
  }

 private:
  Key* splitters_;
  std::uint16_t* firsts_;
  CellOfKey<Key> cell_of_;
};

/// Takes splitters out of the index: keys of ranks at equal distances.
template <class Ref, class Key>
struct TakeSplitters {
  Ref ref;
  Key* splitters;
  int parts;

  KOKKOS_FUNCTION void operator()(int part) const {
    splitters[part] =
        ref.key(static_cast<size_type>(part + 1) * ref.size() / parts);
  }
};

/// Numbers the splitters before each cell.
template <class Batch, class Key>
struct TabulateSplitters {
  Batch batch;

  KOKKOS_FUNCTION void operator()(int cell) const {
    const CellOfKey<Key> cell_of(
        batch.splitters[0], batch.splitters[Batch::parts - 2], Batch::cells);
    int before = 0;
    for (int end = Batch::parts - 1; before < end;) {
      const int middle = (before + end) / 2;
      if (cell_of(batch.splitters[middle]) < cell) {
        before = middle + 1;
      } else {
        end = middle;
      }
    }
    batch.firsts[cell] = static_cast<std::uint16_t>(before);
  }
};

/// Calls `store(i, load(i))` for i < `size` by the threads of a team,
/// neighbours by neighbours. A thread loads several elements before it stores
/// them: one load per thread leaves the memory of a GPU idle.
template <class Exec, class Member, class Load, class Store>
KOKKOS_FUNCTION void in_turns(const Member& team, int size, const Load& load,
                              const Store& store) {
  using Element = decltype(load(0));
  // Registers hold no four large ones, and an array needs what some lack.
  constexpr int ahead = DeviceTraits<Exec>::is_gpu && sizeof(Element) <= 64 &&
                                std::is_default_constructible_v<Element>
                            ? 4
                            : 1;
  const int threads = team.team_size();
  int i = team.team_rank();
  if constexpr (ahead > 1) {
    for (; i + (ahead - 1) * threads < size; i += ahead * threads) {
      Element loaded[ahead];
      for (int a = 0; a < ahead; ++a) loaded[a] = load(i + a * threads);
      for (int a = 0; a < ahead; ++a) store(i + a * threads, loaded[a]);
    }
  }
  for (; i < size; i += threads) store(i, load(i));
}

/// Counts the queries of each partition in each tile.
template <class Exec, class Batch, class Key, class Query>
struct CountParts {
  Batch batch;
  Strided<const Query> queries;

  static std::size_t scratch_bytes() {
    return PartOfKey<Exec, Batch, Key>::scratch_bytes() +
           scratch_bytes_of<int, Exec>(Batch::parts);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const PartOfKey<Exec, Batch, Key> part_of(team, batch);
    int* const counts = take_scratch<int, Exec>(team, Batch::parts);
    const int thread = team.team_rank();
    const int threads = team.team_size();
    for (size_type t = team.league_rank(); t < batch.tiles();
         t += team.league_size()) {
      for (int part = thread; part < Batch::parts; part += threads)
        counts[part] = 0;
      team.team_barrier();
      const int size = batch.tile_size(t);
      in_turns<Exec>(
          team, size, [&](int i) { return queries(t * Batch::tile + i); },
          [&](int, const Query& query) {
            Kokkos::atomic_inc(&counts[part_of(lower_probe<Key>(query).key)]);
          });
      team.team_barrier();
      Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, Batch::parts),
                            [&](int part, int& sum, bool is_final) {
                              const int count = counts[part];
                              if (is_final) {
                                batch.offsets[part * batch.tiles() + t] = count;
                                batch.begins[t * Batch::parts + part] =
                                    static_cast<std::uint16_t>(sum);
                              }
                              sum += count;
                            });
      team.team_barrier();
    }
  }
};

/// Where the runs of one tile begin, in the tile and in the batch.
template <class Exec, class Batch>
class TileRuns {
 public:
  static std::size_t scratch_bytes() {
    return scratch_bytes_of<size_type, Exec>(Batch::parts) +
           scratch_bytes_of<int, Exec>(Batch::parts);
  }

  template <class Member>
  KOKKOS_FUNCTION explicit TileRuns(const Member& team)
      : target_(take_scratch<size_type, Exec>(team, Batch::parts)),
        begin_(take_scratch<int, Exec>(team, Batch::parts)) {}

  /// Reads the runs of tile `t`. Ends with a barrier.
  template <class Member>
  KOKKOS_FUNCTION void read(const Member& team, const Batch& batch,
                            size_type t) const {
    for (int part = team.team_rank(); part < Batch::parts;
         part += team.team_size()) {
      target_[part] = batch.offsets[part * batch.tiles() + t];
      begin_[part] = batch.begins[t * Batch::parts + part];
    }
    team.team_barrier();
  }

  /// Where the run of `part` begins in the tile.
  KOKKOS_FUNCTION int begin(int part) const { return begin_[part]; }

  /// Calls `store(i, load(i, position))` for the tile's `size` sorted elements
  /// i, of which `position` is the place in the batch: some loads, then their
  /// stores.
  template <class Member, class Load, class Store>
  KOKKOS_FUNCTION void for_each(const Member& team, int size, const Load& load,
                                const Store& store) const {
    in_turns<Exec>(
        team, size,
        [&](int i) {
          int part = 0;
          for (int step = Batch::parts / 2; step > 0; step /= 2)
            part += begin_[part + step] <= i ? step : 0;
          return load(i, target_[part] + (i - begin_[part]));
        },
        store);
  }

 private:
  size_type* target_;  // per part: begin in the batch
  int* begin_;         // per part: begin in the tile
};

/// Sorts each tile by partition and writes its runs to their partitions.
template <class Exec, class Batch, class Key, class Query>
struct ScatterQueries {
  Batch batch;
  Strided<const Query> queries;

  static std::size_t scratch_bytes() {
    return PartOfKey<Exec, Batch, Key>::scratch_bytes() +
           TileRuns<Exec, Batch>::scratch_bytes() +
           scratch_bytes_of<int, Exec>(Batch::parts) +
           scratch_bytes_of<Query, Exec>(Batch::tile);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const PartOfKey<Exec, Batch, Key> part_of(team, batch);
    const TileRuns<Exec, Batch> runs(team);
    int* const next = take_scratch<int, Exec>(team, Batch::parts);
    Query* const sorted = take_scratch<Query, Exec>(team, Batch::tile);
    const int thread = team.team_rank();
    const int threads = team.team_size();
    for (size_type t = team.league_rank(); t < batch.tiles();
         t += team.league_size()) {
      runs.read(team, batch, t);
      for (int part = thread; part < Batch::parts; part += threads)
        next[part] = runs.begin(part);
      team.team_barrier();
      const int size = batch.tile_size(t);
      in_turns<Exec>(
          team, size, [&](int i) { return queries(t * Batch::tile + i); },
          [&](int i, const Query& query) {
            // Which of a partition's places a query takes is left to chance;
            // its result comes back from there, so chance never shows.
            const int slot = Kokkos::atomic_fetch_inc(
                &next[part_of(lower_probe<Key>(query).key)]);
            sorted[slot] = query;
            batch.slots[t * Batch::tile + i] = static_cast<std::uint16_t>(slot);
          });
      team.team_barrier();
      runs.for_each(
          team, size,
          [&](int i, size_type position) {
            return Kokkos::pair<size_type, Query>(position, sorted[i]);
          },
          [&](int, const Kokkos::pair<size_type, Query>& placed) {
            batch.permuted[placed.first] = placed.second;
          });
      team.team_barrier();
    }
  }
};

/// Gathers the results of each tile and writes them in the caller's order.
template <class Exec, class Batch, class Out>
struct GatherResults {
  Batch batch;
  const Out* results;
  Strided<Out> out;

  static std::size_t scratch_bytes() {
    return TileRuns<Exec, Batch>::scratch_bytes() +
           scratch_bytes_of<Out, Exec>(Batch::tile);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const TileRuns<Exec, Batch> runs(team);
    Out* const sorted = take_scratch<Out, Exec>(team, Batch::tile);
    for (size_type t = team.league_rank(); t < batch.tiles();
         t += team.league_size()) {
      runs.read(team, batch, t);
      const int size = batch.tile_size(t);
      runs.for_each(
          team, size,
          [&](int, size_type position) { return results[position]; },
          [&](int i, const Out& result) { sorted[i] = result; });
      team.team_barrier();
      in_turns<Exec>(
          team, size, [&](int i) { return batch.slots[t * Batch::tile + i]; },
          [&](int i, std::uint16_t slot) {
            out(t * Batch::tile + i) = sorted[slot];
          });
      team.team_barrier();
    }
  }
};

/// Runs `verb` like run_lookups, partition by partition. `memory` has as many
/// bytes as PartitionedBatch says. Six kernels and a scan, no fence.
///
/// \pre the index is not empty.
template <class Exec, class Ref, class Verb, class Policy>
void run_partitioned(const std::string& label, const Exec& space,
                     const Ref& ref, const Verb& verb, const Policy& policy,
                     std::byte* memory) {
  using Key = typename Ref::key_type;
  using Query = typename Verb::query_type;
  using Out = typename Verb::out_type;
  using Batch = PartitionedBatch<Key, Query, sizeof(Out)>;
  const Batch batch(memory, verb.queries.size);
  Out* const results = reinterpret_cast<Out*>(batch.results);
  Kokkos::parallel_for(
      label + "::take_splitters",
      Kokkos::RangePolicy<Exec>(space, 0, Batch::parts - 1),
      TakeSplitters<Ref, Key>{ref, batch.splitters, Batch::parts});
  Kokkos::parallel_for(label + "::tabulate_splitters",
                       Kokkos::RangePolicy<Exec>(space, 0, Batch::cells + 1),
                       TabulateSplitters<Batch, Key>{batch});
  // One tile per team.
  const auto run_tiles = [&](const char* what, const auto& kernel) {
    run_tiled(space, label + what, kernel, batch.tiles(),
              std::decay_t<decltype(kernel)>::scratch_bytes());
  };
  run_tiles("::count_parts",
            CountParts<Exec, Batch, Key, Query>{batch, verb.queries});
  const size_type runs = Batch::parts * batch.tiles();
  Kokkos::parallel_scan(label + "::place_parts",
                        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(
                            space, 0, runs + 1),
                        OffsetsScan{batch.offsets, runs});
  run_tiles("::scatter_queries",
            ScatterQueries<Exec, Batch, Key, Query>{batch, verb.queries});
  // Measured on an H100: what partitions leave to groups of lanes is bound by
  // instructions, for which smaller teams and longer tiles are 1 to 3 % faster.
  Policy inside(policy);
  if constexpr (DeviceTraits<Exec>::is_gpu && Ref::lanes > 1) {
    if (inside.team_size() == 0) inside.set_team_size(256);
    if (inside.lookups_per_thread() == 0) inside.set_lookups_per_thread(4);
  }
  run_lookups(label, space, ref,
              verb.with({batch.permuted, batch.queries, 1},
                        {results, batch.queries, 1}),
              batch.queries, inside);
  run_tiles("::gather_results",
            GatherResults<Exec, Batch, Out>{batch, results, verb.out});
}

}  // namespace kindex::query

#endif
