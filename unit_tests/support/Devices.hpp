// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices that every test runs on, and moving data between them and
// std::vector.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_DEVICES_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_DEVICES_HPP

#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <kindex/build/HugePages.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace kindex_test {

/// The host execution space, and the default device where that is another one.
using Devices =
    std::conditional_t<std::is_same_v<Kokkos::DefaultExecutionSpace,
                                      Kokkos::DefaultHostExecutionSpace>,
                       ::testing::Types<Kokkos::DefaultHostExecutionSpace>,
                       ::testing::Types<Kokkos::DefaultHostExecutionSpace,
                                        Kokkos::DefaultExecutionSpace>>;

struct DeviceName {
  template <class Exec>
  static std::string GetName(int) {
    return Exec::name();
  }
};

/// Whether an index in the memory of `Exec` can be on huge pages here.
template <class Exec>
bool has_huge_pages() {
  const Kokkos::View<std::byte*, typename Exec::memory_space> view(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "kindex_test::pages"),
      std::size_t{8} << 20);
  return kindex::build::use_pages(kindex::Pages::huge, view) > 0;
}

/// `n` instances that are neither each other nor the default one. (On OpenMP,
/// partition_space returns the default instance where nested parallelism is
/// off.)
template <class Exec>
std::vector<Exec> distinct_instances(int n) {
#ifdef KOKKOS_ENABLE_OPENMP
  if constexpr (std::is_same_v<Exec, Kokkos::OpenMP>) {
    std::vector<Exec> instances;
    for (int i = 0; i < n; ++i)
      instances.emplace_back(Exec(std::max(1, Exec{}.concurrency() / n)));
    return instances;
  }
#endif
  return Kokkos::Experimental::partition_space(
      Exec{}, std::vector<int>(static_cast<std::size_t>(n), 1));
}

template <class T, class Exec>
using DeviceView = Kokkos::View<T*, typename Exec::memory_space>;

// std::vector<bool> is no array; its place is taken by bytes.
template <class T>
using HostElement =
    std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;

template <class Exec, class T>
DeviceView<T, Exec> to_device(const std::vector<T>& host) {
  DeviceView<T, Exec> view(Kokkos::view_alloc(std::string("test::data"),
                                              Kokkos::WithoutInitializing),
                           host.size());
  Kokkos::deep_copy(view, Kokkos::View<const T*, Kokkos::HostSpace,
                                       Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                              host.data(), host.size()));
  return view;
}

/// Contents of a contiguous View; waits for everything that is still running.
template <class View>
auto to_host(const View& view) {
  using T = typename View::non_const_value_type;
  std::vector<HostElement<T>> result(view.extent(0));
  Kokkos::fence("test::to_host");
  static_assert(sizeof(HostElement<T>) == sizeof(T));
  Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      target(reinterpret_cast<T*>(result.data()), result.size());
  Kokkos::deep_copy(target, view);
  return result;
}

/// A fresh output View whose every byte is `fill`, so that an answer that was
/// never written shows.
template <class T, class Exec>
DeviceView<T, Exec> filled(std::size_t n, unsigned char fill = 0xA5) {
  std::vector<HostElement<T>> host(n);
  auto* bytes = reinterpret_cast<unsigned char*>(host.data());
  for (std::size_t i = 0; i < n * sizeof(T); ++i)
    bytes[i] = std::is_same_v<T, bool> ? (fill & 1) : fill;
  DeviceView<T, Exec> view(Kokkos::view_alloc(std::string("test::output"),
                                              Kokkos::WithoutInitializing),
                           n);
  Kokkos::deep_copy(view, Kokkos::View<const T*, Kokkos::HostSpace,
                                       Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                              reinterpret_cast<const T*>(host.data()), n));
  return view;
}

}  // namespace kindex_test

#endif
