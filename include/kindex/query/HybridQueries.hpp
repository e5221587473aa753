// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_HYBRIDQUERIES_HPP
#define KINDEX_QUERY_HYBRIDQUERIES_HPP

/// \file
/// Batches whose searches begin on a device and end on the host.

#include <kindex/query/HostBatches.hpp>
#include <kindex/query/LookupKernel.hpp>
#include <kindex/query/Verbs.hpp>

#include <bit>

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
/// - `pinned_type`, `lanes`, `pinned_size`, `pinned_key` and maybe
///   `top_on_host` as of RefVerbs;
/// - `template <class Index, class Group, class Top, int Own> void route(const
///   Group&, const Top&, const Key (&keys)[Own], Index (&guesses)[Own]) const`,
///   not called where there are no entries.
struct Hybrid {
  /// Where entries are.
  template <class MemorySpace>
  using entries_space = Kokkos::HostSpace;
  /// Where a verb that is given `Space` finds `Views`.
  template <class Space, class... Views>
  using site = impl::HybridSite<Space, Views...>;
};

// ---- the device's part ------------------------------------------------------

/// A router where LookupKernel expects an index: its positions are guesses.
template <class Key, class Router>
struct RouterRef {
  using key_type = Key;
  using pinned_type = typename Router::pinned_type;
  static constexpr int lanes = Router::lanes;
  static constexpr int most_lanes = lanes;
  static constexpr bool sorting_pays = false;
  static constexpr bool is_contiguous = false;

  Router router;
  size_type entries;

  KOKKOS_FUNCTION size_type size() const { return entries; }
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
    router.route(group, top, keys, near);
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

/// Runs `verb`, whose Views the host can access, on an index whose entries are
/// there, too, and whose search order `router` is where `space` searches:
/// bucket by bucket, one kernel there and one on the host. Returns when all is
/// done. Moves the queries to the device (once where ranges begin and end at
/// the same) and 4 bytes per probe back.
///
/// \param space an instance of the device, or HostBatches.
/// \param policy of the device's kernels.
template <class Space, class Router, class Ref, class Verb, class Policy>
void run_hybrid(const std::string& label, const Space& space,
                const Router& router, const Ref& ref, const Verb& verb,
                size_type queries, const Policy& policy) {
  using Exec = typename impl::InstanceOf<Space>::type;
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Key = typename Ref::key_type;
  using Routing = RouterRef<Key, Router>;
  constexpr int guess_bits = 32;
  const int used = std::bit_width(ref.size());
  const int shift = used > guess_bits ? used - guess_bits : 0;
  const auto asked = impl::staged_queries(verb);
  using Query = typename decltype(asked)::query_type;
  const size_type out_bytes = Verb::probes * sizeof(std::uint32_t);
  const Host host;
  const auto& place = impl::pipeline_for(space);
  place.pipeline().run(
      impl::InstanceOf<Space>::get(space),
      PipelineBatch{
          queries, asked.in_bytes(), out_bytes,
          impl::host_bucket_size(queries, asked.in_bytes() + out_bytes), 3,
          asked.template source<Exec>()},
      [&](const Bucket& bucket, std::byte* in) { asked.fill(bucket, in); },
      [&](const Exec& instance, const Bucket& bucket, const std::byte* in,
          std::byte* out) {
        const auto staged = asked.in_bucket(bucket, in);
        run_lookups(label + "::route", instance, Routing{router, ref.size()},
                    RouteVerb<Key, Query, Verb::bounds>{
                        staged.lo, staged.hi,
                        reinterpret_cast<std::uint32_t*>(out), shift},
                    bucket.count, policy);
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
