// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_REPORT_PROGRAM_HPP
#define KINDEX_PERF_REPORT_PROGRAM_HPP

#include <string>

namespace kindex::perf {

/// Runs report.py on a JSON file of results. Returns whether it wrote the
/// report, having said why if not.
bool write_report(const std::string& json, const std::string& html);

}  // namespace kindex::perf

#endif
