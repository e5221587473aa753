// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BuildPhases.hpp"

#include "Timing.hpp"

#include <Kokkos_Core.hpp>

#include <string_view>

namespace kindex::perf {
namespace {

using Clock = std::chrono::steady_clock;

/// When inner levels were begun and ended in the build that runs.
struct Seen {
  Clock::time_point inner_begin, inner_end;
  bool has_inner = false;
} seen;

constexpr std::uint64_t writes_pivots = 1;

void on_begin(const char* label, std::uint32_t /*device*/,
              std::uint64_t* kernel) {
  const std::string_view name(label);
  if (name == "kindex::BPlusTree::write_levels")
    seen.inner_begin = Clock::now();
  *kernel = name == "kindex::BPlusTree::write_pivots" ? writes_pivots : 0;
}

void on_end(std::uint64_t kernel) {
  if (kernel != writes_pivots) return;
  seen.inner_end = Clock::now();
  seen.has_inner = true;
}

/// Listens while it lives, instead of the user's tools.
class Listener {
 public:
  Listener() : before_(Kokkos::Tools::Experimental::get_callbacks()) {
    Kokkos::Tools::Experimental::set_callbacks({});
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(on_begin);
    Kokkos::Tools::Experimental::set_end_parallel_for_callback(on_end);
  }
  ~Listener() { Kokkos::Tools::Experimental::set_callbacks(before_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  Kokkos::Tools::Experimental::EventSet before_;
};

}  // namespace

std::optional<BuildPhases> build_phases(const std::function<void()>& build) {
  constexpr int builds = 3;
  const auto seconds = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  };
  std::vector<double> sort, inner, mirror;
  const Listener listener;
  for (int i = 0; i < builds; ++i) {
    seen = {};
    const auto begin = Clock::now();
    build();
    const auto end = Clock::now();
    if (!seen.has_inner) return {};
    sort.push_back(seconds(begin, seen.inner_begin));
    inner.push_back(seconds(seen.inner_begin, seen.inner_end));
    mirror.push_back(seconds(seen.inner_end, end));
  }
  return BuildPhases{median(sort), median(inner), median(mirror)};
}

}  // namespace kindex::perf
