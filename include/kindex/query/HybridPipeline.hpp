// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_HYBRIDPIPELINE_HPP
#define KINDEX_QUERY_HYBRIDPIPELINE_HPP

/// \file
/// Batches that pass through host and device in buckets, the stages of
/// different buckets at the same time.

#include <kindex/Error.hpp>
#include <kindex/query/Engine.hpp>
#ifdef KOKKOS_ENABLE_CUDA
#include <kindex/cuda/PageLocked.hpp>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

namespace kindex {

/// How a pipeline cuts batches. The setters return the options, so that they
/// chain. What is best depends on the bus, the host's memory and the index: it
/// must be measured.
class PipelineOptions {
 public:
  /// Queries of a bucket; 0: chosen by who runs the pipeline.
  size_type bucket_size() const { return bucket_size_; }
  /// Buckets in flight; 0: chosen by who runs the pipeline.
  int buffers() const { return buffers_; }

  /// Sets the queries of a bucket; 0 (the default) leaves the choice to who
  /// runs the pipeline: see HostBatches and query::HybridPipeline.
  PipelineOptions& set_bucket_size(size_type queries) {
    bucket_size_ = queries;
    return *this;
  }

  /// Sets how many buckets are in flight, each with buffers and an instance of
  /// its own; 0 (the default) leaves the choice to who runs the pipeline. While
  /// the host works on one of them, the device has the others:
  /// - 1, sequential: none, one stage comes after the other;
  /// - 2, pipelined: one;
  /// - 3, double-buffered: two, whose copies and kernels overlap, too;
  /// - 4, triple-buffered: three, of which one may be searched while another
  ///   comes and a third goes.
  ///
  /// \throws Error if not in 0...4.
  PipelineOptions& set_buffers(int buffers) {
    if (buffers < 0 || buffers > most_buffers)
      impl::fail("kindex::PipelineOptions::set_buffers", "buffers is ", buffers,
                 ", not in 0...", most_buffers);
    buffers_ = buffers;
    return *this;
  }

  /// The most buckets in flight.
  static constexpr int most_buffers = 4;

 private:
  size_type bucket_size_ = 0;
  int buffers_ = 0;
};

namespace query {

/// Consecutive queries of a batch that pass through a pipeline together.
struct Bucket {
  size_type begin;  ///< the first query's number in the batch
  size_type count;  ///< queries, at least 1
  int buffer;       ///< which of the buffers in flight holds them
  /// The number behind the last query's.
  size_type end() const { return begin + count; }
};

/// What a pipeline must know of a batch.
struct PipelineBatch {
  size_type queries;    ///< queries of the batch
  size_type in_bytes;   ///< bytes that each sends to the device; may be 0
  size_type out_bytes;  ///< bytes that each gets back; may be 0
  /// Queries of a bucket unless the options name them. 16384: what the authors
  /// of the method found best for trees.
  size_type bucket_size = 16384;
  /// Buckets in flight unless the options or `buffers` say how many.
  static constexpr int usual_buffers = 3;
  int buffers = usual_buffers;  ///< in flight unless the options say how many
  /// Buckets in flight, where more are wanted.
  int most_buffers = PipelineOptions::most_buffers;
  /// All queries where the device copies them from by itself, or null: they
  /// pass through the pipeline's page-locked memory.
  const std::byte* source = nullptr;
  /// The same for results.
  std::byte* target = nullptr;
};

/// How long the buckets of a batch were in flight: from when the host began to
/// fill one until it had finished it.
struct BucketLatency {
  size_type buckets = 0;       ///< of the batch
  double mean_seconds = 0;     ///< of all of them
  double longest_seconds = 0;  ///< of one
};

/// Whether a device of `Exec` copies `bytes` bytes at `first`, in memory of the
/// host, as fast as any: those of a View that is page-locked, or on hosts.
template <class Exec>
bool is_copied_directly([[maybe_unused]] const void* first,
                        [[maybe_unused]] size_type bytes) {
  if constexpr (!DeviceTraits<Exec>::is_gpu) {
    return true;
#ifdef KOKKOS_ENABLE_CUDA
  } else if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) {
    return bytes > 0 && cuda::is_page_locked(first) &&
           cuda::is_page_locked(static_cast<const std::byte*>(first) + bytes -
                                1);
#endif
  } else {
    return false;
  }
}

/// Sends a batch of queries through a device in buckets: while the host fills
/// one bucket, a second is copied to the device, a third is searched there, its
/// results are copied back, and the host finishes a fourth. (Shahvarani and
/// Jacobsen, "A Hybrid B+-tree as Solution for In-Memory Indexing on CPU-GPU
/// Heterogeneous Computing Platforms", SIGMOD 2016.)
///
/// A pipeline owns, per bucket in flight, page-locked memory of the host,
/// memory of the device and an execution space instance, and keeps them for the
/// next batch; memory only grows. It serves one batch at a time; other threads
/// that call it wait. On hosts, whose kernels end before their launch returns,
/// all of it happens too, one stage after the other and on the instance given
/// (with a share of the threads for each bucket, the others would be idle).
///
/// \tparam Exec the device's execution space.
template <class Exec>
class HybridPipeline {
 public:
  using execution_space = Exec;  ///< the device's execution space
  /// memory of the device
  using memory_space = typename Exec::memory_space;
  /// memory of the host that the device copies from and to: page-locked where
  /// Kokkos has such
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
  using staging_space =
      std::conditional_t<DeviceTraits<Exec>::is_gpu,
                         Kokkos::SharedHostPinnedSpace, Kokkos::HostSpace>;
#else
  using staging_space = Kokkos::HostSpace;
#endif

  /// A pipeline without memory, which the first batch allocates.
  explicit HybridPipeline(const PipelineOptions& options = {})
      : options_(options) {}
  HybridPipeline(const HybridPipeline&) = delete;
  HybridPipeline& operator=(const HybridPipeline&) = delete;

  /// How batches are cut.
  const PipelineOptions& options() const { return options_; }

  /// Bytes that the pipeline holds on the host; as many on the device.
  size_type memory_bytes() const {
    size_type bytes = 0;
    for (const Buffer& buffer : buffers_) bytes += buffer.staging.extent(0);
    return bytes;
  }

  /// Queries of a bucket of `batch`; the last one has what is left.
  size_type bucket_size(const PipelineBatch& batch) const {
    const size_type wanted =
        options_.bucket_size() > 0 ? options_.bucket_size() : batch.bucket_size;
    return std::clamp<size_type>(wanted, 1,
                                 std::max<size_type>(batch.queries, 1));
  }

  /// Buckets of `batch` that are in flight at once.
  int buffers(const PipelineBatch& batch) const {
    const size_type size = bucket_size(batch);
    const size_type buckets = batch.queries / size + (batch.queries % size > 0);
    const int wanted =
        options_.buffers() > 0 ? options_.buffers() : batch.buffers;
    return static_cast<int>(std::min<size_type>(
        std::min(wanted, batch.most_buffers), std::max<size_type>(buckets, 1)));
  }

  /// How long the buckets of the last batch were in flight, which has not
  /// ended with an exception.
  BucketLatency latency() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return latency_;
  }

  /// Answers `batch`; returns when `finish` has seen all results and nothing of
  /// the batch is left in flight. An empty batch does nothing.
  ///
  /// Fences `space` once, before `fill` is called for the first time: what was
  /// launched there before is done by then. Later only the pipeline's own
  /// instances are fenced, once per bucket. Allocates, and lets Kokkos fence
  /// all instances to free what was too small, where a batch needs more memory
  /// than those before: buffers() times the bytes of a bucket, 1 MiB at least
  /// and twice as much as before, on either side.
  /// Moves in_bytes to the device and out_bytes back per query.
  ///
  /// The calling thread calls, bucket by bucket in ascending order:
  /// \param space an instance of the device whose memory is to be used.
  /// \param batch how many queries of which sizes.
  /// \param fill `fill(bucket, std::byte* in)`: writes the bucket's queries,
  ///   `bucket.count * in_bytes` bytes, to page-locked memory. Not called where
  ///   the batch has a source.
  /// \param search `search(const Exec& space, bucket, const std::byte* in,
  ///   std::byte* out)`: launches kernels on that instance, which read those
  ///   bytes in device memory and write `bucket.count * out_bytes` bytes. Other
  ///   buckets are in flight on other instances: what kernels use beside is
  ///   theirs alone only per `bucket.buffer`.
  /// \param finish `finish(bucket, const std::byte* out)`: takes the results
  ///   out of page-locked memory. It has all threads of the host. Not called
  ///   where the batch has a target.
  ///
  /// `in` and `out` start at multiples of 64 bytes.
  /// \throws What the three throw, once all that is in flight has ended; the
  ///   pipeline is usable then. Not a batch's fault: what Kokkos throws where
  ///   memory runs out, before `fill` is called for the first time.
  template <class Fill, class Search, class Finish>
  void run(const Exec& space, const PipelineBatch& batch, const Fill& fill,
           const Search& search, const Finish& finish) {
    if (batch.queries == 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_type size = bucket_size(batch);
    const auto in_flight = static_cast<size_type>(buffers(batch));
    const size_type buckets = batch.queries / size + (batch.queries % size > 0);
    const size_type out_begin = (size * batch.in_bytes + 255) / 256 * 256;
    reserve(space, in_flight, out_begin + size * batch.out_bytes);
    const auto bucket_of = [&](size_type i) {
      return Bucket{i * size, std::min(size, batch.queries - i * size),
                    static_cast<int>(i % in_flight)};
    };
    space.fence("kindex::HybridPipeline::run::earlier_work");
    BucketLatency latency{buckets};
    try {
      for (size_type i = 0; i < buckets + in_flight; ++i) {
        Buffer& buffer = buffers_[i % in_flight];
        if (i >= in_flight) {
          const Bucket bucket = bucket_of(i - in_flight);
          buffer.space.fence("kindex::HybridPipeline::run::bucket");
          if (batch.target == nullptr)
            finish(bucket, static_cast<const std::byte*>(buffer.staging.data() +
                                                         out_begin));
          const double seconds =
              std::chrono::duration<double>(Clock::now() - buffer.begin)
                  .count();
          latency.mean_seconds += seconds / static_cast<double>(buckets);
          latency.longest_seconds = std::max(latency.longest_seconds, seconds);
        }
        if (i < buckets) {
          const Bucket bucket = bucket_of(i);
          buffer.begin = Clock::now();
          const std::byte* in = buffer.staging.data();
          if (batch.source == nullptr)
            fill(bucket, buffer.staging.data());
          else
            in = batch.source + bucket.begin * batch.in_bytes;
          copy<memory_space, staging_space>(buffer.space, buffer.device.data(),
                                            in, bucket.count * batch.in_bytes);
          search(static_cast<const Exec&>(buffer.space), bucket,
                 static_cast<const std::byte*>(buffer.device.data()),
                 buffer.device.data() + out_begin);
          std::byte* const out =
              batch.target == nullptr
                  ? buffer.staging.data() + out_begin
                  : batch.target + bucket.begin * batch.out_bytes;
          copy<staging_space, memory_space>(buffer.space, out,
                                            buffer.device.data() + out_begin,
                                            bucket.count * batch.out_bytes);
        }
      }
    } catch (...) {
      wait_for_all();
      throw;
    }
    latency_ = latency;
  }

  /// The device of `space`, of several that a process may use.
  static int device_of(const Exec& space) {
    return Kokkos::Tools::Experimental::DeviceTypeTraits<Exec>::device_id(
        space);
  }

  /// Whether the pipeline's memory, if it has any, is on the device of `space`.
  bool is_on_device_of(const Exec& space) const {
    return buffers_.empty() || device_of(buffers_[0].space) == device_of(space);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// What a bucket in flight needs: its queries stand first, then its results.
  struct Buffer {
    Exec space;
    Kokkos::View<std::byte*, staging_space> staging;
    Kokkos::View<std::byte*, memory_space> device;
    Clock::time_point begin;  ///< when the host began to fill it
  };

  /// Makes the first `count` buffers of at least `bytes` bytes each.
  void reserve(const Exec& space, size_type count, size_type bytes) {
    if (!is_on_device_of(space)) buffers_.clear();
    if constexpr (DeviceTraits<Exec>::is_gpu) {
      if (buffers_.size() < count)
        for (const Exec& instance : Kokkos::Experimental::partition_space(
                 space, std::vector<int>(count - buffers_.size(), 1)))
          buffers_.push_back({instance, {}, {}, {}});
    } else {
      if (buffers_.size() < count) buffers_.resize(count);
      for (Buffer& buffer : buffers_) buffer.space = space;
    }
    for (size_type i = 0; i < count; ++i) {
      Buffer& buffer = buffers_[i];
      const size_type held =
          std::min(buffer.staging.extent(0), buffer.device.extent(0));
      if (held >= bytes) continue;
      // Batches that become larger step by step allocate a few times only.
      const size_type size = std::max({bytes, 2 * held, size_type{1} << 20});
      // The old memory first: there may not be room for both.
      buffer.staging = {};
      buffer.device = {};
      buffer.staging = Kokkos::View<std::byte*, staging_space>(
          Kokkos::view_alloc(Kokkos::WithoutInitializing,
                             std::string("kindex::HybridPipeline::staging")),
          size);
      buffer.device = Kokkos::View<std::byte*, memory_space>(
          Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                             std::string("kindex::HybridPipeline::device")),
          size);
    }
  }

  template <class To, class From>
  static void copy(const Exec& space, std::byte* to, const std::byte* from,
                   size_type bytes) {
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    if (bytes == 0) return;
    Kokkos::deep_copy(
        space, Kokkos::View<std::byte*, To, Unmanaged>(to, bytes),
        Kokkos::View<const std::byte*, From, Unmanaged>(from, bytes));
  }

  /// Waits for what is in flight while an exception passes: another one, of a
  /// device that has failed, would hide it.
  void wait_for_all() noexcept {
    for (const Buffer& buffer : buffers_) {
      try {
        buffer.space.fence("kindex::HybridPipeline::run::exception");
      } catch (...) {
      }
    }
  }

  PipelineOptions options_;
  std::vector<Buffer> buffers_;
  BucketLatency latency_;
  mutable std::mutex mutex_;
};

}  // namespace query
}  // namespace kindex

#endif
