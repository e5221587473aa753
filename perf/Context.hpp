// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_CONTEXT_HPP
#define KINDEX_PERF_CONTEXT_HPP

#include <string>
#include <utility>
#include <vector>

namespace kindex::perf {

/// Under what circumstances numbers came about: commit, compiler, CPU, OpenMP
/// settings, Kokkos configuration, GPU and driver. Needs Kokkos initialized.
std::vector<std::pair<std::string, std::string>> run_context();

}  // namespace kindex::perf

#endif
