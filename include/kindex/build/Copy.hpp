// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_COPY_HPP
#define KINDEX_BUILD_COPY_HPP

/// \file
/// Views of one memory in another, and single elements from the host.

#include <kindex/Types.hpp>

namespace kindex::build {

/// `source` in `Space`: itself if it is there, else a copy that `space` makes.
template <class Space, class Exec, class View>
auto copied_to(const Exec& space, const View& source) {
  using Copy = Kokkos::View<typename View::data_type, Space>;
  if constexpr (std::is_same_v<Space, typename View::memory_space>) {
    return Copy(source);
  } else {
    const Copy copy(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, source.label()),
        source.extent(0));
    Kokkos::deep_copy(space, copy, source);
    return copy;
  }
}

/// Writes an element.
template <class T>
struct WriteElement {
  T value;
  T* to;

  KOKKOS_FUNCTION void operator()(int) const { *to = value; }
};

}  // namespace kindex::build

#endif
