// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_TABLE_HPP
#define KINDEX_PERF_TABLE_HPP

#include <benchmark/benchmark.h>

#include <ostream>
#include <string>
#include <vector>

namespace kindex::perf {

/// Google Benchmark's console output, with a table for people at the end.
class TableReporter : public benchmark::ConsoleReporter {
 public:
  TableReporter() : ConsoleReporter(OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

  /// Benchmarks reported so far.
  std::size_t size() const { return rows_.size(); }

 private:
  using Row = std::vector<std::string>;
  std::vector<Row> rows_;
};

}  // namespace kindex::perf

#endif
