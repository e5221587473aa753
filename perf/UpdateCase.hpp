// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_UPDATE_CASE_HPP
#define KINDEX_PERF_UPDATE_CASE_HPP

/// \file
/// How long batches of operations on a RegularBPlusTree take, by size and
/// method.

#include "Random.hpp"
#include "Subject.hpp"
#include "Timing.hpp"

#include <kindex/RegularBPlusTree.hpp>

#include <algorithm>
#include <string>

namespace kindex::perf {

/// The index that is changed.
inline constexpr std::string_view updated_index = "regular_b_plus_tree";

/// Operations of the largest batches by a method. One thread does groups of
/// 2^14 one after the other: of more than a few it does as many per second, for
/// seconds.
constexpr std::uint64_t most_operations(UpdateMethod method) {
  return std::uint64_t{1} << (method == UpdateMethod::synchronised ? 16 : 20);
}

struct UpdateCase {
  UpdateMethod method;
  bool of_entries;  ///< erase and insert again, instead of update
  std::uint64_t operations;
};

template <class S>
std::string update_name(const S& subject, const UpdateCase& update) {
  return subject.key_name("update", std::string(updated_index)) +
         "/change:" + (update.of_entries ? "entries" : "values") + "/method:" +
         (update.method == UpdateMethod::synchronised ? "synchronised"
                                                      : "asynchronous") +
         "/batch:" + std::to_string(update.operations);
}

/// Batches of keys that are there, no place twice as long as there are others,
/// and new values: where each key is in its array.
template <class Key>
struct UpdateBatches {
  HostArray<Key> keys;
  HostArray<std::uint32_t> values;
  std::uint64_t operations, batches;

  UpdateBatches(const DataSet<Key>& data, std::uint64_t batch_size,
                std::uint64_t seed)
      : operations(batch_size),
        batches(batches_in_turn(batch_size, sizeof(Key) + 4)) {
    const std::uint64_t n = operations * batches;
    keys = host_array<Key>("update_keys", n);
    values = host_array<std::uint32_t>("update_values", n);
    const Permutation ranks(data.size(), seed);
    host_parallel_for(n, [&](std::uint64_t i) {
      keys(i) = data.sorted(ranks(i % data.size()));
      values(i) = static_cast<std::uint32_t>(i);
    });
  }

  template <class View>
  auto part(const View& view, std::uint64_t batch) const {
    const std::uint64_t begin = batch % batches * operations;
    return Kokkos::subview(view, std::pair<std::uint64_t, std::uint64_t>(
                                     begin, begin + operations));
  }
};

/// Throws unless the keys of batch 0 are there, each with a value of one of
/// its operations.
template <class Index, class Key, class Exec>
void check_update(const Exec& space, const Index& index,
                  const UpdateBatches<Key>& batches) {
  const auto keys = batches.part(batches.keys, 0);
  const auto found =
      host_array<std::uint32_t>("updated_values", keys.extent(0));
  index.find(space, keys, found);
  const std::uint64_t wrong =
      host_parallel_find_first(keys.extent(0), [&](std::uint64_t i) {
        return found(i) >= batches.operations ||
               !(batches.keys(found(i)) == keys(i));
      });
  if (wrong < keys.extent(0))
    throw Error("wrong result: after a batch, key " + printed(keys(wrong)) +
                " has the value " + std::to_string(found(wrong)));
}

template <class Key, class Exec>
void measure_update(const Subject<Key, std::uint32_t, Exec>& subject,
                    const UpdateCase& update, benchmark::State& state) {
  using Index =
      RegularBPlusTree<Key, std::uint32_t, typename Exec::memory_space>;
  const std::string name = update_name(subject, update);
  run_guarded(subject.session, name, state, [&](benchmark::State& guarded) {
    const Exec space;
    const UpdateBatches<Key> batches(subject.data(), update.operations,
                                     subject.session.options.seed);
    // One for all that is asked of this case, which may be asked again for more
    // samples.
    Index& index = subject.session.cache.template get<Index>(
        "updated index", name + subject.data_key(), [&] {
          return Index(space, sorted, subject.data().sorted, Check::off);
        });
    UpdateOptions how;
    how.method = update.method;
    UpdateReport report;
    const auto run = [&](std::uint64_t batch) {
      const auto keys = batches.part(batches.keys, batch);
      const auto values = batches.part(batches.values, batch);
      if (update.of_entries) {
        report = index.erase(space, keys, how);
        report += index.insert(space, keys, values, how);
      } else {
        report = index.update(space, keys, values, how);
      }
    };
    if (!subject.session.verified.contains(name)) {
      run(0);
      check_update(space, index, batches);
      subject.session.verified.insert(name);
    }
    constexpr double long_enough = 0.5;
    const double seconds = time_batches(guarded, run, long_enough);
    const auto operations = static_cast<double>(report.operations);
    guarded.counters["items_per_second"] = operations / seconds;
    guarded.counters["batch_us"] = 1e6 * seconds;
    guarded.counters["leaves_per_operation"] =
        static_cast<double>(report.leaves_written) / operations;
    guarded.counters["deferred"] =
        static_cast<double>(report.deferred) / operations;
    guarded.counters["device_bytes_per_operation"] =
        static_cast<double>(report.bytes_to_device) / operations;
    const bool is_synchronised = update.method == UpdateMethod::synchronised;
    guarded.counters["automatic"] =
        is_synchronised == (update.operations <= Index::most_synchronised);
  });
}

}  // namespace kindex::perf

#endif
