// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_TIMING_HPP
#define KINDEX_PERF_TIMING_HPP

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace kindex::perf {

/// Wall-clock seconds of `f()`, which fences what it started.
template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

inline double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto middle =
      samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// Where a batch needs no preparation.
struct NoPreparation {
  void operator()(std::uint64_t) const {}
};

/// Times `run(batch)`, which ends with a fence, for batch 0, 1, 2, ... and
/// returns the median in seconds. Before each, it calls `prepare(batch)`, which
/// is not timed. One batch warms up. Where Google Benchmark is
/// content with few iterations, each stands for several batches, so that there
/// are at least 5 samples, or `long_enough` seconds of them. A batch that alone
/// takes as long needs no warming up: it is the sample.
template <class Run, class Prepare = NoPreparation>
double time_batches(benchmark::State& state, Run&& run, Prepare&& prepare = {},
                    double long_enough = 2) {
  constexpr std::int64_t least_samples = 5;
  const std::int64_t per_iteration =
      (least_samples + state.max_iterations - 1) / state.max_iterations;

  std::uint64_t batch = 0;
  const auto one_more = [&] {
    prepare(batch);
    return seconds_of([&] { run(batch++); });
  };
  const double first = one_more();
  std::vector<double> all;
  double total = 0;
  for ([[maybe_unused]] auto _ : state) {
    std::vector<double> samples;
    if (all.empty() && first >= long_enough) {
      samples.push_back(first);
    } else {
      for (std::int64_t i = 0; i < per_iteration; ++i) {
        samples.push_back(one_more());
        total += samples.back();
        if (total > long_enough) break;
      }
    }
    state.SetIterationTime(median(samples));
    all.insert(all.end(), samples.begin(), samples.end());
  }
  return median(all);
}

}  // namespace kindex::perf

#endif
