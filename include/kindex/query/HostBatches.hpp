// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_HOSTBATCHES_HPP
#define KINDEX_QUERY_HOSTBATCHES_HPP

/// \file
/// Batches whose queries and results are in host memory.

#include <kindex/query/HybridPipeline.hpp>
#include <kindex/query/Strided.hpp>
#include <kindex/query/Verbs.hpp>

#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace kindex {

/// Takes the place of the instance in a bulk verb whose queries and results are
/// in host memory, and keeps what such calls need: page-locked memory, device
/// memory and instances (see query::HybridPipeline).
/// \code
/// kindex::HostBatches batches(
///     space, kindex::PipelineOptions().set_bucket_size(1 << 18));
/// index.find(batches, host_queries, host_values);
/// \endcode
/// Such a call is ordered behind earlier work on `space` and returns when all
/// results are with the caller.
///
/// Unless the options name the bucket size, a bucket has as many queries as fit
/// 32 MiB with their results, at most 2^21; smaller batches are cut into four,
/// but not below 2^16 queries. (Measured on an H100 with 16 cores for batches
/// of 2^26: 3.8 billion lookups per second, with buckets of 2^20 3.5, of 2^18
/// 2.2, as each bucket costs some 40 us.)
///
/// Copies share the memory. Calls of several threads take turns; to overlap,
/// each needs HostBatches of its own.
///
/// \tparam Exec the execution space that searches.
template <class Exec>
class HostBatches {
 public:
  using execution_space = Exec;  ///< the execution space that searches

  /// \param space the instance behind whose earlier work calls are ordered.
  /// \param options how batches are cut.
  explicit HostBatches(const Exec& space, const PipelineOptions& options = {})
      : space_(space),
        pipeline_(std::make_shared<query::HybridPipeline<Exec>>(options)) {}

  /// The instance behind whose earlier work calls are ordered.
  const Exec& space() const { return space_; }
  /// The pipeline that batches go through.
  query::HybridPipeline<Exec>& pipeline() const { return *pipeline_; }

 private:
  Exec space_;
  std::shared_ptr<query::HybridPipeline<Exec>> pipeline_;
};

namespace query::impl {

// ---- where the Views of a call are ------------------------------------------

/// The instance that is given to a verb, or what takes its place.
template <class Space>
struct InstanceOf {
  using type = Space;
  static constexpr bool is_host_batches = false;
  static const Space& get(const Space& space) { return space; }
};
template <class Exec>
struct InstanceOf<HostBatches<Exec>> {
  using type = Exec;
  static constexpr bool is_host_batches = true;
  static const Exec& get(const HostBatches<Exec>& batches) {
    return batches.space();
  }
};

template <class Exec, class View>
constexpr bool can_access() {
  if constexpr (Kokkos::is_view_v<View>) {
    return Kokkos::SpaceAccessibility<Exec,
                                      typename View::memory_space>::accessible;
  } else {
    return true;  // refused elsewhere
  }
}

/// Where a verb that is given `Space` finds `Views`.
template <class Space, class... Views>
struct Site {
  using Host = Kokkos::DefaultHostExecutionSpace;
  /// Who searches.
  using exec = typename InstanceOf<Space>::type;

  static constexpr bool all_near = (can_access<exec, Views>() && ...);
  static constexpr bool all_on_host = (can_access<Host, Views>() && ...);
  static constexpr bool is_mixed =
      !InstanceOf<Space>::is_host_batches && !all_near && !all_on_host &&
      ((can_access<exec, Views>() || can_access<Host, Views>()) && ...);
  static_assert(!is_mixed,
                "kindex: queries and results must all be in memory that the "
                "execution space of the instance given can access, or all in "
                "the host's");
  static_assert(!InstanceOf<Space>::is_host_batches || all_on_host,
                "kindex: HostBatches take queries and results in memory that "
                "the host can access");

  /// Whether the batch goes through a pipeline.
  static constexpr bool is_staged =
      InstanceOf<Space>::is_host_batches || (!all_near && all_on_host);
  /// Whether the host has a part in searches.
  static constexpr bool is_hybrid = false;
  /// Who reads and writes the Views.
  using reader = std::conditional_t<is_staged, Host, exec>;
  /// Who reads entries and writes hits.
  using owner = exec;
  static const owner& owner_for(const Space& space) {
    return InstanceOf<Space>::get(space);
  }
};

/// The same for an index whose entries are in host memory.
template <class Space, class... Views>
struct HybridSite {
  using exec = typename InstanceOf<Space>::type;
  using owner = Kokkos::DefaultHostExecutionSpace;
  using reader = owner;
  static constexpr bool is_staged = true;
  static constexpr bool is_hybrid = true;
  static_assert((can_access<owner, Views>() && ...),
                "kindex: the entries of a hybrid index are in host memory: "
                "queries and results must be in memory that the host can "
                "access, too");
  static owner owner_for(const Space& /*space*/) { return owner(); }
};

// ---- pipelines of calls that bring none -------------------------------------

/// The pipelines of calls without HostBatches: as many as such calls have been
/// made at once, kept until Kokkos is finalised.
template <class Exec>
class PipelinePool {
  using Pipeline = HybridPipeline<Exec>;

 public:
  /// A pipeline out of the pool, for as long as the lease lives.
  class Lease {
   public:
    explicit Lease(std::unique_ptr<Pipeline> pipeline)
        : pipeline_(std::move(pipeline)) {}
    ~Lease() { give_back(std::move(pipeline_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Pipeline& pipeline() const { return *pipeline_; }

   private:
    std::unique_ptr<Pipeline> pipeline_;
  };

  /// Takes a pipeline for the device of `space`.
  static Lease take(const Exec& space) {
    Unused& all = unused();
    const std::lock_guard<std::mutex> lock(all.mutex);
    // Room to give it back: that must not throw.
    all.pipelines.reserve(++all.made);
    for (std::size_t i = all.pipelines.size(); i-- > 0;)
      if (all.pipelines[i]->is_on_device_of(space)) {
        --all.made;
        std::swap(all.pipelines[i], all.pipelines.back());
        auto found = std::move(all.pipelines.back());
        all.pipelines.pop_back();
        return Lease(std::move(found));
      }
    return Lease(std::make_unique<Pipeline>());
  }

  /// How many are waiting for calls.
  static std::size_t size() {
    Unused& all = unused();
    const std::lock_guard<std::mutex> lock(all.mutex);
    return all.pipelines.size();
  }

 private:
  struct Unused {
    std::mutex mutex;
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    std::size_t made = 0;

    Unused() {
      Kokkos::push_finalize_hook([this] {
        const std::lock_guard<std::mutex> lock(mutex);
        pipelines.clear();
      });
    }
  };

  static Unused& unused() {
    // Never destroyed: Kokkos may be finalised after static objects are.
    static Unused& all = *new Unused;
    return all;
  }

  static void give_back(std::unique_ptr<Pipeline> pipeline) {
    Unused& all = unused();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.pipelines.push_back(std::move(pipeline));
  }
};

/// The pipeline of a call, and what keeps it.
template <class Exec>
auto pipeline_for(const Exec& space) {
  return PipelinePool<Exec>::take(space);
}
template <class Exec>
const HostBatches<Exec>& pipeline_for(const HostBatches<Exec>& batches) {
  return batches;
}

/// The bucket size that HostBatches documents.
inline size_type host_bucket_size(size_type queries, size_type bytes) {
  const size_type fitting =
      std::bit_floor((size_type{32} << 20) / std::max<size_type>(bytes, 1));
  const size_type largest =
      std::clamp<size_type>(fitting, 1 << 16, size_type{1} << 21);
  return std::clamp<size_type>(queries / 4 + 1, 1 << 16, largest);
}

/// What a pipeline must know of a batch in host memory.
inline PipelineBatch host_batch(size_type queries, size_type in_bytes,
                                size_type out_bytes) {
  return {queries, in_bytes, out_bytes,
          host_bucket_size(queries, in_bytes + out_bytes)};
}

// ---- between the caller's Views and staging memory --------------------------

/// Copies elements, a share of some 64 KiB per call.
template <class T>
struct CopyShare {
  static_assert(std::is_trivially_copyable_v<T>,
                "kindex: queries and results are trivially copyable");
  static constexpr size_type share = std::max<size_type>(65536 / sizeof(T), 1);
  Strided<const T> from;
  Strided<T> to;

  void operator()(size_type s) const {
    const size_type begin = s * share;
    const size_type end = std::min(begin + share, from.size);
    if (from.stride == 1 && to.stride == 1) {
      std::memcpy(static_cast<void*>(to.data + begin), from.data + begin,
                  (end - begin) * sizeof(T));
    } else {
      for (size_type i = begin; i < end; ++i) to(i) = from(i);
    }
  }
};

/// Copies `from` to `to`, both in host memory, with all of its threads.
template <class T>
void copy_on_host(const char* label, const Strided<const T>& from,
                  const Strided<T>& to) {
  const CopyShare<T> kernel{from, to};
  const size_type shares = (from.size + kernel.share - 1) / kernel.share;
  if (shares == 1) return kernel(0);
  using Host = Kokkos::DefaultHostExecutionSpace;
  const Host host;
  Kokkos::parallel_for(
      label,
      Kokkos::RangePolicy<Host, Kokkos::IndexType<size_type>>(host, 0, shares),
      kernel);
  host.fence(label);
}

/// `count` elements at `bytes` of a buffer.
template <class T>
Strided<T> elements_at(std::byte* bytes, size_type count) {
  return {reinterpret_cast<T*>(bytes), count, 1};
}
template <class T>
Strided<const T> elements_at(const std::byte* bytes, size_type count) {
  return {reinterpret_cast<const T*>(bytes), count, 1};
}

/// The bytes of a View where a device of `Exec` copies them by itself, or null.
template <class Exec>
auto direct_bytes(const auto& view) {
  using T = std::remove_pointer_t<decltype(view.data)>;
  using Bytes =
      std::conditional_t<std::is_const_v<T>, const std::byte*, std::byte*>;
  const bool direct = view.stride == 1 && is_copied_directly<Exec>(
                                              view.data, view.size * sizeof(T));
  return direct ? reinterpret_cast<Bytes>(view.data) : nullptr;
}

template <class T>
void copy_in(const Strided<const T>& queries, const Bucket& bucket,
             std::byte* in) {
  copy_on_host<T>("kindex::HybridPipeline::fill",
                  queries.from(bucket.begin, bucket.end()),
                  elements_at<T>(in, bucket.count));
}

template <class T>
void copy_out(const std::byte* out, const Bucket& bucket,
              const Strided<T>& results) {
  copy_on_host<T>("kindex::HybridPipeline::finish",
                  elements_at<T>(out, bucket.count),
                  results.from(bucket.begin, bucket.end()));
}

// ---- verbs in a pipeline ----------------------------------------------------

/// How the Views of a verb, all of them the caller's, go through a pipeline:
/// bytes per query, where they are if the device copies them by itself, the
/// host's stages, and the same verb on a bucket in device memory.
template <class Verb>
struct StagedVerb;

template <class Verb>
requires Verb::is_reorderable struct StagedVerb<Verb> {
  using Query = typename Verb::query_type;
  using Out = typename Verb::out_type;
  Verb verb;

  size_type in_bytes() const { return sizeof(Query); }
  size_type out_bytes() const { return sizeof(Out); }
  template <class Exec>
  const std::byte* source() const {
    return direct_bytes<Exec>(verb.queries);
  }
  template <class Exec>
  std::byte* target() const {
    return direct_bytes<Exec>(verb.out);
  }

  void fill(const Bucket& bucket, std::byte* in) const {
    copy_in(verb.queries, bucket, in);
  }
  Verb in_bucket(const Bucket& bucket, const std::byte* in,
                 std::byte* out) const {
    return verb.with(elements_at<Query>(in, bucket.count),
                     elements_at<Out>(out, bucket.count));
  }
  void finish(const Bucket& bucket, const std::byte* out) const {
    copy_out(out, bucket, verb.out);
  }
};

/// Both ends of ranges; once where they are the same View.
template <class Query>
struct StagedRanges {
  using query_type = Query;
  Strided<const Query> lo, hi;

  bool are_points() const {
    return lo.data == hi.data && lo.stride == hi.stride;
  }
  size_type in_bytes() const { return (are_points() ? 1 : 2) * sizeof(Query); }
  template <class Exec>
  const std::byte* source() const {
    return are_points() ? direct_bytes<Exec>(lo) : nullptr;
  }

  void fill(const Bucket& bucket, std::byte* in) const {
    copy_in(lo, bucket, in);
    if (!are_points()) copy_in(hi, bucket, in + bucket.count * sizeof(Query));
  }
  StagedRanges in_bucket(const Bucket& bucket, const std::byte* in) const {
    return {elements_at<Query>(in, bucket.count),
            elements_at<Query>(
                in + (are_points() ? 0 : bucket.count * sizeof(Query)),
                bucket.count)};
  }
};
template <class Query>
StagedRanges(Strided<const Query>, Strided<const Query>) -> StagedRanges<Query>;

template <class Key, class Query, class First, class Second, PairForm Form>
struct StagedVerb<PairVerb<Key, Query, First, Second, Form>> {
  using Verb = PairVerb<Key, Query, First, Second, Form>;
  /// The first pass of `range`: its results stay on the device.
  static constexpr bool results_stay =
      Form == PairForm::first_and_count || Form == PairForm::last_and_count;
  static constexpr bool has_second = Form == PairForm::bounds;
  /// The larger alignment comes first, so that both are aligned.
  static constexpr bool first_leads = alignof(First) >= alignof(Second);
  Verb verb;

  StagedRanges<Query> ranges() const { return {verb.lo, verb.hi}; }

  size_type in_bytes() const { return ranges().in_bytes(); }
  size_type out_bytes() const {
    if (results_stay) return 0;
    return sizeof(First) + (has_second ? sizeof(Second) : 0);
  }
  template <class Exec>
  const std::byte* source() const {
    return ranges().template source<Exec>();
  }
  template <class Exec>
  std::byte* target() const {
    return results_stay || has_second ? nullptr
                                      : direct_bytes<Exec>(verb.first);
  }

  void fill(const Bucket& bucket, std::byte* in) const {
    ranges().fill(bucket, in);
  }
  Verb in_bucket(const Bucket& bucket, const std::byte* in,
                 std::byte* out) const {
    const auto staged = ranges().in_bucket(bucket, in);
    if constexpr (results_stay) {
      return {{staged.lo, staged.hi},
              verb.first.from(bucket.begin, bucket.end()),
              verb.second.from(bucket.begin, bucket.end())};
    } else if constexpr (has_second) {
      return {{staged.lo, staged.hi},
              elements_at<First>(out + first_begin(bucket), bucket.count),
              elements_at<Second>(out + second_begin(bucket), bucket.count)};
    } else {
      return {
          {staged.lo, staged.hi}, elements_at<First>(out, bucket.count), {}};
    }
  }
  void finish(const Bucket& bucket, const std::byte* out) const {
    if constexpr (has_second) {
      copy_out(out + first_begin(bucket), bucket, verb.first);
      copy_out(out + second_begin(bucket), bucket, verb.second);
    } else if constexpr (!results_stay) {
      copy_out(out, bucket, verb.first);
    }
  }

 private:
  static size_type first_begin(const Bucket& bucket) {
    return first_leads ? 0 : bucket.count * sizeof(Second);
  }
  static size_type second_begin(const Bucket& bucket) {
    return first_leads ? bucket.count * sizeof(First) : 0;
  }
};

/// The functor of for_each_in_range for the ranges of a bucket: numbers them as
/// the batch does.
template <class Visit>
struct VisitBucket {
  Visit visit;
  size_type begin;

  template <class Key, class Value>
  KOKKOS_FUNCTION void operator()(size_type query, const Key& key,
                                  const Value& value) const {
    visit(begin + query, key, value);
  }
};

}  // namespace query::impl
}  // namespace kindex

#endif
