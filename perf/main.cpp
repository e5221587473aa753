// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kindex_bench: compares indexes and baselines on every device, side by side.
#include "Context.hpp"
#include "Options.hpp"
#include "ReportProgram.hpp"
#include "Session.hpp"
#include "Spaces.hpp"
#include "Table.hpp"

#include <kindex/Error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>

namespace kindex::perf {
namespace {

void check_selection(const char* option, const std::vector<std::string>& asked,
                     const std::vector<std::string>& known) {
  for (const std::string& name : asked) {
    if (is_selected(known, name)) continue;
    std::string names;
    for (const std::string& one : known)
      names += (names.empty() ? "" : ", ") + one;
    throw Error(std::string(option) + ": there is no '" + name +
                "' in this build; known are " + names);
  }
}

/// The largest set of a key type is the one on which batch sizes are swept.
bool is_largest_of_its_type(const KeySpec& spec,
                            const std::vector<KeySpec>& all) {
  for (const KeySpec& other : all)
    if (other.type == spec.type && other.size > spec.size) return false;
  return true;
}

std::vector<Case> all_cases(Session& session) {
  Options& options = session.options;
  bool several = has_device;
  for (const std::string& name : space_names())
    several = several && is_selected(options.spaces, name);
  if (options.sweep == Sweep::none && !options.report.empty() && several)
    options.sweep = Sweep::transfers;
  const bool sweep = options.sweep != Sweep::none;

  std::vector<Case> cases;
  add_copy_cases(session, cases);
  for (const KeySpec& spec : options.keys) {
    if (spec.type == KeyType::str) {
      add_string_cases(spec, session, cases);
      continue;
    }
    const bool sweep_this = sweep && is_largest_of_its_type(spec, options.keys);
    with_key_type(spec.type, [&]<class Key>() {
      add_cases<Key>(spec, sweep_this, session, cases);
    });
  }
  return cases;
}

/// argc and argv of some arguments, as C interfaces take them.
class Arguments {
 public:
  explicit Arguments(std::vector<std::string> texts)
      : texts_(std::move(texts)) {
    texts_.insert(texts_.begin(), "kindex_bench");
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
    count_ = static_cast<int>(texts_.size());
  }
  int& count() { return count_; }
  char** pointers() { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
  int count_ = 0;
};

/// Where results go: as asked, or beside the report, which is made of them.
std::string json_path(const Options& options) {
  if (!options.json.empty() || options.report.empty()) return options.json;
  return std::filesystem::path(options.report).replace_extension(".json");
}

void check_writable(const char* option, const std::string& path) {
  std::error_code error;
  const bool is_new =
      !std::filesystem::exists(std::filesystem::symlink_status(path, error));
  if (!std::ofstream(path, std::ios::app))
    throw Error(std::string(option) + ": '" + path +
                "' cannot be opened for writing");
  if (is_new) std::filesystem::remove(path, error);
}

/// Whoever measures for hours must not learn afterwards that results are lost.
void check_outputs(const Options& options) {
  const std::string json = json_path(options);
  if (!json.empty()) check_writable("--json", json);
  if (options.report.empty()) return;
  check_writable("--report", options.report);
  const auto resolved = [](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  std::error_code error;
  if (resolved(json) == resolved(options.report) ||
      std::filesystem::equivalent(json, options.report, error))
    throw Error("--report: '" + options.report +
                "' is the file that the JSON results are written to; give "
                "--json and --report different names");
}

/// Google Benchmark runs nothing, and calls that a success, when its filter is
/// malformed. It reads extended expressions; a leading '-' negates.
void check_filter(std::string filter) {
  if (filter.starts_with('-')) filter.erase(0, 1);
  try {
    const std::regex compiled(filter, std::regex_constants::extended);
  } catch (const std::regex_error& error) {
    throw Error("--benchmark_filter: '" + filter +
                "' is not a regular expression: " + error.what());
  }
}

/// Says so where the keys cannot give the hit rate that was asked for, for
/// instance because there is no room between them.
void check_hit_rate(double asked, const benchmark::State& state) {
  const auto achieved = state.counters.find("hit_rate");
  if (achieved == state.counters.end() ||
      std::abs(achieved->second.value - asked) <= 0.05)
    return;
  std::fprintf(stderr,
               "# WARNING: --hit-rate %g was asked for, but with these keys "
               "%g of the queries hit\n",
               asked, achieved->second.value);
}

/// Registers the benchmarks, each of which says so when its turn comes.
void register_all(const std::vector<Case>& cases, double hit_rate) {
  std::size_t number = 0;
  for (const Case& one : cases) {
    const std::string title = '[' + std::to_string(++number) + '/' +
                              std::to_string(cases.size()) + "] " + one.name;
    auto run = [run = one.run, title, hit_rate,
                announced = false](benchmark::State& state) mutable {
      if (!announced) std::fprintf(stderr, "# %s\n", title.c_str());
      run(state);
      if (!announced) check_hit_rate(hit_rate, state);
      announced = true;
    };
    benchmark::RegisterBenchmark(one.name.c_str(), run)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

int measure(Session& session, const std::vector<Case>& cases,
            std::vector<std::string> benchmark_arguments) {
  const std::string json = json_path(session.options);
  if (!json.empty()) {
    benchmark_arguments.push_back("--benchmark_out=" + json);
    benchmark_arguments.push_back("--benchmark_out_format=json");
  }
  Arguments arguments(std::move(benchmark_arguments));
  benchmark::Initialize(&arguments.count(), arguments.pointers());
  if (benchmark::ReportUnrecognizedArguments(arguments.count(),
                                             arguments.pointers()))
    return 2;
  check_filter(benchmark::GetBenchmarkFilter());
  for (const auto& [key, value] : run_context())
    benchmark::AddCustomContext(key, value);
  register_all(cases, session.options.hit_rate);

  TableReporter table;
  benchmark::RunSpecifiedBenchmarks(&table);
  benchmark::ClearRegisteredBenchmarks();
  benchmark::Shutdown();
  session.cache.clear();

  if (session.failures > 0) {
    std::fprintf(stderr, "%d runs of benchmarks FAILED, see above.\n",
                 session.failures);
    return 1;
  }
  if (!session.options.report.empty() && table.size() > 0 &&
      !write_report(json, session.options.report))
    return 1;
  return 0;
}

/// The names of the indexes of strings and of every key type that this build
/// has.
std::vector<std::string> all_index_names() {
  std::vector<std::string> all = string_index_names();
  for (const std::string_view type : key_type_names) {
    const auto names = with_key_type(
        *key_type_named(type), []<class Key>() { return index_names<Key>(); });
    for (const std::string& name : names)
      if (std::find(all.begin(), all.end(), name) == all.end())
        all.push_back(name);
  }
  return all;
}

int run(int argc, char** argv) {
  CommandLine line = parse_command_line(argc, argv);
  Session session;
  session.options = std::move(line.options);
  check_selection("--index", session.options.indexes, all_index_names());
  check_selection("--space", session.options.spaces, space_names());

  const std::vector<Case> cases = all_cases(session);
  if (session.options.list) {
    for (const Case& one : cases) std::printf("%s\n", one.name.c_str());
    return 0;
  }
  check_outputs(session.options);
  Arguments kokkos(line.kokkos);
  const Kokkos::ScopeGuard guard(kokkos.count(), kokkos.pointers());
  return measure(session, cases, line.benchmark);
}

}  // namespace
}  // namespace kindex::perf

int main(int argc, char** argv) {
  try {
    return kindex::perf::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kindex_bench: %s\n", error.what());
    return 2;
  }
}
