// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_UPDATE_CASE_HPP
#define KINDEX_PERF_UPDATE_CASE_HPP

/// \file
/// How long batches of operations on an index take, by size, and on a
/// RegularBPlusTree by method.

#include "Random.hpp"
#include "Subject.hpp"
#include "Timing.hpp"

#include <kindex/RegularBPlusTree.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace kindex::perf {

/// What a batch does.
enum class Change {
  values,   ///< update those of keys that are there
  entries,  ///< erase such, and insert them again
  insert,   ///< keys that are not there
  erase     ///< such, inserted before
};
inline constexpr std::string_view change_names[] = {"values", "entries",
                                                    "insert", "erase"};

/// The name of a method.
constexpr std::string_view method_name(UpdateMethod method) {
  switch (method) {
    case UpdateMethod::automatic: return "automatic";
    case UpdateMethod::asynchronous: return "asynchronous";
    case UpdateMethod::synchronised: return "synchronised";
    case UpdateMethod::in_place: return "in_place";
  }
  return "";
}

/// Operations of the largest batches by a method. One thread does groups of
/// 2^14 one after the other: of more than a few it does as many per second, for
/// seconds.
constexpr std::uint64_t most_operations(UpdateMethod method) {
  return std::uint64_t{1} << (method == UpdateMethod::synchronised ? 16 : 20);
}

struct UpdateCase {
  std::string index;
  Change change;
  std::uint64_t operations;
  UpdateMethod method =
      UpdateMethod::asynchronous;  ///< where there are several
  bool has_methods = false;
};

template <class S>
std::string update_name(const S& subject, const UpdateCase& update) {
  return subject.key_name(name_of(Op::update), update.index) + "/change:" +
         std::string(change_names[static_cast<std::size_t>(update.change)]) +
         (update.has_methods
              ? "/method:" + std::string(method_name(update.method))
              : "") +
         "/batch:" + std::to_string(update.operations);
}

/// Batches of keys, and new values: where each key is in its array. The keys
/// are there, no place twice as long as there are others; or they are new.
template <class Key>
struct UpdateBatches {
  HostArray<Key> keys;
  HostArray<std::uint32_t> values;
  std::uint64_t operations, batches;

  UpdateBatches(const DataSet<Key>& data, const UpdateCase& update,
                std::uint64_t seed)
      : operations(update.operations),
        batches(batches_in_turn(operations, sizeof(Key) + 4)) {
    const std::uint64_t n = operations * batches;
    const bool are_new =
        update.change == Change::insert || update.change == Change::erase;
    keys = host_array<Key>("update_keys", n);
    values = host_array<std::uint32_t>("update_values", n);
    const Permutation ranks(data.size(), seed);
    const Sampler<Key> sampler(data, QueryOrder{}, seed + 2);
    host_parallel_for(n, [&](std::uint64_t i) {
      keys(i) =
          are_new ? sampler.key(i, 0) : data.sorted(ranks(i % data.size()));
      values(i) = static_cast<std::uint32_t>(i);
    });
    if (are_new && host_parallel_find_first(n, [&](std::uint64_t i) {
                     return is_in(data, keys(i));
                   }) < n)
      throw Error("update: the keys leave no room for new ones");
  }

  static bool is_in(const DataSet<Key>& data, const Key& key) {
    const std::uint32_t rank = reference_lower_bound(data, key);
    return rank < data.size() && data.sorted(rank) == key;
  }

  template <class View>
  auto part(const View& view, std::uint64_t batch) const {
    const std::uint64_t begin = batch % batches * operations;
    return Kokkos::subview(view, std::pair<std::uint64_t, std::uint64_t>(
                                     begin, begin + operations));
  }

  /// Whether `value` is one that batch 0 gives to `key`.
  bool gives(const Key& key, std::uint32_t value) const {
    return value < operations && keys(value) == key;
  }
};

/// Throws unless `holds(key, value)` for each key and the value found of it.
template <class Keys, class Found, class Holds>
void check_update(const Keys& keys, const Found& found, const Holds& holds) {
  const std::uint64_t n = keys.extent(0);
  const std::uint64_t wrong = host_parallel_find_first(
      n, [&](std::uint64_t i) { return !holds(keys(i), found(i)); });
  if (wrong < n)
    throw Error("wrong result: after a batch, key " + printed(keys(wrong)) +
                " has the value " + std::to_string(found(wrong)));
}

/// Operations whose keys and values are in host memory, on a RegularBPlusTree.
template <class Key, class Exec>
class HostUpdates {
  using Index =
      RegularBPlusTree<Key, std::uint32_t, typename Exec::memory_space>;

 public:
  HostUpdates(const Subject<Key, std::uint32_t, Exec>& subject,
              const UpdateCase& update)
      : update_(update),
        batches_(subject.data(), update, subject.session.options.seed),
        index_(space_, sorted, subject.data().sorted, Check::off) {}

  void prepare(std::uint64_t) const {}

  void run(std::uint64_t batch) {
    UpdateOptions how;
    how.method = update_.method;
    const auto keys = batches_.part(batches_.keys, batch);
    const auto values = batches_.part(batches_.values, batch);
    if (update_.change == Change::entries) {
      report_ = index_.erase(space_, keys, how);
      report_ += index_.insert(space_, keys, values, how);
    } else {
      report_ = index_.update(space_, keys, values, how);
    }
  }

  void verify() {
    run(0);
    const auto keys = batches_.part(batches_.keys, 0);
    const auto found =
        host_array<std::uint32_t>("updated_values", keys.extent(0));
    index_.find(space_, keys, found);
    check_update(keys, found, [&](const Key& key, std::uint32_t value) {
      return batches_.gives(key, value);
    });
  }

  /// Of a batch.
  double operations() const { return static_cast<double>(report_.operations); }

  void add_counters(benchmark::State& state) const {
    state.counters["leaves_per_operation"] =
        static_cast<double>(report_.leaves_written) / operations();
    state.counters["deferred"] =
        static_cast<double>(report_.deferred) / operations();
    state.counters["device_bytes_per_operation"] =
        static_cast<double>(report_.bytes_to_device) / operations();
    state.counters["in_place"] =
        static_cast<double>(report_.nodes_in_place) / operations();
    // While others read.
    const bool is_synchronised = update_.method == UpdateMethod::synchronised;
    state.counters["automatic"] =
        update_.method != UpdateMethod::in_place &&
        is_synchronised == (update_.operations <= Index::most_synchronised);
  }

 private:
  Exec space_;
  UpdateCase update_;
  UpdateBatches<Key> batches_;
  Index index_;
  UpdateReport report_;
};

/// Operations whose keys and values are where the index is. It grows by a batch
/// of keys at most, and only while one is inserted or about to be erased.
template <class Index, class Key, class Exec>
class ResidentUpdates {
  using Memory = typename Exec::memory_space;

 public:
  ResidentUpdates(const Subject<Key, std::uint32_t, Exec>& subject,
                  const UpdateCase& update)
      : data_(subject.data()),
        change_(update.change),
        batches_(data_, update, subject.session.options.seed),
        keys_(on_device<Exec>("update_keys",
                              HostArray<const Key>(batches_.keys))),
        values_(on_device<Exec>(
            "update_values", HostArray<const std::uint32_t>(batches_.values))),
        index_(space_, sorted, subject.input().keys, Check::off) {}

  /// Before a batch to insert, the one before is erased; one to erase is
  /// inserted.
  void prepare(std::uint64_t batch) {
    if (change_ == Change::insert && inserted_) erase(*inserted_);
    if (change_ == Change::erase) insert(batch);
    space_.fence("kindex_bench: a batch is prepared");
  }

  void run(std::uint64_t batch) {
    if (change_ == Change::insert)
      insert(batch);
    else if (change_ == Change::erase)
      erase(batch);
    else
      index_.update(space_, batches_.part(keys_, batch),
                    batches_.part(values_, batch));
    space_.fence("kindex_bench: a batch is done");
  }

  void verify() {
    prepare(0);
    run(0);
    const bool changes_values = change_ == Change::values;
    const std::uint64_t expected =
        data_.size() + (change_ == Change::insert ? batches_.operations : 0);
    if (index_.size() != expected)
      throw Error("wrong result: after a batch, there are " +
                  std::to_string(index_.size()) + " entries, expected " +
                  std::to_string(expected));
    const auto keys = batches_.part(batches_.keys, 0);
    check_update(keys, found(batches_.part(keys_, 0)),
                 [&](const Key& key, std::uint32_t value) {
                   return change_ == Change::erase
                              ? value == default_missing<std::uint32_t>()
                              : batches_.gives(key, value);
                 });
    // The others have kept theirs.
    const auto others = host_array<Key>(
        "others", std::min(data_.size(), std::uint64_t{1} << 20));
    const Permutation ranks(data_.size(), batches_.operations);
    host_parallel_for(others.extent(0), [&](std::uint64_t i) {
      others(i) = data_.sorted(ranks(i));
    });
    check_update(others,
                 found(on_device<Exec>("others", HostArray<const Key>(others))),
                 [&](const Key& key, std::uint32_t value) {
                   return value == reference_lower_bound(data_, key) ||
                          (changes_values && batches_.gives(key, value));
                 });
  }

  double operations() const { return static_cast<double>(batches_.operations); }
  void add_counters(benchmark::State&) const {}

 private:
  void insert(std::uint64_t batch) {
    index_.insert(space_, batches_.part(keys_, batch),
                  batches_.part(values_, batch));
    inserted_ = batch;
  }

  void erase(std::uint64_t batch) {
    index_.erase(space_, batches_.part(keys_, batch));
    inserted_.reset();
  }

  HostArray<std::uint32_t> found(
      const Kokkos::View<const Key*, Memory>& keys) const {
    const auto values =
        array_in<std::uint32_t, Memory>("found_values", keys.extent(0));
    index_.find(space_, keys, values);
    const auto on_host =
        host_array<std::uint32_t>("found_values", keys.extent(0));
    Kokkos::deep_copy(space_, on_host, values);
    space_.fence("kindex_bench: values are in host memory");
    return on_host;
  }

  Exec space_;
  const DataSet<Key>& data_;
  Change change_;
  UpdateBatches<Key> batches_;
  Kokkos::View<const Key*, Memory> keys_;
  Kokkos::View<const std::uint32_t*, Memory> values_;
  Index index_;
  std::optional<std::uint64_t> inserted_;  ///< the batch that is in the index
};

/// \tparam Updates HostUpdates or ResidentUpdates.
template <class Updates, class Key, class Exec>
void measure_update(const Subject<Key, std::uint32_t, Exec>& subject,
                    const UpdateCase& update, benchmark::State& state) {
  const std::string name = update_name(subject, update);
  run_guarded(subject.session, name, state, [&](benchmark::State& guarded) {
    subject.data();  // which clears the cache if its keys are others
    // The same for all that is asked of this case, which may be asked again for
    // more samples.
    Updates& updates = subject.session.cache.template get<Updates>(
        "updated index", name + subject.data_key(),
        [&] { return Updates(subject, update); });
    verify_once(subject.session, name, [&] { updates.verify(); });
    constexpr double long_enough = 0.5;
    const double seconds = time_batches(
        guarded, [&](std::uint64_t batch) { updates.run(batch); },
        [&](std::uint64_t batch) { updates.prepare(batch); }, long_enough);
    guarded.counters["items_per_second"] = updates.operations() / seconds;
    guarded.counters["batch_us"] = 1e6 * seconds;
    updates.add_counters(guarded);
  });
}

}  // namespace kindex::perf

#endif
