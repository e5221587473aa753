// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_NEARSEARCH_HPP
#define KINDEX_QUERY_NEARSEARCH_HPP

/// \file
/// Search of an ascending array from a guess, outwards.

#include <kindex/query/Node.hpp>

#include <bit>

namespace kindex::query {

/// What a search from a guess counts.
enum class NearBound {
  below,     ///< elements below: the lower bound
  not_above  ///< elements not above: the upper bound
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
/// \param size elements of the array, at least 1.
/// \param own the keys.
/// \param positions where the first windows begin, below `size`; they become
///   the bounds, or any position from `size` on where the key is above all.
/// \param found whether the element at the bound equals the key.
template <int Size, NearBound bound, bool finds, class Group, class Load,
          class Key, class Index, int Own>
KOKKOS_FUNCTION void search_near(const Group& group, const Load& load,
                                 Index size, const Key (&own)[Own],
                                 Index (&positions)[Own], bool (&found)[Own]) {
  constexpr int W = Own * Group::size;
  constexpr Index idle = ~Index{0};
  // The sums of flags stand above those of counts.
  constexpr unsigned flag = std::bit_ceil(unsigned(Size) + 1);
  Key keys[W];
  gather_lanes(group, own, keys);
  Index at[Own];     // where the next window begins
  Index first[Own];  // all elements before this one are below
  Index last[Own];   // none from this one on is below
  Index step[Own];
  for (int o = 0; o < Own; ++o) {
    at[o] = positions[o];
    first[o] = 0;
    last[o] = size;
    step[o] = Size;
    found[o] = false;
  }
  for (bool open = true; open;) {
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
      if constexpr (bound == NearBound::below)
        counts[w] = count_below(shares[w], keys[w]);
      else
        counts[w] = count_not_above(shares[w], keys[w]);
      if constexpr (finds) counts[w] += holds(shares[w], keys[w]) ? flag : 0;
    }
    sum_counts<Size + (finds ? int(flag) * Group::size : 0)>(group, counts);
    open = false;
    for (int o = 0; o < Own; ++o) {
      if (at[o] == idle) continue;
      const unsigned sum = own_of(group, &counts[o * Group::size]);
      const Index count = Index(sum % flag);
      const bool all_below = count == Index(Size);
      if (all_below) {
        first[o] = at[o] + Index(Size);
      } else {
        found[o] = sum >= flag;
        last[o] = at[o] + count;
        // The bound is inside the window, not at its edge.
        if (count > 0) first[o] = last[o];
      }
      if (first[o] >= last[o]) {
        positions[o] = first[o];
        at[o] = idle;
        continue;
      }
      const Index between = last[o] - first[o];
      const bool both_met = first[o] > 0 && last[o] < size;
      if (step[o] > (both_met ? between / 2 : between))
        step[o] = (between / Index(2 * Size) + 1) * Index(Size);
      at[o] = all_below           ? first[o] + (step[o] - Index(Size))
              : last[o] > step[o] ? last[o] - step[o]
                                  : 0;
      step[o] *= 2;
      open = true;
    }
    open = group.any(open);
  }
}

}  // namespace kindex::query

#endif
