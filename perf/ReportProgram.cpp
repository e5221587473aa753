// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ReportProgram.hpp"

#include "Progress.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace kindex::perf {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

/// Beside the program, where the build puts it, or among the sources.
std::string script() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = program.parent_path() / "report.py";
  if (!error && std::filesystem::exists(beside, error)) return beside.string();
  return KINDEX_PERF_SOURCE_DIR "/report.py";
}

/// A Python that has matplotlib, or "".
std::string python() {
  std::vector<std::string> candidates{"python3", "/usr/bin/python3"};
  if (const char* named = std::getenv("KINDEX_PYTHON"))
    candidates.insert(candidates.begin(), named);
  for (const std::string& candidate : candidates)
    if (std::system((quoted(candidate) + " -c 'import matplotlib' 2>/dev/null")
                        .c_str()) == 0)
      return candidate;
  return "";
}

}  // namespace

bool write_report(const std::string& json, const std::string& html) {
  const std::string interpreter = python();
  if (interpreter.empty()) {
    std::fprintf(stderr,
                 "No Python with matplotlib was found (python3-matplotlib; "
                 "KINDEX_PYTHON names an interpreter), so there is no report. "
                 "The results are in %s; make the report anywhere with\n"
                 "  python3 perf/report.py --output %s %s\n",
                 json.c_str(), html.c_str(), json.c_str());
    return false;
  }
  const Progress progress("writing " + html);
  const std::string command = quoted(interpreter) + ' ' + quoted(script()) +
                              " --output " + quoted(html) + ' ' + quoted(json);
  if (std::system(command.c_str()) == 0) return true;
  std::fprintf(stderr, "The report program failed: %s\n", command.c_str());
  return false;
}

}  // namespace kindex::perf
