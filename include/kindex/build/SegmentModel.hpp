// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_SEGMENTMODEL_HPP
#define KINDEX_BUILD_SEGMENTMODEL_HPP

/// \file
/// The model of a learned index in memory, and copies of it in another.

#include <kindex/build/Copy.hpp>
#include <kindex/build/SegmentLevels.hpp>
#include <kindex/query/SegmentRouter.hpp>

#include <utility>

namespace kindex::build {

/// Segments, the levels they form and the table of the lowest, owned and
/// counted like a View; see query::SegmentRouter for what they mean.
///
/// \tparam Key type of the keys.
template <class Key, class MemorySpace>
struct SegmentModel {
  using Router = query::SegmentRouter<Key>;  ///< as kernels see it
  using Segment = typename Router::Segment;  ///< what levels consist of

  Kokkos::View<Segment*, MemorySpace> segments;     ///< of all levels
  Kokkos::View<SegmentLevel*, MemorySpace> levels;  ///< from the leaves
  /// Per level, the number of segments down to its end.
  Kokkos::View<size_type*, Kokkos::HostSpace> level_ends;
  Kokkos::View<Segment*, Kokkos::HostSpace> top;    ///< the first segments
  Kokkos::View<std::uint32_t*, MemorySpace> cells;  ///< empty: no table
  int shift = 0;        ///< bits of coordinates that cells leave out
  bool crowds = false;  ///< whether a good part of the segments share cells

  /// No segments.
  SegmentModel() = default;
  /// Shares the segments, as a View does.
  SegmentModel(const SegmentModel&) = default;
  /// Shares the segments, as a View does.
  SegmentModel& operator=(const SegmentModel&) = default;
  /// Takes the segments, and leaves none.
  SegmentModel(SegmentModel&& other) noexcept { *this = std::move(other); }
  /// Takes the segments, and leaves none, unless it is the same.
  SegmentModel& operator=(SegmentModel&& other) noexcept {
    if (this == &other) return *this;
    segments = std::exchange(other.segments, {});
    levels = std::exchange(other.levels, {});
    level_ends = std::exchange(other.level_ends, {});
    top = std::exchange(other.top, {});
    cells = std::exchange(other.cells, {});
    shift = std::exchange(other.shift, 0);
    crowds = std::exchange(other.crowds, false);
    return *this;
  }
  ~SegmentModel() = default;

  /// Levels of segments; 0 for no entries.
  int height() const { return static_cast<int>(levels.extent(0)); }

  /// Bytes of segments, levels and table.
  size_type memory_bytes() const {
    return segments.extent(0) * sizeof(Segment) +
           levels.extent(0) * sizeof(SegmentLevel) +
           cells.extent(0) * sizeof(std::uint32_t);
  }

  /// The handle for kernels: trivially copyable, non-owning.
  Router router() const {
    Router router;
    router.segments = segments.data();
    router.levels = levels.data();
    router.level_ends = level_ends.data();
    router.top = top.data();
    router.top_size = top.extent(0);
    router.cells = cells.data();
    router.cell_count = static_cast<std::uint32_t>(cells.extent(0));
    router.shift = shift;
    router.crowds = crowds;
    router.height = height();
    return router;
  }

  /// The same model in `Space`: shared where it is there, else copied on
  /// `space`, asynchronously: this one must stay alive until then.
  template <class Space, class Exec>
  SegmentModel<Key, Space> copy_to(const Exec& space) const {
    SegmentModel<Key, Space> copy;
    copy.segments = copied_to<Space>(space, segments);
    copy.levels = copied_to<Space>(space, levels);
    copy.level_ends = level_ends;
    copy.top = top;
    copy.cells = copied_to<Space>(space, cells);
    copy.shift = shift;
    copy.crowds = crowds;
    return copy;
  }
};

}  // namespace kindex::build

#endif
