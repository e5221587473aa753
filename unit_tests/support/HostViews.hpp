// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views of host memory, with neighbouring elements or not.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_HOST_VIEWS_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_HOST_VIEWS_HPP

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace kindex_test {

template <class T>
using HostView = Kokkos::View<T*, Kokkos::HostSpace>;
/// Every third element of an array.
template <class T>
using StridedView = Kokkos::View<T*, Kokkos::LayoutStride, Kokkos::HostSpace>;
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
/// Page-locked where there is a GPU.
template <class T>
using PinnedView = Kokkos::View<T*, Kokkos::SharedHostPinnedSpace>;
#else
template <class T>
using PinnedView = HostView<T>;
#endif

/// A View of host memory, each byte 0xA5, whose elements are neighbours or not.
template <class View>
View host_output(std::size_t m) {
  using T = typename View::non_const_value_type;
  constexpr bool strided =
      std::is_same_v<typename View::array_layout, Kokkos::LayoutStride>;
  const Kokkos::View<T**, Kokkos::LayoutRight, typename View::memory_space>
      memory(Kokkos::view_alloc(std::string("test::host"),
                                Kokkos::WithoutInitializing),
             m, strided ? 3 : 1);
  std::memset(static_cast<void*>(memory.data()), 0xA5,
              memory.span() * sizeof(T));
  if constexpr (strided)
    return Kokkos::subview(memory, Kokkos::ALL, 1);
  else
    return View(Kokkos::subview(memory, Kokkos::ALL, 0));
}

template <class View, class T>
View host_input(const std::vector<T>& elements) {
  const auto view = host_output<View>(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) view(i) = elements[i];
  return view;
}

template <class View>
auto elements_of(const View& view) {
  std::vector<typename View::non_const_value_type> elements;
  for (std::size_t i = 0; i < view.extent(0); ++i) elements.push_back(view(i));
  return elements;
}

}  // namespace kindex_test

#endif
