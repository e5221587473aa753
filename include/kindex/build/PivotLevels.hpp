// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_PIVOTLEVELS_HPP
#define KINDEX_BUILD_PIVOTLEVELS_HPP

/// \file
/// Implicit levels of pivots above ascending entries: the inner nodes of a tree
/// without pointers.

#include <kindex/build/Copy.hpp>
#include <kindex/build/HugePages.hpp>
#include <kindex/query/PivotRouter.hpp>

#include <algorithm>
#include <string>

namespace kindex::build {

/// The levels that are stored, from the root, while they are built.
struct PivotShape {
  /// Enough for 2^64 units.
  static constexpr int most = 64;

  query::PivotLevel level[most] = {};
  int height = 0;
};

/// Writes the table of levels.
struct WritePivotLevels {
  PivotShape shape;
  query::PivotLevel* table;

  KOKKOS_FUNCTION void operator()(int level) const {
    table[level] = shape.level[level];
  }
};

/// Writes pivot i of all levels.
template <class Entries, class Key, int K>
struct WritePivots {
  Entries entries;
  Key* pivots;
  PivotShape shape;
  size_type reach;  ///< entries below a child of the root

  KOKKOS_FUNCTION void operator()(size_type slot) const {
    int level = 0;
    size_type below = reach;
    while (level + 1 < shape.height && shape.level[level + 1].offset <= slot) {
      ++level;
      below /= K;
    }
    const size_type i = slot - shape.level[level].offset;
    const size_type position = below * (1 + i + i / (K - 1)) - 1;
    pivots[slot] =
        entries.key(position < entries.size ? position : entries.size - 1);
  }
};

/// Levels of pivots above ascending entries, owned and counted like a View.
///
/// The lowest level leads to units of equally many entries, of which the last
/// may be short: leaves, or what is searched in other ways. A pivot is the
/// largest key of its child's subtree. With levels l counted from the lowest,
/// pivot i of level l is the key at position K^l·U·(1 + i + ⌊i/(K−1)⌋) − 1, or
/// the last key behind the end, for units of U entries: one load and one store
/// per pivot, all levels in parallel, in one kernel.
///
/// \tparam Key type of the keys.
/// \tparam K children of a node.
template <class Key, int K, class MemorySpace>
class PivotLevels {
 public:
  using Router = query::PivotRouter<Key, K>;  ///< as kernels see them

  /// No levels.
  PivotLevels() = default;

  /// Levels up to a single node above `units` units.
  static int depth(size_type units) {
    int levels = 0;
    for (size_type nodes = units; nodes > 1; ++levels)
      nodes = (nodes - 1) / K + 1;
    return levels;
  }

  /// Writes levels above entries: two kernels, or none, on `space`.
  ///
  /// \param name of the index, for labels.
  /// \param entries at least one, which stand in their memory until then.
  /// \param unit entries of a unit.
  /// \param height how many levels, of all that there can be the topmost: the
  ///   units must be as large as the children of the last of them.
  /// \param pages of the levels, where they are a host's.
  template <class Exec, class Entries>
  PivotLevels(const char* name, const Exec& space, const Entries& entries,
              size_type unit, int height, Pages pages = Pages::ordinary)
      : units_((entries.size - 1) / unit + 1), unit_(unit) {
    if (height == 0) return;
    PivotShape shape;
    shape.height = height;
    size_type nodes = units_, reach = unit, pivots = 0;
    for (int level = height - 1; level >= 0; --level) {
      nodes = (nodes - 1) / K + 1;
      shape.level[level].nodes = nodes;
      if (level > 0) reach *= K;
    }
    for (int level = 0; level < height; ++level) {
      shape.level[level].offset = pivots;
      pivots += shape.level[level].nodes * (K - 1);
    }
    const auto label = [&](const char* what) {
      return std::string("kindex::") + name + "::" + what;
    };
    const auto alloc = [&](const char* what) {
      return Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                label(what));
    };
    levels_ =
        Kokkos::View<query::PivotLevel*, MemorySpace>(alloc("levels"), height);
    Kokkos::parallel_for(label("write_levels"),
                         Kokkos::RangePolicy<Exec>(space, 0, height),
                         WritePivotLevels{shape, levels_.data()});
    pivots_ = Kokkos::View<Key*, MemorySpace>(alloc("pivots"), pivots);
    huge_bytes_ = use_pages(pages, pivots_);
    Kokkos::parallel_for(
        label("write_pivots"),
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                                pivots),
        WritePivots<Entries, Key, K>{entries, pivots_.data(), shape, reach});
  }

  /// All levels up to a single node.
  template <class Exec, class Entries>
  PivotLevels(const char* name, const Exec& space, const Entries& entries,
              size_type unit, Pages pages)
      : PivotLevels(name, space, entries, unit,
                    depth((entries.size - 1) / unit + 1), pages) {}

  /// How many levels.
  int height() const { return static_cast<int>(levels_.extent(0)); }

  /// Bytes of pivots and of the table of levels.
  size_type memory_bytes() const {
    return pivots_.extent(0) * sizeof(Key) +
           levels_.extent(0) * sizeof(query::PivotLevel);
  }

  /// Bytes for which huge pages were asked, and not refused.
  size_type huge_page_bytes() const { return huge_bytes_; }

  /// The handle for kernels: trivially copyable, non-owning.
  ///
  /// \param how nodes are searched on a host.
  Router router(NodeSearch how) const {
    Router router;
    router.levels = levels_.data();
    router.pivots = pivots_.data();
    router.units = units_;
    router.unit = unit_;
    router.height = height();
    router.how = how;
    return router;
  }

  /// The same levels in `Space`: shared where they are there, else copied on
  /// `space`, asynchronously: these must stay alive until then.
  template <class Space, class Exec>
  PivotLevels<Key, K, Space> copy_to(const Exec& space) const {
    PivotLevels<Key, K, Space> copy;
    copy.levels_ = copied_to<Space>(space, levels_);
    copy.pivots_ = copied_to<Space>(space, pivots_);
    copy.units_ = units_;
    copy.unit_ = unit_;
    return copy;
  }

 private:
  template <class, int, class>
  friend class PivotLevels;

  Kokkos::View<query::PivotLevel*, MemorySpace> levels_;
  Kokkos::View<Key*, MemorySpace> pivots_;
  size_type units_ = 0;
  size_type unit_ = 0;
  size_type huge_bytes_ = 0;
};

}  // namespace kindex::build

#endif
