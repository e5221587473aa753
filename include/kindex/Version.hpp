// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef KINDEX_VERSION_HPP
#define KINDEX_VERSION_HPP

/// \file
/// The version of these headers. CMake reads it from here, so this is the only
/// place that names it.

/// Incremented when a release breaks callers.
#define KINDEX_VERSION_MAJOR 0
/// Incremented when a release adds to the interface.
#define KINDEX_VERSION_MINOR 1
/// Incremented when a release only repairs.
#define KINDEX_VERSION_PATCH 0
/// One number that orders releases: `major * 10000 + minor * 100 + patch`.
#define KINDEX_VERSION                                         \
  (KINDEX_VERSION_MAJOR * 10000 + KINDEX_VERSION_MINOR * 100 + \
   KINDEX_VERSION_PATCH)

namespace kindex {

/// \brief The KINDEX_VERSION that the linked library was compiled from.
///
/// Differs from the macro only when a program runs with another shared library
/// than it was compiled for.
int version() noexcept;

}  // namespace kindex

#endif  // KINDEX_VERSION_HPP
