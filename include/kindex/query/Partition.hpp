// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_PARTITION_HPP
#define KINDEX_QUERY_PARTITION_HPP

/// \file
/// Batches partitioned by key: the lookups of one partition after the other's,
/// so that the part of the index that is being read stays in the cache.

#include <kindex/query/LookupKernel.hpp>
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

  size_type queries;      ///< queries of the batch
  Key* splitters;         ///< parts − 1 keys, at equal distances of rank
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
    offsets = reinterpret_cast<size_type*>(
        take((parts * tiles() + 1) * sizeof(size_type)));
    begins = reinterpret_cast<std::uint16_t*>(
        take(parts * tiles() * sizeof(std::uint16_t)));
    slots =
        reinterpret_cast<std::uint16_t*>(take(queries * sizeof(std::uint16_t)));
    permuted = reinterpret_cast<Query*>(take(queries * sizeof(Query)));
    results = take(queries * OutBytes);
  }

  /// The partition of a key.
  KOKKOS_FUNCTION static int part_of(const Key* splitters, const Key& key) {
    int part = 0;
    for (int step = parts / 2; step > 0; step /= 2)
      part += splitters[part + step - 1] < key ? step : 0;
    return part;
  }
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

/// Counts the queries of each partition in each tile.
template <class Exec, class Batch, class Key, class Query>
struct CountParts {
  Batch batch;
  Strided<const Query> queries;

  static std::size_t scratch_bytes() {
    return TeamArray<Key, Exec>::shmem_size(Batch::parts) +
           TeamArray<int, Exec>::shmem_size(Batch::parts);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const TeamArray<Key, Exec> splitters(team_scratch<Exec>(team),
                                         Batch::parts);
    const TeamArray<int, Exec> counts(team_scratch<Exec>(team), Batch::parts);
    const int thread = team.team_rank();
    const int threads = team.team_size();
    for (int part = thread; part < Batch::parts; part += threads) {
      if (part < Batch::parts - 1) splitters(part) = batch.splitters[part];
    }
    for (size_type t = team.league_rank(); t < batch.tiles();
         t += team.league_size()) {
      for (int part = thread; part < Batch::parts; part += threads)
        counts(part) = 0;
      team.team_barrier();
      const int size = batch.tile_size(t);
      for (int i = thread; i < size; i += threads) {
        const Key key = lower_probe<Key>(queries(t * Batch::tile + i)).key;
        Kokkos::atomic_inc(&counts(Batch::part_of(splitters.data(), key)));
      }
      team.team_barrier();
      for (int part = thread; part < Batch::parts; part += threads)
        batch.offsets[part * batch.tiles() + t] = counts(part);
      team.team_barrier();
      Kokkos::single(Kokkos::PerTeam(team), [&]() {
        int sum = 0;
        for (int part = 0; part < Batch::parts; ++part) {
          const int count = counts(part);
          counts(part) = sum;
          sum += count;
        }
      });
      team.team_barrier();
      for (int part = thread; part < Batch::parts; part += threads)
        batch.begins[t * Batch::parts + part] =
            static_cast<std::uint16_t>(counts(part));
      team.team_barrier();
    }
  }
};

/// Where the runs of one tile begin, in the tile and in the batch.
template <class Exec, class Batch>
struct TileRuns {
  TeamArray<size_type, Exec> target;  ///< per part: begin in the batch
  TeamArray<int, Exec> begin;         ///< per part: begin in the tile

  static std::size_t scratch_bytes() {
    return TeamArray<size_type, Exec>::shmem_size(Batch::parts) +
           TeamArray<int, Exec>::shmem_size(Batch::parts);
  }

  template <class Member>
  KOKKOS_FUNCTION explicit TileRuns(const Member& team)
      : target(team_scratch<Exec>(team), Batch::parts),
        begin(team_scratch<Exec>(team), Batch::parts) {}

  /// Reads the runs of tile `t`. Ends with a barrier.
  template <class Member>
  KOKKOS_FUNCTION void read(const Member& team, const Batch& batch,
                            size_type t) const {
    for (int part = team.team_rank(); part < Batch::parts;
         part += team.team_size()) {
      target(part) = batch.offsets[part * batch.tiles() + t];
      begin(part) = batch.begins[t * Batch::parts + part];
    }
    team.team_barrier();
  }

  /// Where the tile's sorted element `i` is in the batch.
  KOKKOS_FUNCTION size_type position_of(int i) const {
    int part = 0;
    for (int step = Batch::parts / 2; step > 0; step /= 2)
      part += begin(part + step) <= i ? step : 0;
    return target(part) + (i - begin(part));
  }
};

/// Sorts each tile by partition and writes its runs to their partitions.
template <class Exec, class Batch, class Key, class Query>
struct ScatterQueries {
  Batch batch;
  Strided<const Query> queries;

  static std::size_t scratch_bytes() {
    return TileRuns<Exec, Batch>::scratch_bytes() +
           TeamArray<Key, Exec>::shmem_size(Batch::parts) +
           TeamArray<int, Exec>::shmem_size(Batch::parts) +
           TeamArray<Query, Exec>::shmem_size(Batch::tile);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const TileRuns<Exec, Batch> runs(team);
    const TeamArray<Key, Exec> splitters(team_scratch<Exec>(team),
                                         Batch::parts);
    const TeamArray<int, Exec> next(team_scratch<Exec>(team), Batch::parts);
    const TeamArray<Query, Exec> sorted(team_scratch<Exec>(team), Batch::tile);
    const int thread = team.team_rank();
    const int threads = team.team_size();
    for (int part = thread; part < Batch::parts - 1; part += threads)
      splitters(part) = batch.splitters[part];
    for (size_type t = team.league_rank(); t < batch.tiles();
         t += team.league_size()) {
      runs.read(team, batch, t);
      for (int part = thread; part < Batch::parts; part += threads)
        next(part) = runs.begin(part);
      team.team_barrier();
      const int size = batch.tile_size(t);
      for (int i = thread; i < size; i += threads) {
        const size_type query = t * Batch::tile + i;
        const Key key = lower_probe<Key>(queries(query)).key;
        // Which of a partition's places a query takes is left to chance; its
        // result comes back from there, so chance never shows.
        const int slot = Kokkos::atomic_fetch_inc(
            &next(Batch::part_of(splitters.data(), key)));
        sorted(slot) = queries(query);
        batch.slots[query] = static_cast<std::uint16_t>(slot);
      }
      team.team_barrier();
      for (int i = thread; i < size; i += threads)
        batch.permuted[runs.position_of(i)] = sorted(i);
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
           TeamArray<Out, Exec>::shmem_size(Batch::tile);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const TileRuns<Exec, Batch> runs(team);
    const TeamArray<Out, Exec> sorted(team_scratch<Exec>(team), Batch::tile);
    for (size_type t = team.league_rank(); t < batch.tiles();
         t += team.league_size()) {
      runs.read(team, batch, t);
      const int size = batch.tile_size(t);
      for (int i = team.team_rank(); i < size; i += team.team_size())
        sorted(i) = results[runs.position_of(i)];
      team.team_barrier();
      for (int i = team.team_rank(); i < size; i += team.team_size()) {
        const size_type query = t * Batch::tile + i;
        out(query) = sorted(batch.slots[query]);
      }
      team.team_barrier();
    }
  }
};

/// Runs `verb` like run_lookups, partition by partition. `memory` has as many
/// bytes as PartitionedBatch says. Five kernels and a scan, no fence.
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
