// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Limits.hpp"

#include "Random.hpp"
#include "SectorBatch.hpp"
#include "Spaces.hpp"
#include "Timing.hpp"
#ifdef KOKKOS_ENABLE_CUDA
#include "cuda/GatherByPairs.hpp"
#endif

#include <kindex/Error.hpp>
#include <kindex/Key.hpp>

#include <algorithm>
#include <vector>

namespace kindex::perf {
namespace {

template <class Exec>
using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::uint64_t>>;

/// Never zeros: devices compress them, and hosts share their pages.
template <class Exec>
struct FillRandom {
  Kokkos::View<std::uint64_t*, typename Exec::memory_space> words;
  KOKKOS_FUNCTION void operator()(std::uint64_t i) const { words(i) = mix(i); }
};

template <class Exec>
auto random_words(const Exec& space, std::uint64_t bytes) {
  Kokkos::View<std::uint64_t*, typename Exec::memory_space> words(
      Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                         "kindex_bench::limits::random"),
      (bytes + 7) / 8);
  Kokkos::parallel_for("kindex_bench::limits::fill",
                       Range<Exec>(space, 0, words.extent(0)),
                       FillRandom<Exec>{words});
  space.fence("kindex_bench::limits: filled");
  return words;
}

template <class Query, class Result>
struct GatherByThread {
  SectorBatch<Query, Result> batch;
  KOKKOS_FUNCTION void operator()(std::uint64_t i) const {
    const HalfSector* sector = batch.sectors + 2 * batch.sector_of(i);
    batch.results[i] = static_cast<Result>(sector[0].sum() + sector[1].sum());
  }
};

template <class Exec, class Query, class Result>
Probe gather_probe(const LookupShape& shape) {
  const Exec space;
  const auto queries = random_words(space, shape.queries * sizeof(Query));
  const auto array =
      random_words(space, std::max<std::uint64_t>(shape.array_bytes, 32) + 31);
  const auto results = random_words(space, shape.queries * sizeof(Result));

  SectorBatch<Query, Result> batch;
  batch.queries = reinterpret_cast<const Query*>(queries.data());
  batch.sectors = reinterpret_cast<const HalfSector*>(array.data());
  batch.results = reinterpret_cast<Result*>(results.data());
  batch.sector_count = std::max<std::uint64_t>(shape.array_bytes / 32, 1);

  Probe probe;
  probe.fence = [space] { space.fence("kindex_bench::limits: one sector"); };
  // The views are captured to keep them alive.
  probe.run = [space, queries, array, results, batch, n = shape.queries] {
    Kokkos::parallel_for("kindex_bench::limits::one_sector",
                         Range<Exec>(space, 0, n),
                         GatherByThread<Query, Result>{batch});
  };
  probe.what = "one thread per sector";
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) {
    Probe pairs = probe;
    pairs.what = "two lanes per sector";
    pairs.run = [space, queries, array, results, batch, n = shape.queries] {
      gather_by_pairs(space.cuda_stream(), batch, n);
    };
    if (median_seconds(pairs) < median_seconds(probe)) return pairs;
  }
#endif
  return probe;
}

template <class Exec, class Query>
Probe gather_probe_of_query(const LookupShape& shape) {
  if (shape.result_bytes == 4)
    return gather_probe<Exec, Query, std::uint32_t>(shape);
  if (shape.result_bytes == 8)
    return gather_probe<Exec, Query, std::uint64_t>(shape);
  throw Error("one_sector_probe: results have 4 or 8 bytes");
}

}  // namespace

template <class Exec>
Probe copy_probe(std::uint64_t bytes) {
  const Exec space;
  const auto from = random_words(space, bytes);
  const auto to = random_words(space, bytes);
  Probe probe;
  probe.what = "copy";
  probe.run = [space, from, to] { Kokkos::deep_copy(space, to, from); };
  probe.fence = [space] { space.fence("kindex_bench::limits: copy"); };
  return probe;
}

template <class Exec>
Probe one_sector_probe(const LookupShape& shape) {
  switch (shape.query_bytes) {
    case 1: return gather_probe_of_query<Exec, std::uint8_t>(shape);
    case 2: return gather_probe_of_query<Exec, std::uint16_t>(shape);
    case 4: return gather_probe_of_query<Exec, std::uint32_t>(shape);
    case 8: return gather_probe_of_query<Exec, std::uint64_t>(shape);
    case 16: return gather_probe_of_query<Exec, Key128>(shape);
  }
  throw Error("one_sector_probe: queries have 1, 2, 4, 8 or 16 bytes");
}

template <class Exec>
Probe link_probe(const LinkShape& shape) {
  const std::vector<Exec> instances =
      Kokkos::Experimental::partition_space(Exec(), std::vector<int>{1, 1});
  const Exec& there = instances[0];
  const Exec& back = instances[1];
  const auto queries = random_words(there, shape.queries * shape.query_bytes);
  const auto results = random_words(there, shape.queries * shape.result_bytes);
  const auto staging = [](const auto& like) {
    const Kokkos::View<std::uint64_t*, StagingSpace<Exec>> words(
        Kokkos::view_alloc(Kokkos::WithoutInitializing,
                           "kindex_bench::limits::staging"),
        like.extent(0));
    Kokkos::deep_copy(words, like);
    return words;
  };
  Probe probe;
  probe.what = "both directions at once, page-locked";
  probe.run = [there, back, queries, results, sent = staging(queries),
               received = staging(results)] {
    Kokkos::deep_copy(there, queries, sent);
    Kokkos::deep_copy(back, received, results);
  };
  probe.fence = [there, back] {
    there.fence("kindex_bench::limits: queries are there");
    back.fence("kindex_bench::limits: results are back");
  };
  return probe;
}

double median_seconds(const Probe& probe) {
  probe.run();
  probe.fence();
  std::vector<double> seconds;
  double total = 0;
  while (seconds.size() < 5 || (total < 0.1 && seconds.size() < 50)) {
    seconds.push_back(seconds_of([&] {
      probe.run();
      probe.fence();
    }));
    total += seconds.back();
  }
  return median(seconds);
}

template Probe copy_probe<HostExec>(std::uint64_t);
template Probe one_sector_probe<HostExec>(const LookupShape&);
template Probe link_probe<HostExec>(const LinkShape&);
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || \
    defined(KOKKOS_ENABLE_SYCL)
template Probe copy_probe<DeviceExec>(std::uint64_t);
template Probe one_sector_probe<DeviceExec>(const LookupShape&);
template Probe link_probe<DeviceExec>(const LinkShape&);
#endif

}  // namespace kindex::perf
