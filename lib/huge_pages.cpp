// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kindex/build/HugePages.hpp>

#ifdef __linux__
#include <sys/mman.h>

#include <fstream>
#include <string>
#endif

namespace kindex::build {

#if defined(__linux__) && defined(MADV_HUGEPAGE)

namespace {

/// Bytes of a huge page; 0: the system has none that a program can ask for.
size_type huge_page_bytes() {
  static const size_type size = [] {
    const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
    std::string enabled;
    std::getline(std::ifstream(folder + "enabled"), enabled);
    size_type bytes = 0;
    std::ifstream(folder + "hpage_pmd_size") >> bytes;
    const bool usable = enabled.find("[madvise]") != std::string::npos ||
                        enabled.find("[always]") != std::string::npos;
    return usable ? bytes : 0;
  }();
  return size;
}

}  // namespace

size_type ask_for_huge_pages(void* first, size_type bytes) {
  const size_type page = huge_page_bytes();
  if (page == 0) return 0;
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const size_type begin = (address + page - 1) / page * page;
  const size_type end = (address + bytes) / page * page;
  if (begin >= end) return 0;
  auto* const whole = static_cast<char*>(first) + (begin - address);
  return madvise(whole, end - begin, MADV_HUGEPAGE) == 0 ? end - begin : 0;
}

#else

size_type ask_for_huge_pages(void* /*first*/, size_type /*bytes*/) { return 0; }

#endif

}  // namespace kindex::build
