// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_NEARSEARCH_HPP
#define KINDEX_QUERY_NEARSEARCH_HPP

/// \file
/// Search of an ascending array from a guess, outwards.

#include <kindex/query/Node.hpp>

namespace kindex::query {

/// What a search from a guess counts.
enum class NearBound {
  below,     ///< elements below: the lower bound
  not_above  ///< elements not above: the upper bound
};

/// Where a search from a guess stands.
///
/// \tparam Size elements of a window.
template <int Size, class Index>
struct NearState {
  Index at;     ///< where the next window begins
  Index first;  ///< all elements before this one are below
  Index last;   ///< none from this one on is below
  Index step;   ///< how far the next window may be
  bool found;   ///< whether the element at the bound equals the key

  /// Before the first window, of an array of `size` elements.
  KOKKOS_FUNCTION void begin(Index guess, Index size) {
    at = guess;
    first = 0;
    last = size;
    step = Size;
    found = false;
  }

  /// Takes what the window says and chooses the next; returns whether there is
  /// one. Otherwise `first` is the bound.
  KOKKOS_FUNCTION bool advance(Index count, bool holds_equal, Index size) {
    const bool all_below = count == Index(Size);
    if (all_below) {
      first = at + Index(Size);
    } else {
      found = holds_equal;
      last = at + count;
      // The bound is inside the window, not at its edge.
      if (count > 0) first = last;
    }
    if (first >= last) return false;
    const Index between = last - first;
    const bool both_met = first > 0 && last < size;
    if (step > (both_met ? between / 2 : between))
      step = (between / Index(2 * Size) + 1) * Index(Size);
    at = all_below     ? first + (step - Index(Size))
         : last > step ? last - step
                       : 0;
    step *= 2;
    return true;
  }
};

/// The bounds of each lane's own keys in an ascending array, of which the lanes
/// of a group read a window of `Size` elements together.
///
/// The search begins in the window given and steps outwards, first to the
/// neighbour, then twice as far each time, and halves what is left once it has
/// met both sides: a guess that is d windows off costs one, one more where the
/// bound is at a window's edge, and about 2·log2(d) others. It ends only where
/// the elements on both sides of the bound were compared: a guess can cost
/// time, never the result.
///
/// \tparam Size elements of a window.
/// \tparam bound what is counted.
/// \tparam finds whether `found` is wanted.
/// \param load `load(first)`: this lane's share of the window from `first`,
///   which may reach behind the array: nothing there is below its last element.
/// \param fetch `fetch(first)`: has a host fetch that window.
/// \param size elements of the array, at least 1.
/// \param own the keys.
/// \param positions where the first windows begin, below `size`; they become
///   the bounds, or any position from `size` on where the key is above all.
/// \param found whether the element at the bound equals the key.
template <int Size, NearBound bound, bool finds, class Group, class Load,
          class Fetch, class Key, class Index, int Own>
KOKKOS_FUNCTION void search_near(const Group& group, const Load& load,
                                 [[maybe_unused]] const Fetch& fetch,
                                 Index size, const Key (&own)[Own],
                                 Index (&positions)[Own], bool (&found)[Own]) {
  // The sums of flags stand above those of counts.
  constexpr unsigned flag = Kokkos::bit_ceil(unsigned(Size) + 1);
  const auto count_in = [](const auto& share, const Key& key) {
    unsigned count;
    if constexpr (bound == NearBound::below)
      count = count_below(share, key);
    else
      count = count_not_above(share, key);
    if constexpr (finds) count += holds(share, key) ? flag : 0;
    return count;
  };
  NearState<Size, Index> states[Own];
  for (int o = 0; o < Own; ++o) states[o].begin(positions[o], size);
  if constexpr (Group::size == 1) {
    // One after the other: meanwhile, the windows of all others arrive.
    int open[Own];
    for (int o = 0; o < Own; ++o) {
      open[o] = o;
      if (Own > 1) fetch(positions[o]);
    }
    for (int count = Own; count > 0;) {
      int left = 0;
      for (int i = 0; i < count; ++i) {
        const int o = open[i];
        NearState<Size, Index>& state = states[o];
        const unsigned sum = count_in(load(state.at), own[o]);
        if (state.advance(Index(sum % flag), sum >= flag, size)) {
          if (Own > 1) fetch(state.at);
          open[left++] = o;
        } else {
          positions[o] = state.first;
          found[o] = state.found;
        }
      }
      count = left;
    }
  } else {
    // Without a function that captures the states: nvcc moved them out of
    // registers for it, which cost an H100 a third of its lookups.
    constexpr int W = Own * Group::size;
    constexpr Index idle = ~Index{0};
    Key keys[W];
    gather_lanes(group, own, keys);
    for (bool open = true; open;) {
      Index at[Own];
      for (int o = 0; o < Own; ++o) at[o] = states[o].at;
      Index windows[W];
      gather_lanes(group, at, windows);
      using Share = decltype(load(size));
      Share shares[W];
      for (int w = 0; w < W; ++w)
        if (windows[w] != idle) shares[w] = load(windows[w]);
      unsigned counts[W];
      for (int w = 0; w < W; ++w) {
        counts[w] = 0;
        if (windows[w] == idle) continue;
        counts[w] = count_in(shares[w], keys[w]);
      }
      sum_counts<Size + (finds ? int(flag) * Group::size : 0)>(group, counts);
      open = false;
      for (int o = 0; o < Own; ++o) {
        NearState<Size, Index>& state = states[o];
        if (state.at == idle) continue;
        const unsigned sum = own_of(group, &counts[o * Group::size]);
        if (state.advance(Index(sum % flag), sum >= flag, size)) {
          open = true;
        } else {
          state.at = idle;
        }
      }
      open = group.any(open);
    }
    for (int o = 0; o < Own; ++o) {
      positions[o] = states[o].first;
      found[o] = states[o].found;
    }
  }
}

}  // namespace kindex::query

#endif
