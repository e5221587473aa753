// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_NODE_HPP
#define KINDEX_QUERY_NODE_HPP

/// \file
/// Reading a node: how many of its keys are below the one searched.

#include <kindex/build/Entries.hpp>
#include <kindex/query/LaneGroup.hpp>
#include <kindex/query/Load.hpp>

namespace kindex::query {

/// Lanes that read a node of `Keys` keys together, 16 bytes each: a power of
/// two up to a warp, or 1 where the node does not split so.
template <class Key, int Keys>
inline constexpr int node_lanes = [] {
  constexpr int bytes = Keys * int(sizeof(Key));
  constexpr int lanes = bytes / 16;
  return (bytes % 16 == 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0) ? lanes
                                                                        : 1;
}();

/// Lanes that read nodes of `Keys` keys and leaves of `Entries` entries
/// together with one key each: as many as a leaf has, where that is a power of
/// two up to a warp, else as node_lanes.
template <class Key, int Keys, int Entries>
inline constexpr int one_key_lanes =
    node_lanes<Key, Keys> > 1 && Entries <= 32 &&
            (Entries & (Entries - 1)) == 0 && Keys % Entries == 0
        ? Entries
        : node_lanes<Key, Keys>;

namespace impl {

/// `Count` elements that a thread loads at once where they are aligned.
template <class T, int Count, int Align>
struct alignas(Align) Chunk {
  T elements[Count];
};

template <int Bytes>
inline constexpr int chunk_align = Bytes % 16 == 0  ? 16
                                   : Bytes % 8 == 0 ? 8
                                   : Bytes % 4 == 0 ? 4
                                                    : 1;

/// This lane's share of `Count` elements at `node`.
template <int Count, Reuse reuse, class Group, class T>
KOKKOS_FUNCTION auto load_share(const Group& group, const T* node) {
  constexpr int share = Count / Group::size;
  static_assert(share * Group::size == Count);
  constexpr int align = chunk_align<share* int(sizeof(T))>;
  using Loaded =
      Chunk<T, share, (align > int(alignof(T)) ? align : int(alignof(T)))>;
  return load<reuse>(
      reinterpret_cast<const Loaded*>(node + group.lane() * share));
}

}  // namespace impl

/// This lane's share of the `Keys` keys at `node`, which is aligned to the
/// node's size.
template <int Keys, class Group, class Key, class Index>
KOKKOS_FUNCTION auto load_keys(const Group& group, const Key* keys,
                               Index first) {
  return impl::load_share<Keys, Reuse::often>(group, keys + first);
}

/// This lane's share of the `Count` entries from `first`, which is a multiple
/// of `Count`.
template <int Count, Reuse reuse, class Group, class Key, class Value,
          class Index>
KOKKOS_FUNCTION auto load_entries(
    const Group& group, const build::EntriesRef<Key, Value, SoA>& entries,
    Index first) {
  return impl::load_share<Count, reuse>(group, entries.keys + first);
}

/// The same where each key stands beside its value.
template <int Count, Reuse reuse, class Group, class Key, class Value,
          class Index>
KOKKOS_FUNCTION auto load_entries(
    const Group& group, const build::EntriesRef<Key, Value, AoS>& entries,
    Index first) {
  if constexpr (sizeof(build::Entry<Key, Value>) <= 32) {
    return impl::load_share<Count, reuse>(group, entries.entries + first);
  } else {
    // Large values are not worth loading, nor would they fit.
    constexpr int share = Count / Group::size;
    impl::Chunk<Key, share, alignof(Key)> keys;
    for (int i = 0; i < share; ++i)
      keys.elements[i] =
          entries.key(first + Index(group.lane() * share) + Index(i));
    return keys;
  }
}

/// How many keys of a lane's share are below `key`.
template <class Share, class Key>
KOKKOS_FUNCTION unsigned count_below(const Share& share, const Key& key) {
  unsigned count = 0;
  for (const auto& element : share.elements) {
    if constexpr (std::is_same_v<std::decay_t<decltype(element)>, Key>) {
      count += element < key ? 1 : 0;
    } else {
      count += element.key < key ? 1 : 0;
    }
  }
  return count;
}

/// How many keys of a lane's share are not above `key`.
template <class Share, class Key>
KOKKOS_FUNCTION unsigned count_not_above(const Share& share, const Key& key) {
  unsigned count = 0;
  for (const auto& element : share.elements) {
    if constexpr (std::is_same_v<std::decay_t<decltype(element)>, Key>) {
      count += key < element ? 0 : 1;
    } else {
      count += key < element.key ? 0 : 1;
    }
  }
  return count;
}

/// Whether one of a lane's share of the keys equals `key`.
template <class Share, class Key>
KOKKOS_FUNCTION bool holds(const Share& share, const Key& key) {
  bool found = false;
  for (const auto& element : share.elements) {
    if constexpr (std::is_same_v<std::decay_t<decltype(element)>, Key>) {
      found |= element == key;
    } else {
      found |= element.key == key;
    }
  }
  return found;
}

/// The unsigned type in which codes are computed: 32 bits where they suffice.
template <class Key>
using CodeBits =
    std::conditional_t<(sizeof(Key) <= 4), std::uint32_t, std::uint64_t>;

/// The bits of a key that codes are made of: in order, though for Key128 not
/// all of them.
template <class Key>
KOKKOS_FUNCTION CodeBits<Key> code_bits(const Key& key) {
  if constexpr (std::is_same_v<Key, Key128>) {
    return key.hi;
  } else {
    return KeyTraits<Key>::to_bits(key);
  }
}

/// Maps the keys of a node to codes of 8 bits, in order: different codes
/// decide, equal codes leave a choice.
///
/// \tparam Bits CodeBits of the keys.
template <class Bits>
class Quantiser {
 public:
  /// \param low, high bits of keys: no key of the node is outside.
  KOKKOS_FUNCTION Quantiser(Bits low, Bits high)
      : low_(low), range_(high > low ? high - low : 0) {
    const int used = 8 * int(sizeof(Bits)) - int(Kokkos::countl_zero(range_));
    shift_ = used > 8 ? used - 8 : 0;
  }

  /// The code of a key; keys outside the node's range get the nearest.
  KOKKOS_FUNCTION std::uint8_t code(Bits bits) const {
    const Bits offset = bits > low_ ? bits - low_ : 0;
    return static_cast<std::uint8_t>((offset < range_ ? offset : range_) >>
                                     shift_);
  }

 private:
  Bits low_;
  Bits range_;
  int shift_;
};

/// This lane's share of the `Codes` codes at `first`.
template <int Codes, class Group, class Code, class Index>
KOKKOS_FUNCTION auto load_codes(const Group& group, const Code* codes,
                                Index first) {
  return impl::load_share<Codes, Reuse::often>(group, codes + first);
}

}  // namespace kindex::query

#endif
