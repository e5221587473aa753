// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_LINEARFIT_HPP
#define KINDEX_BUILD_LINEARFIT_HPP

/// \file
/// Piecewise-linear functions from coordinates to ranks, with few segments.

#include <kindex/build/SegmentFit.hpp>
#include <kindex/query/Engine.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>

namespace kindex::build {

/// Segments in memory.
///
/// \tparam X type of the coordinates.
template <class X, class MemorySpace>
struct LinearSegments {
  Kokkos::View<X*, MemorySpace> starts;            ///< first coordinates
  Kokkos::View<LinearModel*, MemorySpace> models;  ///< one for each
  size_type count = 0;                             ///< how many
};

/// The points to which lines are fitted, by number. Index i of n coordinates in
/// ascending order stands for up to two points of rank i: number 2i, the
/// coordinate after a run of equal ones that ended before i, so that absent
/// keys behind the run are predicted too; and number 2i + 1, coordinate i if it
/// is not that of i − 1. Index n can have the first kind.
///
/// \tparam CoordinateOf `x(i)`, i < n, ascending.
template <class X, class CoordinateOf>
struct FitPoints {
  CoordinateOf coordinate;
  size_type size;

  /// Behind the last number.
  KOKKOS_FUNCTION size_type end() const { return 2 * size + 1; }

  /// The points of one index.
  struct Pair {
    X after;         ///< coordinate of number 2i
    X own;           ///< coordinate of number 2i + 1
    bool has_after;  ///< whether there is a number 2i
    bool has_own;    ///< whether there is a number 2i + 1
  };

  /// Coordinate `i`; anything behind the last one.
  KOKKOS_FUNCTION X load(size_type i) const {
    return i < size ? coordinate(i) : X{0};
  }

  /// The points of index `i`, whose coordinate is `own`, behind `before` and
  /// `before_that`; none beyond `size`.
  KOKKOS_FUNCTION Pair points_of(size_type i, X own, X before,
                                 X before_that) const {
    const bool inside = i < size;
    const bool has_own = inside && (i == 0 || own != before);
    const bool ends = i > 1 && (i == size || has_own);
    const X after = before + 1;
    return {after, own,
            ends && before_that == before && after != X{0} &&
                (!inside || after != own),
            has_own};
  }

  /// The points of index `i`; none beyond `size`.
  KOKKOS_FUNCTION Pair at(size_type i) const {
    return points_of(i, load(i), i > 0 ? load(i - 1) : X{0},
                     i > 1 ? load(i - 2) : X{0});
  }
};

/// The points of consecutive indices, one for each lane of a group and then as
/// many further on.
template <class Points, class X, class Group>
class PointWindows {
 public:
  /// Begins with the window from index `base` on.
  KOKKOS_FUNCTION PointWindows(const Points& points, size_type base)
      : points_(points), index_(base + Group().lane()) {
    if constexpr (is_shared) {
      // All loads at once.
      previous_ =
          index_ >= Group::size ? points.load(index_ - Group::size) : X{0};
      for (int w = 0; w < depth; ++w)
        ahead_[w] = points.load(index_ + w * Group::size);
    }
  }

  /// The points of this lane's index; goes on to the next window.
  KOKKOS_FUNCTION auto take() {
    const size_type index = index_;
    index_ += Group::size;
    if constexpr (is_shared) {
      const Group group;
      const X own = ahead_[0];
      const auto before = [&](int distance) {
        const int from = group.lane() - distance;
        const X here = group.broadcast(own, from & (Group::size - 1));
        const X there = group.broadcast(previous_, from & (Group::size - 1));
        return from >= 0 ? here : there;
      };
      const auto pair = points_.points_of(index, own, before(1), before(2));
      previous_ = own;
      for (int w = 0; w + 1 < depth; ++w) ahead_[w] = ahead_[w + 1];
      ahead_[depth - 1] = points_.load(index + depth * Group::size);
      return pair;
    } else {
      return points_.at(index);
    }
  }

 private:
  static constexpr bool is_shared = Group::size > 1;
  /// Windows that are on their way: a walk waits for memory otherwise.
  static constexpr int depth = 4;

  Points points_;
  size_type index_;
  X previous_ = 0;
  X ahead_[is_shared ? depth : 1] = {};
};

/// The corners of the convex hull of a block's points, which bound the same
/// lines as all its points: of n random ones, some 2 ln n.
struct BlockCorners {
  static constexpr int most = 32;
  static constexpr std::uint16_t too_many = 4;  ///< `codes[0]`: not known
  /// Of a block: so few that a segment whose hulls are small (FitHulls) cannot
  /// fill them within one, which would end it.
  static constexpr size_type most_indices = 512;

  /// Number of the point in the block, times 4, and which hulls it is on: 1,
  /// the lower; 2, the upper. In ascending order, and 0 behind the last.
  std::uint16_t codes[most];
};

/// A segment that was fitted.
template <class X>
struct FittedSegment {
  size_type point;  ///< number of its first point
  X start;          ///< coordinate of it
  LinearModel model;
};

/// What is known of a chunk's segments after it was fitted on its own.
struct alignas(16) FittedChunk {
  std::uint32_t segments;    ///< that start in it
  std::uint32_t extensions;  ///< that follow, up to where another chunk's
                             ///< segments continue
  std::uint32_t next;        ///< that chunk, or none
  std::uint32_t position;    ///< which of its segments
};

/// Memory and layout of a fit.
template <class Types, class CoordinateOf>
struct FitPlan {
  using X = typename Types::X;
  using Point = typename Types::Point;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// Segments fitted beyond a chunk before one is cut to end where another
  /// chunk's begins: one in a hundred more than there must be.
  static constexpr std::uint32_t most_extensions = 100;

  FitPoints<X, CoordinateOf> points;
  size_type epsilon;
  size_type block_size;  ///< indices of a block, a power of two
  size_type blocks;      ///< whose corners were looked for, from the first on
  BlockCorners* corners;
  size_type chunks;
  size_type chunk_size;  ///< indices of a chunk
  size_type capacity;    ///< segments of a chunk at most
  int hull_size;         ///< points of a hull at most
  FittedSegment<X>* segments;
  FittedSegment<X>* extensions;
  FittedChunk* fitted;
  FitHulls<Types>* hulls;  ///< of the last segment of each chunk
  Point* scratch;          ///< hulls of every worker

  /// Number of the first point that may lie in chunk `c`.
  KOKKOS_FUNCTION size_type begin_of(size_type c) const {
    return 2 * c * chunk_size;
  }
  /// Number behind its last one.
  KOKKOS_FUNCTION size_type end_of(size_type c) const {
    return c + 1 < chunks ? 2 * (c + 1) * chunk_size : points.end();
  }
  /// The chunk of point `p`.
  KOKKOS_FUNCTION size_type chunk_of(size_type p) const {
    const size_type c = p / 2 / chunk_size;
    return c < chunks ? c : chunks - 1;
  }
  KOKKOS_FUNCTION FittedSegment<X>* segments_of(size_type c) const {
    return segments + c * capacity;
  }
  /// Extensions of a chunk at most: the piece that is cut lies in one chunk,
  /// and ends early only where a hull is full.
  KOKKOS_FUNCTION size_type extension_capacity() const {
    return most_extensions + 2 + chunk_size / size_type(hull_size - 1);
  }
  KOKKOS_FUNCTION FittedSegment<X>* extensions_of(size_type c) const {
    return extensions + c * extension_capacity();
  }
};

/// The corners of consecutive blocks, one for each lane of a group.
template <class Types, class CoordinateOf, class Group>
class CornerWindows {
  using X = typename Types::X;
  using Rank = typename Types::Rank;
  using Plan = FitPlan<Types, CoordinateOf>;
  static_assert(Group::size == BlockCorners::most);

 public:
  /// A point that may bound a segment.
  struct Corner {
    X x;
    Rank y;
    unsigned sides;  ///< which lines it may change; 0: there is none
    bool is_known;   ///< false if the block has more than there are lanes
  };

  /// Begins with block `b`.
  KOKKOS_FUNCTION CornerWindows(const Plan& plan, size_type b)
      : plan_(plan), block_(b) {
    for (int w = 0; w < code_depth; ++w) codes_[w] = load_code(b + w);
    for (int w = 0; w < depth; ++w) ahead_[w] = load(b + w, codes_[w]);
  }

  /// This lane's corner of a block; goes on to the next.
  KOKKOS_FUNCTION Corner take() {
    const unsigned code = codes_[0];
    const Corner corner{ahead_[0], static_cast<Rank>(index_of(block_, code)),
                        code & 3U, code != BlockCorners::too_many};
    ++block_;
    for (int w = 0; w + 1 < code_depth; ++w) codes_[w] = codes_[w + 1];
    for (int w = 0; w + 1 < depth; ++w) ahead_[w] = ahead_[w + 1];
    codes_[code_depth - 1] = load_code(block_ + code_depth - 1);
    ahead_[depth - 1] = load(block_ + depth - 1, codes_[depth - 1]);
    return corner;
  }

 private:
  /// Blocks whose coordinates are on their way.
  static constexpr int depth = 2;
  /// The same of what says where they are.
  static constexpr int code_depth = 2 * depth;

  KOKKOS_FUNCTION size_type index_of(size_type block, unsigned code) const {
    return block * plan_.block_size + code / 8;
  }
  KOKKOS_FUNCTION unsigned load_code(size_type block) const {
    return block < plan_.blocks ? plan_.corners[block].codes[Group().lane()]
                                : 0;
  }
  KOKKOS_FUNCTION X load(size_type block, unsigned code) const {
    if (code == 0) return 0;
    const size_type after = (code & 4U) != 0 ? 0 : 1;
    return static_cast<X>(plan_.points.load(index_of(block, code) - after) +
                          after);
  }

  const Plan& plan_;
  size_type block_;
  unsigned codes_[code_depth];
  X ahead_[depth];
};

/// Adds points to a segment, a group of lanes testing one index each.
template <class Types, class CoordinateOf, class Group>
class SegmentWalk {
  using X = typename Types::X;
  using Rank = typename Types::Rank;

 public:
  using Plan = FitPlan<Types, CoordinateOf>;
  using Fit = SegmentFit<Types, Group>;

  /// \param near team scratch.
  KOKKOS_FUNCTION SegmentWalk(const Plan& plan, size_type worker,
                              typename Fit::Near* near)
      : plan_(plan),
        fit_(plan.epsilon, near,
             plan.scratch + worker * 2 * size_type(plan.hull_size),
             plan.hull_size) {}

  /// Begins a segment at the next point.
  KOKKOS_FUNCTION void restart() {
    fit_.restart();
    added_ = 0;
  }
  /// Points that changed the segment, in all tries.
  KOKKOS_FUNCTION size_type added() const { return added_; }

  KOKKOS_FUNCTION bool is_empty() const { return fit_.is_empty(); }
  KOKKOS_FUNCTION FittedSegment<X> segment() const {
    return {first_, fit_.start(), fit_.model()};
  }

  /// Adds points from number `from` on; the number of the first that does not
  /// fit, or `stop`.
  KOKKOS_FUNCTION size_type extend(size_type from, size_type stop) {
    const size_type step = 2 * plan_.block_size;
    const size_type behind = plan_.blocks * step;
    const size_type end = stop < behind ? stop : behind;
    while (from < stop) {
      size_type next = stop;
      if constexpr (uses_blocks) {
        if (from < end) {
          if ((from & (step - 1)) == 0) from = extend_over_blocks(from, end);
          const size_type after = (from & ~(step - 1)) + step;
          if (after <= end) next = after;
        }
      }
      // What begins a segment, or ends it, or has no known corners.
      from = extend_by_points(from, next);
      if (from < next) return from;
    }
    return stop;
  }

  /// The same to the end of all points, and over whole chunks by their hulls.
  KOKKOS_FUNCTION size_type extend_over_chunks(size_type from) {
    while (from < plan_.points.end()) {
      const size_type c = plan_.chunk_of(from);
      const size_type stop = plan_.end_of(c);
      // Where a chunk has one segment, that one's hulls bound the same lines as
      // all points of the chunk.
      const bool whole = from == plan_.begin_of(c);
      const std::uint32_t segments = plan_.fitted[c].segments;
      const bool is_added =
          whole &&
          (segments == 0 || (segments == 1 && fit_.add_hulls(plan_.hulls[c])));
      if (!is_added) {
        const size_type point = extend(from, stop);
        if (point < stop) return point;
      }
      from = stop;
    }
    return from;
  }

  /// Writes the segment, if its hulls are small.
  KOKKOS_FUNCTION void save(FitHulls<Types>& hulls) const { fit_.save(hulls); }
  /// Goes on with a segment that was saved, from point `first`; whether it was.
  KOKKOS_FUNCTION bool load(const FitHulls<Types>& hulls, size_type first) {
    first_ = first;
    return fit_.load(hulls);
  }

 private:
  /// Hosts test points faster than they would find corners.
  static constexpr bool uses_blocks = Group::size > 1;

  /// So many points are not worth a look at which of them can be skipped.
  static constexpr int few = 3;

  /// Adds whole blocks by their corners, from number `from` on, where one
  /// begins; where the first begins that may not fit, or that ends behind
  /// `stop`.
  KOKKOS_FUNCTION size_type extend_over_blocks(size_type from, size_type stop) {
    if (!fit_.has_lines()) return from;
    const Group group;
    const size_type step = 2 * plan_.block_size;
    CornerWindows<Types, CoordinateOf, Group> windows(plan_, from / step);
    for (; from + step <= stop; from += step) {
      const auto corner = windows.take();
      if (group.which(!corner.is_known) != 0) return from;
      bool is_marked = false;
      for (int next = 0;;) {
        const unsigned own =
            group.lane() >= next
                ? fit_.changes(corner.x, corner.y) & corner.sides
                : 0;
        const unsigned which = group.which(own != 0);
        if (which == 0) break;
        if (!is_marked && !fit_.mark()) return from;
        is_marked = true;
        const int lane = Kokkos::countr_zero(which);
        if (!fit_.add(group.broadcast(corner.x, lane),
                      group.broadcast(corner.y, lane),
                      group.broadcast(own, lane))) {
          fit_.go_back();
          return from;
        }
        ++added_;
        next = lane + 1;
      }
      // A single line may touch other points than it does point by point, and
      // so be rounded otherwise.
      if (is_marked && fit_.has_one_line()) {
        fit_.go_back();
        return from;
      }
    }
    return from;
  }

  /// `extend()`, point by point.
  KOKKOS_FUNCTION size_type extend_by_points(size_type from, size_type stop) {
    const Group group;
    const auto lane_of = static_cast<size_type>(group.lane());
    PointWindows<FitPoints<X, CoordinateOf>, X, Group> windows(plan_.points,
                                                               from / 2);
    for (size_type base = from / 2; 2 * base < stop; base += Group::size) {
      const size_type i = base + lane_of;
      const auto pair = windows.take();
      const auto y = static_cast<Rank>(i);
      // Bits that changes() gives, but that points to come make irrelevant.
      unsigned skipped = 0;
      size_type marked = ~size_type{0};  // where to go back to
      bool may_skip = Group::size > 1;
      for (;;) {
        // Most points change nothing; all lanes find the first that does.
        const bool is_open = 2 * i >= from;
        const unsigned after = pair.has_after && is_open && 2 * i < stop
                                   ? fit_.changes(pair.after, y)
                                   : 0;
        const bool has_own =
            pair.has_own && 2 * i + 1 >= from && 2 * i + 1 < stop;
        const unsigned own = has_own ? fit_.changes(pair.own, y) & ~skipped : 0;
        const unsigned which = group.which((after | own) != 0);
        if (which == 0) break;
        if constexpr (Group::size > 1) {
          if (may_skip && Kokkos::popcount(which) > few && !fit_.is_empty()) {
            may_skip = false;
            if (fit_.mark()) {
              marked = from;
              skipped = implied(pair.own, has_own);
              continue;
            }
          }
        }
        const int lane = Kokkos::countr_zero(which);
        const bool is_after = after != 0;
        // Its changes, and above them which of both it is.
        const unsigned what =
            group.broadcast(is_after ? after | 4U : own, lane);
        const X x = group.broadcast(is_after ? pair.after : pair.own, lane);
        const size_type index = base + static_cast<size_type>(lane);
        const size_type point = 2 * index + ((what & 4U) != 0 ? 0 : 1);
        if (fit_.is_empty()) first_ = point;
        if (!fit_.add(x, static_cast<Rank>(index), what & 3U)) {
          if (marked == ~size_type{0}) return point;
          // The points skipped are no longer followed by all that made them
          // irrelevant.
          fit_.go_back();
          from = marked;
          marked = ~size_type{0};
          skipped = 0;
          continue;
        }
        ++added_;
        from = point + 1;
      }
    }
    return stop;
  }

  /// What this lane's point, of those that `exist` in a window, cannot change
  /// once all of them belong to the segment. Ranks of lanes are consecutive. A
  /// point above the line through one on its left and one on its right is not
  /// on the lower hull (bit 0), one below such a line not on the upper (bit 1).
  KOKKOS_FUNCTION static unsigned implied(X x, bool exists) {
    const Group group;
    const int lane = group.lane();
    const unsigned existing = group.which(exists);
    // Coordinates per rank to points on both sides. Roundings are far below
    // what is asked of their ratio: what is skipped is implied exactly.
    float left_least = 3e38F, left_most = 0;
    float right_least = 3e38F, right_most = 0;
    const auto compare = [&](int turn) {
      const int other = (lane + turn) % Group::size;
      const X at = group.broadcast(x, other);
      if ((existing >> other & 1U) == 0) return;
      if (other < lane) {
        const float gap = static_cast<float>(X(x - at)) *
                          (1.0F / static_cast<float>(Group::size - turn));
        left_least = gap < left_least ? gap : left_least;
        left_most = gap > left_most ? gap : left_most;
      } else {
        const float gap =
            static_cast<float>(X(at - x)) * (1.0F / static_cast<float>(turn));
        right_least = gap < right_least ? gap : right_least;
        right_most = gap > right_most ? gap : right_most;
      }
    };
    // All others would save a fifth of the points more, for four times as much.
    for (int distance = 1; distance < Group::size; distance *= 2) {
      compare(distance);
      if (2 * distance < Group::size) compare(Group::size - distance);
    }
    constexpr float surely = 1.0F + 1.0F / (1 << 16);
    return (left_least * surely < right_most ? 1U : 0U) |
           (right_least * surely < left_most ? 2U : 0U);
  }

  Plan plan_;
  Fit fit_;
  size_type first_ = 0;
  size_type added_ = 0;
};

/// What the kernels of a fit share: a worker is a team of one group of lanes.
template <class Exec, class Types, class CoordinateOf>
struct FitWorker {
  static constexpr int most_lanes = 32;  // of a warp
  using Group = typename query::GroupOn<Exec, most_lanes>::type;
  using Plan = FitPlan<Types, CoordinateOf>;
  using Walk = SegmentWalk<Types, CoordinateOf, Group>;

  /// Bytes of team scratch.
  static std::size_t scratch_bytes() {
    return query::scratch_bytes_of<typename Walk::Fit::Near, Exec>(1);
  }

  template <class Member>
  KOKKOS_FUNCTION static Walk walk(const Plan& plan, const Member& team) {
    return Walk(plan, static_cast<size_type>(team.league_rank()),
                query::take_scratch<typename Walk::Fit::Near, Exec>(team, 1));
  }

  /// Writes `value` once.
  template <class T>
  KOKKOS_FUNCTION static void write(T& to, const T& value) {
    if (Group().lane() == 0) to = value;
  }
};

/// Finds the corners of every block, from left to right (Andrew, "Another
/// efficient algorithm for convex hulls in two dimensions", 1979): two lanes
/// work on a block, one on each hull.
template <class Exec, class Types, class CoordinateOf>
struct FindCorners {
  using X = typename Types::X;
  using Rank = typename Types::Rank;
  using Point = typename Types::Point;
  using Group = typename FitWorker<Exec, Types, CoordinateOf>::Group;
  static constexpr int rows = Group::size / 2;  ///< blocks of a group
  static constexpr int capacity = 24;           ///< corners of a hull at most

  /// Team scratch.
  struct Near {
    X coordinates[rows][1 + Group::size];  ///< of each block, the one before
                                           ///< and those that are looked at
    X corners[capacity][Group::size];  ///< of each lane, so far: coordinates
    std::uint16_t numbers[capacity][Group::size];  ///< and numbers in the block
  };

  FitPlan<Types, CoordinateOf> plan;

  static std::size_t scratch_bytes() {
    return query::scratch_bytes_of<Near, Exec>(1);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Group group;
    Near& near = *query::take_scratch<Near, Exec>(team, 1);
    const int lane = group.lane();
    const size_type first = team.league_rank() * size_type(rows);
    const X* const coordinates = near.coordinates[lane / 2];
    // Upside down, the upper hull is a lower one.
    const int side = lane % 2 == 0 ? 1 : -1;
    const auto y_of = [&](int number) {
      return static_cast<Rank>(side * (number / 2));
    };
    int count = 0;
    bool has_room = true;
    Point second{}, last{};
    for (size_type base = 0; base < plan.block_size; base += Group::size) {
      unsigned after = 0, own = 0;  // of this lane's block
      load(near, first, base, after, own);
      int number = 0;
      Point point{};
      const auto next = [&] {
        const unsigned some = after | own;
        if (some == 0) return false;
        const unsigned lowest = some & (~some + 1U);
        const int i = Kokkos::countr_zero(some);
        const bool is_after = (after & lowest) != 0;
        number = 2 * (static_cast<int>(base) + i) + (is_after ? 0 : 1);
        point = {is_after ? X(coordinates[i] + 1) : coordinates[i + 1],
                 y_of(number)};
        if (is_after) {
          after ^= lowest;
        } else {
          own ^= lowest;
        }
        return true;
      };
      // Each turn takes out one corner or adds one: lanes that take out several
      // do not hold up the others.
      bool goes_on = has_room && next();
      while (goes_on) {
        if (count >= 2 && Types::turns(second, last, point) <= 0) {
          --count;
          last = second;
          if (count >= 2)
            second = {near.corners[count - 2][lane],
                      y_of(near.numbers[count - 2][lane])};
        } else {
          has_room = count < capacity;
          if (has_room) {
            near.corners[count][lane] = point.x;
            near.numbers[count][lane] = static_cast<std::uint16_t>(number);
            ++count;
            second = last;
            last = point;
          }
          goes_on = has_room && next();
        }
      }
      group.sync();
    }
    const int uppers = group.broadcast(count, lane | 1);
    const unsigned with_room = group.which(has_room) >> lane;
    const size_type block = first + static_cast<size_type>(lane / 2);
    if (lane % 2 == 0 && block < plan.blocks)
      write(near, lane, (with_room & 3U) == 3, count, uppers,
            plan.corners[block].codes);
  }

 private:
  /// Brings the coordinates of every block from `base` on, and which of this
  /// lane's may be corners.
  KOKKOS_FUNCTION void load(Near& near, size_type first, size_type base,
                            unsigned& after, unsigned& own) const {
    const Group group;
    const int lane = group.lane();
    constexpr int batch = 4;  // on their way at once
    for (int r = 0; r < rows; r += batch) {
      X here[batch], there[batch];
      for (int b = 0; b < batch; ++b) {
        const size_type i =
            (first + static_cast<size_type>(r + b)) * plan.block_size + base +
            static_cast<size_type>(lane);
        here[b] = plan.points.load(i);
        there[b] = base > 0           ? near.coordinates[r + b][1 + lane]
                   : i >= Group::size ? plan.points.load(i - Group::size)
                                      : X{0};
      }
      group.sync();
      for (int b = 0; b < batch; ++b) {
        const auto before = [&](int distance) {
          const int from = lane - distance;
          const X inside = group.broadcast(here[b], from & (Group::size - 1));
          const X outside = group.broadcast(there[b], from & (Group::size - 1));
          return from >= 0 ? inside : outside;
        };
        const size_type i =
            (first + static_cast<size_type>(r + b)) * plan.block_size + base +
            static_cast<size_type>(lane);
        const X one = before(1);
        const auto pair = plan.points.points_of(i, here[b], one, before(2));
        const unsigned afters = group.which(pair.has_after);
        const unsigned owns = group.which(pair.has_own);
        // What is not below a line through two others, as far on the left as on
        // the right, is no corner of the lower hull: nearly two thirds of
        // random points.
        unsigned lowers = owns, uppers = owns;
        for (int distance = 1; distance <= 4; distance *= 2) {
          const X left =
              X(here[b] - group.broadcast(
                              here[b], (lane - distance) & (Group::size - 1)));
          const X right = X(
              group.broadcast(here[b], (lane + distance) & (Group::size - 1)) -
              here[b]);
          const unsigned both = owns << distance & owns >> distance;
          lowers &= ~(both & group.which(left <= right));
          uppers &= ~(both & group.which(left >= right));
        }
        if (lane / 2 == r + b) {
          after = afters;
          own = lane % 2 == 0 ? lowers : uppers;
        }
        if (lane == 0) near.coordinates[r + b][0] = one;
        near.coordinates[r + b][1 + lane] = here[b];
      }
    }
    group.sync();
  }

  /// Writes the corners of both hulls, of lanes `lane` and `lane + 1`.
  KOKKOS_FUNCTION static void write(const Near& near, int lane, bool fits,
                                    int lowers, int uppers,
                                    std::uint16_t* codes) {
    int count = 0;
    for (int l = 0, u = 0; fits && (l < lowers || u < uppers);) {
      const unsigned low = l < lowers ? near.numbers[l][lane] : ~0U;
      const unsigned high = u < uppers ? near.numbers[u][lane + 1] : ~0U;
      fits = count < BlockCorners::most;
      if (fits)
        codes[count++] = static_cast<std::uint16_t>(
            4 * (low < high ? low : high) + (low <= high ? 1 : 0) +
            (high <= low ? 2 : 0));
      l += low <= high ? 1 : 0;
      u += high <= low ? 1 : 0;
    }
    if (!fits) {
      count = 1;
      codes[0] = BlockCorners::too_many;
    }
    while (count < BlockCorners::most) codes[count++] = 0;
  }
};

/// Fits one segment at the start of each chunk, to learn how long they are.
template <class Exec, class Types, class CoordinateOf>
struct ProbeSegments {
  using Worker = FitWorker<Exec, Types, CoordinateOf>;

  typename Worker::Plan plan;
  size_type* lengths;  ///< indices that each covers; 0: too long to tell

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto walk = Worker::walk(plan, team);
    for (size_type c = team.league_rank(); c < plan.chunks;
         c += team.league_size()) {
      walk.restart();
      const size_type begin = plan.begin_of(c);
      // So long ones are the same to who asks; and a straight line is changed
      // by every point.
      const size_type end = begin + 2 * (plan.points.size / 256);
      const size_type most = 64 * plan.epsilon + 1024;
      size_type length = 0;
      for (size_type from = begin; from < end && walk.added() < most;) {
        constexpr size_type step = 8192;
        // Where blocks end, too.
        const size_type next = (from / step + 1) * step;
        const size_type stop = next < end ? next : end;
        const size_type point = walk.extend(from, stop);
        if (point < stop) {
          length = (point - begin) / 2;
          break;
        }
        from = stop;
      }
      Worker::write(lengths[c], length);
    }
  }
};

/// Fits every chunk on its own; its last segment stays open.
template <class Exec, class Types, class CoordinateOf>
struct FitChunks {
  using X = typename Types::X;
  using Worker = FitWorker<Exec, Types, CoordinateOf>;
  using Plan = typename Worker::Plan;

  Plan plan;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto walk = Worker::walk(plan, team);
    for (size_type c = team.league_rank(); c < plan.chunks;
         c += team.league_size()) {
      FittedSegment<X>* const segments = plan.segments_of(c);
      std::uint32_t count = 0;
      const size_type stop = plan.end_of(c);
      walk.restart();
      for (size_type from = plan.begin_of(c);;) {
        from = walk.extend(from, stop);
        if (walk.is_empty()) break;
        Worker::write(segments[count++], walk.segment());
        if (from >= stop) break;
        walk.restart();
      }
      Worker::write(plan.fitted[c], {count, 0, Plan::none, 0});
      if (count > 0) walk.save(plan.hulls[c]);
    }
  }
};

/// Finishes the last segment of every chunk and goes on behind it until it
/// meets the segments of another chunk.
template <class Exec, class Types, class CoordinateOf>
struct StitchChunks {
  using X = typename Types::X;
  using Worker = FitWorker<Exec, Types, CoordinateOf>;
  using Plan = typename Worker::Plan;
  using Walk = typename Worker::Walk;

  Plan plan;
  FittedChunk* stitched;  ///< what it finds, as `plan.fitted` is still read

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto walk = Worker::walk(plan, team);
    if (is_one_chain(static_cast<size_type>(team.league_size()))) {
      if (team.league_rank() > 0) return;
      for (size_type c = 0; c < plan.chunks;) {
        const FittedChunk chunk = stitch(walk, c);
        Worker::write(stitched[c], chunk);
        c = chunk.segments == 0        ? c + 1
            : chunk.next == Plan::none ? plan.chunks
                                       : size_type(chunk.next);
      }
      return;
    }
    for (size_type c = team.league_rank(); c < plan.chunks;
         c += team.league_size())
      Worker::write(stitched[c], stitch(walk, c));
  }

 private:
  /// Whether one worker follows the only chain that counts sooner than all
  /// follow those of every chunk, of which most come to nothing: those meet
  /// after some eight segments.
  KOKKOS_FUNCTION bool is_one_chain(size_type workers) const {
    // More are not worth the sum.
    if (plan.chunks > 16384) return false;
    const typename Worker::Group group;
    unsigned segments = 0;
    for (size_type c = group.lane(); c < plan.chunks; c += Worker::Group::size)
      segments += plan.fitted[c].segments;
    segments = group.sum(segments);
    return segments < plan.chunks + 8 * plan.chunks / workers;
  }

  KOKKOS_FUNCTION FittedChunk stitch(Walk& walk, size_type c) const {
    FittedChunk chunk = plan.fitted[c];
    if (chunk.segments == 0) return chunk;
    FittedSegment<X>& last = plan.segments_of(c)[chunk.segments - 1];
    FittedSegment<X>* const extensions = plan.extensions_of(c);
    // The segment that stayed open goes on.
    const bool is_known = walk.load(plan.hulls[c], last.point);
    size_type point =
        walk.extend_over_chunks(is_known ? plan.end_of(c) : last.point);
    // Others read where it starts.
    Worker::write(last.model, walk.segment().model);
    while (point < plan.points.end()) {
      const size_type other = plan.chunk_of(point);
      const std::uint32_t position = position_of(other, point);
      const bool meets = position < plan.fitted[other].segments &&
                         plan.segments_of(other)[position].point == point;
      if (meets) {
        chunk.next = static_cast<std::uint32_t>(other);
        chunk.position = position;
        return chunk;
      }
      walk.restart();
      if (chunk.extensions == Plan::most_extensions) {
        cut(walk, chunk, extensions, other, position, point);
        return chunk;
      }
      point = walk.extend_over_chunks(point);
      Worker::write(extensions[chunk.extensions++], walk.segment());
    }
    return chunk;
  }

  /// Ends the segment that begins at `point` where the first one of another
  /// chunk does, from segment `position` of chunk `other` on: what lies between
  /// is part of the segment before that one, and so fits a line.
  KOKKOS_FUNCTION void cut(Walk& walk, FittedChunk& chunk,
                           FittedSegment<X>* extensions, size_type other,
                           std::uint32_t position, size_type point) const {
    while (other < plan.chunks && position == plan.fitted[other].segments) {
      ++other;
      position = 0;
    }
    const bool ends = other == plan.chunks;
    const size_type stop =
        ends ? plan.points.end() : plan.segments_of(other)[position].point;
    // Without the points before them, these may fill a hull.
    while ((point = walk.extend(point, stop)) < stop) {
      Worker::write(extensions[chunk.extensions++], walk.segment());
      walk.restart();
    }
    Worker::write(extensions[chunk.extensions++], walk.segment());
    if (!ends) {
      chunk.next = static_cast<std::uint32_t>(other);
      chunk.position = position;
    }
  }

  /// The first segment of chunk `c` from point `point` on.
  KOKKOS_FUNCTION std::uint32_t position_of(size_type c,
                                            size_type point) const {
    const FittedSegment<X>* const segments = plan.segments_of(c);
    std::uint32_t first = 0;
    std::uint32_t last = plan.fitted[c].segments;
    while (first < last) {
      const std::uint32_t middle = first + (last - first) / 2;
      if (segments[middle].point < point) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }
};

/// Follows the segments from chunk to chunk: where those of each that are used
/// begin, and how many come before. By one thread, and the others of its team
/// bring what it reads next to where that takes no time.
template <class Exec>
struct FollowChunks {
  static constexpr size_type window = 1024;

  const FittedChunk* chunks;
  size_type count;
  size_type* first;   ///< of each chunk, the first segment that is used; none:
                      ///< not any
  size_type* offset;  ///< used ones before; behind the last chunk, all

  static std::size_t scratch_bytes() {
    return query::scratch_bytes_of<FittedChunk, Exec>(window) +
           query::scratch_bytes_of<size_type, Exec>(1);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto* const near = query::take_scratch<FittedChunk, Exec>(team, window);
    auto* const begin = query::take_scratch<size_type, Exec>(team, 1);
    const auto thread = static_cast<size_type>(team.team_rank());
    const auto threads = static_cast<size_type>(team.team_size());
    for (size_type c = thread; c < count; c += threads)
      first[c] = ~size_type{0};
    team.team_barrier();
    size_type total = 0;
    size_type position = 0;
    for (size_type base = 0; base < count; base = *begin) {
      const size_type end = base + window < count ? base + window : count;
      for (size_type c = base + thread; c < end; c += threads)
        near[c - base] = chunks[c];
      team.team_barrier();
      if (thread == 0) {
        size_type c = base;
        while (c < end) {
          const FittedChunk chunk = near[c - base];
          if (chunk.segments == 0) {
            // Only before the first point.
            ++c;
            continue;
          }
          first[c] = position;
          offset[c] = total;
          total += chunk.segments - position + chunk.extensions;
          const bool ends = chunk.next == ~std::uint32_t{0};
          c = ends ? count : chunk.next;
          position = chunk.position;
        }
        *begin = c;
        if (c >= count) offset[count] = total;
      }
      team.team_barrier();
    }
  }
};

/// Writes the segments that are used, chunk by chunk.
template <class Types, class CoordinateOf>
struct CollectSegments {
  using X = typename Types::X;

  FitPlan<Types, CoordinateOf> plan;
  const FittedChunk* chunks;
  const size_type* first;
  const size_type* offset;
  X* starts;
  LinearModel* models;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const size_type c = team.league_rank();
    if (first[c] == ~size_type{0}) return;
    const size_type own = chunks[c].segments - first[c];
    const size_type all = own + chunks[c].extensions;
    for (size_type i = team.team_rank(); i < all; i += team.team_size()) {
      const FittedSegment<X> segment = i < own
                                           ? plan.segments_of(c)[first[c] + i]
                                           : plan.extensions_of(c)[i - own];
      starts[offset[c] + i] = segment.start;
      models[offset[c] + i] = segment.model;
    }
  }
};

namespace impl {

__extension__ typedef __int128 Int128;

/// Arrays side by side, each from a multiple of 16 bytes.
struct ArrayLayout {
  size_type bytes = 0;

  /// Where the next one begins, of `count` elements.
  template <class T>
  size_type take(size_type count) {
    const size_type begin = (bytes + 15) / 16 * 16;
    bytes = begin + count * sizeof(T);
    return begin;
  }
};

/// The array at `offset` of `memory`.
template <class T>
T* array_at(std::byte* memory, size_type offset) {
  return reinterpret_cast<T*>(memory + offset);
}

/// One fit, its memory and its kernels.
template <class Types, class Exec, class CoordinateOf>
class LinearFitter {
  using X = typename Types::X;
  using Memory = typename Exec::memory_space;
  using Plan = FitPlan<Types, CoordinateOf>;
  using Worker = FitWorker<Exec, Types, CoordinateOf>;
  using Teams = Kokkos::TeamPolicy<Exec>;
  /// Of one group of lanes, so many to a multiprocessor as must find registers:
  /// measured on an H100, 20 were faster than 24 (chunks of 10^8 keys took 3.4
  /// instead of 3.6 ms, of uint64 7.2 instead of 8.5).
  using Workers = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<32, 20>>;
  static constexpr bool is_gpu = query::DeviceTraits<Exec>::is_gpu;
  /// On an H100, a wave of warps or less (measured: 6.1 ms for 10^8 keys, with
  /// 4096 chunks 7.3).
  static constexpr size_type most_chunks = 2560;
  static constexpr size_type probes = 64;  ///< of the length of segments

 public:
  LinearFitter(const Exec& space, const std::string& label,
               const CoordinateOf& x, size_type n, size_type epsilon)
      : space_(space), label_(label) {
    plan_.points = {x, n};
    plan_.epsilon = epsilon;
    plan_.hull_size = 1024;
  }

  LinearSegments<X, Memory> fit(size_type chunks) {
    size_blocks();
    const size_type most =
        std::clamp<size_type>(plan_.points.size >> 14, 1, most_chunks);
    const bool is_probed = chunks == 0 && most > 1;
    // Few allocations: each costs as much as a kernel.
    ArrayLayout early;
    const size_type corners = early.take<BlockCorners>(plan_.blocks);
    const size_type lengths = early.take<size_type>(is_probed ? probes : 0);
    const size_type probe = early.take<typename Types::Point>(
        is_probed ? probes * 2 * size_type(plan_.hull_size) : 0);
    const auto found = view<std::byte>("corners", early.bytes);
    plan_.corners = array_at<BlockCorners>(found.data(), corners);
    plan_.scratch = array_at<typename Types::Point>(found.data(), probe);
    find_corners();
    divide(chunks > 0 ? chunks
           : is_probed
               ? chosen_chunks(most, array_at<size_type>(found.data(), lengths))
               : 1);
    // A segment ends beyond 2 epsilon ranks, or where a hull is full.
    plan_.capacity =
        plan_.chunk_size /
            std::min<size_type>(2 * plan_.epsilon + 1, plan_.hull_size - 1) +
        2;
    ArrayLayout layout;
    const size_type segments =
        layout.take<FittedSegment<X>>(plan_.chunks * plan_.capacity);
    const size_type extensions = layout.take<FittedSegment<X>>(
        plan_.chunks * plan_.extension_capacity());
    const size_type fitted_at = layout.take<FittedChunk>(plan_.chunks);
    const size_type stitched_at = layout.take<FittedChunk>(plan_.chunks);
    const size_type hulls = layout.take<FitHulls<Types>>(plan_.chunks);
    const size_type first_at = layout.take<size_type>(plan_.chunks);
    const size_type offset_at = layout.take<size_type>(plan_.chunks + 1);
    const size_type scratch = layout.take<typename Types::Point>(
        size_type(workers_) * 2 * plan_.hull_size);
    const auto memory = view<std::byte>("memory", layout.bytes);
    plan_.segments = array_at<FittedSegment<X>>(memory.data(), segments);
    plan_.extensions = array_at<FittedSegment<X>>(memory.data(), extensions);
    plan_.fitted = array_at<FittedChunk>(memory.data(), fitted_at);
    plan_.hulls = array_at<FitHulls<Types>>(memory.data(), hulls);
    plan_.scratch = array_at<typename Types::Point>(memory.data(), scratch);
    auto* const stitched = array_at<FittedChunk>(memory.data(), stitched_at);
    auto* const first = array_at<size_type>(memory.data(), first_at);
    auto* const offset = array_at<size_type>(memory.data(), offset_at);
    run("fit_chunks", FitChunks<Exec, Types, CoordinateOf>{plan_});
    run("stitch_chunks",
        StitchChunks<Exec, Types, CoordinateOf>{plan_, stitched});
    using Follow = FollowChunks<Exec>;
    Kokkos::parallel_for(
        label_ + "::follow_chunks",
        Teams(space_, 1, is_gpu ? 256 : 1)
            .set_scratch_size(
                query::DeviceTraits<Exec>::scratch_level,
                Kokkos::PerTeam(static_cast<int>(Follow::scratch_bytes()))),
        Follow{stitched, plan_.chunks, first, offset});
    LinearSegments<X, Memory> result;
    Kokkos::deep_copy(space_,
                      Kokkos::View<size_type, Kokkos::HostSpace>(&result.count),
                      Kokkos::View<size_type, Memory>(offset + plan_.chunks));
    space_.fence(label_ + "::fit: the number of segments");
    result.starts = view<X>("starts", result.count);
    result.models = view<LinearModel>("models", result.count);
    Kokkos::parallel_for(
        label_ + "::collect_segments",
        Teams(space_, static_cast<int>(plan_.chunks), is_gpu ? 64 : 1),
        CollectSegments<Types, CoordinateOf>{plan_, stitched, first, offset,
                                             result.starts.data(),
                                             result.models.data()});
    return result;
  }

 private:
  template <class T>
  Kokkos::View<T*, Memory> view(const char* what, size_type size) const {
    return Kokkos::View<T*, Memory>(
        Kokkos::view_alloc(space_, Kokkos::WithoutInitializing,
                           label_ + "::fit::" + what),
        size);
  }

  void divide(size_type chunks) {
    const size_type n = plan_.points.size;
    plan_.chunk_size = (n - 1) / std::min(chunks, n) + 1;
    plan_.chunks = (n - 1) / plan_.chunk_size + 1;
    // Up to 32 warps per multiprocessor: more have no registers.
    const auto concurrency = static_cast<size_type>(space_.concurrency());
    workers_ = static_cast<int>(std::min<size_type>(
        plan_.chunks,
        is_gpu ? std::max<size_type>(concurrency / 64, 1) : concurrency));
  }

  /// Segments of random keys have some 4 epsilon^2 indices: with blocks of a
  /// few epsilon, the blocks within one cost as much as its points before and
  /// behind them.
  void size_blocks() {
    plan_.block_size = std::bit_floor(
        std::min<size_type>(8 * plan_.epsilon, BlockCorners::most_indices));
    const bool is_worth_it = Worker::Group::size > 1 &&
                             plan_.block_size >= 64 &&
                             plan_.points.size >= size_type{1} << 14;
    plan_.blocks = is_worth_it ? plan_.points.size / plan_.block_size : 0;
  }

  void find_corners() const {
    if constexpr (Worker::Group::size > 1) {
      if (plan_.blocks == 0) return;
      using Find = FindCorners<Exec, Types, CoordinateOf>;
      // Kokkos would refuse a number of teams for which there is no scratch.
      using Finders = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<32>>;
      Finders teams(space_,
                    static_cast<int>((plan_.blocks - 1) / Find::rows + 1),
                    Worker::Group::size);
      teams.set_scratch_size(
          query::DeviceTraits<Exec>::scratch_level,
          Kokkos::PerTeam(static_cast<int>(Find::scratch_bytes())));
      Kokkos::parallel_for(label_ + "::find_corners", teams, Find{plan_});
    }
  }

  template <class Kernel>
  void run(const char* what, const Kernel& kernel) const {
    Workers teams(space_, workers_, Worker::Group::size);
    teams.set_scratch_size(
        query::DeviceTraits<Exec>::scratch_level,
        Kokkos::PerTeam(static_cast<int>(Worker::scratch_bytes())));
    Kokkos::parallel_for(label_ + "::" + what, teams, kernel);
  }

  /// As many chunks as warps can work on, but such that chains of segments meet
  /// soon: of four segments each, where they are not so long that their hulls
  /// are what counts.
  size_type chosen_chunks(size_type most, size_type* lengths_at) {
    const size_type n = plan_.points.size;
    divide(std::min(probes, most));
    const Kokkos::View<size_type*, Memory> lengths(lengths_at, plan_.chunks);
    run("probe_segments",
        ProbeSegments<Exec, Types, CoordinateOf>{plan_, lengths.data()});
    const auto on_host = Kokkos::create_mirror_view(
        Kokkos::view_alloc(Kokkos::HostSpace(), Kokkos::WithoutInitializing),
        lengths);
    Kokkos::deep_copy(space_, on_host, lengths);
    space_.fence(label_ + "::fit: lengths of segments");
    size_type told = 0;
    size_type sum = 0;
    for (size_type i = 0; i < plan_.chunks; ++i) {
      told += on_host(i) > 0 ? 1 : 0;
      sum += on_host(i);
    }
    if (2 * told < plan_.chunks) return most;
    return std::clamp<size_type>(n / (4 * (sum / told) + 1), 1, most);
  }

  Exec space_;
  std::string label_;
  Plan plan_{};
  int workers_ = 1;
};

}  // namespace impl

/// Fits segments to the points of n ascending coordinates (see FitPoints): each
/// has a line within `epsilon` of the ranks of all its points, real-valued, and
/// each but the last ends where none is. From one chunk, they are the fewest
/// possible (O'Rourke, 1981; Ferragina and Vinciguerra, 2020).
///
/// Chunks are fitted side by side: each on its own first; then every chunk's
/// last segment is finished, and the segments behind it are fitted up to where
/// one begins at the point where another chunk's does, since from there on both
/// agree. If none does within 100, it is cut. So there are as many segments as
/// from one chunk, or 1 % more; and what they are depends on `chunks`, not on
/// threads or device (which may choose different numbers of them). On a GPU, a
/// warp fits a chunk and tests 32 coordinates at once; where blocks of 8
/// epsilon indices, at most 512, lie within a segment, only the corners of
/// their convex hulls, which are found before; and what covers whole chunks
/// reads their hulls only, which is what makes long segments parallel.
///
/// A segment also ends where a hull has 1024 points, which only points on a
/// strictly curved line have.
///
/// Memory for the call: for each chunk of C indices C / (2·epsilon) + C / 1000
/// + 104 segments of 32 bytes and 2 KiB; 32 KiB for each worker, up to 32 per
/// multiprocessor or one per host thread; on a GPU 64 bytes for each block.
/// Three kernels, a fence to learn the number of segments, one more kernel; on
/// a GPU, from 2^14 coordinates and epsilon 8 on, one kernel before, for the
/// corners; unless `chunks` is given, one kernel and one fence more. Freeing
/// memory fences all instances.
///
/// \param space the instance.
/// \param label of the kernels and Views, as `kindex::Class`.
/// \param x `x(i)` for i < n: ascending coordinates, called in kernels.
/// \param n how many.
/// \param epsilon the error bound, at least 1.
/// \param chunks pieces (many more than a quarter of the segments cost time:
///   their chains meet late); 0: as many as give each about four segments, by a
///   probe of 64 places; at most n / 2^14 and 2560.
template <class X, class Exec, class CoordinateOf>
LinearSegments<X, typename Exec::memory_space> fit_segments(
    const Exec& space, const std::string& label, const CoordinateOf& x,
    size_type n, size_type epsilon, size_type chunks = 0) {
  if (n == 0) return {};
  if constexpr (sizeof(X) <= 4) {
    // 32 bits times 31 of the ranks.
    if (n < (size_type{1} << 30))
      return impl::LinearFitter<FitTypes<X, std::int32_t, std::int64_t>, Exec,
                                CoordinateOf>(space, label, x, n, epsilon)
          .fit(chunks);
  }
  return impl::LinearFitter<FitTypes<X, std::int64_t, impl::Int128>, Exec,
                            CoordinateOf>(space, label, x, n, epsilon)
      .fit(chunks);
}

}  // namespace kindex::build

#endif
