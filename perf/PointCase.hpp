// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_POINT_CASE_HPP
#define KINDEX_PERF_POINT_CASE_HPP

/// \file
/// find, ref_find, lower_bound and count: verified, then timed.

#include "LimitCase.hpp"
#include "Subject.hpp"
#include "Timing.hpp"

namespace kindex::perf {

/// Whether the answers of an operation are values.
constexpr bool gives_values(Op op) {
  return op == Op::find || op == Op::ref_find;
}

struct PointCase {
  Op op;
  std::uint64_t queries;  ///< per batch
  Transfers transfers = Transfers::out;
  Buckets buckets = {};  ///< of transfers in buckets
};

template <class S>
std::string point_name(const S& subject, const PointCase& point) {
  return subject.name(name_of(point.op), subject.entry.name) +
         subject.hit_suffix() +
         subject.batch_suffix(point.queries, point.transfers) +
         point.buckets.suffix();
}

/// Queries and results in the memory of `Exec`, and on the host's side of the
/// transfers if these are timed.
template <class Key, class Result, class Exec>
struct PointBuffers {
  using Memory = typename Exec::memory_space;
  using Staging = StagingSpace<Exec>;

  Kokkos::View<const Key*, Memory> queries;
  Kokkos::View<Key*, Memory> received;  ///< the same, where queries are sent
  Kokkos::View<Result*, Memory> results;
  Kokkos::View<Key*, Staging> staged_queries;
  Kokkos::View<Result*, Staging> staged_results;
  HostArray<const Key> host_queries;  ///< for transfers in buckets
  HostArray<Result> host_results;     ///< the same

  static PointBuffers make(const HostArray<Key>& queries, Transfers transfers) {
    const std::uint64_t n = queries.extent(0);
    PointBuffers buffers;
    if (transfers == Transfers::overlapped) {
      buffers.host_queries = queries;
      buffers.host_results = host_array<Result>("results", n);
      return buffers;
    }
    if (transfers == Transfers::direct) {
      buffers.stage(queries);
      buffers.host_queries =
          HostArray<const Key>(buffers.staged_queries.data(), n);
      buffers.host_results =
          HostArray<Result>(buffers.staged_results.data(), n);
      return buffers;
    }
    buffers.results = array_in<Result, Memory>("results", n);
    if (transfers == Transfers::out) {
      buffers.queries =
          on_device<Exec>("queries", HostArray<const Key>(queries));
      return buffers;
    }
    buffers.received = array_in<Key, Memory>("queries", n);
    buffers.queries = buffers.received;
    buffers.stage(queries);
    return buffers;
  }

 private:
  void stage(const HostArray<Key>& queries) {
    const std::uint64_t n = queries.extent(0);
    staged_queries = array_in<Key, Staging>("staged_queries", n);
    staged_results = array_in<Result, Staging>("staged_results", n);
    Kokkos::deep_copy(staged_queries, queries);
  }
};

/// A point benchmark that is ready to run.
template <class Key, class Value, class Result, class Exec>
class PointRun {
 public:
  PointRun(const Subject<Key, Value, Exec>& subject, const PointCase& point)
      : subject_(subject),
        point_(point),
        data_(subject.data()),
        batches_(batches_in_turn(point.queries, sizeof(Key) + sizeof(Result))),
        asked_(queries()),
        buffers_(buffers()),
        index_(subject.index(space_)),
        pipeline_(space_, point.buckets.options()) {
    batches_ = std::min(batches_, asked_.size() / point_.queries);
  }

  /// Answers a batch, and waits for it.
  void run(std::uint64_t batch) const {
    const std::uint64_t begin = batch % batches_ * point_.queries;
    const std::pair slice(begin, begin + point_.queries);
    if (is_in_buckets(point_.transfers)) {
      answer(pipeline_, Kokkos::subview(buffers_.host_queries, slice),
             Kokkos::subview(buffers_.host_results, slice));
      return;
    }
    const auto queries = Kokkos::subview(buffers_.queries, slice);
    const auto results = Kokkos::subview(buffers_.results, slice);
    const bool in = point_.transfers == Transfers::in;
    if (in)
      Kokkos::deep_copy(space_, Kokkos::subview(buffers_.received, slice),
                        Kokkos::subview(buffers_.staged_queries, slice));
    answer(space_, queries, results);
    if (in)
      Kokkos::deep_copy(space_, Kokkos::subview(buffers_.staged_results, slice),
                        results);
    space_.fence("kindex_bench: a batch is done");
  }

  /// Answers all batches and compares every result with the reference.
  void verify() const {
    const std::uint64_t n = batches_ * point_.queries;
    // Nothing that an earlier index wrote must pass for an answer.
    const auto poison = static_cast<Result>(0x5a5a5a5a);
    Kokkos::deep_copy(buffers_.results, poison);
    Kokkos::deep_copy(buffers_.host_results, poison);
    for (std::uint64_t batch = 0; batch < batches_; ++batch) run(batch);
    if (is_in_buckets(point_.transfers))
      return compare(buffers_.host_results, n);
    const auto results = Kokkos::create_mirror_view_and_copy(
        Kokkos::HostSpace{},
        Kokkos::subview(buffers_.results,
                        std::pair<std::uint64_t, std::uint64_t>(0, n)));
    compare(results, n);
    if (point_.transfers == Transfers::in) compare(buffers_.staged_results, n);
  }

  /// The cost model of batches that come from the host and go back, measured
  /// now if it was not before.
  TransferModel transfer_model() const {
    Session& session = subject_.session;
    const std::string space_name = Exec::name();
    auto link = session.links.find(space_name);
    if (link == session.links.end()) {
      const Progress progress("calibrating the link between host and device");
      link = session.links.emplace(space_name, TransferModel::calibrate(space_))
                 .first;
    }
    const std::string name = std::string(name_of(point_.op)) + ' ' +
                             subject_.entry.name + ' ' + subject_.input_key();
    auto& known = session.lookup_costs;
    if (!known.contains(name)) {
      const Progress progress("calibrating lookups in " + subject_.entry.name);
      known[name] = TransferModel::lookup_cost(space_, Asked{*this}, sample());
    }
    TransferParameters parameters = link->second.parameters();
    parameters.execute = known[name];
    parameters.query_bytes = sizeof(Key);
    parameters.result_bytes = sizeof(Result);
    if (point_.transfers == Transfers::direct) parameters.staging = {};
    return TransferModel(parameters);
  }

  /// Seconds of the host's part of a batch alone, from where the device expects
  /// the keys: what a batch takes at least, however fast the rest is.
  double last_mile_seconds() const {
    const Progress progress("measuring the host's part alone");
    const std::pair<std::uint64_t, std::uint64_t> slice(0, point_.queries);
    const auto queries = Kokkos::subview(buffers_.host_queries, slice);
    const auto expected = array_in<std::uint32_t, typename Exec::memory_space>(
        "guesses", point_.queries);
    index_.guess(space_,
                 on_device<Exec>("queries", HostArray<const Key>(queries)),
                 expected);
    const auto guesses = host_array<std::uint32_t>("guesses", point_.queries);
    const auto ranks = host_array<std::uint32_t>("ranks", point_.queries);
    Kokkos::deep_copy(space_, guesses, expected);
    space_.fence("kindex_bench: guesses are in host memory");
    std::vector<double> seconds;
    index_.finish(queries, guesses, ranks);
    for (int i = 0; i < 5; ++i)
      seconds.push_back(
          seconds_of([&] { index_.finish(queries, guesses, ranks); }));
    return *std::min_element(seconds.begin(), seconds.end());
  }

  /// The division of work that `index`, the one asked, finds by measuring some
  /// buckets of queries.
  WorkDivision balance(AnyIndex<Key, Value, Exec>& index) const {
    const std::uint64_t sample =
        std::min<std::uint64_t>(point_.queries, std::uint64_t{1} << 21);
    return index.balance(
        pipeline_,
        Kokkos::subview(buffers_.host_queries,
                        std::pair<std::uint64_t, std::uint64_t>(0, sample)));
  }

  /// How long the buckets of the last batch were in flight.
  query::BucketLatency latency() const {
    return pipeline_.pipeline().latency();
  }

  const PointCase& point() const { return point_; }
  double hit_rate() const { return asked_.hit_rate; }
  std::uint64_t index_bytes() const { return index_.memory_bytes(); }

 private:
  /// The operation as a calibration asks for it.
  struct Asked {
    using value_type = Result;
    const PointRun& run;

    template <class Queries, class Results>
    void find(const Exec& space, const Queries& queries,
              const Results& results) const {
      run.answer(space, queries, results);
    }
  };

  /// Queries in the memory of `Exec`: many of them, at least 4.
  Kokkos::View<const Key*, typename Exec::memory_space> sample() const {
    const std::uint64_t most = std::uint64_t{1} << 24;
    const std::uint64_t size =
        std::clamp<std::uint64_t>(asked_.size(), 4, most);
    const auto keys = host_array<Key>("sample", size);
    host_parallel_for(size, [&](std::uint64_t i) {
      keys(i) = asked_.keys(i % asked_.size());
    });
    return on_device<Exec>("sample", HostArray<const Key>(keys));
  }

  std::uint64_t total(std::uint64_t queries) const {
    return queries *
           batches_in_turn(queries, sizeof(Key) + sizeof(std::uint32_t));
  }

  /// One array of queries serves batches of all sizes, unless each batch is
  /// sorted for itself.
  const PointQueries<Key>& queries() const {
    const Options& options = subject_.session.options;
    std::uint64_t most = point_.queries * batches_, batch = 0;
    if (options.order.kind == QueryOrder::Kind::sorted) {
      batch = point_.queries;
    } else {
      for_each_space([&]<class Space>() {
        if (!is_selected(options.spaces, Space::name())) return;
        most = std::max(most, total(options.batch(is_host<Space>)));
        for (Transfers how : options.swept())
          most =
              std::max(most, total(options.largest_swept(is_host<Space>, how)));
      });
    }
    return subject_.session.cache.template get<PointQueries<Key>>(
        "points", std::to_string(most) + ' ' + std::to_string(batch), [&] {
          subject_.session.cache.clear("point buffers");
          return PointQueries<Key>::make(data_, options, most, batch);
        });
  }

  const PointBuffers<Key, Result, Exec>& buffers() const {
    return subject_.session.cache.template get<PointBuffers<Key, Result, Exec>>(
        "point buffers",
        std::to_string(asked_.size()) + std::string(name_of(point_.transfers)),
        [&] {
          return PointBuffers<Key, Result, Exec>::make(asked_.keys,
                                                       point_.transfers);
        });
  }

  /// \param space space_ or pipeline_.
  template <class Space, class Queries, class Results>
  void answer(const Space& space, const Queries& queries,
              const Results& results) const {
    if (point_.op == Op::ref_find) {
      if constexpr (std::is_same_v<Result, Value> &&
                    std::is_same_v<Space, Exec>)
        index_.ref_find(space, queries, results);
    } else if (point_.op == Op::find) {
      if constexpr (std::is_same_v<Result, Value>)
        index_.find(space, queries, results);
    } else if constexpr (std::is_same_v<Result, std::uint32_t>) {
      if (point_.op == Op::lower_bound)
        index_.lower_bound(space, queries, results);
      else if constexpr (std::is_same_v<Space, Exec>)
        index_.count(space, queries, results);
      else
        throw Error("kindex_bench: counts have no transfers in buckets");
    }
  }

  Result expected(std::uint64_t i) const {
    const std::uint32_t rank = asked_.ranks(i);
    if (point_.op == Op::lower_bound) return static_cast<Result>(rank);
    const bool hit = asked_.hits(data_, i);
    if (gives_values(point_.op))
      return static_cast<Result>(hit ? subject_.value_at(data_, rank)
                                     : default_missing<Value>());
    if (!hit) return 0;
    return static_cast<Result>(reference_upper_bound(data_, asked_.keys(i)) -
                               rank);
  }

  template <class Results>
  void compare(const Results& results, std::uint64_t n) const {
    const std::uint64_t wrong = host_parallel_find_first(
        n, [&](std::uint64_t i) { return results(i) != expected(i); });
    if (wrong == n) return;
    throw Error("wrong result: " + std::string(name_of(point_.op)) +
                " of key " + printed(asked_.keys(wrong)) + " (query " +
                std::to_string(wrong) + ") gave " +
                std::to_string(results(wrong)) + ", the host reference says " +
                std::to_string(expected(wrong)));
  }

  Exec space_;
  const Subject<Key, Value, Exec>& subject_;
  PointCase point_;
  const DataSet<Key>& data_;
  std::uint64_t batches_;
  const PointQueries<Key>& asked_;
  const PointBuffers<Key, Result, Exec>& buffers_;
  const AnyIndex<Key, Value, Exec>& index_;
  HostBatches<Exec> pipeline_;
};

/// What the cost model says of a batch with transfers.
inline void add_prediction(const TransferModel& model, const PointCase& point,
                           benchmark::State& state) {
  const PipelineOptions options = point.buckets.options();
  const bool in = point.transfers == Transfers::in;
  state.counters["predicted_ms"] =
      1e3 * (in ? model.seconds(point.queries)
                : model.overlapped_seconds(point.queries, options));
  if (!in) return;
  // The same for every batch: a report finds other sizes by them.
  const TransferParameters& p = model.parameters();
  state.counters["predicted_fixed_us"] =
      1e6 *
      (p.in.fixed_seconds + p.execute.fixed_seconds + p.out.fixed_seconds);
  state.counters["predicted_ns_per_lookup"] =
      1e9 * (static_cast<double>(p.query_bytes) / p.in.per_second +
             1 / p.execute.per_second +
             static_cast<double>(p.result_bytes) / p.out.per_second);
}

/// Verifies and times a run; returns the seconds of a batch.
template <class Result, class Key, class Value, class Exec>
double measure_batches(const Subject<Key, Value, Exec>& subject,
                       const PointRun<Key, Value, Result, Exec>& run,
                       const std::string& name, benchmark::State& state) {
  const PointCase& point = run.point();
  verify_once(subject.session, name, [&] { run.verify(); });
  const double seconds =
      time_batches(state, [&](std::uint64_t batch) { run.run(batch); });

  const auto queries = static_cast<double>(point.queries);
  const auto keys = static_cast<double>(subject.spec.size);
  state.counters["items_per_second"] = queries / seconds;
  state.counters["ns_per_lookup"] = 1e9 * seconds / queries;
  state.counters["batch_us"] = 1e6 * seconds;
  state.counters["GB_per_s"] =
      1e-9 * queries * (subject.key_bytes() + sizeof(Result) + 32) / seconds;
  state.counters["bytes_per_key"] =
      static_cast<double>(run.index_bytes()) / keys;
  if constexpr (is_string<Key>)
    state.counters["chars_per_key"] = subject.chars_per_key();
  state.counters["hit_rate"] = run.hit_rate();
  if (point.transfers != Transfers::out) {
    state.counters["GB_per_s_in"] = 1e-9 * queries * sizeof(Key) / seconds;
    state.counters["GB_per_s_out"] = 1e-9 * queries * sizeof(Result) / seconds;
  }
  if (is_in_buckets(point.transfers)) {
    const query::BucketLatency latency = run.latency();
    state.counters["bucket_us"] = 1e6 * latency.mean_seconds;
    state.counters["longest_bucket_us"] = 1e6 * latency.longest_seconds;
  }
  return seconds;
}

template <class Result, class Key, class Value, class Exec>
void measure_point_of(const Subject<Key, Value, Exec>& subject,
                      const PointCase& point, benchmark::State& state) {
  Session& session = subject.session;
  const PointRun<Key, Value, Result, Exec> run(subject, point);
  const double seconds =
      measure_batches(subject, run, point_name(subject, point), state);
  const auto queries = static_cast<double>(point.queries);
  if (point.transfers != Transfers::out) {
    // What takes no batches on the device cannot be calibrated there.
    if (session.options.sweeps(Transfers::in) && !subject.entry.takes_no_others)
      add_prediction(run.transfer_model(), point, state);
  }
  if (point.queries != session.options.batch(is_host<Exec>)) return;
  if (point.transfers != Transfers::out) {
    const double link = link_seconds<Exec>(
        session, {sizeof(Key), sizeof(Result), point.queries});
    state.counters["of_link"] = link / seconds;
    if (!subject.entry.takes_no_others) return;
    const double last_mile = run.last_mile_seconds();
    state.counters["last_mile_per_second"] = queries / last_mile;
    state.counters["of_last_mile"] = last_mile / seconds;
    return;
  }
  const double limit = queries / one_sector_seconds(subject, sizeof(Result));
  state.counters["one_sector_per_second"] = limit;
  state.counters["of_limit"] = queries / seconds / limit;
}

template <class Key, class Value, class Exec>
void measure_point(const Subject<Key, Value, Exec>& subject,
                   const PointCase& point, benchmark::State& state) {
  run_guarded(subject.session, point_name(subject, point), state,
              [&](benchmark::State& guarded) {
                if (gives_values(point.op))
                  measure_point_of<Value>(subject, point, guarded);
                else
                  measure_point_of<std::uint32_t>(subject, point, guarded);
              });
}

}  // namespace kindex::perf

#endif
