// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_SEGMENTFIT_HPP
#define KINDEX_BUILD_SEGMENTFIT_HPP

/// \file
/// The lines that pass near all points of a segment, point by point.

#include <kindex/Types.hpp>

#include <cstdint>

namespace kindex::build {

/// A line from coordinates to ranks.
struct alignas(16) LinearModel {
  std::int64_t intercept;  ///< rank at the segment's first coordinate
  double slope;            ///< ranks per coordinate, not negative

  /// The rank of a coordinate `distance` behind the first, rounded down; 0
  /// where that is negative, and at most 2^62.
  template <class X>
  KOKKOS_FUNCTION size_type predict(X distance) const {
    const double rank =
        static_cast<double>(intercept) + slope * static_cast<double>(distance);
    constexpr double most = 4611686018427387904.0;
    return rank <= 0      ? 0
           : rank >= most ? size_type{1} << 62
                          : static_cast<size_type>(rank);
  }
};

/// In which types a fit computes.
///
/// \tparam CoordinateType unsigned type of the coordinates.
/// \tparam RankType signed integers that hold ranks, and the error bound more
///   or less.
/// \tparam WideType signed integers that hold the product of a difference of
///   coordinates and one of ranks.
template <class CoordinateType, class RankType, class WideType>
struct FitTypes {
  using X = CoordinateType;  ///< coordinates
  using Rank = RankType;     ///< ranks
  using Wide = WideType;     ///< products

  /// A point of a hull.
  struct Point {
    X x;     ///< coordinate
    Rank y;  ///< rank, and the error bound more or less
  };

  /// Positive where the way from `a` over `b` to `c` turns left, negative where
  /// it turns right.
  KOKKOS_FUNCTION static int turns(const Point& a, const Point& b,
                                   const Point& c) {
    const Wide left = Wide(c.y - a.y) * Wide(X(b.x - a.x));
    const Wide right = Wide(b.y - a.y) * Wide(X(c.x - a.x));
    return left > right ? 1 : left < right ? -1 : 0;
  }
};

/// A segment whose hulls are small: all that another one needs to know to cover
/// its points, too, or to go on where it ended.
template <class Types>
struct FitHulls {
  using Point = typename Types::Point;
  static constexpr int most = 64;  ///< points of a hull

  int upper;                ///< points of the upper hull
  int lower;                ///< points of the lower hull; 0: not known
  typename Types::X start;  ///< first coordinate
  int count;                ///< points, up to 2
  Point lines[4];           ///< which the extreme lines touch
  Point points[2 * most];   ///< upper hull, then lower hull
};

/// The set of lines within `epsilon` of every point of a segment, whose points
/// come in ascending order (O'Rourke, "An on-line algorithm for fitting
/// straight lines between data ranges", 1981; so in the PGM-index, 2020).
///
/// A line is feasible if it passes below the points (x, y + epsilon), of which
/// the lower convex hull matters ("upper"), and above the points
/// (x, y − epsilon), of which the upper hull matters ("lower"). The feasible
/// lines of least and of greatest slope each touch both hulls, at points that
/// are kept; so a point that neither of them misses changes nothing, and one
/// that both allow to reach it on one side moves one of them: it becomes the
/// hull's last point, and the line turns around the other hull.
///
/// All comparisons are exact: slopes are compared by products of differences.
///
/// All lanes of a group hold the same segment and call its methods together;
/// one of them writes the hulls. Hulls are small, some dozen points, unless
/// points lie on a strictly curved line: they begin in `near` memory and move
/// to `far` memory when they outgrow it.
///
/// \tparam Types FitTypes.
/// \tparam Group the lanes.
template <class Types, class Group>
class SegmentFit {
  using X = typename Types::X;
  using Rank = typename Types::Rank;
  using Wide = typename Types::Wide;

 public:
  using Point = typename Types::Point;  ///< of a hull

  /// Points of a hull in near memory.
  static constexpr int near_size = FitHulls<Types>::most;

  /// Near memory: two hulls, and what to go back to.
  struct Near {
    Point points[2 * near_size];  ///< upper hull, lower hull
    FitHulls<Types> undo;         ///< a segment as it was
  };

  /// \param epsilon the error bound.
  /// \param near uninitialised.
  /// \param far 2 * `far_size` points.
  KOKKOS_FUNCTION SegmentFit(size_type epsilon, Near* near, Point* far,
                             int far_size)
      : epsilon_(static_cast<Rank>(epsilon)),
        near_(near),
        far_(far),
        far_size_(far_size) {
    restart();
  }

  /// Forgets all points.
  KOKKOS_FUNCTION void restart() {
    count_ = 0;
    upper_begin_ = lower_begin_ = upper_end_ = lower_end_ = 0;
    upper_ = near_->points;
    lower_ = near_->points + near_size;
    capacity_ = near_size;
  }

  /// Whether there are no points.
  KOKKOS_FUNCTION bool is_empty() const { return count_ == 0; }

  /// The first coordinate.
  KOKKOS_FUNCTION X start() const { return start_; }

  /// Whether there are extreme lines, through two points.
  KOKKOS_FUNCTION bool has_lines() const { return count_ == 2; }

  /// Whether the extreme lines are the same.
  KOKKOS_FUNCTION bool has_one_line() const {
    return Wide(least_to_.y - least_from_.y) *
               Wide(X(most_to_.x - most_from_.x)) ==
           Wide(most_to_.y - most_from_.y) *
               Wide(X(least_to_.x - least_from_.x));
  }

  /// What a point behind all others changes: bit 0, the steepest line; bit 1,
  /// the flattest.
  KOKKOS_FUNCTION unsigned changes(X x, Rank y) const {
    if (count_ < 2) return 3;
    return (lowers_most(x, y + epsilon_) ? 1U : 0U) |
           (raises_least(x, y - epsilon_) ? 2U : 0U);
  }

  /// Adds a point behind all others that makes `changes`; false, and nothing is
  /// changed, where no line would be feasible, or a hull would grow too large.
  KOKKOS_FUNCTION bool add(X x, Rank y, unsigned changes) {
    const Point above{x, y + epsilon_};
    const Point below{x, y - epsilon_};
    if (count_ < 2) {
      if (count_ == 0) {
        start_ = x;
        least_from_ = above;
        most_from_ = below;
      } else {
        least_to_ = below;
        most_to_ = above;
      }
      write(upper_ + upper_end_++, above);
      write(lower_ + lower_end_++, below);
      Group().sync();
      ++count_;
      return true;
    }
    // A point that a line misses on the wrong side moves the other line.
    const bool lowers = (changes & 1U) != 0;
    const bool raises = (changes & 2U) != 0;
    if ((lowers && misses_least(above)) || (raises && misses_most(below)) ||
        !has_room(1, 1))
      return false;
    if (lowers) lower_most(above);
    if (raises) raise_least(below);
    return true;
  }

  /// Adds all points that `hulls` stand for; false, and nothing is changed,
  /// where no line would be feasible, or that is not known.
  KOKKOS_FUNCTION bool add_hulls(const FitHulls<Types>& hulls) {
    if (hulls.lower == 0 || count_ < 2 || !mark() ||
        !has_room(hulls.upper, hulls.lower))
      return false;
    const Point* const upper = hulls.points;
    const Point* const lower = upper + hulls.upper;
    bool feasible = true;
    for (int u = 0, l = 0; feasible && u + l < hulls.upper + hulls.lower;) {
      // In ascending order; of one coordinate, the upper point first.
      if (l == hulls.lower || (u < hulls.upper && upper[u].x <= lower[l].x)) {
        const Point above = upper[u++];
        feasible = !misses_least(above);
        if (feasible && lowers_most(above.x, above.y)) lower_most(above);
      } else {
        const Point below = lower[l++];
        feasible = !misses_most(below);
        if (feasible && raises_least(below.x, below.y)) raise_least(below);
      }
    }
    if (!feasible) go_back();
    return feasible;
  }

  /// Keeps the segment as it is, if its hulls are small; whether they are.
  KOKKOS_FUNCTION bool mark() {
    Group().sync();
    save(near_->undo);
    Group().sync();
    return near_->undo.lower > 0;
  }

  /// Becomes what it was when `mark()` said true for the last time.
  KOKKOS_FUNCTION void go_back() { load(near_->undo); }

  /// Writes the segment, if its hulls are small.
  KOKKOS_FUNCTION void save(FitHulls<Types>& hulls) const {
    const int uppers = upper_end_ - upper_begin_;
    const int lowers = lower_end_ - lower_begin_;
    const bool small =
        uppers <= FitHulls<Types>::most && lowers <= FitHulls<Types>::most;
    if (small) {
      copy(upper_ + upper_begin_, hulls.points, uppers);
      copy(lower_ + lower_begin_, hulls.points + uppers, lowers);
    }
    if (Group().lane() == 0) {
      hulls.upper = small ? uppers : 0;
      hulls.lower = small ? lowers : 0;
      hulls.start = start_;
      hulls.count = count_;
      hulls.lines[0] = least_from_;
      hulls.lines[1] = least_to_;
      hulls.lines[2] = most_from_;
      hulls.lines[3] = most_to_;
    }
  }

  /// Becomes what was saved; false where that was too large.
  KOKKOS_FUNCTION bool load(const FitHulls<Types>& hulls) {
    Group().sync();
    restart();
    if (hulls.lower == 0) return false;
    upper_end_ = hulls.upper;
    lower_end_ = hulls.lower;
    copy(hulls.points, upper_, upper_end_);
    copy(hulls.points + upper_end_, lower_, lower_end_);
    start_ = hulls.start;
    count_ = hulls.count;
    least_from_ = hulls.lines[0];
    least_to_ = hulls.lines[1];
    most_from_ = hulls.lines[2];
    most_to_ = hulls.lines[3];
    Group().sync();
    return true;
  }

  /// A feasible line, but for its rounding to an integer intercept.
  ///
  /// The slope is between the least and the greatest; of lines with that slope,
  /// the hulls give the lowest and the highest that are feasible, and the
  /// intercept is the integer nearest to the middle of both. So |predict(x) −
  /// y| is below epsilon + 3/2, for integers at most epsilon + 1, at every
  /// point: 1/2 comes from the intercept, less than 1 from rounding down; what
  /// doubles lose is below 2^-10 for ranks below 2^40.
  KOKKOS_FUNCTION LinearModel model() const {
    double slope = 0;
    if (count_ >= 2) {
      const double least = slope_of(least_from_, least_to_);
      const double most = slope_of(most_from_, most_to_);
      slope = ((least > 0 ? least : 0) + most) / 2;
    }
    double highest = intercept_at(upper_[upper_begin_], slope);
    for (int i = upper_begin_ + 1; i < upper_end_; ++i) {
      const double intercept = intercept_at(upper_[i], slope);
      highest = intercept < highest ? intercept : highest;
    }
    double lowest = intercept_at(lower_[lower_begin_], slope);
    for (int i = lower_begin_ + 1; i < lower_end_; ++i) {
      const double intercept = intercept_at(lower_[i], slope);
      lowest = intercept > lowest ? intercept : lowest;
    }
    return {
        static_cast<std::int64_t>(Kokkos::floor((lowest + highest) / 2 + 0.5)),
        slope};
  }

 private:
  KOKKOS_FUNCTION static void write(Point* to, const Point& point) {
    // No lane reads what others still compare.
    Group().sync();
    if (Group().lane() == 0) *to = point;
  }

  /// Copies points, by all lanes.
  KOKKOS_FUNCTION static void copy(const Point* from, Point* to, int count) {
    for (int i = Group().lane(); i < count; i += Group::size) to[i] = from[i];
  }

  /// Whether the hulls have room for so many points more: otherwise moves them
  /// to the front of their memory, or to far memory.
  KOKKOS_FUNCTION bool has_room(int uppers, int lowers) {
    if (upper_end_ + uppers <= capacity_ && lower_end_ + lowers <= capacity_)
      return true;
    const int upper = upper_end_ - upper_begin_;
    const int lower = lower_end_ - lower_begin_;
    const Point* const uppers_from = upper_ + upper_begin_;
    const Point* const lowers_from = lower_ + lower_begin_;
    if (upper + uppers > capacity_ || lower + lowers > capacity_) {
      upper_ = far_;
      lower_ = far_ + far_size_;
      capacity_ = far_size_;
    }
    move(uppers_from, upper_, upper);
    move(lowers_from, lower_, lower);
    upper_begin_ = lower_begin_ = 0;
    upper_end_ = upper;
    lower_end_ = lower;
    return upper + uppers <= capacity_ && lower + lowers <= capacity_;
  }

  /// Copies points to memory that may overlap theirs, but not begin behind.
  KOKKOS_FUNCTION static void move(const Point* from, Point* to, int count) {
    const Group group;
    for (int first = 0; first < count; first += Group::size) {
      const int i = first + group.lane();
      const Point point = i < count ? from[i] : Point{};
      group.sync();
      if (i < count) to[i] = point;
      group.sync();
    }
  }

  /// Whether the slope from `a` to (x, y) is below that from `a` to `b`.
  KOKKOS_FUNCTION static bool is_flatter(const Point& a, X x, Rank y,
                                         const Point& b) {
    return Wide(y - a.y) * Wide(X(b.x - a.x)) <
           Wide(b.y - a.y) * Wide(X(x - a.x));
  }
  KOKKOS_FUNCTION static bool is_steeper(const Point& a, X x, Rank y,
                                         const Point& b) {
    return Wide(y - a.y) * Wide(X(b.x - a.x)) >
           Wide(b.y - a.y) * Wide(X(x - a.x));
  }

  /// Whether the steepest line passes above the point, which is not to be.
  KOKKOS_FUNCTION bool lowers_most(X x, Rank y) const {
    return is_flatter(most_from_, x, y, most_to_);
  }
  /// Whether the flattest line passes below the point, which is not to be.
  KOKKOS_FUNCTION bool raises_least(X x, Rank y) const {
    return is_steeper(least_from_, x, y, least_to_);
  }
  /// Whether even the flattest line passes above the point.
  KOKKOS_FUNCTION bool misses_least(const Point& above) const {
    return is_flatter(least_from_, above.x, above.y, least_to_);
  }
  /// Whether even the steepest line passes below the point.
  KOKKOS_FUNCTION bool misses_most(const Point& below) const {
    return is_steeper(most_from_, below.x, below.y, most_to_);
  }

  /// Turns the steepest line down to `above`, around the lower hull.
  KOKKOS_FUNCTION void lower_most(const Point& above) {
    int touched = lower_begin_;
    for (int i = touched + 1; i < lower_end_; ++i) {
      // The slope to `above` falls along the hull up to where it touches.
      if (is_steeper_to(lower_[i], lower_[touched], above)) break;
      touched = i;
    }
    most_from_ = lower_[touched];
    most_to_ = above;
    lower_begin_ = touched;
    while (upper_end_ >= upper_begin_ + 2 &&
           Types::turns(upper_[upper_end_ - 2], upper_[upper_end_ - 1],
                        above) <= 0)
      --upper_end_;
    write(upper_ + upper_end_++, above);
    Group().sync();
  }

  /// Turns the flattest line up to `below`, around the upper hull.
  KOKKOS_FUNCTION void raise_least(const Point& below) {
    int touched = upper_begin_;
    for (int i = touched + 1; i < upper_end_; ++i) {
      if (is_steeper_to(upper_[touched], upper_[i], below)) break;
      touched = i;
    }
    least_from_ = upper_[touched];
    least_to_ = below;
    upper_begin_ = touched;
    while (lower_end_ >= lower_begin_ + 2 &&
           Types::turns(lower_[lower_end_ - 2], lower_[lower_end_ - 1],
                        below) >= 0)
      --lower_end_;
    write(lower_ + lower_end_++, below);
    Group().sync();
  }

  /// Whether the slope from `a` to `to` is above that from `b` to `to`.
  KOKKOS_FUNCTION static bool is_steeper_to(const Point& a, const Point& b,
                                            const Point& to) {
    return Wide(to.y - a.y) * Wide(X(to.x - b.x)) >
           Wide(to.y - b.y) * Wide(X(to.x - a.x));
  }

  KOKKOS_FUNCTION static double slope_of(const Point& a, const Point& b) {
    return static_cast<double>(b.y - a.y) / static_cast<double>(X(b.x - a.x));
  }
  KOKKOS_FUNCTION double intercept_at(const Point& point, double slope) const {
    // Fused on every device, so that all find the same intercept.
    return Kokkos::fma(-slope, static_cast<double>(X(point.x - start_)),
                       static_cast<double>(point.y));
  }

  Rank epsilon_;
  Near* near_;
  Point* far_;
  int far_size_;
  Point* upper_;
  Point* lower_;
  int capacity_;  // of both
  X start_ = 0;
  int count_ = 0;  // points, up to 2
  int upper_begin_ = 0, upper_end_ = 0;
  int lower_begin_ = 0, lower_end_ = 0;
  // The flattest line goes from the upper hull to the lower, the steepest from
  // the lower to the upper.
  Point least_from_{}, least_to_{}, most_from_{}, most_to_{};
};

}  // namespace kindex::build

#endif
