// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Table.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace kindex::perf {
namespace {

std::string formatted(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

std::string counter(const benchmark::BenchmarkReporter::Run& run,
                    const char* name, const char* format, double scale = 1) {
  const auto found = run.counters.find(name);
  return found == run.counters.end()
             ? ""
             : formatted(format, found->second.value * scale);
}

/// `op/index/key/space/n:N/rest...` in five parts; the rest without the mark
/// that Google Benchmark appends.
std::vector<std::string> parts_of(std::string name) {
  const std::string mark = "/manual_time";
  if (const auto at = name.find(mark); at != std::string::npos)
    name.erase(at, mark.size());
  std::vector<std::string> parts;
  std::istringstream in(name);
  for (std::string part; parts.size() < 5 && std::getline(in, part, '/');)
    parts.push_back(part.starts_with("n:") ? part.substr(2) : part);
  std::string rest;
  std::getline(in, rest);
  std::replace(rest.begin(), rest.end(), '/', ' ');
  parts.resize(5);
  parts.push_back(rest);
  return parts;
}

void print(std::ostream& out, const std::vector<std::vector<std::string>>& rows,
           std::size_t text_columns) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string fill(widths[c] - row[c].size(), ' ');
      line += c < text_columns || c + 1 == row.size() ? row[c] + fill
                                                      : fill + row[c];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  ConsoleReporter::ReportRuns(runs);
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) continue;
    std::vector<std::string> row = parts_of(run.benchmark_name());
    const std::string rest = row.back();
    row.pop_back();
    if (run.error_occurred) {
      row.insert(row.end(), {"FAILED", "", "", "", "", ""});
    } else {
      row.push_back(counter(run, "items_per_second", "%.1f", 1e-6));
      row.push_back(counter(run, "ns_per_lookup", "%.3f"));
      row.push_back(counter(run, "of_limit", "%.0f %%", 100));
      row.push_back(counter(run, "GB_per_s", "%.2f"));
      const std::string build = counter(run, "build_ms", "%.2f");
      row.push_back(build.empty() ? counter(run, "fit_ms", "%.2f") : build);
      row.push_back(counter(run, "bytes_per_key", "%.2f"));
    }
    row.push_back(rest);
    rows_.push_back(std::move(row));
  }
}

void TableReporter::Finalize() {
  ConsoleReporter::Finalize();
  if (rows_.empty()) return;
  std::vector<Row> table{{"op", "index", "key", "space", "n", "M/s", "ns",
                          "of limit", "GB/s", "build ms", "B/key", "details"}};
  table.insert(table.end(), rows_.begin(), rows_.end());
  std::ostream& out = GetOutputStream();
  out << '\n';
  print(out, table, 4);
  out << "\nM/s: million lookups (build: keys) per second, ns: per lookup; "
         "medians.\n";
}

}  // namespace kindex::perf
