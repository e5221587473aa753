// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_RADIXNODES_HPP
#define KINDEX_QUERY_RADIXNODES_HPP

/// \file
/// The nodes of a radix tree, and the descent through them.

#include <kindex/Key.hpp>
#include <kindex/query/Load.hpp>

#include <cstdint>
#include <type_traits>

namespace kindex::query {

/// The forms of a radix tree's nodes. A node has the smallest one that it fits.
enum class RadixKind : std::uint8_t {
  node4,    ///< up to 4 children: their bytes in one word
  node16,   ///< up to 16 children: their bytes in four words
  node48,   ///< up to 48 children: a bit for each byte that is there
  node256,  ///< a child for each byte
  ranks,    ///< more than 48 children, all of them leaves: their ranks
  bits      ///< more than 4 children of one entry each: a bit for each byte
};

/// How many forms there are.
inline constexpr int radix_kinds = 6;

// ---- keys as bytes ----------------------------------------------------------

/// Byte `depth` of the bits of a key, the most significant first.
template <class Bits>
KOKKOS_FUNCTION int radix_byte(const Bits& bits, int depth) {
  if constexpr (std::is_same_v<Bits, Key128>) {
    return int(((depth < 8 ? bits.hi : bits.lo) >> (56 - 8 * (depth & 7))) &
               255);
  } else {
    return int((bits >> (8 * (int(sizeof(Bits)) - 1 - depth))) & 255);
  }
}

/// The number of leading bytes that `a` and `b` have in common.
template <class Bits>
KOKKOS_FUNCTION int radix_common(const Bits& a, const Bits& b) {
  return kindex::impl::common_bits(a, b) / 8;
}

/// The first `depth` bytes of `bits`, and zeros behind.
template <class Bits>
KOKKOS_FUNCTION Bits radix_prefix(const Bits& bits, int depth) {
  return kindex::impl::leading_bits(bits, 8 * depth, false);
}

/// `bits` with byte `depth`, which is zero, replaced.
template <class Bits>
KOKKOS_FUNCTION Bits radix_with_byte(Bits bits, int depth, int byte) {
  if constexpr (std::is_same_v<Bits, Key128>) {
    auto& half = depth < 8 ? bits.hi : bits.lo;
    half |= static_cast<std::uint64_t>(byte) << (56 - 8 * (depth & 7));
    return bits;
  } else {
    return static_cast<Bits>(
        bits | Bits(Bits(byte) << (8 * (int(sizeof(Bits)) - 1 - depth))));
  }
}

// ---- references -------------------------------------------------------------

/// A child, in one word of 32 or 64 bits: a leaf as the rank of its first
/// entry, or another node as its form and its number in the arena of that form.
///
/// \tparam Word std::uint32_t or std::uint64_t.
template <class Word>
class RadixChild {
  static constexpr int bits = 8 * int(sizeof(Word));
  static constexpr int kind_shift = bits - 4;
  static constexpr int path_shift = bits - 5;
  static constexpr Word leaf_flag = Word{1} << (bits - 1);

 public:
  /// The first rank that cannot be expressed.
  static constexpr size_type rank_end = size_type{1} << (bits - 1);
  /// As many nodes of a form can be numbered.
  static constexpr size_type most_nodes = size_type{1} << path_shift;

  RadixChild() = default;

  /// A leaf whose first entry has rank `rank`. Where a byte has no child, the
  /// leaf of no entries that begins where the next child does.
  KOKKOS_FUNCTION static RadixChild leaf(size_type rank) {
    return RadixChild(leaf_flag | static_cast<Word>(rank));
  }
  /// Node `number` of its form.
  ///
  /// \param has_path whether it branches further down than at the byte that
  ///   follows.
  KOKKOS_FUNCTION static RadixChild node(RadixKind kind, bool has_path,
                                         size_type number) {
    return RadixChild((static_cast<Word>(kind) << kind_shift) |
                      (Word{has_path} << path_shift) |
                      static_cast<Word>(number));
  }
  /// What was in `word`.
  KOKKOS_FUNCTION static RadixChild of(size_type word) {
    return RadixChild(static_cast<Word>(word));
  }

  /// Whether it is a leaf.
  KOKKOS_FUNCTION bool is_leaf() const { return (word_ & leaf_flag) != 0; }
  /// The rank of a leaf's first entry.
  KOKKOS_FUNCTION Word rank() const { return word_ & ~leaf_flag; }
  /// The form of a node.
  KOKKOS_FUNCTION RadixKind kind() const {
    return static_cast<RadixKind>(word_ >> kind_shift);
  }
  /// Whether a node branches further down than at the byte that follows.
  KOKKOS_FUNCTION bool has_path() const {
    return (word_ >> path_shift & 1) != 0;
  }
  /// A node's number among those of its form.
  KOKKOS_FUNCTION Word number() const {
    return word_ & ((Word{1} << path_shift) - 1);
  }
  /// The word itself.
  KOKKOS_FUNCTION Word word() const { return word_; }

 private:
  KOKKOS_FUNCTION explicit RadixChild(Word word) : word_(word) {}

  Word word_;
};

// ---- nodes ------------------------------------------------------------------

/// What all nodes begin with.
///
/// \tparam Prefix holds the bytes down to the node and their number.
template <class Prefix, class Word>
struct RadixHead {
  Word first;     ///< rank of the first entry below
  Word last;      ///< rank behind the last entry below
  Prefix prefix;  ///< bytes down to where it branches; the last: how many
};

/// Up to 4 children. Unused places have byte 255 and the leaf of no entries
/// behind the node, which is right even if that byte is asked for.
template <class Prefix, class Word>
struct alignas(16) RadixNode4 {
  RadixHead<Prefix, Word> head;
  std::uint32_t bytes;  ///< ascending, from the least significant
  RadixChild<Word> children[4];
};

/// Up to 16 children, likewise.
template <class Prefix, class Word>
struct alignas(16) RadixNode16 {
  RadixHead<Prefix, Word> head;
  alignas(16) std::uint32_t bytes[4];
  RadixChild<Word> children[16];
};

/// A set of bytes in ascending order.
struct RadixBytes {
  std::uint64_t words[4];

  /// Whether `byte` is among them.
  KOKKOS_FUNCTION bool holds(int byte) const {
    return (words[byte / 64] >> (byte % 64) & 1) != 0;
  }
  /// How many are below `byte`.
  KOKKOS_FUNCTION int below(int byte) const {
    int count = 0;
    for (int w = 0; w < 4; ++w) {
      // Masks, not a loop to byte / 64: all four words are loaded at once.
      const std::uint64_t mask = w < byte / 64 ? ~std::uint64_t{0}
                                 : w > byte / 64
                                     ? 0
                                     : (std::uint64_t{1} << (byte % 64)) - 1;
      count += Kokkos::popcount(words[w] & mask);
    }
    return count;
  }
  /// How many they are.
  KOKKOS_FUNCTION int size() const {
    int count = 0;
    for (int w = 0; w < 4; ++w) count += Kokkos::popcount(words[w]);
    return count;
  }
};

/// Up to 48 children: the number of bytes below says which one. (The index of
/// 256 bytes of the paper's Node48 would say it without counting, but takes
/// eight times the space, and cannot say which child is next.)
template <class Prefix, class Word>
struct alignas(16) RadixNode48 {
  RadixHead<Prefix, Word> head;
  alignas(16) RadixBytes bytes;
  RadixChild<Word> children[48];
};

/// A child for each byte.
template <class Prefix, class Word>
struct alignas(16) RadixNode256 {
  RadixHead<Prefix, Word> head;
  RadixChild<Word> children[256];
};

/// Consecutive ranks where leaves begin, in one sector of memory.
template <class Word>
struct alignas(32) RadixRankBlock {
  /// How many.
  static constexpr int size = 32 - int(sizeof(Word));
  /// The most by which the last may exceed the first.
  static constexpr size_type most_span = 255;

  Word first;                  ///< the first of them
  std::uint8_t offsets[size];  ///< all of them, from the first
};

/// A Node256 whose children are all leaves, in a third of the space, and the
/// child comes with the one sector that its byte selects.
template <class Prefix, class Word>
struct alignas(32) RadixRanks {
  using Block = RadixRankBlock<Word>;  ///< ranks of consecutive bytes
  static constexpr int blocks = (256 + Block::size - 1) / Block::size;

  RadixHead<Prefix, Word> head;
  Block ranks[blocks];

  /// The block of `byte`.
  KOKKOS_FUNCTION const Block& block(int byte) const {
    return ranks[byte / Block::size];
  }
  /// The rank at which the leaf of `byte` begins.
  KOKKOS_FUNCTION Word rank(int byte) const {
    const Block& at = block(byte);
    return at.first + at.offsets[byte % Block::size];
  }
};

/// Children of one entry each: the number of bytes below is the rank.
template <class Prefix, class Word>
struct alignas(16) RadixBits {
  RadixHead<Prefix, Word> head;
  alignas(16) RadixBytes bytes;
};

/// The size of a node.
template <class Prefix, class Word>
constexpr std::size_t radix_node_bytes(RadixKind kind) {
  constexpr std::size_t bytes[] = {
      sizeof(RadixNode4<Prefix, Word>),  sizeof(RadixNode16<Prefix, Word>),
      sizeof(RadixNode48<Prefix, Word>), sizeof(RadixNode256<Prefix, Word>),
      sizeof(RadixRanks<Prefix, Word>),  sizeof(RadixBits<Prefix, Word>)};
  return bytes[int(kind)];
}

/// How many of the four bytes of a word are below `byte`: a vector compare of
/// unsigned bytes, in a register of any processor.
KOKKOS_INLINE_FUNCTION int count_bytes_below(std::uint32_t word, int byte) {
  constexpr std::uint32_t high = 0x80808080U;
  const std::uint32_t all = std::uint32_t(byte) * 0x01010101U;
  // Bit 7 of each byte: whether its lower 7 bits are not below.
  const std::uint32_t not_below = (word | high) - (all & ~high);
  return Kokkos::popcount(((~word & all) | (~(word ^ all) & ~not_below)) &
                          high);
}

/// Whether one of the four bytes of a word is `byte`.
KOKKOS_INLINE_FUNCTION bool holds_byte(std::uint32_t word, int byte) {
  const std::uint32_t differ = word ^ (std::uint32_t(byte) * 0x01010101U);
  return ((differ - 0x01010101U) & ~differ & 0x80808080U) != 0;
}

// ---- the descent ------------------------------------------------------------

/// What a step of the descent comes to.
enum class RadixStep {
  down,    ///< the child is another node
  leaf,    ///< the child is a leaf, whose keys decide
  equal,   ///< the child is a leaf, and its first key equals the one searched
  before,  ///< there is no such key; the next larger one is the child's first
  absent   ///< the same, and the child is a leaf
};

/// A radix tree as kernels see it: trivially copyable, non-owning.
///
/// \tparam Bits KeyTraits::bits_type of the keys.
template <class Bits>
class RadixNodes {
 public:
  static constexpr int key_bytes = int(sizeof(Bits));

  // Members, not an array: one that is indexed at run time would be copied to
  // local memory.
  const void* node4 = nullptr;
  const void* node16 = nullptr;
  const void* node48 = nullptr;
  const void* node256 = nullptr;
  const void* ranks = nullptr;
  const void* bits = nullptr;
  size_type root = 0;    ///< a RadixChild's word
  bool is_wide = false;  ///< whether that has 64 bits

  /// The node of `child`.
  template <template <class, class> class Node, class Word>
  KOKKOS_FUNCTION static const Node<Bits, Word>& node(const void* arena,
                                                      RadixChild<Word> child) {
    return static_cast<const Node<Bits, Word>*>(arena)[child.number()];
  }

  /// The head of the node of `child`.
  template <class Word>
  KOKKOS_FUNCTION const RadixHead<Bits, Word>& head(
      RadixChild<Word> child) const {
    switch (child.kind()) {
      case RadixKind::node4: return node<RadixNode4>(node4, child).head;
      case RadixKind::node16: return node<RadixNode16>(node16, child).head;
      case RadixKind::node48: return node<RadixNode48>(node48, child).head;
      case RadixKind::node256: return node<RadixNode256>(node256, child).head;
      case RadixKind::ranks: return node<RadixRanks>(ranks, child).head;
      default: return node<RadixBits>(bits, child).head;
    }
  }

  /// The byte at which a node branches.
  template <class Word>
  KOKKOS_FUNCTION static int depth_of(const RadixHead<Bits, Word>& head) {
    return radix_byte(head.prefix, key_bytes - 1);
  }

  /// Whether `key` is not below the node of `child`, which becomes the leaf of
  /// no entries where it would be; otherwise, `depth` becomes where the node
  /// branches.
  template <class Word>
  KOKKOS_FUNCTION bool is_off_path(const Bits& key, RadixChild<Word>& child,
                                   int& depth) const {
    if (!child.has_path()) return false;
    const RadixHead<Bits, Word>& at = head(child);
    depth = depth_of(at);
    const Bits path = radix_prefix(at.prefix, depth);
    const Bits own = radix_prefix(key, depth);
    if (own == path) return false;
    child = RadixChild<Word>::leaf(own < path ? at.first : at.last);
    return true;
  }

  /// From the node of `child` to its child for `key`. `depth` is where that
  /// node branches unless it has a path, and becomes the same of its child.
  ///
  /// One or two reads that depend on each other: of the byte's place, and of
  /// the child.
  template <class Word>
  KOKKOS_FUNCTION RadixStep step(const Bits& key, RadixChild<Word>& child,
                                 int& depth) const {
    using Child = RadixChild<Word>;
    const Child from = child;
    if (is_off_path(key, child, depth)) return RadixStep::absent;
    switch (from.kind()) {
      case RadixKind::node4: {
        const auto& at = node<RadixNode4>(node4, from);
        const int byte = radix_byte(key, depth);
        const std::uint32_t bytes = at.bytes;
        return choose(at, count_bytes_below(bytes, byte), 4,
                      holds_byte(bytes, byte), child, depth);
      }
      case RadixKind::node16: {
        const auto& at = node<RadixNode16>(node16, from);
        const int byte = radix_byte(key, depth);
        int below = 0;
        bool is_there = false;
        for (int i = 0; i < 4; ++i) {
          const std::uint32_t bytes = at.bytes[i];
          below += count_bytes_below(bytes, byte);
          is_there |= holds_byte(bytes, byte);
        }
        return choose(at, below, 16, is_there, child, depth);
      }
      case RadixKind::node48: {
        const auto& at = node<RadixNode48>(node48, from);
        const int byte = radix_byte(key, depth);
        const RadixBytes bytes = at.bytes;
        return choose(at, bytes.below(byte), 48, bytes.holds(byte), child,
                      depth);
      }
      case RadixKind::node256: {
        const auto& at = node<RadixNode256>(node256, from);
        child = at.children[radix_byte(key, depth)];
        ++depth;
        return child.is_leaf() ? RadixStep::leaf : RadixStep::down;
      }
      case RadixKind::ranks: {
        const auto& at = node<RadixRanks>(ranks, from);
        child = Child::leaf(at.rank(radix_byte(key, depth)));
        return RadixStep::leaf;
      }
      default: {
        const auto& at = node<RadixBits>(bits, from);
        const int byte = radix_byte(key, depth);
        const RadixBytes bytes = at.bytes;
        child = Child::leaf(at.head.first + Word(bytes.below(byte)));
        if (!bytes.holds(byte)) return RadixStep::absent;
        return depth == key_bytes - 1 ? RadixStep::equal : RadixStep::leaf;
      }
    }
  }

  /// The rank of the first entry below `child`.
  template <class Word>
  KOKKOS_FUNCTION Word first_of(RadixChild<Word> child) const {
    return child.is_leaf() ? child.rank() : head(child).first;
  }

  /// Has a host fetch what `step` reads of the node of `child`.
  template <class Word>
  KOKKOS_FUNCTION void fetch(const Bits& key, RadixChild<Word> child,
                             int depth) const {
    const int byte = radix_byte(key, depth);
    const bool is_node256 = child.kind() == RadixKind::node256;
    const bool is_ranks = child.kind() == RadixKind::ranks;
    if (is_node256)
      prefetch(&node<RadixNode256>(node256, child).children[byte]);
    if (is_ranks) prefetch(&node<RadixRanks>(ranks, child).block(byte));
    if ((!is_node256 && !is_ranks) || child.has_path()) prefetch(&head(child));
  }

 private:
  /// The child in place `place` of up to `places`.
  template <class Node, class Word>
  KOKKOS_FUNCTION static RadixStep choose(const Node& at, int place, int places,
                                          bool is_there,
                                          RadixChild<Word>& child, int& depth) {
    if (place == places) {
      child = RadixChild<Word>::leaf(at.head.last);
      return RadixStep::absent;
    }
    child = at.children[place];
    ++depth;
    if (!is_there) return RadixStep::before;
    return child.is_leaf() ? RadixStep::leaf : RadixStep::down;
  }
};

}  // namespace kindex::query

#endif
