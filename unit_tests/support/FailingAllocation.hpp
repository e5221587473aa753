// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that runs out at a chosen allocation.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_FAILINGALLOCATION_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_FAILINGALLOCATION_HPP

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>

namespace kindex_test {

/// While it lives, allocation number `which` of the library throws, the first
/// being 0; the others do not.
class FailingAllocation {
 public:
  explicit FailingAllocation(int which) {
    left() = which;
    Kokkos::Tools::Experimental::set_allocate_data_callback(count);
  }
  ~FailingAllocation() {
    Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
  }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

 private:
  static std::atomic<int>& left() {
    static std::atomic<int> left;
    return left;
  }

  static void count(Kokkos_Profiling_SpaceHandle, const char* label,
                    const void*, std::uint64_t) {
    if (std::string(label).rfind("kindex::", 0) == 0 && left()-- == 0)
      throw std::bad_alloc();
  }
};

}  // namespace kindex_test

#endif
