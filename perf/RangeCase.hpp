// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_RANGE_CASE_HPP
#define KINDEX_PERF_RANGE_CASE_HPP

/// \file
/// Range queries whose hits are materialised, or visited: verified, then timed.

#include "Subject.hpp"
#include "Timing.hpp"

namespace kindex::perf {

struct RangeCase {
  Op op;                  ///< range or for_each_in_range
  std::uint64_t hits;     ///< per query
  std::uint64_t queries;  ///< per batch
  Transfers transfers = Transfers::out;
  Buckets buckets = {};  ///< of overlapped transfers
};

/// A batch has no more hits than this, unless a single range has or the user
/// asks for more ranges.
template <class Exec>
inline constexpr std::uint64_t most_hits =
    std::uint64_t{1} << (is_host<Exec> ? 24 : 26);

/// Ranges per batch, of `hits` hits each.
template <class Exec>
std::uint64_t range_batch(const Options& options, std::uint64_t hits) {
  if (options.range_queries > 0) return options.range_queries;
  const std::uint64_t fit = most_hits<Exec> / hits;
  return std::clamp<std::uint64_t>(fit, 1, options.batch(is_host<Exec>));
}

template <class Key, class Value, class Exec>
std::string range_name(const Subject<Key, Value, Exec>& subject,
                       const RangeCase& range) {
  return subject.name(name_of(range.op), subject.entry.name) +
         "/hits:" + std::to_string(range.hits) +
         subject.batch_suffix(range.queries, range.transfers) +
         range.buckets.suffix();
}

/// The ends of the ranges in the memory of `Exec`, and the host's side of the
/// transfers if these are timed one step after the other. Those of overlapped
/// transfers are where the queries are.
template <class Key, class Value, class Exec>
struct RangeBuffers {
  using Memory = typename Exec::memory_space;
  using Staging = StagingSpace<Exec>;

  Kokkos::View<const Key*, Memory> lo, hi;
  Kokkos::View<Key*, Memory> received_lo, received_hi;
  Kokkos::View<Key*, Staging> staged_lo, staged_hi;
  Kokkos::View<size_type*, Staging> staged_offsets;
  Kokkos::View<Value*, Staging> staged_values;

  static RangeBuffers make(const RangeQueries<Key>& asked,
                           Transfers transfers) {
    RangeBuffers buffers;
    if (transfers == Transfers::overlapped) return buffers;
    buffers.lo = on_device<Exec>("range_lo", HostArray<const Key>(asked.lo));
    buffers.hi = on_device<Exec>("range_hi", HostArray<const Key>(asked.hi));
    if (transfers == Transfers::out) return buffers;
    const std::uint64_t n = asked.size();
    buffers.received_lo = array_in<Key, Memory>("range_lo", n);
    buffers.received_hi = array_in<Key, Memory>("range_hi", n);
    buffers.lo = buffers.received_lo;
    buffers.hi = buffers.received_hi;
    buffers.staged_lo = array_in<Key, Staging>("staged_lo", n);
    buffers.staged_hi = array_in<Key, Staging>("staged_hi", n);
    buffers.staged_offsets =
        array_in<size_type, Staging>("staged_offsets", n + 1);
    buffers.staged_values =
        array_in<Value, Staging>("staged_values", asked.hits());
    Kokkos::deep_copy(buffers.staged_lo, asked.lo);
    Kokkos::deep_copy(buffers.staged_hi, asked.hi);
    return buffers;
  }
};

/// A range benchmark that is ready to run.
template <class Key, class Value, class Exec>
class RangeRun {
  using V = Views<Key, Value, Exec>;
  using Slice = std::pair<std::uint64_t, std::uint64_t>;

 public:
  RangeRun(const Subject<Key, Value, Exec>& subject, const RangeCase& range)
      : subject_(subject),
        op_(range.op),
        hits_(range.hits),
        transfers_(range.transfers),
        data_(subject.data()),
        queries_(range.queries),
        batches_(std::min<std::uint64_t>(
            4, batches_in_turn(queries_, bytes_per_query()))),
        asked_(queries()),
        buffers_(buffers()),
        index_(subject.index(space_)),
        pipeline_(space_, range.buckets.options()) {
    // Where equal keys make ranges long, there are fewer.
    if (asked_.size() < queries_ * batches_) {
      batches_ = std::min(batches_, asked_.size());
      queries_ = asked_.size() / batches_;
    }
    if (op_ == Op::for_each_in_range)
      counts_ = array_in<std::uint32_t, typename V::Memory>("counts", queries_);
  }

  std::uint64_t queries_per_batch() const { return queries_; }
  double hits_per_batch() const {
    return static_cast<double>(asked_.offsets(queries_ * batches_)) /
           static_cast<double>(batches_);
  }
  std::uint64_t index_bytes() const { return index_.memory_bytes(); }

  /// Answers a batch, and waits for it.
  void run(std::uint64_t batch) const {
    if (op_ == Op::for_each_in_range)
      count_marked(batch);
    else if (transfers_ == Transfers::overlapped)
      host_hits_of(batch);
    else
      hits_of(batch);
  }

  /// Answers all batches and compares them with the reference.
  void verify() const {
    for (std::uint64_t batch = 0; batch < batches_; ++batch)
      if (op_ == Op::range)
        verify_hits(batch);
      else
        verify_counts(batch);
  }

 private:
  typename V::HostHits host_hits_of(std::uint64_t batch) const {
    const Slice slice = slice_of(batch);
    return index_.range(pipeline_, Kokkos::subview(asked_.lo, slice),
                        Kokkos::subview(asked_.hi, slice));
  }

  typename V::Hits hits_of(std::uint64_t batch) const {
    const Slice slice = slice_of(batch);
    const bool in = transfers_ == Transfers::in;
    if (in) {
      Kokkos::deep_copy(space_, Kokkos::subview(buffers_.received_lo, slice),
                        Kokkos::subview(buffers_.staged_lo, slice));
      Kokkos::deep_copy(space_, Kokkos::subview(buffers_.received_hi, slice),
                        Kokkos::subview(buffers_.staged_hi, slice));
    }
    const auto hits = index_.range(space_, Kokkos::subview(buffers_.lo, slice),
                                   Kokkos::subview(buffers_.hi, slice));
    if (in) send_back(hits);
    space_.fence("kindex_bench: a batch is done");
    return hits;
  }

  void verify_hits(std::uint64_t batch) const {
    if (transfers_ == Transfers::overlapped) {
      const auto hits = host_hits_of(batch);
      return compare(batch, hits.offsets, hits.values);
    }
    const auto hits = hits_of(batch);
    const auto offsets =
        Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, hits.offsets);
    const auto values =
        Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, hits.values);
    compare(batch, offsets, values);
  }

  void count_marked(std::uint64_t batch) const {
    const Slice slice = slice_of(batch);
    Kokkos::deep_copy(space_, counts_, 0);
    index_.count_marked(space_, Kokkos::subview(buffers_.lo, slice),
                        Kokkos::subview(buffers_.hi, slice), counts_);
    space_.fence("kindex_bench: a batch is done");
  }

  void verify_counts(std::uint64_t batch) const {
    count_marked(batch);
    const auto counts =
        Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, counts_);
    const std::uint64_t begin = slice_of(batch).first;
    const auto marked = [&](std::uint64_t i) {
      const std::uint64_t query = begin + i;
      const std::uint64_t hits =
          asked_.offsets(query + 1) - asked_.offsets(query);
      std::uint32_t sum = 0;
      for (std::uint64_t j = 0; j < hits; ++j)
        sum += is_marked(data_.sorted(asked_.first(query) + j),
                         expected(query, j));
      return sum;
    };
    const std::uint64_t wrong = host_parallel_find_first(
        queries_, [&](std::uint64_t i) { return counts(i) != marked(i); });
    if (wrong < queries_)
      fail(begin + wrong,
           "has " + std::to_string(counts(wrong)) + " marked hits",
           std::to_string(marked(wrong)));
  }

  std::uint64_t bytes_per_query() const {
    return 2 * sizeof(Key) + sizeof(size_type) + hits_ * sizeof(Value);
  }

  Slice slice_of(std::uint64_t batch) const {
    const std::uint64_t begin = batch % batches_ * queries_;
    return {begin, begin + queries_};
  }

  const RangeQueries<Key>& queries() const {
    return subject_.session.cache.template get<RangeQueries<Key>>(
        "ranges",
        std::string(Exec::name()) + ' ' + std::to_string(hits_) + ' ' +
            std::to_string(queries_) + ' ' + std::to_string(batches_),
        [&] {
          subject_.session.cache.clear("range buffers");
          const std::uint64_t most =
              std::max(most_hits<Exec>, queries_ * hits_);
          return RangeQueries<Key>::make(data_, subject_.session.options, hits_,
                                         queries_ * batches_,
                                         2 * most * batches_);
        });
  }

  const RangeBuffers<Key, Value, Exec>& buffers() const {
    return subject_.session.cache.template get<RangeBuffers<Key, Value, Exec>>(
        "range buffers", std::string(name_of(transfers_)), [&] {
          return RangeBuffers<Key, Value, Exec>::make(asked_, transfers_);
        });
  }

  void send_back(const typename V::Hits& hits) const {
    const Slice offsets(0, hits.offsets.extent(0));
    const Slice values(0, hits.values.extent(0));
    if (values.second > buffers_.staged_values.extent(0))
      throw Error("wrong result: range gave " + std::to_string(values.second) +
                  " hits for a batch, all batches together have " +
                  std::to_string(buffers_.staged_values.extent(0)));
    Kokkos::deep_copy(space_, Kokkos::subview(buffers_.staged_offsets, offsets),
                      hits.offsets);
    Kokkos::deep_copy(space_, Kokkos::subview(buffers_.staged_values, values),
                      hits.values);
  }

  template <class Offsets, class Values>
  void compare(std::uint64_t batch, const Offsets& offsets,
               const Values& values) const {
    const auto [begin, end] = slice_of(batch);
    if (offsets.extent(0) != end - begin + 1)
      throw Error("wrong result: range gave " +
                  std::to_string(offsets.extent(0)) + " offsets for " +
                  std::to_string(end - begin) + " queries");
    const std::uint64_t base = asked_.offsets(begin);
    for (std::uint64_t i = 0; i <= end - begin; ++i)
      if (offsets(i) != asked_.offsets(begin + i) - base)
        fail(begin + (i > 0 ? i - 1 : 0),
             "ends at offset " + std::to_string(offsets(i)),
             std::to_string(asked_.offsets(begin + i) - base));
    if (values.extent(0) != asked_.offsets(end) - base)
      throw Error("wrong result: range gave " +
                  std::to_string(values.extent(0)) + " values, expected " +
                  std::to_string(asked_.offsets(end) - base));
    const std::uint64_t n = end - begin;
    const auto first_wrong = [&](std::uint64_t i) {
      const std::uint64_t hits = offsets(i + 1) - offsets(i);
      std::uint64_t j = 0;
      while (j < hits && values(offsets(i) + j) == expected(begin + i, j)) ++j;
      return j < hits ? j : ~std::uint64_t{0};
    };
    const std::uint64_t wrong = host_parallel_find_first(
        n,
        [&](std::uint64_t i) { return first_wrong(i) != ~std::uint64_t{0}; });
    if (wrong == n) return;
    const std::uint64_t j = first_wrong(wrong);
    fail(begin + wrong,
         "has as hit " + std::to_string(j) + " the value " +
             std::to_string(values(offsets(wrong) + j)),
         std::to_string(expected(begin + wrong, j)));
  }

  Value expected(std::uint64_t query, std::uint64_t hit) const {
    return subject_.value_at(data_, asked_.first(query) + hit);
  }

  [[noreturn]] void fail(std::uint64_t query, const std::string& got,
                         const std::string& wanted) const {
    throw Error("wrong result: range [" + printed(asked_.lo(query)) + ", " +
                printed(asked_.hi(query)) + "] (query " +
                std::to_string(query) + ") " + got +
                ", the host reference says " + wanted);
  }

  Exec space_;
  const Subject<Key, Value, Exec>& subject_;
  Op op_;
  std::uint64_t hits_;
  Transfers transfers_;
  const DataSet<Key>& data_;
  std::uint64_t queries_;
  std::uint64_t batches_;
  const RangeQueries<Key>& asked_;
  const RangeBuffers<Key, Value, Exec>& buffers_;
  const AnyIndex<Key, Value, Exec>& index_;
  HostBatches<Exec> pipeline_;
  typename V::Ranks counts_;
};

/// The least that a batch must move: both ends of a range and one sector, and
/// for hits that are materialised an offset and each value in and out, for
/// those that are visited a count and each entry in.
template <class Key, class Value>
double range_bytes(Op op, ValueMode mode, double queries, double hits) {
  if (op == Op::range)
    return queries * (2 * sizeof(Key) + sizeof(size_type) + 32) +
           hits * 2 * sizeof(Value);
  const double entry =
      sizeof(Key) + (mode == ValueMode::none ? 0 : sizeof(Value));
  return queries * (2 * sizeof(Key) + sizeof(std::uint32_t) + 32) +
         hits * entry;
}

template <class Key, class Value, class Exec>
void measure_range(const Subject<Key, Value, Exec>& subject,
                   const RangeCase& range, benchmark::State& state) {
  Session& session = subject.session;
  const std::string name = range_name(subject, range);
  run_guarded(session, name, state, [&](benchmark::State& guarded) {
    const RangeRun<Key, Value, Exec> run(subject, range);
    verify_once(session, name, [&] { run.verify(); });
    const double seconds =
        time_batches(guarded, [&](std::uint64_t batch) { run.run(batch); });

    const auto queries = static_cast<double>(run.queries_per_batch());
    const double hits = run.hits_per_batch();
    const double bytes =
        range_bytes<Key, Value>(range.op, subject.mode, queries, hits);
    guarded.counters["items_per_second"] = queries / seconds;
    guarded.counters["ns_per_lookup"] = 1e9 * seconds / queries;
    guarded.counters["batch_us"] = 1e6 * seconds;
    guarded.counters["hits_per_second"] = hits / seconds;
    guarded.counters["hits_per_query"] = hits / queries;
    guarded.counters["GB_per_s"] = 1e-9 * bytes / seconds;
    guarded.counters["bytes_per_key"] = static_cast<double>(run.index_bytes()) /
                                        static_cast<double>(subject.spec.size);
    if (range.transfers == Transfers::out) return;
    guarded.counters["GB_per_s_in"] =
        1e-9 * queries * 2 * sizeof(Key) / seconds;
    guarded.counters["GB_per_s_out"] =
        1e-9 * (queries * sizeof(size_type) + hits * sizeof(Value)) / seconds;
  });
}

}  // namespace kindex::perf

#endif
