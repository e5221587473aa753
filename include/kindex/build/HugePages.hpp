// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_HUGEPAGES_HPP
#define KINDEX_BUILD_HUGEPAGES_HPP

/// \file
/// Large pages for a host's memory, of which the processor translates many
/// more bytes without a look into its tables.

#include <kindex/Types.hpp>

namespace kindex {

/// Of which size the pages of a host's memory are.
enum class Pages {
  ordinary,  ///< as the system has them
  huge       ///< 2 MiB or so, where the system has them
};

namespace build {

/// Asks the system for huge pages for what of `bytes` bytes at `first` is made
/// of whole ones; of use before they are first written. Returns for how many
/// bytes it was asked and will try, 0 where it has no such pages or refuses.
/// (Compiled in the library.)
size_type ask_for_huge_pages(void* first, size_type bytes);

/// The same for the memory of a View that has not been written, if `pages` says
/// so; 0 where it is not an ordinary one of the host.
template <class View>
size_type use_pages(Pages pages, const View& view) {
  if constexpr (std::is_same_v<typename View::memory_space,
                               Kokkos::HostSpace>) {
    if (pages == Pages::huge)
      return ask_for_huge_pages(view.data(),
                                view.span() * sizeof(*view.data()));
  }
  return 0;
}

}  // namespace build
}  // namespace kindex

#endif
