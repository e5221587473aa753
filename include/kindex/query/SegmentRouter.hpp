// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_SEGMENTROUTER_HPP
#define KINDEX_QUERY_SEGMENTROUTER_HPP

/// \file
/// From keys to where a piecewise-linear model expects them.

#include <kindex/build/SegmentLevels.hpp>
#include <kindex/query/NearSearch.hpp>
#include <kindex/query/Node.hpp>
#include <kindex/query/Pinned.hpp>

#include <algorithm>

namespace kindex::query {

/// The model of a LearnedIndex as kernels see it: trivially copyable,
/// non-owning, and all that they need to predict positions. A model without
/// levels is that of no entries; it is not asked.
///
/// \tparam Key type of the keys.
template <class Key>
struct SegmentRouter {
  using X = CodeBits<Key>;            ///< type of the coordinates
  using Segment = build::Segment<X>;  ///< what levels consist of
  using pinned_type = Segment;        ///< what the search order consists of

  /// Lanes that read segments together, one each.
  static constexpr int lanes = 4;
  /// Segments that are read together.
  static constexpr int window = lanes;
  /// Segments of a cell that are too many for the window that begins with its
  /// first.
  static constexpr std::uint32_t many = window - 1;

  const Segment* segments = nullptr;  ///< of all levels, from the root
  const build::SegmentLevel* levels = nullptr;  ///< from the leaves
  /// Per level, the number of segments down to its end; in host memory.
  const size_type* level_ends = nullptr;
  /// The first of `segments` in host memory, and how many.
  const Segment* top = nullptr;
  size_type top_size = 0;
  /// Per range of coordinates, the segment of its least; null: no table.
  const std::uint32_t* cells = nullptr;
  std::uint32_t cell_count = 0;  ///< how many; 0: search level by level
  int shift = 0;                 ///< bits of coordinates that cells leave out
  bool crowds = false;           ///< whether guesses look at a cell's end
  int height = 0;                ///< levels

  /// Where each lane's own keys are expected among the entries; the lanes of a
  /// group read segments together. Not necessarily below their number.
  ///
  /// \tparam Index an unsigned type that holds twice the number of entries.
  template <class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void route(const Group& group, const Top& top,
                             const Key (&keys)[Own], Index (&near)[Own]) const {
    X x[Own];
    for (int o = 0; o < Own; ++o) x[o] = code_bits(keys[o]);
    if (cell_count > 0) {
      const build::SegmentLevel leaves = levels[0];
      const X least =
          with_segments(top, leaves.first, 1,
                        [](const Segment* first) { return first->key; });
      for (int o = 0; o < Own; ++o)
        near[o] = guess_segment<Index>(x[o] > least ? X(x[o] - least) : X{0});
      find_segments(group, top, leaves, x, near);
      for (int o = 0; o < Own; ++o)
        near[o] = expect(top, leaves, x[o], near[o]);
    } else {
      for (int o = 0; o < Own; ++o) near[o] = 0;
      for (int level = height - 1; level >= 0; --level) {
        const build::SegmentLevel at = levels[level];
        if (at.segments > 1) {
          // From the segment before the one that is expected to be the next.
          for (int o = 0; o < Own; ++o) {
            const Index last = Index(at.segments) - 1;
            const Index guess = near[o] < last ? near[o] : last;
            near[o] = guess > 0 ? guess - 1 : 0;
          }
          find_segments(group, top, at, x, near);
        }
        for (int o = 0; o < Own; ++o) near[o] = expect(top, at, x[o], near[o]);
      }
    }
  }

  /// How many segments are pinned for `steps` levels (−1: as many as fit) from
  /// the root, at most `most`. For the host.
  size_type pinned_size(int steps, size_type most) const {
    if (height == 0 || steps == 0) return 0;
    const int lowest = steps < 0 || steps > height ? 0 : height - steps;
    return std::min(level_ends[lowest], most);
  }

  /// Segment i of the model, from the root.
  KOKKOS_FUNCTION Segment pinned_key(size_type i) const { return segments[i]; }

  /// The first segments of the model, in host memory.
  PinnedKeys<Segment> top_on_host() const { return {top, top_size}; }

 private:
  /// The segment where a search for the coordinate `offset` above the least may
  /// begin: the cell's first; where cells have many, as far from it as `offset`
  /// is in the cell.
  template <class Index>
  KOKKOS_FUNCTION Index guess_segment(X offset) const {
    const X cell = X(offset >> shift);
    if (cell >= cell_count - 1) return Index(cells[cell_count - 1]);
    if (!crowds) return Index(cells[cell]);
    const std::uint32_t first = cells[cell];
    const std::uint32_t others = cells[cell + 1] - first;
    if (others < many || shift == 0) return Index(first);
    std::uint32_t fraction;  // by 2^32
    if constexpr (sizeof(X) <= 4) {
      fraction = std::uint32_t(offset) << (32 - shift);
    } else {
      fraction = std::uint32_t((offset << (64 - shift)) >> 32);
    }
    const auto before = std::uint32_t((std::uint64_t(others) * fraction) >> 32);
    return Index(first) + (before > 0 ? before - 1 : 0);
  }

  /// From guesses to the segments that hold the coordinates.
  template <class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void find_segments(const Group& group, const Top& top,
                                     const build::SegmentLevel& level,
                                     const X (&x)[Own],
                                     Index (&segment_of)[Own]) const {
    const auto load = [&](Index first) {
      return with_segments(top, level.first + first, window,
                           [&](const Segment* at) {
                             return load_keys<window>(group, at, Index(0));
                           });
    };
    const auto fetch = [&](Index first) {
      prefetch(segments + level.first + first);
    };
    bool found[Own];
    const auto count = static_cast<Index>(level.segments);
    search_near<window, NearBound::not_above, false>(group, load, fetch, count,
                                                     x, segment_of, found);
    for (int o = 0; o < Own; ++o) {
      const Index not_above = segment_of[o] < count ? segment_of[o] : count;
      segment_of[o] = not_above > 0 ? not_above - 1 : 0;
    }
  }

  /// Where segment `segment` expects `x` in what is below, the next level or
  /// the entries: not beyond the next segment's first.
  template <class Index, class Top>
  KOKKOS_FUNCTION Index expect(const Top& top, const build::SegmentLevel& level,
                               X x, Index segment) const {
    // In lines that were just read.
    struct Line {
      Segment model;
      std::uint32_t limit;
    };
    const auto [model, limit] =
        with_segments(top, level.first + segment, 2, [](const Segment* at) {
          const Segment first = load<Reuse::often>(at);
          if constexpr (sizeof(X) == 4) {
            return Line{first, first.limit};
          } else {
            return Line{first, at[1].intercept};
          }
        });
    const Index first = Index(model.intercept) << level.scale;
    const Index room = limit > model.intercept
                           ? Index(limit - model.intercept) << level.scale
                           : 0;
    const float ranks =
        x > model.key ? model.slope * static_cast<float>(x - model.key) : 0.0F;
    // In this order, since large floats are no integers.
    return first + (ranks < static_cast<float>(room) ? static_cast<Index>(ranks)
                                                     : room);
  }

  /// What `use` makes of segment `first` of all and the `count` - 1 behind it.
  /// (A choice of pointers would hide from compilers which memory is read.)
  template <class Top, class Use>
  KOKKOS_FUNCTION auto with_segments(const Top& top, size_type first, int count,
                                     const Use& use) const {
    if (top.holds(first, count)) return use(top.keys(segments) + first);
    return use(segments + first);
  }
};

}  // namespace kindex::query

#endif
