// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_PROGRESS_HPP
#define KINDEX_PERF_PROGRESS_HPP

#include <chrono>
#include <cstdio>
#include <string>

namespace kindex::perf {

/// Says on standard error what is being done, and how long it took if that was
/// long enough to wonder.
class Progress {
 public:
  explicit Progress(const std::string& what)
      : start_(std::chrono::steady_clock::now()) {
    std::fprintf(stderr, "# %s\n", what.c_str());
  }
  ~Progress() {
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start_;
    if (took.count() >= 1) std::fprintf(stderr, "#   %.1f s\n", took.count());
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  std::chrono::steady_clock::time_point start_;
};

}  // namespace kindex::perf

#endif
