// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Session.hpp"

#include "Progress.hpp"
#include "Spaces.hpp"
#include "Timing.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

namespace kindex::perf {
namespace {

template <class Exec>
void add_copy_case(Session& session, std::vector<Case>& cases) {
  if (!is_selected(session.options.spaces, Exec::name())) return;
  const std::uint64_t bytes = std::uint64_t{1} << (is_host<Exec> ? 28 : 30);
  const std::string name = std::string("copy/limit/u64/") + Exec::name() +
                           "/n:" + std::to_string(bytes / 8);
  cases.push_back({name, [bytes](benchmark::State& state) {
                     const Probe probe = copy_probe<Exec>(bytes);
                     const double seconds =
                         time_batches(state, [&](std::uint64_t) {
                           probe.run();
                           probe.fence();
                         });
                     // every byte is read once and written once
                     state.counters["GB_per_s"] =
                         2e-9 * static_cast<double>(bytes) / seconds;
                   }});
}

}  // namespace

void add_copy_cases(Session& session, std::vector<Case>& cases) {
  add_copy_case<HostExec>(session, cases);
  if constexpr (has_device) add_copy_case<DeviceExec>(session, cases);
}

void add_case(const std::string& name,
              std::function<void(benchmark::State&)> run,
              std::vector<Case>& cases) {
  for (const Case& other : cases)
    if (other.name == name) return;
  cases.push_back({name, std::move(run)});
}

bool is_selected(const std::vector<std::string>& selection,
                 const std::string& name) {
  return selection.empty() ||
         std::find(selection.begin(), selection.end(), name) != selection.end();
}

void run_guarded(Session& session, const std::string& name,
                 benchmark::State& state,
                 const std::function<void(benchmark::State&)>& run) {
  std::string what;
  try {
    run(state);
    return;
  } catch (const std::exception& error) {
    what = error.what();
  }
  ++session.failures;
  std::fprintf(stderr, "# FAILED %s\n#   %s\n", name.c_str(), what.c_str());
  state.SkipWithError(what.c_str());
}

}  // namespace kindex::perf
