// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_TRANSFERMODEL_HPP
#define KINDEX_TRANSFERMODEL_HPP

/// \file
/// What a batch costs that goes to a device and back, and from which size on
/// that is worth it.

#include <kindex/query/HostBatches.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

namespace kindex {

/// A measurement: how long how much took.
struct CostSample {
  double amount;   ///< bytes or lookups
  double seconds;  ///< wall-clock time
};

/// Seconds of what takes a time of its own and then grows in proportion.
struct LinearCost {
  double fixed_seconds = 0;  ///< however little is to be done
  /// bytes or lookups per second beyond that; infinite: they cost nothing
  double per_second = std::numeric_limits<double>::infinity();

  /// Seconds for `amount` bytes or lookups.
  double seconds(double amount) const {
    return fixed_seconds + amount / per_second;
  }

  /// The line of least squares through measurements, of errors relative to the
  /// seconds measured: so small amounts tell the fixed time, although large
  /// ones take longer by orders of magnitude. Where noise would make one of the
  /// two numbers negative, the line starts at zero.
  ///
  /// \param samples at least two, of different amounts.
  /// \throws Error if an amount or time is not positive and finite, naming its
  ///   position, and if there are less than two different amounts.
  static LinearCost fit(const std::vector<CostSample>& samples);
};

/// The numbers of a TransferModel.
struct TransferParameters {
  /// bytes from page-locked memory of the host to the device: T_init, B_in
  LinearCost in = {};
  /// lookups on the device: T_launch, R
  LinearCost execute = {};
  /// bytes back to page-locked memory: T_init, B_out
  LinearCost out = {};
  /// bytes that the host's threads copy between page-locked memory and the
  /// caller's; only HostBatches do
  LinearCost staging = {};
  size_type query_bytes = 8;   ///< that each query sends: alpha
  size_type result_bytes = 4;  ///< that each result gets back: beta
};

/// How long a batch of Q queries takes that a device answers, when queries and
/// results are in host memory:
///
///     T_in = T_init + alpha Q / B_in,  T_execute = T_launch + Q / R,
///     T_out = T_init + beta Q / B_out
///
/// (Zhong et al., GPU-PGM, ICDEW 2022), with latencies of their own for both
/// directions. The numbers are measured on the machine at hand, or given:
/// \code
/// const auto model = kindex::TransferModel::calibrate(space, index, sample);
/// const auto host =
///     kindex::TransferModel::lookup_cost(host_space, host_index, host_sample);
/// const auto batch = model.break_even(host);
/// const bool use_device = batch && queries >= *batch;
/// \endcode
/// It is a model: caches make lookups of small and of large batches differ, and
/// other work on the bus or the host is not in it.
class TransferModel {
 public:
  /// A model of these numbers.
  ///
  /// \throws Error if a fixed time is negative or not finite, or a rate is not
  ///   above 0, naming it.
  explicit TransferModel(const TransferParameters& parameters);

  /// Measures copies between page-locked memory of the host and the device of
  /// `space`, of 4 KiB to 64 MiB each way, and the host's own copies. Lookups
  /// cost nothing in this model, which makes it a bound for every index; its
  /// sizes of queries and results are the default ones.
  ///
  /// Allocates 64 MiB on the device and 128 MiB on the host, copies some 2 GB
  /// and fences `space` twice per copy: below a second on an idle machine.
  template <class Exec>
  static TransferModel calibrate(const Exec& space);

  /// The same, and the lookups of an index: see lookup_cost.
  ///
  /// \param space, index, sample as for lookup_cost.
  /// \throws Error as that.
  template <class Exec, class Index, class Queries>
  static TransferModel calibrate(const Exec& space, const Index& index,
                                 const Queries& sample);

  /// Measures `index.find` for batches as large as the sample, a quarter of it,
  /// and so on down to 1024 queries, each eight times and on other queries
  /// where there are more: what the launch costs, and lookups per second. On a
  /// host, it is the alternative of which break_even asks.
  ///
  /// Allocates a result per query; fences `space` twice per batch.
  ///
  /// \param space the instance that searches.
  /// \param index any index whose entries `space` can access (so no hybrid one,
  ///   whose calls contain the transfers), or what has its `find` and its
  ///   `value_type`.
  /// \param sample queries such as will be asked, in memory that `space` can
  ///   access; as many as a large batch has, at least 4.
  /// \throws Error if there are less than 4 queries.
  template <class Exec, class Index, class Queries>
  static LinearCost lookup_cost(const Exec& space, const Index& index,
                                const Queries& sample);

  /// The numbers.
  const TransferParameters& parameters() const { return parameters_; }

  /// Seconds until `queries` queries are on the device.
  double seconds_in(size_type queries) const {
    return bytes_seconds(parameters_.in, queries, parameters_.query_bytes);
  }
  /// Seconds until they are answered there.
  double seconds_execute(size_type queries) const {
    return bytes_seconds(parameters_.execute, queries, 1);
  }
  /// Seconds until the results are in host memory.
  double seconds_out(size_type queries) const {
    return bytes_seconds(parameters_.out, queries, parameters_.result_bytes);
  }

  /// Seconds for a batch in page-locked memory, one step after the other; 0 for
  /// an empty one.
  double seconds(size_type queries) const {
    return seconds_in(queries) + seconds_execute(queries) +
           seconds_out(queries);
  }

  /// Seconds for a batch in any memory of the host that goes through
  /// HostBatches in buckets of equal size: the first bucket takes all of its
  /// steps, each further one as long as the slowest step (filling and emptying
  /// page-locked memory are one: the same threads do both), or all steps
  /// divided by the buckets in flight, where that is longer. 0 for an empty
  /// batch.
  ///
  /// \param queries of the batch.
  /// \param options as given to HostBatches, whose bucket size is the default.
  double overlapped_seconds(size_type queries,
                            const PipelineOptions& options = {}) const;

  /// The smallest batch from which on the device is faster than the host, with
  /// transfers, one step after the other. Nothing where it never is for large
  /// batches.
  ///
  /// \param host what lookups cost the host: see lookup_cost.
  /// \throws Error if a number of `host` is out of range, as the constructor.
  std::optional<size_type> break_even(const LinearCost& host) const;

  /// The same for a host that needs no time to start.
  ///
  /// \param host_lookups_per_second of the host, above 0.
  /// \throws Error if that is not above 0.
  std::optional<size_type> break_even(double host_lookups_per_second) const;

 private:
  static double bytes_seconds(const LinearCost& cost, size_type queries,
                              size_type bytes) {
    if (queries == 0) return 0;
    return cost.seconds(static_cast<double>(queries) *
                        static_cast<double>(bytes));
  }

  TransferParameters parameters_;
};

namespace impl {

/// Refuses costs that no machine has.
inline void check_cost(const char* function, const char* what,
                       const LinearCost& cost) {
  if (!(cost.fixed_seconds >= 0 && std::isfinite(cost.fixed_seconds)))
    fail(function, what, ".fixed_seconds is ", cost.fixed_seconds,
         ", not a time");
  if (!(cost.per_second > 0))
    fail(function, what, ".per_second is ", cost.per_second, ", not above 0");
}

/// The median of seven runs after one that warms up; `run` may be asynchronous
/// on `space`.
template <class Exec, class Run>
double median_seconds(const Exec& space, const Run& run) {
  std::array<double, 7> seconds{};
  run();
  for (double& time : seconds) {
    space.fence("kindex::TransferModel: before a run");
    const Kokkos::Timer timer;
    run();
    space.fence("kindex::TransferModel: a run");
    time = timer.seconds();
  }
  std::sort(seconds.begin(), seconds.end());
  // A clock may be too coarse to see what takes no time.
  return std::max(seconds[seconds.size() / 2], 1e-9);
}

/// What `copy(bytes)` costs up to `most` bytes.
template <class Exec, class Copy>
LinearCost copy_cost(const Exec& space, size_type most, const Copy& copy) {
  std::vector<CostSample> samples;
  for (size_type bytes = 4096; bytes <= most; bytes *= 4)
    samples.push_back({static_cast<double>(bytes),
                       median_seconds(space, [&] { copy(bytes); })});
  return LinearCost::fit(samples);
}

}  // namespace impl

inline LinearCost LinearCost::fit(const std::vector<CostSample>& samples) {
  const char* const function = "kindex::LinearCost::fit";
  const auto is_positive = [](double x) { return x > 0 && std::isfinite(x); };
  double weights = 0;
  double amounts = 0;
  double seconds = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const CostSample& sample = samples[i];
    if (!is_positive(sample.amount))
      impl::fail(function, "samples[", i, "].amount is ", sample.amount,
                 ", not positive and finite");
    if (!is_positive(sample.seconds))
      impl::fail(function, "samples[", i, "].seconds is ", sample.seconds,
                 ", not positive and finite");
    const double weight = 1 / (sample.seconds * sample.seconds);
    weights += weight;
    amounts += weight * sample.amount;
    seconds += weight * sample.seconds;
  }
  const bool differ = std::any_of(
      samples.begin(), samples.end(), [&](const CostSample& sample) {
        return sample.amount != samples.front().amount;
      });
  if (!differ)
    impl::fail(function, "samples has ", samples.size(),
               " measurements, but not of two different amounts");
  // Around the mean, where nothing cancels.
  amounts /= weights;
  seconds /= weights;
  double square = 0;
  double product = 0;
  double square_at_zero = 0;
  double product_at_zero = 0;
  for (const CostSample& sample : samples) {
    const double weight = 1 / (sample.seconds * sample.seconds);
    const double distance = sample.amount - amounts;
    square += weight * distance * distance;
    product += weight * distance * (sample.seconds - seconds);
    square_at_zero += weight * sample.amount * sample.amount;
    product_at_zero += weight * sample.amount * sample.seconds;
  }
  const double slope = product / square;
  const double fixed = seconds - slope * amounts;
  if (slope > 0 && fixed >= 0) return {fixed, 1 / slope};
  return {0, square_at_zero / product_at_zero};
}

inline TransferModel::TransferModel(const TransferParameters& parameters)
    : parameters_(parameters) {
  const char* const function = "kindex::TransferModel";
  impl::check_cost(function, "parameters.in", parameters.in);
  impl::check_cost(function, "parameters.execute", parameters.execute);
  impl::check_cost(function, "parameters.out", parameters.out);
  impl::check_cost(function, "parameters.staging", parameters.staging);
}

inline double TransferModel::overlapped_seconds(
    size_type queries, const PipelineOptions& options) const {
  if (queries == 0) return 0;
  const TransferParameters& p = parameters_;
  const size_type wanted = options.bucket_size() > 0
                               ? options.bucket_size()
                               : query::impl::host_bucket_size(
                                     queries, p.query_bytes + p.result_bytes);
  const size_type size = std::min(wanted, queries);
  const size_type buckets = queries / size + (queries % size > 0 ? 1 : 0);
  const double share =
      static_cast<double>(queries) / static_cast<double>(buckets);
  const double in_bytes = share * static_cast<double>(p.query_bytes);
  const double out_bytes = share * static_cast<double>(p.result_bytes);
  const double host =
      p.staging.seconds(in_bytes) + p.staging.seconds(out_bytes);
  const double in = p.in.seconds(in_bytes);
  const double execute = p.execute.seconds(share);
  const double out = p.out.seconds(out_bytes);
  const double all = host + in + execute + out;
  const int in_turn = options.buffers() > 0
                          ? options.buffers()
                          : query::PipelineBatch::usual_buffers;
  const auto in_flight = static_cast<double>(
      std::min<size_type>(static_cast<size_type>(in_turn), buckets));
  const double step = std::max({host, in, execute, out, all / in_flight});
  return all + static_cast<double>(buckets - 1) * step;
}

inline std::optional<size_type> TransferModel::break_even(
    const LinearCost& host) const {
  impl::check_cost("kindex::TransferModel::break_even", "host", host);
  const TransferParameters& p = parameters_;
  const double fixed =
      p.in.fixed_seconds + p.execute.fixed_seconds + p.out.fixed_seconds;
  const double each = static_cast<double>(p.query_bytes) / p.in.per_second +
                      1 / p.execute.per_second +
                      static_cast<double>(p.result_bytes) / p.out.per_second;
  // The device starts later by so much, and makes up so much per query.
  const double delay = fixed - host.fixed_seconds;
  const double gain = 1 / host.per_second - each;
  if (delay < 0) return gain >= 0 ? std::optional<size_type>(1) : std::nullopt;
  if (!(gain > 0)) return std::nullopt;
  const double behind = std::floor(delay / gain);
  constexpr double most = 9223372036854775808.0;  // 2^63
  if (!(behind < most)) return std::nullopt;
  return static_cast<size_type>(behind) + 1;
}

inline std::optional<size_type> TransferModel::break_even(
    double host_lookups_per_second) const {
  if (!(host_lookups_per_second > 0))
    impl::fail("kindex::TransferModel::break_even",
               "host_lookups_per_second is ", host_lookups_per_second,
               ", not above 0");
  return break_even(LinearCost{0, host_lookups_per_second});
}

template <class Exec>
TransferModel TransferModel::calibrate(const Exec& space) {
  using Staging = typename query::HybridPipeline<Exec>::staging_space;
  using Memory = typename Exec::memory_space;
  using Host = Kokkos::HostSpace;
  constexpr size_type most = size_type{64} << 20;
  const auto memory = [](const char* what) {
    return Kokkos::view_alloc(Kokkos::WithoutInitializing,
                              std::string("kindex::TransferModel::") + what);
  };
  const Kokkos::View<std::byte*, Host> caller(memory("caller"), most);
  const Kokkos::View<std::byte*, Staging> staging(memory("staging"), most);
  const Kokkos::View<std::byte*, Memory> device(memory("device"), most);
  // Pages that were never written share one of zeros.
  std::memset(static_cast<void*>(caller.data()), 0x5a, most);
  std::memset(static_cast<void*>(staging.data()), 0x5a, most);
  const auto part = [](const auto& view, size_type bytes) {
    return Kokkos::subview(view, Kokkos::pair<size_type, size_type>(0, bytes));
  };
  TransferParameters parameters;
  parameters.in = impl::copy_cost(space, most, [&](size_type bytes) {
    Kokkos::deep_copy(space, part(device, bytes), part(staging, bytes));
  });
  parameters.out = impl::copy_cost(space, most, [&](size_type bytes) {
    Kokkos::deep_copy(space, part(staging, bytes), part(device, bytes));
  });
  parameters.staging = impl::copy_cost(space, most, [&](size_type bytes) {
    query::impl::copy_on_host<std::byte>(
        "kindex::TransferModel::staging",
        query::impl::elements_at<std::byte>(
            static_cast<const std::byte*>(caller.data()), bytes),
        query::impl::elements_at<std::byte>(staging.data(), bytes));
  });
  return TransferModel(parameters);
}

template <class Exec, class Index, class Queries>
TransferModel TransferModel::calibrate(const Exec& space, const Index& index,
                                       const Queries& sample) {
  const LinearCost execute = lookup_cost(space, index, sample);
  TransferParameters parameters = calibrate(space).parameters();
  parameters.execute = execute;
  parameters.query_bytes = sizeof(typename Queries::value_type);
  parameters.result_bytes = sizeof(typename Index::value_type);
  return TransferModel(parameters);
}

template <class Exec, class Index, class Queries>
LinearCost TransferModel::lookup_cost(const Exec& space, const Index& index,
                                      const Queries& sample) {
  static_assert(Kokkos::is_view_v<Queries> && Queries::rank() == 1,
                "kindex: a View of rank 1 is expected");
  static_assert(
      Kokkos::SpaceAccessibility<Exec,
                                 typename Queries::memory_space>::accessible,
      "kindex: the sample must be in memory that the execution space of the "
      "instance given can access");
  const size_type most = sample.extent(0);
  if (most < 4)
    impl::fail("kindex::TransferModel::lookup_cost", "sample has ", most,
               " queries, less than 4");
  const Kokkos::View<typename Index::value_type*, typename Exec::memory_space>
      results(Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                 "kindex::TransferModel::results"),
              most);
  std::vector<CostSample> samples;
  for (size_type queries = most;
       samples.size() < 2 || queries >= size_type{1024}; queries /= 4) {
    const auto out = Kokkos::subview(
        results, Kokkos::pair<size_type, size_type>(0, queries));
    size_type turn = 0;
    // A batch must not find in the caches what it brought there itself.
    const auto ask = [&] {
      const size_type begin = turn++ * queries % (most - queries + 1);
      index.find(space,
                 Kokkos::subview(sample, Kokkos::pair<size_type, size_type>(
                                             begin, begin + queries)),
                 out);
    };
    samples.push_back(
        {static_cast<double>(queries), impl::median_seconds(space, ask)});
  }
  return LinearCost::fit(samples);
}

}  // namespace kindex

#endif
