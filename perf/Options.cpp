// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.hpp"

#include <kindex/Error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>

namespace kindex::perf {
namespace {

constexpr const char* description = R"(
Compares Kindex's indexes and common baselines on every device, side by side.
Every configuration is verified against a host reference before it is timed.
)";

std::string footer() {
  std::string text = "Generators (GENERATOR:TYPE:N):\n";
  const auto add = [&text](const GeneratorInfo& info) {
    std::string name(info.name);
    name.resize(12, ' ');
    text += "  " + name + std::string(info.what) + "\n";
  };
  for (const GeneratorInfo& info : generators) add(info);
  for (const GeneratorInfo& info : string_generators) add(info);
  text += "Key types:\n ";
  for (std::string_view name : key_type_names) text += " " + std::string(name);
  text += " " + std::string(string_type_name) + R"(
Key files: SOSD format, name ends in _uint32 or _uint64.

Google Benchmark's options (--benchmark_filter=REGEX, --benchmark_min_time=S,
--benchmark_repetitions=N, ...) and Kokkos' (--kokkos-num-threads=N, ...) are
passed on. perf/README.md says what is measured and what the counters mean.
)";
  return text;
}

/// What LearnedIndex admits.
constexpr std::uint64_t most_epsilon = std::uint64_t{1} << 20;

/// What the user wrote, not yet understood.
struct RawOptions {
  std::vector<std::string> keys, indexes, spaces, ops, values, range_hits;
  std::vector<std::string> epsilons;
  std::vector<std::string> transfers, bucket_sizes, buffers;
  std::string queries, host_queries, range_queries, sweep, order, seed;
};

template <class Enum, std::size_t N>
std::vector<Enum> named(const std::vector<std::string>& texts,
                        const std::string_view (&names)[N],
                        const std::string& option) {
  std::vector<Enum> result;
  for (const std::string& text : texts) {
    std::size_t i = 0;
    while (i < N && names[i] != text) ++i;
    if (i == N) {
      std::string known;
      for (std::string_view name : names)
        known += (known.empty() ? "" : ", ") + std::string(name);
      throw Error(option + ": there is no '" + text + "'; known are " + known);
    }
    result.push_back(static_cast<Enum>(i));
  }
  return result;
}

QueryOrder parse_order(const std::string& text) {
  QueryOrder order;
  order.name = text;
  if (text == "random") return order;
  order.kind = QueryOrder::Kind::sorted;
  if (text == "sorted") return order;
  order.kind = QueryOrder::Kind::normal;
  if (text == "normal") return order;
  order.kind = QueryOrder::Kind::gamma;
  if (text == "gamma") return order;
  order.kind = QueryOrder::Kind::zipf;
  if (text.starts_with("zipf:")) {
    const std::string number = text.substr(5);
    char* end = nullptr;
    order.theta = std::strtod(number.c_str(), &end);
    if (!number.empty() && *end == '\0' && order.theta > 0 && order.theta <= 10)
      return order;
  }
  throw Error("--order: '" + text +
              "' is none of random, sorted, normal, gamma and zipf:THETA with "
              "THETA above 0 and at most 10, for instance zipf:0.99");
}

/// Unlike CLI11, which wraps what 64 bits do not hold.
std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc{} && rest == end) return seed;
  throw Error("--seed: '" + text +
              "' is not a whole number from 0 to 18446744073709551615");
}

/// "all" stands for no restriction.
std::vector<std::string> selection(std::vector<std::string> names) {
  for (const std::string& name : names)
    if (name == "all") return {};
  return names;
}

void understand(const RawOptions& raw, Options& options) {
  for (const std::string& text : raw.keys)
    options.keys.push_back(parse_key_spec(text));
  options.indexes = selection(raw.indexes);
  options.ablations = std::find(raw.indexes.begin(), raw.indexes.end(),
                                ablations_name) != raw.indexes.end();
  options.spaces = selection(raw.spaces);
  options.ops = named<Op>(raw.ops, op_names, "--ops");
  options.values = named<ValueMode>(raw.values, value_mode_names, "--values");
  if (!raw.queries.empty())
    options.queries = parse_count(raw.queries, "--queries");
  if (!raw.host_queries.empty())
    options.host_queries = parse_count(raw.host_queries, "--host-queries");
  for (const std::string& text : raw.range_hits)
    options.range_hits.push_back(parse_count(text, "--range-hits"));
  if (!raw.range_queries.empty())
    options.range_queries = parse_count(raw.range_queries, "--range-queries");
  for (const std::string& text : raw.epsilons) {
    options.epsilons.push_back(parse_count(text, "--epsilons"));
    if (options.epsilons.back() > most_epsilon)
      throw Error("--epsilons: " + text + " is not in 1..." +
                  std::to_string(most_epsilon));
  }
  options.order = parse_order(raw.order);
  options.seed = parse_seed(raw.seed);
  options.transfers =
      named<Transfers>(raw.transfers, transfers_names, "--transfers");
  options.sweep = named<Sweep>({raw.sweep}, sweep_names, "--sweep").front();
  for (const std::string& text : raw.bucket_sizes)
    options.bucket_sizes.push_back(
        text == "0" ? 0 : parse_count(text, "--bucket-size"));
  for (const std::string& text : raw.buffers) {
    options.buffers.push_back(text == "0" ? 0 : parse_count(text, "--buffers"));
    if (options.buffers.back() > 4)
      throw Error("--buffers: " + text + " is not in 0...4");
  }
  if (!(options.hit_rate >= 0 && options.hit_rate <= 1))
    throw Error("--hit-rate: a fraction between 0 and 1");
}

void declare(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_option("--keys", raw.keys,
                 "key file, or GENERATOR:TYPE:N; repeatable")
      ->default_val(std::vector<std::string>{"uniform:u32:10M"});
  app.add_option("--index", raw.indexes,
                 "indexes and baselines, all, or ablations (in builds with the "
                 "CMake variable Kindex_PERF_ABLATIONS)")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"all"});
  app.add_option("--space", raw.spaces,
                 "execution spaces (OpenMP, Cuda, ...), or all")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"all"});
  app.add_option(
         "--ops", raw.ops,
         "operations among build, build_sorted (from sorted keys and "
         "values), fit (the segments of a learned index alone), update "
         "(batches of operations, by size and method), find, ref_find "
         "(the same in a kernel of one's own), parent_chain (lookups up "
         "a hierarchy of the keys), lower_bound, count, range, "
         "for_each_in_range (of ablations), divide (lower_bound with "
         "the work of a hybrid tree divided in all ways)")
      ->delimiter(',')
      ->default_val(
          std::vector<std::string>{"build", "find", "lower_bound", "range"});
  app.add_option("--values", raw.values,
                 "what is stored: none (the position is the answer), u32, u64")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"none"});
  app.add_option("--queries", raw.queries,
                 "lookups per batch (default: 2^21 on hosts, 2^25 on GPUs)");
  app.add_option("--host-queries", raw.host_queries,
                 "lookups per batch on hosts, where it shall differ");
  app.add_option("--hit-rate", options.hit_rate,
                 "fraction of point queries whose key is there")
      ->default_val(1.0);
  app.add_option("--order", raw.order,
                 "random (every key alike), sorted (the same, in ascending "
                 "order), normal or gamma (ranks so distributed), zipf:THETA "
                 "(popular keys anywhere)")
      ->default_val("random");
  app.add_option("--range-hits", raw.range_hits,
                 "hits per range query; several are measured in turn")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"16"});
  app.add_option("--range-queries", raw.range_queries,
                 "ranges per batch (default: as many as give 2^24 hits on "
                 "hosts, 2^26 on GPUs)");
  app.add_option("--epsilons", raw.epsilons,
                 "error bounds of fit, measured in turn")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"16", "128"});
  app.add_option(
         "--transfers", raw.transfers,
         "in: time host-to-device and back, too; overlapped: the same "
         "in buckets, from pageable memory (find and lower_bound of "
         "Kindex's indexes, range of hybrid ones); direct: the same from "
         "page-locked memory (find and lower_bound); out: do not; several "
         "in turn")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"out"});
  app.add_option(
         "--bucket-size", raw.bucket_sizes,
         "queries per bucket of overlapped or direct transfers; several are "
         "measured in turn (0: as many as the library chooses)")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"0"});
  app.add_option("--buffers", raw.buffers,
                 "buckets of such transfers in flight: 1, one bucket after "
                 "the other, to 4; several are measured in turn (0: as many as "
                 "the library chooses)")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"0"});
  app.add_option("--sweep", raw.sweep,
                 "also measure find on batches of 256, 1k, ... lookups: with "
                 "transfers (so without a value, and with --report and two "
                 "devices), resident in the device's memory, or both")
      ->default_val("none");
  app.add_option("--seed", raw.seed, "of all that is random")
      ->default_val(std::to_string(default_seed));
  app.add_option("--json", options.json, "write results to this file");
  app.add_option("--report", options.report,
                 "write a report with plots to this HTML file");
  app.add_flag("--list", options.list,
               "print the names of the selected benchmarks and stop");
}

bool is_for_benchmark(const std::string& argument) {
  return argument.starts_with("--benchmark_") || argument.starts_with("--v=");
}

/// `--sweep` without a value stands for `--sweep transfers`.
std::vector<std::string> with_sweep_named(std::vector<std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value =
        i + 1 < arguments.size() && !arguments[i + 1].starts_with("-");
    if (arguments[i] == "--sweep" && !has_value)
      arguments[i] = "--sweep=transfers";
  }
  return arguments;
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine line;
  std::vector<std::string> own;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (is_for_benchmark(argument))
      line.benchmark.push_back(argument);
    else if (argument.starts_with("--kokkos-"))
      line.kokkos.push_back(argument);
    else
      own.push_back(argument);
  }

  own = with_sweep_named(std::move(own));
  std::reverse(own.begin(), own.end());  // CLI11 reads from the back

  CLI::App app(description, "kindex_bench");
  app.footer(footer());
  RawOptions raw;
  declare(app, raw, line.options);
  try {
    app.parse(own);
    understand(raw, line.options);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    std::exit(2);
  }
  return line;
}

}  // namespace kindex::perf
