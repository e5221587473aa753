// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_SEGMENTLEVELS_HPP
#define KINDEX_BUILD_SEGMENTLEVELS_HPP

/// \file
/// Segments as a learned index stores them, and how it writes them.

#include <kindex/build/Copy.hpp>
#include <kindex/build/SegmentFit.hpp>
#include <kindex/query/Node.hpp>

#include <cstdint>

namespace kindex::build {

/// A level of segments.
struct SegmentLevel {
  size_type first;     ///< its first segment among all
  size_type segments;  ///< how many
  int scale;           ///< of their intercepts
};

/// A segment as lookups read it, in one load of 16 bytes: a key's rank is near
/// `intercept` * 2^scale + `slope` * (coordinate - `key`). Rounding to single
/// precision adds up to 2^-23 of the segment's length, and the scale, 0 below
/// 2^32 entries, up to 2^-32 of their number: both only move where a search
/// begins.
///
/// \tparam X type of the coordinates, of 64 bits.
template <class X>
struct alignas(16) Segment {
  X key;                    ///< the first coordinate that it covers
  float slope;              ///< ranks per coordinate
  std::uint32_t intercept;  ///< rank at `key`
};

/// The same with coordinates of 32 bits, which leave room for the rank where
/// the next one begins.
template <>
struct alignas(16) Segment<std::uint32_t> {
  std::uint32_t key;        ///< the first coordinate that it covers
  float slope;              ///< ranks per coordinate
  std::uint32_t intercept;  ///< rank at `key`
  std::uint32_t limit;      ///< intercept of the next segment
};

/// Maps entries to the coordinates to which lines are fitted.
template <class Entries>
struct CoordinateOfEntry {
  Entries entries;

  KOKKOS_FUNCTION auto operator()(size_type i) const {
    return query::code_bits(entries.key(i));
  }
};

/// The coordinates at which segments start.
template <class X>
struct CoordinateOfSegment {
  const X* starts;

  KOKKOS_FUNCTION X operator()(size_type i) const { return starts[i]; }
};

/// Writes a level: segment i from what was fitted, behind the last one the
/// number of what is below, and padding for windows that reach beyond.
template <class X>
struct WriteLevel {
  const X* starts;
  const LinearModel* models;
  size_type segments;
  size_type below;  ///< entries, or segments of the level below
  int scale;
  Segment<X>* level;

  KOKKOS_FUNCTION std::uint32_t intercept(size_type i) const {
    const std::int64_t rank =
        i < segments ? models[i].intercept : static_cast<std::int64_t>(below);
    return static_cast<std::uint32_t>(size_type(rank > 0 ? rank : 0) >> scale);
  }

  KOKKOS_FUNCTION void operator()(size_type i) const {
    Segment<X> segment;
    segment.key = i < segments ? starts[i] : static_cast<X>(~X{0});
    segment.slope = i < segments ? static_cast<float>(models[i].slope) : 0.0F;
    segment.intercept = intercept(i);
    if constexpr (sizeof(X) == 4) segment.limit = intercept(i + 1);
    level[i] = segment;
  }
};

/// Writes cell i of the table: the segment of the least coordinate in it.
template <class X>
struct WriteCells {
  const Segment<X>* leaves;
  size_type segments;
  int shift;
  std::uint32_t* cells;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const X least = leaves[0].key + (X(i) << shift);
    size_type first = 0;
    for (size_type length = segments; length > 1;) {
      const size_type half = length / 2;
      first += leaves[first + half].key <= least ? half : 0;
      length -= half;
    }
    cells[i] = static_cast<std::uint32_t>(first);
  }
};

/// Counts segments in cells that have at least `many`.
struct CountCrowded {
  const std::uint32_t* cells;
  std::uint32_t many;

  KOKKOS_FUNCTION void operator()(size_type i, size_type& sum) const {
    const std::uint32_t count = cells[i + 1] - cells[i];
    if (count >= many) sum += count;
  }
};

/// Draws queries from an index's own keys, anywhere among them.
template <class Ref, class Key>
struct DrawKeys {
  Ref ref;
  Key* keys;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    // The multiplier of splitmix64 takes neighbours far apart.
    keys[i] = ref.key_at((i + 1) * 0x9E3779B97F4A7C15U % ref.size());
  }
};

}  // namespace kindex::build

#endif
