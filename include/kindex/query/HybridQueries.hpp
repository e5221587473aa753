// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_HYBRIDQUERIES_HPP
#define KINDEX_QUERY_HYBRIDQUERIES_HPP

/// \file
/// Batches whose searches begin on a device and end on the host.

#include <kindex/query/HostBatches.hpp>
#include <kindex/query/LookupKernel.hpp>
#include <kindex/query/Verbs.hpp>
#include <kindex/query/WorkDivision.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace kindex::query {

// ---- where the parts of an index are ----------------------------------------

/// All of an index is in one memory.
struct InOneMemory {
  /// Where entries are.
  template <class MemorySpace>
  using entries_space = MemorySpace;
  /// Where a verb that is given `Space` finds `Views`.
  template <class Space, class... Views>
  using site = impl::Site<Space, Views...>;
};

/// The search order of an index is in its MemorySpace, the entries in the
/// host's. The device says for each probe where it expects it, in 4 bytes, and
/// the host searches from there. (Shahvarani and Jacobsen, SIGMOD 2016, do so
/// for a B+-tree: see HybridPipeline.)
///
/// Such an index has `ref()`, the handle for the host, with
/// - `template <bool finds, class Group, int Own> void finish(const Group&,
///   const Key (&keys)[Own], size_type (&positions)[Own]) const`: `search` from
///   positions on, which are the guesses of its router, rounded down where 32
///   bits do not hold them;
/// - maybe `void prefetch(size_type guess) const`: has the host fetch what
///   `finish` reads first; not called where there are no entries;
///
/// and `router()`, the handle for the device: trivially copyable, with
/// - `pinned_type`, `lanes`, `pinned_size`, `pinned_key` and maybe `most_lanes`
///   and `top_on_host` as of RefVerbs;
/// - `template <class Index, class Group, class Top, int Own> void route(const
///   Group&, const Top&, const Key (&keys)[Own], Index (&guesses)[Own]) const`,
///   not called where there are no entries;
/// - maybe `size_type somewhere() const`: the guess for what is nowhere, where
///   not any number will do.
///
/// Or its search can be divided between both: then `router()` has instead of
/// `route`
/// - `static constexpr bool is_divisible = true` and `int height`, its levels;
/// - `template <class Index, class Group, class Top, int Own> void walk(const
///   Group&, const Top&, const Key (&keys)[Own], Index (&nodes)[Own], int from,
///   int until) const`: from nodes of one level, at first 0, to those of
///   another; what the host hands on fits 32 bits;
/// - `template <class Index> Index position_of(Index node) const`: the guess
/// for
///   what is behind the last level;
///
/// and the index `HybridHead head()`.
struct Hybrid {
  /// Where entries are.
  template <class MemorySpace>
  using entries_space = Kokkos::HostSpace;
  /// Where a verb that is given `Space` finds `Views`.
  template <class Space, class... Views>
  using site = impl::HybridSite<Space, Views...>;
};

/// What the host does before the device.
///
/// \tparam Router that of the device.
template <class Router>
struct HybridHead {
  Router router;          ///< the same in host memory
  WorkDivision division;  ///< within its levels
};

/// Searches begin on the device.
struct NoHead {};

namespace impl {

/// Whether searches by `Router` can be divided.
template <class Router>
concept Divisible = requires {
  requires Router::is_divisible;
};

}  // namespace impl

// ---- the device's part ------------------------------------------------------

namespace impl {

/// Lanes that read with one key each: RefVerbs::most_lanes.
template <class Router>
constexpr int most_lanes_of() {
  if constexpr (requires { Router::most_lanes; }) {
    return Router::most_lanes;
  } else {
    return Router::lanes;
  }
}

}  // namespace impl

/// A router where LookupKernel expects an index: its positions are guesses.
template <class Key, class Router>
struct RouterRef {
  using key_type = Key;
  using pinned_type = typename Router::pinned_type;
  static constexpr int lanes = Router::lanes;
  static constexpr int most_lanes = impl::most_lanes_of<Router>();
  static constexpr bool sorting_pays = false;
  static constexpr bool is_contiguous = false;

  Router router;
  size_type entries;
  int from = 0;      ///< where searches are divided: the first level
  int until = -1;    ///< the level behind the last; below 0: all levels
  bool ends = true;  ///< whether guesses follow

  KOKKOS_FUNCTION size_type size() const { return entries; }
  KOKKOS_FUNCTION size_type no_position() const {
    if constexpr (requires { router.somewhere(); }) {
      return router.somewhere();
    } else {
      return entries;
    }
  }
  /// Not in the host's part, which ends at a node that the rest begins with.
  KOKKOS_FUNCTION bool has_nowhere() const { return ends; }
  size_type pinned_size(int steps, size_type most) const {
    return router.pinned_size(steps, most);
  }
  KOKKOS_FUNCTION pinned_type pinned_key(size_type i) const {
    return router.pinned_key(i);
  }
  auto top_on_host() const requires requires(const Router& r) {
    r.top_on_host();
  }
  { return router.top_on_host(); }

  template <bool finds, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search(const Group& group, const Top& top,
                              const Key (&keys)[Own],
                              size_type (&guesses)[Own]) const {
    if (entries == 0) {
      for (int o = 0; o < Own; ++o) guesses[o] = 0;
    } else if (entries < (size_type{1} << 31)) {
      route<std::uint32_t>(group, top, keys, guesses);
    } else {
      route<size_type>(group, top, keys, guesses);
    }
  }

  template <class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void route(const Group& group, const Top& top,
                             const Key (&keys)[Own],
                             size_type (&guesses)[Own]) const {
    Index near[Own];
    if constexpr (impl::Divisible<Router>) {
      for (int o = 0; o < Own; ++o) near[o] = static_cast<Index>(guesses[o]);
      router.walk(group, top, keys, near, from,
                  until < 0 ? router.height : until);
      if (ends)
        for (int o = 0; o < Own; ++o) near[o] = router.position_of(near[o]);
    } else {
      router.route(group, top, keys, near);
    }
    for (int o = 0; o < Own; ++o) guesses[o] = near[o];
  }
};

/// Writes where the probes of queries are expected. One type per kind of
/// bounds, so that verbs share kernels.
template <class Key, class Query, Bounds wanted>
struct RouteVerb {
  static constexpr bool finds = false;
  static constexpr int probes = wanted == Bounds::both ? 2 : 1;
  static constexpr bool is_reorderable = false;
  Strided<const Query> lo;  ///< the queries, or where ranges begin
  Strided<const Query> hi;  ///< the same, or where they end
  std::uint32_t* guesses;   ///< `probes` per query
  int shift;                ///< bits that guesses leave out
  /// Where the host led the probes, `probes` per query; null: nowhere.
  const std::uint32_t* starts = nullptr;

  KOKKOS_FUNCTION size_type guess(size_type i, int p) const {
    return starts == nullptr ? 0 : starts[i * probes + p];
  }
  KOKKOS_FUNCTION void make_probes(size_type i,
                                   Probe<Key> (&probe)[probes]) const {
    if constexpr (wanted != Bounds::upper) probe[0] = lower_probe<Key>(lo(i));
    if constexpr (wanted != Bounds::lower)
      probe[probes - 1] = upper_probe<Key>(hi(i));
  }
  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& /*ref*/, size_type i,
                             const size_type (&position)[probes]) const {
    for (int p = 0; p < probes; ++p)
      guesses[i * probes + p] =
          static_cast<std::uint32_t>(position[p] >> shift);
  }
};

// ---- the host's part --------------------------------------------------------

/// An index where LookupKernel has guesses: searches begin there.
template <class Ref>
struct GuidedRef : Ref {
  explicit GuidedRef(const Ref& ref) : Ref(ref) {}

  template <bool finds, class Group, class Top, class Key, int Own>
  KOKKOS_FUNCTION void search(const Group& group, const Top& /*top*/,
                              const Key (&keys)[Own],
                              size_type (&positions)[Own]) const {
    this->template finish<finds>(group, keys, positions);
  }
};

/// A verb for the queries of a bucket, and what the device says of them.
template <class Verb>
struct GuidedVerb {
  static constexpr bool finds = Verb::finds;
  static constexpr int probes = Verb::probes;
  static constexpr bool is_reorderable = false;
  Verb verb;                     ///< of the whole batch
  size_type begin;               ///< the bucket's first query
  const std::uint32_t* guesses;  ///< `probes` per query of the bucket
  int shift;                     ///< bits that guesses leave out

  template <class Key>
  KOKKOS_FUNCTION void make_probes(size_type i,
                                   Probe<Key> (&probe)[probes]) const {
    verb.make_probes(begin + i, probe);
  }
  KOKKOS_FUNCTION size_type guess(size_type i, int p) const {
    return size_type{guesses[i * probes + p]} << shift;
  }
  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const size_type (&position)[probes]) const {
    verb.store(ref, begin + i, position);
  }
};

// ---- both -------------------------------------------------------------------

namespace impl {

/// The queries of a verb, and where the ranges end that it asks for.
template <class Verb>
auto staged_queries(const Verb& verb) {
  if constexpr (Verb::bounds == Bounds::both) {
    return StagedRanges{verb.lo, verb.hi};
  } else {
    return StagedRanges{verb.queries, verb.queries};
  }
}

}  // namespace impl

namespace impl {

/// How a bucket of a hybrid batch lies in staging memory, and who searches what
/// of it.
///
/// \tparam Asked StagedRanges.
template <class Key, class Router, class Head, class Verb, class Asked>
struct HybridBucket {
  using Query = typename Asked::query_type;
  using Routing = RouterRef<Key, Router>;
  static constexpr int probes = Verb::probes;
  static constexpr size_type start_bytes = probes * sizeof(std::uint32_t);
  /// The larger alignment comes first, so that both are aligned.
  static constexpr bool queries_lead = alignof(Query) >= alignof(std::uint32_t);

  const std::string& label;
  const Router& router;
  const Head& head;
  const Asked& asked;
  size_type entries;
  int shift;  ///< bits that guesses leave out

  /// Whether the host begins with searches.
  bool is_divided() const {
    if constexpr (Divisible<Router>) {
      return entries > 0 &&
             (head.division.levels > 0 || head.division.share > 0);
    } else {
      return false;
    }
  }

  size_type in_bytes() const {
    return asked.in_bytes() + (is_divided() ? start_bytes : 0);
  }

  /// Copies queries to staging memory and does the host's levels.
  void fill(const Bucket& bucket, std::byte* in) const {
    asked.fill(bucket, in + queries_begin(bucket));
    if constexpr (Divisible<Router>) {
      if (!is_divided()) return;
      using Host = Kokkos::DefaultHostExecutionSpace;
      const Host host;
      auto* const starts =
          reinterpret_cast<std::uint32_t*>(in + starts_begin(bucket));
      const int levels = head.division.levels;
      const size_type cut = more_until(bucket);
      route(host, "::head", head.router, {0, cut}, 0, levels + 1, false, bucket,
            in, nullptr, starts, 0, LookupPolicy());
      if (levels > 0)
        route(host, "::head", head.router, {cut, bucket.count}, 0, levels,
              false, bucket, in, nullptr, starts, 0, LookupPolicy());
      host.fence(label + "::head");
    }
  }

  /// Launches the device's levels.
  template <class Exec, class Policy>
  void search(const Exec& space, const Bucket& bucket, const std::byte* in,
              std::byte* out, const Policy& policy) const {
    auto* const guesses = reinterpret_cast<std::uint32_t*>(out);
    int levels = 0;
    const std::uint32_t* starts = nullptr;
    size_type cut = 0;
    if constexpr (Divisible<Router>) {
      if (is_divided()) {
        levels = head.division.levels;
        cut = more_until(bucket);
        starts =
            reinterpret_cast<const std::uint32_t*>(in + starts_begin(bucket));
      }
    }
    route(space, "::route", router, {0, cut}, levels + 1, -1, true, bucket, in,
          starts, guesses, shift, policy);
    route(space, "::route", router, {cut, bucket.count}, levels, -1, true,
          bucket, in, levels > 0 ? starts : nullptr, guesses, shift, policy);
  }

 private:
  /// Queries [first, second) of a bucket.
  using Part = Kokkos::pair<size_type, size_type>;

  size_type queries_begin(const Bucket& bucket) const {
    return is_divided() && !queries_lead ? bucket.count * start_bytes : 0;
  }
  size_type starts_begin(const Bucket& bucket) const {
    return queries_lead ? bucket.count * asked.in_bytes() : 0;
  }
  /// The end of the queries for which the host does one level more.
  size_type more_until(const Bucket& bucket) const {
    return std::min(
        bucket.count,
        static_cast<size_type>(
            head.division.share * static_cast<double>(bucket.count) + 0.5));
  }

  template <class Exec, class Policy>
  void route(const Exec& space, const char* stage, const Router& by,
             const Part& part, int from, int until, bool ends,
             const Bucket& bucket, const std::byte* in,
             const std::uint32_t* starts, std::uint32_t* to, int left_out,
             const Policy& policy) const {
    const auto [begin, end] = part;
    if (begin == end) return;
    const auto staged = asked.in_bucket(bucket, in + queries_begin(bucket));
    run_lookups(label + stage, space, Routing{by, entries, from, until, ends},
                RouteVerb<Key, Query, Verb::bounds>{
                    staged.lo.from(begin, end), staged.hi.from(begin, end),
                    to + begin * probes, left_out,
                    starts == nullptr ? nullptr : starts + begin * probes},
                end - begin, policy);
  }
};

}  // namespace impl

/// Runs `verb`, whose Views the host can access, on an index whose entries are
/// there, too, and whose search order `router` is where `space` searches:
/// bucket by bucket, one kernel there and one on the host: unless the options
/// of HostBatches say otherwise, two in flight of at most 2^20 queries, or,
/// where the device copies queries by itself, three of as many as HostBatches
/// says. Returns when all is done. Moves the queries to the device (once where
/// ranges begin and end at the same) and 4 bytes per probe back. Where the host
/// does the first levels, one or two kernels more on either side, and 4 bytes
/// more per probe to the device.
///
/// \param space an instance of the device, or HostBatches.
/// \param head HybridHead or NoHead.
/// \param policy of the device's kernels.
template <class Space, class Router, class Head, class Ref, class Verb,
          class Policy>
void run_hybrid(const std::string& label, const Space& space,
                const Router& router, const Head& head, const Ref& ref,
                const Verb& verb, size_type queries, const Policy& policy) {
  using Exec = typename impl::InstanceOf<Space>::type;
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Key = typename Ref::key_type;
  constexpr int guess_bits = 32;
  const int used = std::bit_width(ref.size());
  const int shift = used > guess_bits ? used - guess_bits : 0;
  const auto asked = impl::staged_queries(verb);
  const impl::HybridBucket<Key, Router, Head, Verb,
                           std::decay_t<decltype(asked)>>
      divided{label, router, head, asked, ref.size(), shift};
  PipelineBatch batch = impl::host_batch(queries, divided.in_bytes(),
                                         Verb::probes * sizeof(std::uint32_t));
  if (!divided.is_divided()) batch.source = asked.template source<Exec>();
  // The host's part is the longest anyway, and has more of the cache so.
  if (batch.source == nullptr) {
    batch.buffers = 2;
    batch.bucket_size = std::min(batch.bucket_size, size_type{1} << 20);
  }
  const Host host;
  const auto& place = impl::pipeline_for(space);
  place.pipeline().run(
      impl::InstanceOf<Space>::get(space), batch,
      [&](const Bucket& bucket, std::byte* in) { divided.fill(bucket, in); },
      [&](const Exec& instance, const Bucket& bucket, const std::byte* in,
          std::byte* out) {
        divided.search(instance, bucket, in, out, policy);
      },
      [&](const Bucket& bucket, const std::byte* out) {
        run_lookups(label + "::finish", host, GuidedRef<Ref>(ref),
                    GuidedVerb<Verb>{
                        verb, bucket.begin,
                        reinterpret_cast<const std::uint32_t*>(out), shift},
                    bucket.count, LookupPolicy());
        host.fence(label + "::finish");
      });
}

/// Throws Error, in the name of `function`, unless `division` is one of
/// searches through `height` levels.
inline void check_division(const char* function, const WorkDivision& division,
                           int height) {
  if (division.levels < 0 || division.levels > height)
    kindex::impl::fail(function, "division.levels is ", division.levels,
                       ", not in 0...", height);
  if (!(division.share >= 0 && division.share <= 1))
    kindex::impl::fail(function, "division.share is ", division.share,
                       ", not in [0, 1]");
  if (division.share > 0 && division.levels == height)
    kindex::impl::fail(function, "division.share is ", division.share,
                       ", but there is no level below the ", height,
                       " of division.levels");
}

/// The division of searches through `height` levels under which a sample is
/// answered fastest, by measuring: some 10 to 20 divisions, four batches each.
///
/// \param name of the index, for labels.
/// \param queries of the sample.
/// \param answer `answer(division, ranks)`: writes their lower bounds to a View
///   in host memory.
template <class Answer>
WorkDivision measured_division(const std::string& name, int height,
                               size_type queries, const Answer& answer) {
  const Kokkos::View<size_type*, Kokkos::HostSpace> ranks(
      Kokkos::view_alloc(Kokkos::WithoutInitializing,
                         "kindex::" + name + "::balance::ranks"),
      queries);
  return find_division(height, [&](const WorkDivision& division) {
    double seconds = std::numeric_limits<double>::infinity();
    // The first of them may allocate.
    for (int i = 0; i < 4; ++i) {
      const Kokkos::Timer timer;
      answer(division, ranks);
      seconds = std::min(seconds, timer.seconds());
    }
    return seconds;
  });
}

/// The part of a hybrid index that is on the host: fences `space`, so that
/// earlier work may write keys and values, builds it there with all threads and
/// returns when it is built.
///
/// \tparam HostIndex what is built.
/// \tparam MemorySpace memory of the device.
/// \param name of the hybrid index, for labels.
/// \param arguments of HostIndex, behind the instance.
template <class HostIndex, class MemorySpace, class Exec, class... Arguments>
HostIndex built_on_host(const std::string& name, const Exec& space,
                        const Arguments&... arguments) {
  static_assert(
      Kokkos::SpaceAccessibility<Exec, MemorySpace>::accessible,
      "kindex: the index's memory cannot be accessed from the execution "
      "space of the instance given");
  using Host = Kokkos::DefaultHostExecutionSpace;
  static_assert((impl::can_access<Host, Arguments>() && ...),
                "kindex: a hybrid index is built from keys and values in "
                "memory that the host can access");
  const Host host;
  space.fence("kindex::" + name + "::earlier_work");
  HostIndex index(host, arguments...);
  host.fence("kindex::" + name + "::build");
  return index;
}

}  // namespace kindex::query

#endif
