// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_DIVISION_CASE_HPP
#define KINDEX_PERF_DIVISION_CASE_HPP

/// \file
/// Lower bounds whose work is divided between host and device: all divisions of
/// one index, and the one that it finds.

#include "PointCase.hpp"

#include <optional>

namespace kindex::perf {

struct DivisionCase {
  std::uint64_t queries;                 ///< per batch
  std::optional<WorkDivision> division;  ///< none: found by measuring
  Buckets buckets = {};

  PointCase point() const {
    return {Op::lower_bound, queries, Transfers::overlapped, buckets};
  }
};

/// The divisions that are compared: up to 4 levels of the host, and quarters.
/// Calls `f` with each, and with none for the one that is found.
template <class F>
void for_each_division(F&& f) {
  for (int levels = 0; levels <= 4; ++levels)
    for (int quarters = 0; quarters <= 4; ++quarters)
      f(std::optional(WorkDivision{levels, 0.25 * quarters}));
  f(std::optional<WorkDivision>());
}

template <class S>
std::string division_name(const S& subject, const DivisionCase& how) {
  std::string division = "/division:found";
  if (how.division) {
    char text[64];
    std::snprintf(text, sizeof text, "/levels:%d/share:%g",
                  how.division->levels, how.division->share);
    division = text;
  }
  return subject.name(name_of(Op::divide), subject.entry.name) + division +
         subject.batch_suffix(how.queries, Transfers::overlapped) +
         how.buckets.suffix();
}

/// The division asked for, as far as the tree has levels.
inline WorkDivision within(WorkDivision division, int height) {
  if (division.levels >= height) return {height, 0};
  return division;
}

/// Divides the work of an index while it lives.
template <class Any>
class Divided {
 public:
  Divided(Any& index, const WorkDivision& division) : index_(index) {
    index_.set_division(division);
  }
  ~Divided() { index_.set_division({}); }
  Divided(const Divided&) = delete;
  Divided& operator=(const Divided&) = delete;

 private:
  Any& index_;
};

template <class Key, class Value, class Exec>
void measure_division(const Subject<Key, Value, Exec>& subject,
                      const DivisionCase& how, benchmark::State& state) {
  Session& session = subject.session;
  const std::string name = division_name(subject, how);
  run_guarded(session, name, state, [&](benchmark::State& guarded) {
    const PointRun<Key, Value, std::uint32_t, Exec> run(subject, how.point());
    auto& index = subject.index(Exec());
    FoundDivision& found = session.divisions[name];
    if (how.division) {
      found.division = within(*how.division, index.height());
    } else if (found.seconds == 0) {
      const Progress progress("dividing work by measuring");
      found.seconds = seconds_of([&] { found.division = run.balance(index); });
    }
    const Divided<AnyIndex<Key, Value, Exec>> divided(index, found.division);
    measure_batches(subject, run, name, guarded);
    guarded.counters["levels"] = found.division.levels;
    guarded.counters["share"] = found.division.share;
    if (!how.division) guarded.counters["balance_ms"] = 1e3 * found.seconds;
  });
}

}  // namespace kindex::perf

#endif
