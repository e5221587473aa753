// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_RADIXNODES_HPP
#define KINDEX_QUERY_RADIXNODES_HPP

/// \file
/// The nodes of a radix tree, and the descent through them.

#include <kindex/Bytes.hpp>
#include <kindex/query/Load.hpp>
#include <kindex/query/Pinned.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace kindex::query {

/// The forms of a radix tree's nodes. A node has the smallest one that it fits,
/// but see radix_busy_entries.
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

/// A node with that many entries below, which so many lookups pass, is a
/// Node256 also where it is a Node16 or Node48 by its children: they are read
/// without bytes being counted before. (A Node4 is one sector of memory, or
/// little more, with the children.) It costs one Node256 for that many entries
/// and level, at most; and keys that are not there, but for their bytes down to
/// such a node, are compared with those of a leaf.
inline constexpr size_type radix_busy_entries = 8192;

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
  Word first;  ///< rank of the first entry below
  Word last;   ///< rank behind the last entry below; that: no node is there
  /// Bytes down to where it branches; the last: how many, and in its upper half
  /// the levels of nodes from there on, less one.
  Prefix prefix;
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

/// How many bits of a word are set. Compilers for any x86 call a function for
/// that, which takes as long as the rest of a step.
KOKKOS_INLINE_FUNCTION int count_ones(std::uint64_t word) {
#if defined(__x86_64__) && !defined(__POPCNT__)
  KOKKOS_IF_ON_HOST((constexpr std::uint64_t pairs = 0x5555555555555555;
                     constexpr std::uint64_t nibbles = 0x3333333333333333;
                     constexpr std::uint64_t bytes = 0x0f0f0f0f0f0f0f0f;
                     constexpr std::uint64_t sums = 0x0101010101010101;
                     word -= word >> 1 & pairs;
                     word = (word & nibbles) + (word >> 2 & nibbles);
                     return int(((word + (word >> 4)) & bytes) * sums >> 56);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::popcount(word);))
#else
  return Kokkos::popcount(word);
#endif
}

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
      count += count_ones(words[w] & mask);
    }
    return count;
  }
  /// How many they are.
  KOKKOS_FUNCTION int size() const {
    int count = 0;
    for (int w = 0; w < 4; ++w) count += count_ones(words[w]);
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
KOKKOS_INLINE_FUNCTION constexpr std::size_t radix_node_bytes(RadixKind kind) {
  switch (kind) {
    case RadixKind::node4: return sizeof(RadixNode4<Prefix, Word>);
    case RadixKind::node16: return sizeof(RadixNode16<Prefix, Word>);
    case RadixKind::node48: return sizeof(RadixNode48<Prefix, Word>);
    case RadixKind::node256: return sizeof(RadixNode256<Prefix, Word>);
    case RadixKind::ranks: return sizeof(RadixRanks<Prefix, Word>);
    default: return sizeof(RadixBits<Prefix, Word>);
  }
}

/// How many of the four bytes of a word are below `byte`: a vector compare of
/// unsigned bytes, in a register of any processor.
KOKKOS_INLINE_FUNCTION int count_bytes_below(std::uint32_t word, int byte) {
  constexpr std::uint32_t high = 0x80808080U;
  const std::uint32_t all = std::uint32_t(byte) * 0x01010101U;
  // Bit 7 of each byte: whether its lower 7 bits are not below.
  const std::uint32_t not_below = (word | high) - (all & ~high);
  const std::uint32_t below =
      ((~word & all) | (~(word ^ all) & ~not_below)) & high;
  KOKKOS_IF_ON_DEVICE((return Kokkos::popcount(below);))
  KOKKOS_IF_ON_HOST((return int((below >> 7) * 0x01010101U >> 24);))
}

/// Whether one of the four bytes of a word is `byte`.
KOKKOS_INLINE_FUNCTION bool holds_byte(std::uint32_t word, int byte) {
  const std::uint32_t differ = word ^ (std::uint32_t(byte) * 0x01010101U);
  return ((differ - 0x01010101U) & ~differ & 0x80808080U) != 0;
}

/// Where a byte is among the children of a node, or would be.
struct RadixPlace {
  int place;
  bool is_there;
};

#ifdef __SSE2__
/// That of `byte` among 16 ascending bytes, by one vector compare.
inline RadixPlace host_place(const std::uint32_t (&bytes)[4], int byte) {
  const __m128i own = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
  const __m128i all = _mm_set1_epi8(static_cast<char>(byte));
  const int equal = _mm_movemask_epi8(_mm_cmpeq_epi8(own, all));
  // There is no unsigned compare: a byte that is not below is the larger one.
  const int not_below =
      _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(own, all), own));
  return {__builtin_ctz(static_cast<unsigned>(not_below) | 0x10000U),
          equal != 0};
}
#endif

/// That of `byte`, in one of the forms that have places.
template <class Prefix, class Word>
KOKKOS_FUNCTION RadixPlace radix_place(const RadixNode4<Prefix, Word>& node,
                                       int byte) {
  const std::uint32_t bytes = node.bytes;
  return {count_bytes_below(bytes, byte), holds_byte(bytes, byte)};
}
/// That of `byte`.
template <class Prefix, class Word>
KOKKOS_FUNCTION RadixPlace radix_place(const RadixNode16<Prefix, Word>& node,
                                       int byte) {
#ifdef __SSE2__
  KOKKOS_IF_ON_HOST((return host_place(node.bytes, byte);))
#endif
  RadixPlace at{0, false};
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t bytes = node.bytes[i];
    at.place += count_bytes_below(bytes, byte);
    at.is_there |= holds_byte(bytes, byte);
  }
  return at;
}
/// That of `byte`.
template <class Prefix, class Word>
KOKKOS_FUNCTION RadixPlace radix_place(const RadixNode48<Prefix, Word>& node,
                                       int byte) {
  const RadixBytes bytes = node.bytes;
  return {bytes.below(byte), bytes.holds(byte)};
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

/// Keys of fixed size on their way down.
///
/// \tparam Key a type for which is_key_v holds.
template <class Key>
struct FixedRadixForm {
  using Bits = typename KeyTraits<Key>::bits_type;
  using Query = Bits;   ///< what of a key is compared
  using Prefix = Bits;  ///< what nodes keep of the bytes above them
  static constexpr bool has_ends = false;
  static constexpr bool leaves_decide = false;
  static constexpr int last_depth = int(sizeof(Bits)) - 1;

  KOKKOS_FUNCTION Query query(const Key& key) const {
    return KeyTraits<Key>::to_bits(key);
  }
  /// Byte `depth` of a query.
  KOKKOS_FUNCTION int byte(const Query& query, int depth) const {
    return radix_byte(query, depth);
  }
  /// Where a node branches.
  KOKKOS_FUNCTION int depth(const Prefix& prefix) const {
    return radix_byte(prefix, last_depth) & 15;
  }
  /// Whether a query is below (-1) or above (1) all keys of a node that
  /// branches at `depth`, or may be among them (0).
  template <class Word>
  KOKKOS_FUNCTION int side(const Query& query,
                           const RadixHead<Prefix, Word>& head, int /*from*/,
                           int depth) const {
    const Bits path = radix_prefix(head.prefix, depth);
    const Bits own = radix_prefix(query, depth);
    return own == path ? 0 : own < path ? -1 : 1;
  }
};

/// A radix tree as kernels see it: trivially copyable, non-owning.
///
/// \tparam Form FixedRadixForm, or what has its members. Keys that have ends
///   (`has_ends`) have `Bytes::end` or another number outside 0...255 as their
///   byte there. Where paths cost reads of their own (`leaves_decide`), they
///   are passed unread: a leaf shows whether they were right, and only if it
///   does not, or there is none, and a bound is wanted, the lookup begins
///   again.
template <class Form>
class RadixNodes {
 public:
  using Query = typename Form::Query;
  using Prefix = typename Form::Prefix;

  /// Indexes of no more bytes are searched in a host's caches: the second one
  /// of a core of the machines measured has as many.
  static constexpr size_type cached_bytes = size_type{2} << 20;

  /// What `search_leaf` returns where the descent was wrong.
  static constexpr size_type astray = ~size_type{0};

  // Members, not an array: one that is indexed at run time would be copied to
  // local memory.
  const void* node4 = nullptr;
  const void* node16 = nullptr;
  const void* node48 = nullptr;
  const void* node256 = nullptr;
  const void* ranks = nullptr;
  const void* bits = nullptr;
  size_type root = 0;      ///< a RadixChild's word
  bool is_wide = false;    ///< whether that has 64 bits
  bool is_cached = false;  ///< whether searches read a host's caches alone
  Form form = {};          ///< of the keys

  /// The positions of W keys; their loads overlap.
  ///
  /// \tparam finds whether the first equal entry is wanted, or size(), instead
  ///   of the lower bound.
  /// \param leaves of the index, with at least one entry:
  ///   - `template <bool finds> size_type search_leaf(size_type rank, const
  ///     Key&, int depth) const`: the position among the entries from `rank`
  ///     on, of which all before are below the key; where leaves decide,
  ///     `astray` unless the first of them has the key's first `depth` bytes;
  ///   - `void fetch_leaf(size_type rank) const`: has a host fetch what that
  ///     reads; maybe `fetch_first`, what that leads to;
  ///   - `size_type size() const`.
  template <bool finds, class Top, class Key, int W, class Leaves>
  KOKKOS_FUNCTION void search(const Top& top, const Key (&keys)[W],
                              size_type (&positions)[W],
                              const Leaves& leaves) const {
    if (is_wide) {
      search_with<finds, std::uint64_t>(top, keys, positions, leaves);
    } else {
      search_with<finds, std::uint32_t>(top, keys, positions, leaves);
    }
  }

  /// How many children of the root are pinned: all 256 or none.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    const bool is_leaf = is_wide
                             ? RadixChild<std::uint64_t>::of(root).is_leaf()
                             : RadixChild<std::uint32_t>::of(root).is_leaf();
    return steps != 0 && most >= 256 && !is_leaf ? 256 : 0;
  }

  /// Where the root leads by byte `i`: a RadixChild's word.
  KOKKOS_FUNCTION size_type pinned_child(size_type i) const {
    return is_wide ? root_child<std::uint64_t>(int(i))
                   : root_child<std::uint32_t>(int(i));
  }

 private:
  /// Whether descents compare paths, but for second ones.
  static constexpr bool compares_paths = !Form::leaves_decide;

  /// A lookup on its way down.
  template <class Word>
  struct Descent {
    Query query;
    RadixChild<Word> child;  ///< where it is
    int depth;               ///< the byte that decides next, but for paths
    RadixStep step;          ///< what the last step came to
    bool skips = false;      ///< whether it passed a path unread
  };

  template <bool finds, class Word, class Top, class Key, int W, class Leaves>
  KOKKOS_FUNCTION void search_with(const Top& top, const Key (&keys)[W],
                                   size_type (&positions)[W],
                                   const Leaves& leaves) const {
    if (W == 1 || is_cached) {
      for (int w = 0; w < W; ++w) {
        Descent<Word> descent = begin<compares_paths, Word>(top, keys[w]);
        while (descent.step == RadixStep::down)
          advance<compares_paths>(descent);
        positions[w] = conclude<finds>(descent, keys[w], leaves);
      }
    } else {
      // In turns: meanwhile, what the others read arrives.
      Descent<Word> descents[W];
      int open[W];
      int count = 0;
      for (int w = 0; w < W; ++w) {
        descents[w] = begin<compares_paths, Word>(top, keys[w]);
        if (fetch(descents[w], leaves)) open[count++] = w;
      }
      while (count > 0) {
        int left = 0;
        for (int i = 0; i < count; ++i) {
          const int w = open[i];
          advance<compares_paths>(descents[w]);
          if (fetch(descents[w], leaves)) open[left++] = w;
        }
        count = left;
      }
      if constexpr (requires { leaves.fetch_first(size_type{}); }) {
        for (int w = 0; w < W; ++w)
          if (descents[w].step == RadixStep::leaf)
            leaves.fetch_first(descents[w].child.rank());
      }
      for (int w = 0; w < W; ++w)
        positions[w] = conclude<finds>(descents[w], keys[w], leaves);
    }
  }

  /// \tparam checks whether paths are compared.
  template <bool checks, class Word, class Top, class Key>
  KOKKOS_FUNCTION Descent<Word> begin(const Top& top, const Key& key) const {
    const auto from = RadixChild<Word>::of(root);
    Descent<Word> at{form.query(key), from, 0,
                     from.is_leaf() ? RadixStep::leaf : RadixStep::down, false};
    if constexpr (Top::is_pinned) {
      if (top.holds(0, 256)) {
        if (is_off_path<checks>(at)) {
          at.step = RadixStep::absent;
          return at;
        }
        const int byte = form.byte(at.query, at.depth);
        // A key that ends here reads the root.
        if (Form::has_ends && unsigned(byte) > 255) return at;
        at.child = RadixChild<Word>::of(top.first[byte]);
        ++at.depth;
        at.step = at.child.is_leaf() ? RadixStep::leaf : RadixStep::down;
      }
    }
    return at;
  }

  /// One step down: one or two reads that depend on each other, of the byte's
  /// place, and of the child.
  template <bool checks, class Word>
  KOKKOS_FUNCTION void advance(Descent<Word>& at) const {
    if (is_off_path<checks>(at)) {
      at.step = RadixStep::absent;
      return;
    }
    const int byte = form.byte(at.query, at.depth);
    at.step = Form::has_ends && unsigned(byte) > 255
                  ? end(byte, at.child)
                  : branch(byte, at.child, at.depth);
  }

  /// Has a host fetch what comes next; returns whether that is a step.
  template <class Word, class Leaves>
  KOKKOS_FUNCTION bool fetch(const Descent<Word>& at,
                             const Leaves& leaves) const {
    if (at.step == RadixStep::leaf) leaves.fetch_leaf(at.child.rank());
    if (at.step != RadixStep::down) return false;
    const auto child = at.child;
    const int byte = form.byte(at.query, at.depth) & 255;
    const bool is_node256 = child.kind() == RadixKind::node256;
    const bool is_ranks = child.kind() == RadixKind::ranks;
    // Behind a path, another byte decides.
    if (child.has_path() || (!is_node256 && !is_ranks))
      prefetch(&head(child));
    else if (is_node256)
      prefetch(&node<RadixNode256>(node256, child).children[byte]);
    else
      prefetch(&node<RadixRanks>(ranks, child).block(byte));
    return true;
  }

  /// From the end of a descent to the position. If it passed paths unread and
  /// does not end at entries that show them to be right, another one compares
  /// them.
  template <bool finds, class Word, class Key, class Leaves>
  KOKKOS_FUNCTION size_type conclude(const Descent<Word>& at, const Key& key,
                                     const Leaves& leaves) const {
    if constexpr (compares_paths) {
      return finish<finds>(at, key, leaves);
    } else {
      if ((finds || at.skips) && at.step == RadixStep::leaf) {
        const size_type position = finish<finds>(at, key, leaves);
        if (position != astray) return position;
      }
      if constexpr (finds) {
        return leaves.size();
      } else {
        Descent<Word> right =
            at.skips ? begin<true, Word>(NothingPinned(), key) : at;
        while (right.step == RadixStep::down) advance<true>(right);
        // Behind a byte without a child, a leaf of no entries begins with those
        // of others, which show nothing.
        right.depth = 0;
        return finish<finds>(right, key, leaves);
      }
    }
  }

  /// From the end of the descent to the position.
  template <bool finds, class Word, class Key, class Leaves>
  KOKKOS_FUNCTION size_type finish(const Descent<Word>& at, const Key& key,
                                   const Leaves& leaves) const {
    if (at.step == RadixStep::leaf)
      return leaves.template search_leaf<finds>(at.child.rank(), key, at.depth);
    if (at.step == RadixStep::equal) return at.child.rank();
    return finds ? leaves.size() : size_type(first_of(at.child));
  }

  template <class Word>
  KOKKOS_FUNCTION size_type root_child(int byte) const {
    auto child = RadixChild<Word>::of(root);
    int depth = form.depth(head(child).prefix);
    if (branch(byte, child, depth) == RadixStep::before)
      child = RadixChild<Word>::leaf(first_of(child));
    return child.word();
  }

  template <template <class, class> class Node, class Word>
  KOKKOS_FUNCTION static const Node<Prefix, Word>& node(
      const void* arena, RadixChild<Word> child) {
    return static_cast<const Node<Prefix, Word>*>(arena)[child.number()];
  }

  template <class Word>
  KOKKOS_FUNCTION const RadixHead<Prefix, Word>& head(
      RadixChild<Word> child) const {
    // A host would rather not guess where a switch leads.
    KOKKOS_IF_ON_HOST(
        (const void* const arenas[] = {node4, node16, node48, node256, ranks,
                                       bits};
         return *reinterpret_cast<const RadixHead<Prefix, Word>*>(
             static_cast<const std::byte*>(arenas[int(child.kind())]) +
             child.number() * radix_node_bytes<Prefix, Word>(child.kind()));))
    switch (child.kind()) {
      case RadixKind::node4: return node<RadixNode4>(node4, child).head;
      case RadixKind::node16: return node<RadixNode16>(node16, child).head;
      case RadixKind::node48: return node<RadixNode48>(node48, child).head;
      case RadixKind::node256: return node<RadixNode256>(node256, child).head;
      case RadixKind::ranks: return node<RadixRanks>(ranks, child).head;
      default: return node<RadixBits>(bits, child).head;
    }
  }

  /// Whether the key is not below the node, whose place then takes the leaf of
  /// no entries where the key would be; otherwise, `depth` becomes where the
  /// node branches.
  template <bool checks, class Word>
  KOKKOS_FUNCTION bool is_off_path(Descent<Word>& at) const {
    if (!at.child.has_path()) return false;
    const RadixHead<Prefix, Word>& head_of = head(at.child);
    const int from = at.depth;
    at.depth = form.depth(head_of.prefix);
    if (!checks) {
      at.skips = true;
      return false;
    }
    const int side = form.side(at.query, head_of, from, at.depth);
    if (side == 0) return false;
    at.child = RadixChild<Word>::leaf(side < 0 ? head_of.first : head_of.last);
    return true;
  }

  /// From the node of `child` to its child for `byte`.
  template <class Word>
  KOKKOS_FUNCTION RadixStep branch(int byte, RadixChild<Word>& child,
                                   int& depth) const {
    using Child = RadixChild<Word>;
    const Child from = child;
    switch (from.kind()) {
      case RadixKind::node4: {
        const auto& at = node<RadixNode4>(node4, from);
        return choose(at, radix_place(at, byte), 4, child, depth);
      }
      case RadixKind::node16: {
        const auto& at = node<RadixNode16>(node16, from);
        return choose(at, radix_place(at, byte), 16, child, depth);
      }
      case RadixKind::node48: {
        const auto& at = node<RadixNode48>(node48, from);
        return choose(at, radix_place(at, byte), 48, child, depth);
      }
      case RadixKind::node256: {
        child = node<RadixNode256>(node256, from).children[byte];
        ++depth;
        return child.is_leaf() ? RadixStep::leaf : RadixStep::down;
      }
      case RadixKind::ranks: {
        child = Child::leaf(node<RadixRanks>(ranks, from).rank(byte));
        return RadixStep::leaf;
      }
      default: {
        const auto& at = node<RadixBits>(bits, from);
        // Of dense keys, nodes are full: nothing is to be counted. A GPU
        // would rather count than read one after the other.
        bool is_full = false;
        KOKKOS_IF_ON_HOST((is_full = at.head.last - at.head.first == 256;))
        if (is_full) {
          child = Child::leaf(at.head.first + Word(byte));
        } else {
          const RadixBytes set = at.bytes;
          child = Child::leaf(at.head.first + Word(set.below(byte)));
          if (!set.holds(byte)) return RadixStep::absent;
        }
        return depth == Form::last_depth ? RadixStep::equal : RadixStep::leaf;
      }
    }
  }

  /// The child in a place of up to `places`.
  template <class Node, class Word>
  KOKKOS_FUNCTION static RadixStep choose(const Node& at, RadixPlace found,
                                          int places, RadixChild<Word>& child,
                                          int& depth) {
    if (found.place == places) {
      child = RadixChild<Word>::leaf(at.head.last);
      return RadixStep::absent;
    }
    child = at.children[found.place];
    ++depth;
    if (!found.is_there) return RadixStep::before;
    return child.is_leaf() ? RadixStep::leaf : RadixStep::down;
  }

  /// Where a key leads that ends at the node of `child` with the number `byte`:
  /// to the keys that end there, which come first; or behind them, to the first
  /// child; or behind the node.
  template <class Word>
  KOKKOS_FUNCTION RadixStep end(int byte, RadixChild<Word>& child) const {
    const RadixHead<Prefix, Word>& at = head(child);
    if (byte == Bytes::end) {
      child = RadixChild<Word>::leaf(at.first);
      return RadixStep::leaf;
    }
    if (byte > 255) {
      child = RadixChild<Word>::leaf(at.last);
      return RadixStep::absent;
    }
    int depth = 0;
    branch(0, child, depth);
    return RadixStep::before;
  }

  /// The rank of the first entry below `child`.
  template <class Word>
  KOKKOS_FUNCTION Word first_of(RadixChild<Word> child) const {
    return child.is_leaf() ? child.rank() : head(child).first;
  }
};

}  // namespace kindex::query

#endif
