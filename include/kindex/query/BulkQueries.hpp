// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_BULKQUERIES_HPP
#define KINDEX_QUERY_BULKQUERIES_HPP

/// \file
/// The verbs of a batch of queries, written once for all indexes.

#include <kindex/query/HostBatches.hpp>
#include <kindex/query/HybridQueries.hpp>
#include <kindex/query/LookupKernel.hpp>
#include <kindex/query/ParentChain.hpp>
#include <kindex/query/Partition.hpp>
#include <kindex/query/Ranges.hpp>
#include <kindex/query/Verbs.hpp>

namespace kindex::query {

/// The bulk verbs that every index inherits.
///
/// Common to all of them:
/// - `space` is an execution space instance; all work is ordered on it and is
///   asynchronous unless a verb says otherwise: one kernel, no fence, no
///   allocation (but see set_reordering for partitioned batches). The Views
///   must stay alive until that work is done.
/// - Queries and results are rank-1 Views of any layout in memory that the
///   instance's execution space can access; results have one element per
///   query. An empty batch does nothing.
/// - They may also all be in host memory that the instance's execution space
///   cannot access, pageable or not. Then the batch goes through a pipeline of
///   staging memory in buckets (see HostBatches; contiguous Views that CUDA
///   finds page-locked are copied directly): the call is ordered behind
///   earlier work on `space`, which it fences, and returns when the results are
///   there; the Views may then be written or freed. The first call allocates
///   that memory, later ones use it again, several at once each their own; it
///   is freed when Kokkos is finalised. Some Views here and others there do not
///   compile: whether a call is asynchronous must be plain to see, and which of
///   them is worth a copy only the caller knows.
/// - HostBatches in the place of `space` control buckets and memory, and take
///   Views in any memory that the host can access.
/// - Each bucket is searched under the policy given. It is never partitioned by
///   Reordering::automatic, and by Reordering::partitioned in the policy's
///   workspace, if it has one, which the buckets in flight share: as many of
///   `workspace_bytes(bucket, policy)` bytes each as fit it, at least one.
/// - An index whose entries are in host memory while a device searches their
///   model (a hybrid one: HybridLearnedIndex) takes only Views in memory that
///   the host can access, and all of its batches go through such a pipeline:
///   the device says where it expects each probe, 4 bytes of it come back, and
///   the host searches from there and writes results to the caller's Views.
///   `range` leaves its hits in host memory and takes a workspace there, and
///   for_each_in_range calls `visit` on the host, one thread per range. The
///   policy is that of the device's kernels: its schedule and pinning apply,
///   while the order of lookups stays as it is. The host's kernels run on the
///   default instance of its default execution space.
/// - Queries may have another type than the keys (see is_comparable_v): they
///   are compared exactly. A NaN query is a miss, and its rank is size().
/// - The verbs of bounds, counts and ranges also take queries that are a Prefix
///   of keys: its lower bound is that of the smallest key which begins so, its
///   upper bound is behind all of them. (No entry equals a prefix: `find`
///   misses it.)
/// - A failed precondition throws Error before anything is written.
///
/// Cost of a batch of m point queries on an index of n keys: m searches; the
/// memory traffic of one is the index's business and stands there.
///
/// \tparam Index the index (curiously recurring): `ref()`, `size()` and
///   `static constexpr const char* name()`.
/// \tparam Key, Value, MemorySpace its template parameters.
/// \tparam Placement where its parts are: InOneMemory or Hybrid.
template <class Index, class Key, class Value, class MemorySpace,
          class Placement = InOneMemory>
class BulkQueries {
  template <class Space, class... Views>
  using site = typename Placement::template site<Space, Views...>;

 public:
  using key_type = Key;              ///< type of the keys
  using value_type = Value;          ///< type of the values
  using memory_space = MemorySpace;  ///< where the index lives
  /// what range returns
  using hits_type =
      RangeHits<Key, Value,
                typename Placement::template entries_space<MemorySpace>>;

  /// Writes to `out(i)` the value of the first entry, in the order of the
  /// input, whose key equals `queries(i)`, or `missing`.
  ///
  /// \throws Error if `out` has not one element per query.
  template <class Space, class Queries, class Out,
            AnyLookupPolicy Policy = LookupPolicy>
  void find(const Space& space, const Queries& queries, const Out& out,
            Value missing, const Policy& policy = {}) const {
    static_assert(
        std::is_assignable_v<typename Out::reference_type, const Value&>,
        "kindex: out cannot hold the index's values");
    using Site = site<Space, Queries, Out>;
    const auto q = input<Site>(queries);
    const auto o = output<Site>("kindex::find", "out", out, q.size);
    using Verb =
        FindVerb<Key, Value, element<Queries>, typename Out::value_type>;
    run<Site>(space, "find", Verb{{q, o}, missing}, q.size, policy);
  }

  /// The same with all bits one for an absent key.
  template <class Space, class Queries, class Out,
            AnyLookupPolicy Policy = LookupPolicy>
  void find(const Space& space, const Queries& queries, const Out& out,
            const Policy& policy = {}) const {
    find(space, queries, out, default_missing<Value>(), policy);
  }

  /// Writes to `out(i)` whether an entry's key equals `queries(i)`.
  ///
  /// \param space, queries, policy as for all verbs.
  /// \param out a View of `bool` or of any integer type (1 and 0).
  /// \throws Error if `out` has not one element per query.
  template <class Space, class Queries, class Out,
            AnyLookupPolicy Policy = LookupPolicy>
  void contains(const Space& space, const Queries& queries, const Out& out,
                const Policy& policy = {}) const {
    static_assert(std::is_integral_v<typename Out::value_type>,
                  "kindex: contains writes bool or integers");
    using Site = site<Space, Queries, Out>;
    const auto q = input<Site>(queries);
    const auto o = output<Site>("kindex::contains", "out", out, q.size);
    using Verb = ContainsVerb<Key, element<Queries>, typename Out::value_type>;
    run<Site>(space, "contains", Verb{{q, o}}, q.size, policy);
  }

  /// Writes to `ranks(i)` the number of keys below `queries(i)`.
  ///
  /// \param space, queries, policy as for all verbs.
  /// \param ranks a View of any integer type that can hold size().
  /// \throws Error if `ranks` has not one element per query, or elements too
  ///   narrow for size().
  template <class Space, class Queries, class Ranks,
            AnyLookupPolicy Policy = LookupPolicy>
  void lower_bound(const Space& space, const Queries& queries,
                   const Ranks& ranks, const Policy& policy = {}) const {
    bound<false>(space, "kindex::lower_bound", "lower_bound", queries, ranks,
                 policy);
  }

  /// Writes to `ranks(i)` the number of keys not above `queries(i)`.
  ///
  /// \param space, queries, policy as for all verbs.
  /// \param ranks a View of any integer type that can hold size().
  /// \throws Error if `ranks` has not one element per query, or elements too
  ///   narrow for size().
  template <class Space, class Queries, class Ranks,
            AnyLookupPolicy Policy = LookupPolicy>
  void upper_bound(const Space& space, const Queries& queries,
                   const Ranks& ranks, const Policy& policy = {}) const {
    bound<true>(space, "kindex::upper_bound", "upper_bound", queries, ranks,
                policy);
  }

  /// Writes the lower bound of `queries(i)` to `first(i)` and its upper bound
  /// to `last(i)`, as one kernel.
  ///
  /// \throws Error as lower_bound, for either View.
  template <class Space, class Queries, class First, class Last,
            AnyLookupPolicy Policy = LookupPolicy>
  void equal_range(const Space& space, const Queries& queries,
                   const First& first, const Last& last,
                   const Policy& policy = {}) const {
    using Site = site<Space, Queries, First, Last>;
    const auto q = input<Site>(queries);
    const auto f =
        rank_output<Site>("kindex::equal_range", "first", first, q.size);
    const auto l =
        rank_output<Site>("kindex::equal_range", "last", last, q.size);
    using Verb = PairVerb<Key, element<Queries>, typename First::value_type,
                          typename Last::value_type, PairForm::bounds>;
    run<Site>(space, "equal_range", Verb{{q, q}, f, l}, q.size, policy);
  }

  /// Writes to `counts(i)` the number of entries whose key equals
  /// `queries(i)`.
  ///
  /// \throws Error as lower_bound.
  template <class Space, class Queries, class Counts,
            AnyLookupPolicy Policy = LookupPolicy>
  void count(const Space& space, const Queries& queries, const Counts& counts,
             const Policy& policy = {}) const {
    using Site = site<Space, Queries, Counts>;
    const auto q = input<Site>(queries);
    const auto c = rank_output<Site>("kindex::count", "counts", counts, q.size);
    using Verb = PairVerb<Key, element<Queries>, typename Counts::value_type,
                          typename Counts::value_type, PairForm::count>;
    run<Site>(space, "count", Verb{{q, q}, c, {}}, q.size, policy);
  }

  /// Writes to `counts(i)` the number of entries with
  /// `lo(i) <= key <= hi(i)`; 0 if `lo(i) > hi(i)` or one of them is NaN.
  ///
  /// \throws Error if `hi` has not as many elements as `lo`, otherwise as
  ///   lower_bound.
  template <class Space, class Lo, class Hi, class Counts,
            AnyLookupPolicy Policy = LookupPolicy>
  void range_count(const Space& space, const Lo& lo, const Hi& hi,
                   const Counts& counts, const Policy& policy = {}) const {
    using Site = site<Space, Lo, Hi, Counts>;
    const auto l = input<Site>(lo);
    const auto h = range_end<Site, Lo>("kindex::range_count", hi, l.size);
    const auto c =
        rank_output<Site>("kindex::range_count", "counts", counts, l.size);
    using Verb = PairVerb<Key, element<Lo>, typename Counts::value_type,
                          typename Counts::value_type, PairForm::count>;
    run<Site>(space, "range_count", Verb{{l, h}, c, {}}, l.size, policy);
  }

  /// The values of the entries with `lo(i) <= key <= hi(i)`, as CSR; no
  /// entries if `lo(i) > hi(i)` or one of them is NaN.
  ///
  /// Three kernels (bounds, prefix sum, copy) and one fence of `space`, which
  /// must know the number of hits to allocate the result; the copy is
  /// asynchronous. Allocates the result and, unless the policy has a
  /// workspace, `workspace_bytes(m)` bytes behind the offsets, which live as
  /// long as they. Moves each hit's value once in and once out. `lo` and `hi`
  /// in host memory are read, bucket by bucket, before the call returns; hits
  /// are in the index's memory all the same.
  ///
  /// \throws Error if `hi` has not as many elements as `lo`, or the policy's
  ///   workspace is too small.
  template <class Space, class Lo, class Hi,
            AnyLookupPolicy Policy = LookupPolicy>
  hits_type range(const Space& space, const Lo& lo, const Hi& hi,
                  const Policy& policy = {}) const {
    hits_type hits;
    materialise(space, lo, hi, policy, false, hits);
    return hits;
  }

  /// The same with the hits' keys, which one kernel more copies.
  ///
  /// \throws Error as without keys.
  template <class Space, class Lo, class Hi,
            AnyLookupPolicy Policy = LookupPolicy>
  hits_type range(const Space& space, const Lo& lo, const Hi& hi, WithKeysTag,
                  const Policy& policy = {}) const {
    hits_type hits;
    materialise(space, lo, hi, policy, true, hits);
    return hits;
  }

  /// The same into `hits` of an earlier batch, whose memory is used again where
  /// it suffices: then nothing is allocated, and what other copies of `hits`
  /// show is overwritten. Where it does not, it is freed, for which Kokkos
  /// fences. `lo` and `hi` must not lie in `hits.offsets`, and other instances
  /// must be done with `hits`. If memory runs out, `hits` is empty.
  ///
  /// \throws Error as above, leaving `hits` as it was.
  template <class Space, class Lo, class Hi,
            AnyLookupPolicy Policy = LookupPolicy>
  void range(const Space& space, const Lo& lo, const Hi& hi, hits_type& hits,
             const Policy& policy = {}) const {
    materialise(space, lo, hi, policy, false, hits);
  }

  /// The same with the hits' keys.
  ///
  /// \throws Error as above, leaving `hits` as it was.
  template <class Space, class Lo, class Hi,
            AnyLookupPolicy Policy = LookupPolicy>
  void range(const Space& space, const Lo& lo, const Hi& hi, WithKeysTag,
             hits_type& hits, const Policy& policy = {}) const {
    materialise(space, lo, hi, policy, true, hits);
  }

  /// The entries whose keys begin as `prefixes(i)` says: `range` from that to
  /// that.
  ///
  /// \param space, rest as for range, in all of its forms.
  /// \param prefixes a View of Prefix.
  /// \throws Error as range.
  template <class Space, class Prefixes, class... Rest>
  auto prefix_range(const Space& space, const Prefixes& prefixes,
                    Rest&&... rest) const {
    static_assert(
        std::is_same_v<typename Prefixes::non_const_value_type, Prefix<Key>>,
        "kindex: prefix_range takes a View of Prefix<Key>");
    return range(space, prefixes, prefixes, std::forward<Rest>(rest)...);
  }

  /// The same hits as `range`, each query's in descending order of keys, equal
  /// keys in the reverse order of the input. The same cost.
  ///
  /// \throws Error as range.
  template <class Space, class Lo, class Hi,
            AnyLookupPolicy Policy = LookupPolicy>
  hits_type reverse_range(const Space& space, const Lo& lo, const Hi& hi,
                          const Policy& policy = {}) const {
    hits_type hits;
    materialise<Descending>(space, lo, hi, policy, false, hits);
    return hits;
  }

  /// The same with the hits' keys.
  ///
  /// \throws Error as range.
  template <class Space, class Lo, class Hi,
            AnyLookupPolicy Policy = LookupPolicy>
  hits_type reverse_range(const Space& space, const Lo& lo, const Hi& hi,
                          WithKeysTag, const Policy& policy = {}) const {
    hits_type hits;
    materialise<Descending>(space, lo, hi, policy, true, hits);
    return hits;
  }

  /// Writes to `matches(i)` the entry whose key begins with the most bits of
  /// `queries(i)`, and how many: of several, the first not below the query, or
  /// if all are below, the last. Rank size() and no bits if there are no
  /// entries. One search and the keys on both sides of its bound.
  ///
  /// \param queries keys, not NaN.
  /// \param matches a View of PrefixMatch.
  /// \throws Error if `matches` has not one element per query.
  template <class Space, class Queries, class Matches,
            AnyLookupPolicy Policy = LookupPolicy>
  void longest_prefix_match(const Space& space, const Queries& queries,
                            const Matches& matches,
                            const Policy& policy = {}) const {
    static_assert(
        std::is_same_v<element<Queries>, Key>,
        "kindex: prefixes are matched with queries of the keys' type");
    using Site = site<Space, Queries, Matches>;
    const auto q = input<Site>(queries);
    const auto m = output<Site>("kindex::longest_prefix_match", "matches",
                                matches, q.size);
    run<Site>(space, "longest_prefix_match", MatchVerb<Key>{{q, m}}, q.size,
              policy);
  }

  /// Follows each key to the root of a hierarchy, in an index whose values are
  /// the keys of parents (the hierarchical lookups of Alam, Yoginath and
  /// Perumalla, 2016): `parents(i, 0)` is the value of `keys(i)`, `parents(i,
  /// 1)` the value of that, and so on, up to the first that is no key of the
  /// index or its own parent, at most `parents.extent(1)`. `lengths(i)` is how
  /// many they are, 0 if the index does not have `keys(i)`; elements behind
  /// them are not written. Each ancestor is found as `find` does.
  ///
  /// One kernel, a thread per key: as many searches one after the other as the
  /// chain is long, and one more. No fence, no allocation.
  ///
  /// \param space, keys as for all verbs, in memory that the instance's
  ///   execution space can access; of the host, if the index is hybrid.
  /// \param parents a rank-2 View of keys, with a row for each of `keys`.
  /// \param lengths a View of integers.
  /// \throws Error if `parents` has not a row, or `lengths` not an element, for
  ///   each key; and if `lengths` cannot count the columns of `parents`.
  template <class Exec, class Keys, class Parents, class Lengths>
  void parent_chain(const Exec& space, const Keys& keys, const Parents& parents,
                    const Lengths& lengths) const {
    static_assert(std::is_same_v<typename Keys::non_const_value_type, Key> &&
                      std::is_same_v<typename Parents::value_type, Key> &&
                      Parents::rank() == 2,
                  "kindex: parents are keys of the index in a View of rank 2");
    static_assert(
        Kokkos::SpaceAccessibility<Exec,
                                   typename Parents::memory_space>::accessible,
        "kindex: the View's memory cannot be accessed from the "
        "execution space of the instance given");
    using Entries = std::conditional_t<std::is_same_v<Placement, InOneMemory>,
                                       MemorySpace, Kokkos::HostSpace>;
    static_assert(Kokkos::SpaceAccessibility<Exec, Entries>::accessible,
                  "kindex: the index's entries cannot be accessed from the "
                  "execution space of the instance given (those of a hybrid "
                  "index are in host memory)");
    const auto k = as_input(strided<Exec>(keys));
    const auto l = strided_output<Exec>("kindex::parent_chain", "lengths",
                                        lengths, k.size);
    if (parents.extent(0) != k.size)
      kindex::impl::fail("kindex::parent_chain", "parents has ",
                         parents.extent(0), " rows for ", k.size, " keys");
    using Length = typename Lengths::value_type;
    constexpr auto most =
        static_cast<size_type>(std::numeric_limits<Length>::max());
    if (parents.extent(1) > most)
      kindex::impl::fail(
          "kindex::parent_chain", "parents has ", parents.extent(1),
          " columns, but the elements of lengths count up to ", most);
    if (k.size == 0) return;
    const auto ref = index().ref();
    using Kernel = FollowParents<std::decay_t<decltype(ref)>, Key, Length>;
    Kokkos::parallel_for(
        label("parent_chain"),
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                                k.size),
        Kernel{ref, k, parents.data(), size_type(parents.stride(0)),
               size_type(parents.stride(1)), parents.extent(1), l});
  }

  /// Calls `visit(i, key, value)` on the device for every entry with
  /// `lo(i) <= key <= hi(i)`, in no particular order and from many threads;
  /// nothing is materialised. With `lo` and `hi` in host memory the call
  /// returns when all hits have been visited.
  ///
  /// \param space, lo, hi, policy as for range.
  /// \param visit a functor: `KOKKOS_LAMBDA(kindex::size_type, Key, Value)`.
  /// \throws Error if `hi` has not as many elements as `lo`.
  template <class Space, class Lo, class Hi, class Visit,
            AnyLookupPolicy Policy = LookupPolicy>
  void for_each_in_range(const Space& space, const Lo& lo, const Hi& hi,
                         const Visit& visit, const Policy& policy = {}) const {
    using Site = site<Space, Lo, Hi>;
    const auto l = input<Site>(lo);
    const auto h = range_end<Site, Lo>("kindex::for_each_in_range", hi, l.size);
    if constexpr (Site::is_hybrid) {
      using Verb = VisitVerb<Key, element<Lo>, Visit>;
      run<Site>(space, "for_each_in_range", Verb{{l, h}, visit}, l.size,
                policy);
    } else if constexpr (Site::is_staged) {
      using Exec = typename Site::exec;
      const impl::StagedRanges<element<Lo>> ranges{l, h};
      const auto& place = impl::pipeline_for(space);
      PipelineBatch batch = impl::host_batch(l.size, ranges.in_bytes(), 0);
      batch.source = ranges.template source<Exec>();
      place.pipeline().run(
          impl::InstanceOf<Space>::get(space), batch,
          [&](const Bucket& bucket, std::byte* in) { ranges.fill(bucket, in); },
          [&](const Exec& instance, const Bucket& bucket, const std::byte* in,
              std::byte*) {
            const auto staged = ranges.in_bucket(bucket, in);
            visit_hits(instance, staged.lo, staged.hi,
                       impl::VisitBucket<Visit>{visit, bucket.begin}, policy);
          },
          [](const Bucket&, const std::byte*) {});
    } else {
      visit_hits(space, l, h, visit, policy);
    }
  }

  /// Bytes of temporary memory that a batch of `queries` queries needs: what
  /// LookupPolicy::set_workspace must hold so that nothing is allocated beside
  /// results. Only `range` needs any.
  size_type workspace_bytes(size_type queries) const {
    return sizeof(size_type) * queries;
  }

  /// The same for a batch under `policy`: more where lookups are or may be
  /// partitioned (Reordering::automatic does so only given that many), enough
  /// for queries of the keys' type and results of up to 8 bytes, or of the
  /// values' size.
  size_type workspace_bytes(size_type queries,
                            const LookupSettings& policy) const {
    if (std::is_same_v<Placement, Hybrid> ||
        policy.reordering() == Reordering::none)
      return workspace_bytes(queries);
    if constexpr (!is_key_v<Key>) return workspace_bytes(queries);
    using Out = std::conditional_t<(sizeof(Value) > 8 && sizeof(Value) <= 64),
                                   Value, size_type>;
    return PartitionedBatch<Key, Key, sizeof(Out)>::bytes(queries);
  }

  /// Whether there are no entries.
  bool empty() const { return index().size() == 0; }

 private:
  template <class View>
  using element = typename View::non_const_value_type;

  const Index& index() const { return static_cast<const Index&>(*this); }

  static std::string label(const char* verb) {
    return std::string("kindex::") + Index::name() + "::" + verb;
  }

  template <class Site, class Queries>
  auto input(const Queries& queries) const {
    static_assert(
        Kokkos::SpaceAccessibility<typename Site::exec,
                                   MemorySpace>::accessible,
        "kindex: the index's memory cannot be accessed from the execution "
        "space of the instance given");
    return as_input(strided<typename Site::reader>(queries));
  }

  template <class Site, class Out>
  static auto output(const char* function, const char* argument, const Out& out,
                     size_type expected) {
    return strided_output<typename Site::reader>(function, argument, out,
                                                 expected);
  }

  template <class Site, class Lo, class Hi>
  static auto range_end(const char* function, const Hi& hi,
                        size_type expected) {
    static_assert(std::is_same_v<element<Lo>, element<Hi>>,
                  "kindex: lo and hi must have elements of the same type");
    if (hi.extent(0) != expected)
      kindex::impl::fail(function, "hi has ", hi.extent(0), " elements and lo ",
                         expected);
    return as_input(strided<typename Site::reader>(hi));
  }

  template <class Site, class Ranks>
  auto rank_output(const char* function, const char* argument,
                   const Ranks& ranks, size_type expected) const {
    using Rank = typename Ranks::non_const_value_type;
    static_assert(std::is_integral_v<Rank> && !std::is_same_v<Rank, bool>,
                  "kindex: ranks and counts are integers");
    constexpr auto most =
        static_cast<size_type>(std::numeric_limits<Rank>::max());
    if (index().size() > most)
      kindex::impl::fail(function, argument, " has elements of ", sizeof(Rank),
                         " bytes, up to ", most, ", but the index has ",
                         index().size(), " entries");
    return output<Site>(function, argument, ranks, expected);
  }

  /// Runs `verb`, whose Views are where `Site` says.
  template <class Site, class Space, class Verb, class Policy>
  void run(const Space& space, const char* verb_name, const Verb& verb,
           size_type queries, const Policy& policy) const {
    if constexpr (Site::is_hybrid) {
      run_hybrid(label(verb_name), space, index().router(), head_of(index()),
                 index().ref(), verb, queries, policy);
    } else if constexpr (Site::is_staged) {
      run_staged(space, verb_name, verb, queries, policy);
    } else {
      run_near(space, verb_name, verb, queries, policy);
    }
  }

  /// What the host does of a hybrid index before the device.
  template <class HybridIndex>
  static auto head_of(const HybridIndex& index) {
    if constexpr (requires { index.head(); }) {
      return index.head();
    } else {
      return NoHead{};
    }
  }

  /// Runs `verb`, whose Views the host can access, bucket by bucket.
  template <class Space, class Verb, class Policy>
  void run_staged(const Space& space, const char* verb_name, const Verb& verb,
                  size_type queries, const Policy& policy) const {
    using Exec = typename impl::InstanceOf<Space>::type;
    const impl::StagedVerb<Verb> staged{verb};
    const auto& place = impl::pipeline_for(space);
    auto& pipeline = place.pipeline();
    PipelineBatch batch =
        impl::host_batch(queries, staged.in_bytes(), staged.out_bytes());
    batch.source = staged.template source<Exec>();
    batch.target = staged.template target<Exec>();
    // Each bucket in flight has its own part of the workspace.
    size_type part = 0;
    if constexpr (can_partition<Exec, Verb>()) {
      if (policy.reordering() == Reordering::partitioned &&
          policy.workspace() != nullptr) {
        const size_type needed =
            (workspace_bytes(pipeline.bucket_size(batch), policy) + 15) / 16 *
            16;
        batch.most_buffers = static_cast<int>(
            std::clamp<size_type>(policy.workspace_bytes() / needed, 1,
                                  size_type(batch.most_buffers)));
        part = batch.most_buffers > 1 ? needed : policy.workspace_bytes();
      }
    }
    pipeline.run(
        impl::InstanceOf<Space>::get(space), batch,
        [&](const Bucket& bucket, std::byte* in) { staged.fill(bucket, in); },
        [&](const Exec& instance, const Bucket& bucket, const std::byte* in,
            std::byte* out) {
          Policy inside = policy;
          inside.set_workspace(
              Kokkos::View<std::byte*, MemorySpace,
                           Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                  part > 0 ? policy.workspace() + bucket.buffer * part
                           : nullptr,
                  part));
          run_near(instance, verb_name, staged.in_bucket(bucket, in, out),
                   bucket.count, inside);
        },
        [&](const Bucket& bucket, const std::byte* out) {
          staged.finish(bucket, out);
        });
  }

  /// Runs `verb`, whose Views `space` can access.
  template <class Exec, class Verb, class Policy>
  void run_near(const Exec& space, const char* verb_name, const Verb& verb,
                size_type queries, const Policy& policy) const {
    if constexpr (can_partition<Exec, Verb>() && !Policy::queries_ascend) {
      if (run_in_partitions(space, verb_name, verb, queries, policy)) return;
    }
    run_lookups(label(verb_name), space, index().ref(), verb, queries, policy);
  }

  /// Whether batches of `Verb` can be partitioned. Larger results, or such as
  /// need a larger alignment, stay in place; and so do queries of another type
  /// than the keys on hosts, where partitions gain too little to compile them
  /// for every pair of types.
  template <class Exec, class Verb>
  static constexpr bool can_partition() {
    if constexpr (Verb::is_reorderable && is_key_v<Key>) {
      using Out = typename Verb::out_type;
      return sizeof(Out) <= 64 && alignof(Out) <= 16 &&
             (DeviceTraits<Exec>::is_gpu ||
              std::is_same_v<typename Verb::query_type, Key>);
    } else {
      return false;
    }
  }

  /// Runs `verb` partitioned if the policy wants it; returns whether it did.
  template <class Exec, class Verb, class Policy>
  bool run_in_partitions(const Exec& space, const char* verb_name,
                         const Verb& verb, size_type queries,
                         const Policy& policy) const {
    using Out = typename Verb::out_type;
    using Batch = PartitionedBatch<Key, typename Verb::query_type, sizeof(Out)>;
    static_assert(Batch::tile > 0);
    if (policy.reordering() == Reordering::none || queries == 0 || empty())
      return false;
    const size_type needed = Batch::bytes(queries);
    std::byte* memory = policy.workspace();
    if (policy.reordering() == Reordering::automatic) {
      // Measured on an H100 with 50 MiB of L2 (perf/results): indexes of 64 MiB
      // lose, of 128 MiB gain a tenth if they gain at all.
      const bool wins = DeviceTraits<Exec>::is_gpu &&
                        index().ref().partitioning_pays(Verb::finds) &&
                        queries >= (1 << 20) && queries >= index().size() / 4 &&
                        index().memory_bytes() >= (size_type{96} << 20);
      if (!wins || memory == nullptr || policy.workspace_bytes() < needed)
        return false;
    } else if (memory != nullptr && policy.workspace_bytes() < needed) {
      kindex::impl::fail(label(verb_name).c_str(),
                         "the policy's workspace has ",
                         policy.workspace_bytes(), " bytes of ", needed);
    }
    Kokkos::View<std::byte*, MemorySpace> allocated;
    if (memory == nullptr) {
      allocated = Kokkos::View<std::byte*, MemorySpace>(
          Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                             label(verb_name) + "::partitions"),
          needed);
      memory = allocated.data();
    }
    run_partitioned(label(verb_name), space, index().ref(), verb, policy,
                    memory);
    return true;
  }

  template <bool Upper, class Space, class Queries, class Ranks, class Policy>
  void bound(const Space& space, const char* function, const char* verb_name,
             const Queries& queries, const Ranks& ranks,
             const Policy& policy) const {
    using Site = site<Space, Queries, Ranks>;
    const auto q = input<Site>(queries);
    const auto r = rank_output<Site>(function, "ranks", ranks, q.size);
    using Verb =
        BoundVerb<Key, element<Queries>, typename Ranks::value_type, Upper>;
    run<Site>(space, verb_name, Verb{{q, r}}, q.size, policy);
  }

  /// Calls `visit` for the hits of ranges whose ends `space` can access.
  template <class Exec, class Query, class Visit, class Policy>
  void visit_hits(const Exec& space, const Strided<const Query>& lo,
                  const Strided<const Query>& hi, const Visit& visit,
                  const Policy& policy) const {
    if (lo.size == 0) return;
    const auto ref = index().ref();
    using Group = typename GroupOn<Exec, DeviceTraits<Exec>::warp_size>::type;
    using Kernel = VisitHits<Group, std::decay_t<decltype(ref)>, Query, Visit>;
    Policy chosen = policy;
    // A warp works for as long as all of its ranges take: one batch balances.
    if (DeviceTraits<Exec>::is_gpu && policy.lookups_per_thread() == 0)
      chosen.set_lookups_per_thread(1);
    run_teams(
        space, label("for_each_in_range"), Kernel{ref, lo, hi, visit, 0},
        lo.size, chosen,
        [](Kernel& kernel, size_type tile) { kernel.tile = tile; },
        [](int) { return std::size_t{0}; });
  }

  template <class Order = Ascending, class Space, class Lo, class Hi,
            class Policy>
  void materialise(const Space& space, const Lo& lo, const Hi& hi,
                   const Policy& policy, bool want_keys,
                   hits_type& hits) const {
    try {
      materialise_into<Order>(space, lo, hi, policy, want_keys, hits);
    } catch (const Error&) {
      throw;  // before anything was written
    } catch (...) {
      hits = {};
      throw;
    }
  }

  template <class Order, class Space, class Lo, class Hi, class Policy>
  void materialise_into(const Space& space, const Lo& lo, const Hi& hi,
                        const Policy& policy, bool want_keys,
                        hits_type& hits) const {
    using Site = site<Space, Lo, Hi>;
    using Exec = typename Site::owner;
    const Exec& instance = Site::owner_for(space);
    const auto l = input<Site>(lo);
    const auto h = range_end<Site, Lo>("kindex::range", hi, l.size);
    const size_type needed = workspace_bytes(l.size);
    if (policy.workspace() != nullptr && policy.workspace_bytes() < needed)
      kindex::impl::fail("kindex::range", "the policy's workspace has ",
                         policy.workspace_bytes(), " bytes of ", needed);
    auto& memory = hits.memory;
    // The first ranks lie behind the offsets, in memory that the results keep:
    // Kokkos fences all instances when it frees a View.
    const bool own = policy.workspace() == nullptr;
    resize_within(instance, label("range::offsets"), hits.offsets,
                  memory.offsets, l.size + 1 + (own ? l.size : 0));
    size_type* first = own ? hits.offsets.data() + l.size + 1
                           : reinterpret_cast<size_type*>(policy.workspace());
    hits.offsets = Kokkos::subview(
        hits.offsets, Kokkos::pair<size_type, size_type>(0, l.size + 1));

    using Verb = PairVerb<Key, element<Lo>, size_type, size_type, Order::form>;
    run<Site>(
        space, "range::bounds",
        Verb{{l, h}, {first, l.size, 1}, {hits.offsets.data(), l.size, 1}},
        l.size, policy);
    size_type total = 0;
    Kokkos::parallel_scan(
        label("range::offsets"),
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(instance, 0,
                                                                l.size + 1),
        OffsetsScan{hits.offsets.data(), l.size}, total);

    resize_within(instance, label("range::values"), hits.values, memory.values,
                  total);
    resize_within(instance, label("range::keys"), hits.keys, memory.keys,
                  want_keys ? total : 0);
    if (total == 0) return;
    // Of a hybrid index, the policy is the device's.
    LookupPolicy filling(policy);
    if constexpr (Site::is_hybrid) filling = LookupPolicy();
    fill_hits<typename Order::Value>(instance, "range::fill", first,
                                     hits.offsets, hits.values, filling);
    if (want_keys)
      fill_hits<typename Order::Key>(instance, "range::fill_keys", first,
                                     hits.offsets, hits.keys, filling);
    if constexpr (Site::is_hybrid) instance.fence(label("range::fill"));
  }

  /// Writes one part of all hits to `out`, which has an element for each.
  template <class PartOf, class Exec, class Offsets, class Out>
  void fill_hits(const Exec& space, const char* what, const size_type* first,
                 const Offsets& offsets, const Out& out,
                 const LookupPolicy& policy) const {
    using Ref = std::decay_t<decltype(index().ref())>;
    using Kernel = FillHits<Ref, PartOf, DeviceTraits<Exec>::warp_size>;
    const Kernel kernel{
        index().ref(), first, offsets.data(), out.data(), offsets.extent(0) - 1,
        out.extent(0), 0};
    run_teams(
        space, label(what), kernel, out.extent(0),
        LookupPolicy(policy).set_lookups_per_thread(
            DeviceTraits<Exec>::hits_per_thread),
        [](Kernel& k, size_type tile) { k.tile = tile; },
        [](int) { return std::size_t{0}; });
  }
};

}  // namespace kindex::query

#endif
