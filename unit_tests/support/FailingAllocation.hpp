// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that runs out at a chosen allocation.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_FAILINGALLOCATION_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_FAILINGALLOCATION_HPP

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace kindex_test {

/// While it lives, some allocations of the library throw.
class FailingAllocation {
 public:
  /// Number `which`, the first being 0, and the later ones if `all_later`.
  explicit FailingAllocation(int which, bool all_later = false) {
    left() = which;
    fails_later() = all_later;
    Kokkos::Tools::Experimental::set_allocate_data_callback(count);
  }
  /// All whose labels begin with one of these.
  explicit FailingAllocation(std::vector<std::string> beginnings) {
    labels() = std::move(beginnings);
    Kokkos::Tools::Experimental::set_allocate_data_callback(compare);
  }
  ~FailingAllocation() {
    Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
  }
  /// Whether there were so many.
  bool has_failed() const { return left() < 0; }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

 private:
  static std::atomic<int>& left() {
    static std::atomic<int> left;
    return left;
  }

  static std::vector<std::string>& labels() {
    static std::vector<std::string> labels;
    return labels;
  }

  static void compare(Kokkos_Profiling_SpaceHandle, const char* label,
                      const void*, std::uint64_t) {
    for (const std::string& beginning : labels())
      if (std::string(label).rfind(beginning, 0) == 0) throw std::bad_alloc();
  }

  static bool& fails_later() {
    static bool fails_later = false;
    return fails_later;
  }

  static void count(Kokkos_Profiling_SpaceHandle, const char* label,
                    const void*, std::uint64_t) {
    if (std::string(label).rfind("kindex::", 0) != 0) return;
    const int before = left()--;
    if (before == 0 || (before < 0 && fails_later())) throw std::bad_alloc();
  }
};

}  // namespace kindex_test

#endif
