// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_SESSION_HPP
#define KINDEX_PERF_SESSION_HPP

/// \file
/// What the benchmarks of one run share.

#include "Limits.hpp"
#include "Options.hpp"
#include "Progress.hpp"

#include <kindex/TransferModel.hpp>
#include <kindex/query/WorkDivision.hpp>

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace kindex::perf {

/// Expensive objects that consecutive benchmarks have in common: one per slot,
/// replaced when another one is asked for.
class Cache {
 public:
  /// The object `key` in `slot`, made by `make` if it is not there.
  template <class T, class Make>
  T& get(const std::string& slot, const std::string& key, Make&& make) {
    const std::string full_key = std::string(typeid(T).name()) + ' ' + key;
    Held& held = held_[slot];
    if (!held.object || held.key != full_key) {
      held.object.reset();  // first free the memory of the old one
      held.object = std::make_shared<T>(std::forward<Make>(make)());
      held.key = full_key;
    }
    return *static_cast<T*>(held.object.get());
  }

  bool holds(const std::string& slot, const std::string& key) const {
    const auto held = held_.find(slot);
    return held != held_.end() && held->second.key.ends_with(' ' + key);
  }

  void clear() { held_.clear(); }
  void clear(const std::string& slot) { held_.erase(slot); }

 private:
  struct Held {
    std::string key;
    std::shared_ptr<void> object;
  };
  std::map<std::string, Held> held_;
};

/// A division of work, and how long it took to find.
struct FoundDivision {
  WorkDivision division;
  double seconds = 0;  ///< 0: it was given
};

struct Session {
  Options options;
  Cache cache;
  std::set<std::string> verified;  ///< names of benchmarks
  /// Seconds per batch, by space.
  std::map<std::pair<std::string, LookupShape>, double> one_sector_seconds;
  /// Seconds per batch, by space.
  std::map<std::pair<std::string, LinkShape>, double> link_seconds;
  /// What copies cost, by space.
  std::map<std::string, TransferModel> links;
  /// What lookups cost, by operation, index, its input and space.
  std::map<std::string, LinearCost> lookup_costs;
  /// By name of the benchmark.
  std::map<std::string, FoundDivision> divisions;
  /// Of fits, by key set and error bound.
  std::map<std::string, std::uint64_t> fewest_segments;
  int failures = 0;
};

/// Calls `verify()` unless the benchmark `name`, which may be asked again for
/// more samples, was verified before.
template <class Verify>
void verify_once(Session& session, const std::string& name,
                 const Verify& verify) {
  if (session.verified.contains(name)) return;
  const Progress progress("verifying");
  verify();
  session.verified.insert(name);
}

/// One benchmark.
struct Case {
  std::string name;
  std::function<void(benchmark::State&)> run;
};

/// Appends the benchmarks of a key set; defined for each key type in a source
/// of its own.
template <class Key>
void add_cases(const KeySpec& spec, bool sweep, Session& session,
               std::vector<Case>& cases);

/// Appends the benchmarks that do not depend on keys: copy bandwidth.
void add_copy_cases(Session& session, std::vector<Case>& cases);

/// The names of all registered indexes, whatever the space; defined beside
/// add_cases.
template <class Key>
std::vector<std::string> index_names();

/// The same of strings.
void add_string_cases(const KeySpec& spec, Session& session,
                      std::vector<Case>& cases);
std::vector<std::string> string_index_names();

/// Appends a benchmark unless there is one of that name.
void add_case(const std::string& name,
              std::function<void(benchmark::State&)> run,
              std::vector<Case>& cases);

/// Whether the user's selection (empty: everything) contains `name`.
bool is_selected(const std::vector<std::string>& selection,
                 const std::string& name);

/// Runs `run(state)`; what it throws becomes a failed benchmark.
void run_guarded(Session& session, const std::string& name,
                 benchmark::State& state,
                 const std::function<void(benchmark::State&)>& run);

}  // namespace kindex::perf

#endif
