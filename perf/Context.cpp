// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Context.hpp"

#include "GitCommit.hpp"
#include "HostParallel.hpp"
#include "Spaces.hpp"

#include <kindex/Version.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#ifdef __unix__
#include <unistd.h>
extern char** environ;
#endif

namespace kindex::perf {
namespace {

std::string first_line_with(const char* file, std::string_view start) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(start)) return line;
  return "";
}

std::string cpu_name() {
  const std::string line = first_line_with("/proc/cpuinfo", "model name");
  const std::size_t colon = line.find(": ");
  return colon == std::string::npos ? "unknown" : line.substr(colon + 2);
}

std::string compiler() {
#ifdef __NVCC__
  return "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + '.' +
         std::to_string(__CUDACC_VER_MINOR__) + ", host " + __VERSION__;
#elif defined(__clang__)
  return __VERSION__;
#elif defined(__GNUC__)
  return std::string("g++ ") + __VERSION__;
#else
  return "unknown";
#endif
}

/// `OMP_*` and `KMP_*` as they are set.
std::string openmp_settings() {
  std::string settings;
#ifdef __unix__
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("OMP_") || text.starts_with("KMP_"))
      settings += (settings.empty() ? "" : " ") + std::string(text);
  }
#endif
  return settings.empty() ? "none" : settings;
}

std::string kokkos_configuration() {
  std::ostringstream out;
  Kokkos::print_configuration(out, true);
  // On one line: console output repeats it.
  std::istringstream in(out.str());
  std::string joined;
  for (std::string line; std::getline(in, line);) {
    const std::size_t text = line.find_first_not_of(' ');
    if (text == std::string::npos) continue;
    joined += (joined.empty() ? "" : "; ") + line.substr(text);
  }
  return joined;
}

#ifdef KOKKOS_ENABLE_CUDA
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + '.' +
         std::to_string(number % 1000 / 10);
}

void add_gpu(std::vector<std::pair<std::string, std::string>>& context) {
  const cudaDeviceProp gpu = Kokkos::Cuda().cuda_device_prop();
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  context.emplace_back("gpu", gpu.name);
  context.emplace_back(
      "gpu_memory_gib",
      std::to_string(gpu.totalGlobalMem / (std::size_t{1} << 30)));
  const std::string line =
      first_line_with("/proc/driver/nvidia/version", "NVRM version");
  context.emplace_back("gpu_driver",
                       line.empty() ? "CUDA " + cuda_version(driver) : line);
  context.emplace_back("cuda", "runtime " + cuda_version(runtime) +
                                   ", driver up to " + cuda_version(driver));
}
#else
void add_gpu(std::vector<std::pair<std::string, std::string>>&) {}
#endif

}  // namespace

std::vector<std::pair<std::string, std::string>> run_context() {
  std::vector<std::pair<std::string, std::string>> context;
  std::string spaces;
  for (const std::string& name : space_names())
    spaces += (spaces.empty() ? "" : ", ") + name;
  context.emplace_back("kindex_version",
                       std::to_string(KINDEX_VERSION_MAJOR) + '.' +
                           std::to_string(KINDEX_VERSION_MINOR) + '.' +
                           std::to_string(KINDEX_VERSION_PATCH));
  context.emplace_back("git_commit", git_commit);
  context.emplace_back("compiler", compiler());
  context.emplace_back("build_type", build_type);
  context.emplace_back("spaces", spaces);
  context.emplace_back("cpu", cpu_name());
  context.emplace_back("host_threads", std::to_string(host_threads()));
  context.emplace_back("openmp", openmp_settings());
  context.emplace_back("kokkos_version",
                       std::to_string(KOKKOS_VERSION / 10000) + '.' +
                           std::to_string(KOKKOS_VERSION / 100 % 100) + '.' +
                           std::to_string(KOKKOS_VERSION % 100));
  add_gpu(context);
#ifndef KINDEX_PERF_HAVE_ABSL
  context.emplace_back("left_out", "absl_btree (Abseil was not found)");
#endif
  context.emplace_back("kokkos", kokkos_configuration());
  return context;
}

}  // namespace kindex::perf
