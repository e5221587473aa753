// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_KEY_CASES_HPP
#define KINDEX_PERF_KEY_CASES_HPP

/// \file
/// The benchmarks of one key type: which there are, in which order.

#include "BuildCase.hpp"
#include "ChainCase.hpp"
#include "DivisionCase.hpp"
#include "FitCase.hpp"
#include "LimitCase.hpp"
#include "PointCase.hpp"
#include "RangeCase.hpp"
#include "Registry.hpp"
#include "UpdateCase.hpp"

#include <utility>

namespace kindex::perf {

/// Registers what one key set, one stored value and one space admit.
template <class Key, class Value, class Exec>
class CaseAdder {
 public:
  CaseAdder(const KeySpec& spec, ValueMode mode, Session& session,
            std::vector<Case>& cases)
      : spec_(spec), mode_(mode), session_(session), cases_(cases) {}

  void add_limit() {
    const Subject<Key, Value, Exec> subject{session_, spec_, mode_, {}};
    add(one_sector_name(subject), [subject](benchmark::State& state) {
      measure_one_sector(subject, state);
    });
    if (is_host<Exec> || !session_.options.has_transfers()) return;
    for (std::uint64_t result_bytes : {sizeof(Value), sizeof(std::uint32_t)}) {
      const LinkShape shape{sizeof(Key), result_bytes,
                            session_.options.batch(is_host<Exec>)};
      add(link_name(subject, shape), [subject, shape](benchmark::State& state) {
        measure_link(subject, shape, state);
      });
    }
  }

  /// Fits know no values: they are the same for every stored value.
  void add_fits() {
    const Options& options = session_.options;
    if (!is_asked(Op::fit, std::string(fitted_index))) return;
    const Subject<Key, std::uint32_t, Exec> subject{
        session_, spec_, ValueMode::none, {}};
    for (std::uint64_t epsilon : options.epsilons)
      add(fit_name(subject, epsilon),
          [subject, epsilon](benchmark::State& state) {
            measure_fit(subject, epsilon, state);
          });
  }

  /// Nor do operations, whatever the stored value.
  void add_updates() {
    const std::string b_plus_tree = "regular_b_plus_tree";
    const std::uint64_t most =
        std::min<std::uint64_t>(session_.options.batch(is_host<Exec>), 1 << 20);
    if constexpr (std::is_integral_v<Key> && sizeof(Key) >= 4)
      if (is_asked(Op::update, b_plus_tree))
        for (Change change : {Change::values, Change::entries})
          for (auto method :
               {UpdateMethod::asynchronous, UpdateMethod::synchronised,
                UpdateMethod::in_place})
            for (std::uint64_t operations = 1;
                 operations <= std::min(most, most_operations(method));
                 operations *= 4)
              add_update<HostUpdates<Key, Exec>>(
                  {b_plus_tree, change, operations, method, true});
    if constexpr (is_wide_unsigned<Key> && sizeof(Key) <= 8)
      if (is_asked(Op::update, radix_tree))
        for (Change change : {Change::values, Change::insert, Change::erase})
          for (std::uint64_t operations : {1 << 10, 1 << 15, 1 << 20}) {
            add_update<ResidentUpdates<TreeTo<std::uint32_t>, Key, Exec>>(
                {radix_tree, change, std::min(operations, most)});
            if (operations >= most) break;
          }
  }

  /// Hierarchies have keys as values.
  void add_chains() {
    if constexpr (is_wide_unsigned<Key>) {
      if (!is_asked(Op::parent_chain, radix_tree)) return;
      const Subject<Key, std::uint32_t, Exec> subject{
          session_, spec_, ValueMode::none, {}};
      const ChainCase chain{radix_tree, session_.options.batch(is_host<Exec>)};
      add(chain_name(subject, chain),
          [subject, chain](benchmark::State& state) {
            measure_chains<TreeTo<Key>>(subject, chain, state);
          });
    }
  }

  void add_indexes() {
    const Options& options = session_.options;
    for (const auto& entry : entries())
      for (Op op : options.ops)
        if (entry.supports(op, mode_) &&
            (op != Op::build_sorted || entry.from_sorted_pairs))
          add_op(op, {session_, spec_, mode_, entry, op == Op::build_sorted});
  }

  void add_sweep() {
    const Options& options = session_.options;
    const auto swept = is_host<Exec> ? std::vector<Transfers>{Transfers::out}
                                     : options.swept();
    for (const auto& entry : entries()) {
      if (!entry.supports(Op::find, mode_)) continue;
      const Subject<Key, Value, Exec> subject{session_, spec_, mode_, entry};
      for (Transfers how : swept)
        for (std::uint64_t queries = 256;
             queries <= options.largest_swept(is_host<Exec>, how); queries *= 4)
          if (is_in_buckets(how))
            add_in_buckets(Op::find, subject, queries, how);
          else if (!entry.takes_no_others)
            add_point(subject, {Op::find, queries, how});
    }
  }

 private:
  using Entry = IndexEntry<Key, Value, Exec>;
  template <class Stored>
  using TreeTo = RadixTree<Key, Stored, typename Exec::memory_space>;
  static constexpr const char* radix_tree = "radix_tree";

  /// Whether the user names an operation that has cases of its own, and its
  /// index.
  bool is_asked(Op op, const std::string& index) const {
    const Options& options = session_.options;
    return std::find(options.ops.begin(), options.ops.end(), op) !=
               options.ops.end() &&
           perf::is_selected(options.indexes, index);
  }

  template <class Updates>
  void add_update(const UpdateCase& update) {
    const Subject<Key, std::uint32_t, Exec> subject{
        session_, spec_, ValueMode::none, {}};
    add(update_name(subject, update),
        [subject, update](benchmark::State& state) {
          measure_update<Updates>(subject, update, state);
        });
  }

  std::vector<Entry> entries() const {
    std::vector<Entry> selected;
    const auto all = registered_indexes<Key, Value, Exec>();
    for (const Entry& entry : all.entries())
      if (is_selected(entry)) selected.push_back(entry);
    return selected;
  }

  bool is_selected(const Entry& entry) const {
    const Options& options = session_.options;
    if (!entry.is_ablation)
      return perf::is_selected(options.indexes, entry.name);
    return options.ablations ||
           (!options.indexes.empty() &&
            perf::is_selected(options.indexes, entry.name));
  }

  void add_op(Op op, const Subject<Key, Value, Exec>& subject) {
    if (op == Op::divide) return add_divisions(subject);
    // Hosts have nothing to transfer.
    if (is_host<Exec>) return add_op(op, subject, Transfers::out);
    for (Transfers transfers : session_.options.transfers)
      add_op(op, subject, transfers);
  }

  void add_op(Op op, const Subject<Key, Value, Exec>& subject, Transfers how) {
    const Options& options = session_.options;
    if (is_in_buckets(how))
      return add_in_buckets(op, subject, options.batch(is_host<Exec>), how);
    if (subject.entry.takes_no_others &&
        (op != Op::build || how != Transfers::out))
      return;
    const bool transfers = how == Transfers::in;
    switch (op) {
      case Op::build:
      case Op::build_sorted:
        add(build_name(subject, transfers),
            [subject, transfers](benchmark::State& state) {
              measure_build(subject, transfers, state);
            });
        break;
      case Op::fit:
      case Op::update:
      case Op::parent_chain:
      case Op::divide: break;
      case Op::find:
      case Op::ref_find:
      case Op::lower_bound:
      case Op::count:
        add_point(subject, {op, options.batch(is_host<Exec>), how});
        break;
      case Op::range:
      case Op::for_each_in_range:
        if (op == Op::for_each_in_range && transfers) break;
        for (std::uint64_t hits : options.range_hits)
          add_range(subject, {op, hits, range_batch<Exec>(options, hits), how});
        break;
    }
  }

  /// Verbs that take batches in host memory.
  void add_in_buckets(Op op, const Subject<Key, Value, Exec>& subject,
                      std::uint64_t queries, Transfers how) {
    const Options& options = session_.options;
    const bool is_range = op == Op::range && subject.entry.takes_host_ranges &&
                          how == Transfers::overlapped;
    const bool is_point = (op == Op::find || op == Op::lower_bound) &&
                          subject.entry.takes_host_batches;
    for (std::uint64_t bucket_size : options.bucket_sizes)
      for (std::uint64_t in_flight : options.buffers) {
        const Buckets buckets{bucket_size, static_cast<int>(in_flight)};
        if (is_point) add_point(subject, {op, queries, how, buckets});
        if (is_range)
          for (std::uint64_t hits : options.range_hits)
            add_range(subject, {op, hits, range_batch<Exec>(options, hits), how,
                                buckets});
      }
  }

  /// Of batches in host memory, whatever the transfers of others.
  void add_divisions(const Subject<Key, Value, Exec>& subject) {
    const Options& options = session_.options;
    for (std::uint64_t bucket_size : options.bucket_sizes)
      for_each_division([&](const std::optional<WorkDivision>& division) {
        const DivisionCase how{options.batch(is_host<Exec>), division,
                               Buckets{bucket_size}};
        add(division_name(subject, how),
            [subject, how](benchmark::State& state) {
              measure_division(subject, how, state);
            });
      });
  }

  void add_range(const Subject<Key, Value, Exec>& subject,
                 const RangeCase& range) {
    add(range_name(subject, range), [subject, range](benchmark::State& state) {
      measure_range(subject, range, state);
    });
  }

  void add_point(const Subject<Key, Value, Exec>& subject,
                 const PointCase& point) {
    add(point_name(subject, point), [subject, point](benchmark::State& state) {
      measure_point(subject, point, state);
    });
  }

  void add(const std::string& name,
           std::function<void(benchmark::State&)> run) {
    add_case(name, std::move(run), cases_);
  }

  const KeySpec& spec_;
  ValueMode mode_;
  Session& session_;
  std::vector<Case>& cases_;
};

template <class Key>
void add_cases(const KeySpec& spec, bool sweep, Session& session,
               std::vector<Case>& cases) {
  for_each_space([&]<class Exec>() {
    if (!is_selected(session.options.spaces, Exec::name())) return;
    for (ValueMode mode : session.options.values) {
      const bool sweep_this = sweep && mode == session.options.values.front();
      const auto add = [&](auto adder) {
        adder.add_limit();
        adder.add_fits();
        adder.add_updates();
        adder.add_chains();
        adder.add_indexes();
        if (sweep_this) adder.add_sweep();
      };
      if (mode == ValueMode::u64)
        add(CaseAdder<Key, std::uint64_t, Exec>(spec, mode, session, cases));
      else
        add(CaseAdder<Key, std::uint32_t, Exec>(spec, mode, session, cases));
    }
  });
}

template <class Key>
std::vector<std::string> index_names() {
  std::vector<std::string> names;
  for_each_space([&]<class Exec>() {
    const auto all = registered_indexes<Key, std::uint32_t, Exec>();
    for (const auto& entry : all.entries())
      if (std::find(names.begin(), names.end(), entry.name) == names.end())
        names.push_back(entry.name);
  });
#ifdef KINDEX_PERF_ABLATIONS
  names.emplace_back(ablations_name);
#endif
  return names;
}

}  // namespace kindex::perf

#endif
