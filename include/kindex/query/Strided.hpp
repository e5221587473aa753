// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_STRIDED_HPP
#define KINDEX_QUERY_STRIDED_HPP

/// \file
/// The form in which kernels see the caller's Views.

#include <kindex/Error.hpp>
#include <kindex/Types.hpp>

#include <type_traits>

namespace kindex::query {

/// A rank-1 View of any layout, seen from a kernel: one type for all layouts,
/// so that a kernel is compiled once per element type. Non-owning.
template <class T>
struct Strided {
  T* data = nullptr;     ///< first element
  size_type size = 0;    ///< number of elements
  size_type stride = 1;  ///< elements from one to the next

  /// Element `i`.
  KOKKOS_FUNCTION T& operator()(size_type i) const { return data[i * stride]; }
  /// Elements [begin, end).
  KOKKOS_FUNCTION Strided from(size_type begin, size_type end) const {
    return {data + begin * stride, end - begin, stride};
  }
};

/// Sees `view` as Strided. Fails to compile for a View that is not of rank 1
/// or whose memory `Exec` cannot access.
template <class Exec, class View>
auto strided(const View& view) {
  static_assert(Kokkos::is_view_v<View>, "kindex: a Kokkos View is expected");
  static_assert(View::rank() == 1, "kindex: a View of rank 1 is expected");
  static_assert(
      Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
      "kindex: the View's memory cannot be accessed from the execution space "
      "of the instance given");
  return Strided<typename View::value_type>{
      view.data(), view.extent(0), static_cast<size_type>(view.stride(0))};
}

/// The same elements, to be read only: kernels are compiled once for Views of
/// const and of other elements.
template <class T>
Strided<const T> as_input(const Strided<T>& view) {
  return {view.data, view.size, view.stride};
}

/// The same for a View that is written.
///
/// \param function, argument names for the message.
/// \param expected the number of elements it must have.
/// \throws Error if it has another number of elements.
template <class Exec, class View>
auto strided_output(const char* function, const char* argument,
                    const View& view, size_type expected) {
  static_assert(!std::is_const_v<typename View::value_type>,
                "kindex: an output View must not be const");
  if (view.extent(0) != expected)
    kindex::impl::fail(function, argument, " has ", view.extent(0),
                       " elements for ", expected, " queries");
  return strided<Exec>(view);
}

}  // namespace kindex::query

#endif
