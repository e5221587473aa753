// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records what Kokkos Tools see while it lives: kernels, fences, copies,
// allocations, regions.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_RECORDER_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_RECORDER_HPP

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace kindex_test {

struct Event {
  enum Kind { kernel, fence, copy, allocation, deallocation, region };
  Kind kind;
  std::string label;
  std::uint32_t device = 0;  // kernels and fences only
  std::uint64_t bytes = 0;

  std::string text() const {
    static constexpr const char* names[] = {
        "kernel", "fence", "copy", "allocation", "deallocation", "region"};
    return std::string(names[kind]) + " '" + label + "' (device " +
           std::to_string(device) + ", " + std::to_string(bytes) + " bytes)";
  }
};

/// One at a time.
class Recorder {
 public:
  Recorder() {
    namespace Tools = Kokkos::Tools::Experimental;
    events().clear();
    Tools::set_begin_parallel_for_callback(on_kernel);
    Tools::set_begin_parallel_reduce_callback(on_kernel);
    Tools::set_begin_parallel_scan_callback(on_kernel);
    Tools::set_begin_fence_callback(on_fence);
    Tools::set_begin_deep_copy_callback(on_copy);
    Tools::set_allocate_data_callback(on_allocation);
    Tools::set_deallocate_data_callback(on_deallocation);
    Tools::set_push_region_callback(on_region);
  }
  ~Recorder() { stop(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Ends recording and returns what was seen.
  std::vector<Event> stop() {
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_begin_parallel_for_callback(nullptr);
    Tools::set_begin_parallel_reduce_callback(nullptr);
    Tools::set_begin_parallel_scan_callback(nullptr);
    Tools::set_begin_fence_callback(nullptr);
    Tools::set_begin_deep_copy_callback(nullptr);
    Tools::set_allocate_data_callback(nullptr);
    Tools::set_deallocate_data_callback(nullptr);
    Tools::set_push_region_callback(nullptr);
    const std::lock_guard<std::mutex> lock(mutex());
    return events();
  }

 private:
  static std::vector<Event>& events() {
    static std::vector<Event> all;
    return all;
  }
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static void add(Event event) {
    const std::lock_guard<std::mutex> lock(mutex());
    events().push_back(std::move(event));
  }
  static void on_kernel(const char* label, std::uint32_t device,
                        std::uint64_t*) {
    add({Event::kernel, label, device});
  }
  static void on_fence(const char* label, std::uint32_t device,
                       std::uint64_t*) {
    // Kokkos fences before every callback of a tool that has not said that it
    // needs no such fence.
    if (std::string(label).find("Kokkos Profile Tool Fence") !=
        std::string::npos)
      return;
    add({Event::fence, label, device});
  }
  static void on_copy(Kokkos::Tools::SpaceHandle, const char* to, const void*,
                      Kokkos::Tools::SpaceHandle, const char* from, const void*,
                      std::uint64_t bytes) {
    add({Event::copy, std::string(from) + " -> " + to, 0, bytes});
  }
  static void on_allocation(Kokkos::Tools::SpaceHandle, const char* label,
                            const void*, std::uint64_t bytes) {
    add({Event::allocation, label, 0, bytes});
  }
  static void on_deallocation(Kokkos::Tools::SpaceHandle, const char* label,
                              const void*, std::uint64_t bytes) {
    add({Event::deallocation, label, 0, bytes});
  }
  static void on_region(const char* label) { add({Event::region, label}); }
};

inline std::size_t number_of(const std::vector<Event>& events,
                             Event::Kind kind) {
  std::size_t n = 0;
  for (const auto& event : events) n += event.kind == kind;
  return n;
}

/// Allocations but for those that Kokkos makes for itself (scratch memory).
inline std::vector<std::string> allocations(const std::vector<Event>& events) {
  std::vector<std::string> labels;
  for (const auto& event : events)
    if (event.kind == Event::allocation &&
        event.label.rfind("Kokkos::", 0) != 0)
      labels.push_back(event.label);
  return labels;
}

/// Kokkos fences all instances when it frees a View. A query must not cause
/// that; a build frees temporary memory.
enum class Fences { none, of_the_instance, of_the_instance_or_of_frees };

/// What in `events` was not on `instance` alone, or has a label that is not
/// ours.
inline std::vector<std::string> violations(const std::vector<Event>& events,
                                           std::uint32_t instance,
                                           Fences allowed) {
  std::vector<std::string> found;
  for (const auto& event : events) {
    if (event.kind == Event::kernel && event.device != instance)
      found.push_back("on another instance: " + event.text());
    const bool is_free =
        event.kind == Event::fence &&
        (event.label.rfind("Kokkos::", 0) == 0 ||
         event.label.rfind("HostSpace::", 0) == 0) &&
        (event.label.find("before free") != std::string::npos ||
         event.label.find("async free") != std::string::npos);
    if (is_free && allowed == Fences::of_the_instance_or_of_frees) continue;
    if (event.kind == Event::fence && event.device != instance)
      found.push_back("not of the instance: " + event.text());
    if (event.kind == Event::fence && allowed == Fences::none)
      found.push_back("not asynchronous: " + event.text());
    // What is freed had its label when it was allocated; Kokkos frees memory
    // of its own without.
    if (event.kind == Event::fence || event.kind == Event::copy ||
        event.kind == Event::deallocation)
      continue;
    // Kokkos initialises a View by a kernel `Kokkos::View::initialization
    // [label]`.
    std::string label = event.label;
    if (const auto bracket = label.find('[');
        label.rfind("Kokkos::View::", 0) == 0 && bracket != std::string::npos)
      label = label.substr(bracket + 1);
    else if (label.rfind("Kokkos::", 0) == 0)
      continue;
    if (label.rfind("kindex::", 0) != 0)
      found.push_back("no label of kindex: " + event.text());
  }
  return found;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

}  // namespace kindex_test

#endif
