// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_EYTZINGERSHAPE_HPP
#define KINDEX_BUILD_EYTZINGERSHAPE_HPP

/// \file
/// Where a key of rank r stands in K-ary level order, and back, in closed form.

#include <kindex/Types.hpp>

namespace kindex::build {

/// The K-ary level order of n keys: nodes of K−1 keys, the root first, then
/// each level from left to right; all levels full but the last, which is filled
/// from the left. Slots are counted without the alignment slot.
///
/// With d full levels and b keys in the last one, the key at offset i of the
/// full level that has l full levels below it has the in-order number
/// q = K^l·(1 + i + ⌊i/(K−1)⌋) − 1 among the keys of the full levels; before it
/// stand q of those and min(b, (K−1)(q+1)) of the last level.
///
/// The keys of neighbouring ranks stand side by side in each level (Henneberg
/// and Schuhknecht, "Is Binary Search Really All You Need?", 2025: a range is
/// one scan per level). Of the keys of ranks below r, F = max(⌊r/K⌋, r − b) are
/// in full levels, since each K−1 keys of the last level are followed by one of
/// them; and M − ⌊M/K⌋, M = ⌊F/K^l⌋, are in the level with l full levels below
/// it: its in-order numbers are K^l·m − 1, m no multiple of K.
template <int K>
class EytzingerShape {
 public:
  /// Slots in front of the first: with K = 2, siblings share a cache line.
  static constexpr size_type front = K == 2 ? 1 : 0;
  /// Slots behind the last: with the one in front, one for all K.
  static constexpr size_type back = 1 - front;

  /// The shape of no keys.
  EytzingerShape() = default;

  /// The shape of `size` keys.
  KOKKOS_FUNCTION explicit EytzingerShape(size_type size) : size_(size) {
    while (size - (full_ - 1) >= (K - 1) * full_) {
      full_ *= K;
      ++levels_;
    }
    last_ = size - (full_ - 1);
  }

  /// The number of keys.
  KOKKOS_FUNCTION size_type size() const { return size_; }

  /// The number of levels, with an incomplete one.
  KOKKOS_FUNCTION int levels() const { return levels_ + (last_ > 0 ? 1 : 0); }

  /// The rank of the key in slot `slot`.
  KOKKOS_FUNCTION size_type rank_of(size_type slot) const {
    return is_narrow() ? rank_with(static_cast<std::uint32_t>(slot))
                       : rank_with(slot);
  }

  /// The slot of the key of rank `rank`.
  KOKKOS_FUNCTION size_type slot_of(size_type rank) const {
    return is_narrow() ? slot_with(static_cast<std::uint32_t>(rank))
                       : slot_with(rank);
  }

  /// The slots, as first and past-last, of the keys of ranks `first` to
  /// `last` - 1 in the level with `i` levels below it: where short ranges have
  /// most of their hits comes first. O(i) divisions by K.
  KOKKOS_FUNCTION Kokkos::pair<size_type, size_type> run(int i, size_type first,
                                                         size_type last) const {
    size_type begin = full_below(first);
    size_type end = full_below(last);
    const int below = last_ > 0 ? i - 1 : i;  // full levels below
    if (below < 0) {
      const size_type front_of_last = full_ - 1;
      return {front_of_last + (first - begin), front_of_last + (last - end)};
    }
    size_type above = full_ / K;  // K to the level
    for (int level = 0; level < below; ++level) {
      begin /= K;
      end /= K;
      above /= K;
    }
    return {above - 1 + begin - begin / K, above - 1 + end - end / K};
  }

 private:
  /// Whether 32 bits will do: a GPU divides them several times faster than 64,
  /// and ranges do little else per hit.
  KOKKOS_FUNCTION bool is_narrow() const {
    return size_ < size_type{~std::uint32_t{0}};
  }

  /// F(r): how many keys of the full levels have a rank below `rank`.
  KOKKOS_FUNCTION size_type full_below(size_type rank) const {
    const size_type by_nodes = rank / K;
    const size_type by_end = rank > last_ ? rank - last_ : 0;
    return by_nodes > by_end ? by_nodes : by_end;
  }

  /// rank_of() in numbers of type `Index`, which holds size() + 1.
  template <class Index>
  KOKKOS_FUNCTION Index rank_with(Index slot) const {
    const auto full = static_cast<Index>(full_);
    if (slot >= full - 1) {
      const Index i = slot - (full - 1);
      return i + i / (K - 1);
    }
    Index above = 1;     // K to the slot's level
    Index below = full;  // K to the full levels from the slot's on
    while (slot >= above * K - 1) {
      above *= K;
      below /= K;
    }
    below /= K;
    const Index i = slot - (above - 1);
    const Index before = below * (1 + i + i / (K - 1));  // q + 1
    const auto last = static_cast<Index>(last_);
    return before - 1 +
           (before > last / (K - 1) ? last : Index(K - 1) * before);
  }

  /// slot_of() in numbers of the same types.
  template <class Index>
  KOKKOS_FUNCTION Index slot_with(Index rank) const {
    const auto full = static_cast<Index>(full_);
    const auto last = static_cast<Index>(last_);
    const Index whole = last / (K - 1);  // whole nodes in the last level
    const Index rest = last % (K - 1);
    Index q;
    if (rank < whole * K) {
      const Index node = rank / K;
      const Index in_node = rank - node * K;
      if (in_node < K - 1) return full - 1 + node * (K - 1) + in_node;
      q = node;
    } else {
      const Index behind = rank - whole * K;
      if (behind < rest) return full - 1 + whole * (K - 1) + behind;
      q = whole + behind - rest;
    }
    Index m = q + 1;
    Index above = full / K;  // K to the slot's level
    for (Index next = m / K; m == next * K; next = m / K) {
      m = next;
      above /= K;
    }
    return above - 1 + m - m / K - 1;
  }

  size_type size_ = 0;
  size_type full_ = 1;  ///< K to the number of full levels
  size_type last_ = 0;  ///< keys of the incomplete last level
  int levels_ = 0;      ///< full levels
};

/// Whether a key equals the next one in order.
template <class Ref>
struct FindDuplicates {
  Ref ref;

  KOKKOS_FUNCTION void operator()(size_type slot, unsigned char& found) const {
    const size_type next = ref.rank_of(slot) + 1;
    if (next < ref.size() &&
        ref.key_at(slot) == ref.key_at(ref.position_of(next)))
      found = 1;
  }
};

}  // namespace kindex::build

#endif
