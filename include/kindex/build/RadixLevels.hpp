// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_RADIXLEVELS_HPP
#define KINDEX_BUILD_RADIXLEVELS_HPP

/// \file
/// A radix tree from ascending keys, level by level, in parallel; and what of
/// it changes with them.

#include <kindex/build/Copy.hpp>
#include <kindex/build/HugePages.hpp>
#include <kindex/build/RadixChange.hpp>
#include <kindex/query/Engine.hpp>
#include <kindex/query/RadixNodes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kindex {

/// How a radix tree is built.
struct RadixTreeOptions {
  /// Entries up to which different keys share a leaf, from 1 to 2^16; 1 makes
  /// the tree of the paper, with a leaf for each key.
  size_type leaf_entries = 16;
  /// Whether nodes refer to their children by 64 bits even where 32 do.
  bool wide_references = false;
  /// The pages of nodes and entries where the memory is a host's: huge ones
  /// save a look into the tables of pages per step.
  Pages pages = Pages::huge;
};

namespace build {

/// Ascending keys of fixed size as the build sees them.
template <class Entries>
struct RadixKeys {
  using Key = std::decay_t<decltype(std::declval<Entries>().key(0))>;
  using Bits = typename KeyTraits<Key>::bits_type;
  using Prefix = Bits;  ///< what nodes keep of the bytes above them
  static constexpr int last_depth = int(sizeof(Bits)) - 1;
  static constexpr bool change = true;  ///< whether trees of them may

  Entries entries;

  KOKKOS_FUNCTION Bits bits(size_type rank) const {
    return KeyTraits<Key>::to_bits(entries.key(rank));
  }
  /// The number of leading bytes that two keys have in common.
  KOKKOS_FUNCTION int common(size_type a, size_type b) const {
    return query::radix_common(bits(a), bits(b));
  }
  /// Whether two keys are equal.
  KOKKOS_FUNCTION bool equal(size_type a, size_type b) const {
    return bits(a) == bits(b);
  }
  /// Byte `depth` of a key.
  KOKKOS_FUNCTION int byte(size_type rank, int depth) const {
    return query::radix_byte(bits(rank), depth);
  }
  /// What a node with `height` levels keeps of the first `depth` bytes of its
  /// keys.
  KOKKOS_FUNCTION Prefix prefix(size_type rank, int depth, int height) const {
    // No node branches behind the last byte: it is free for these numbers.
    return query::radix_with_byte(query::radix_prefix(bits(rank), depth),
                                  last_depth, depth | (height - 1) << 4);
  }
  /// The byte at which a node branches, by what it keeps.
  KOKKOS_FUNCTION static int depth(const Prefix& prefix) {
    return query::radix_byte(prefix, last_depth) & 15;
  }
  /// The levels of nodes from a node on, by what it keeps.
  KOKKOS_FUNCTION static int height(const Prefix& prefix) {
    return (query::radix_byte(prefix, last_depth) >> 4) + 1;
  }
  /// Byte `depth` above a node, by what it keeps.
  KOKKOS_FUNCTION static int byte_above(const Prefix& prefix, int depth) {
    return query::radix_byte(prefix, depth);
  }
};

/// A node while the tree is built.
struct RadixRecord {
  size_type first;  ///< rank of its first entry
  size_type last;   ///< rank behind its last entry
  size_type old;    ///< as a RadixChild's word: the earlier node of all these
                    ///< entries that there were, or a leaf
  /// How many children have records; then, the number of the first of them in
  /// the level below.
  size_type inner;
  size_type number;   ///< its number in the arena of its form, or unnumbered
  size_type singles;  ///< entries more in Bits than before, modulo 2^64
  int depth;          ///< the byte at which it branches
  int height;         ///< of levels from it on
  int kind;           ///< its form, or query::radix_kinds: it is a leaf
  bool replaces;      ///< whether it takes the place of `old`

  /// No number yet.
  static constexpr size_type unnumbered = ~size_type{0};
};

/// What a team finds out about a node.
struct RadixScratch {
  size_type start[257];     ///< for each byte, the first rank not below it
  size_type kept[256];      ///< words of children that stay as they are
  std::uint32_t there[8];   ///< bit b: whether byte b has a child
  std::uint32_t inner[8];   ///< bit b: whether that is a node
  std::uint32_t fresh[8];   ///< bit b: whether that has a record
  std::uint32_t is_spread;  ///< whether a block of ranks spans too many
  int height;               ///< of the highest child that has none

  /// The number of bits below `byte`.
  KOKKOS_FUNCTION static int below(const std::uint32_t (&bits)[8], int byte) {
    int count = 0;
    for (int w = 0; w < byte / 32; ++w) count += Kokkos::popcount(bits[w]);
    if (byte % 32 != 0)
      count += Kokkos::popcount(bits[byte / 32] &
                                ((std::uint32_t{1} << (byte % 32)) - 1));
    return count;
  }
  KOKKOS_FUNCTION static bool holds(const std::uint32_t (&bits)[8], int byte) {
    return (bits[byte / 32] >> (byte % 32) & 1) != 0;
  }
  /// Sets the bit of `byte`, while others of a team set others.
  template <class Exec>
  KOKKOS_FUNCTION static void set(std::uint32_t (&bits)[8], int byte) {
    const std::uint32_t mask = std::uint32_t{1} << (byte % 32);
    if constexpr (query::DeviceTraits<Exec>::is_gpu) {
      Kokkos::atomic_or(&bits[byte / 32], mask);
    } else {
      bits[byte / 32] |= mask;
    }
  }
};

/// Finds the children of a node, with all threads of a team. Ends with a
/// barrier.
///
/// \param most entries up to which different keys share a leaf.
template <class Exec, class Word, class Member, class Keys>
KOKKOS_FUNCTION void find_radix_children(const Member& team, const Keys& keys,
                                         size_type first, size_type last,
                                         int depth, size_type most,
                                         RadixScratch& found) {
  const int threads = team.team_size();
  const int thread = team.team_rank();
  for (int w = thread; w < 8; w += threads) found.there[w] = found.inner[w] = 0;
  if (thread == 0) {
    found.is_spread = 0;
    found.start[256] = last;
  }
  // Fewer keys are read one by one than bytes are searched among more.
  if (last - first <= 2048) {
    for (size_type i = first + thread; i < last; i += threads) {
      const int byte = keys.byte(i, depth);
      const int before = i == first ? -1 : keys.byte(i - 1, depth);
      for (int b = before + 1; b <= byte; ++b) found.start[b] = i;
      if (i + 1 == last)
        for (int b = byte + 1; b < 256; ++b) found.start[b] = last;
    }
  } else {
    size_type low = first;
    for (int b = thread; b < 256; b += threads) {
      for (size_type length = last - low; length > 0;) {
        const size_type half = length / 2;
        const bool is_below = keys.byte(low + half, depth) < b;
        low += is_below ? half + 1 : 0;
        length = is_below ? length - half - 1 : half;
      }
      found.start[b] = low;
    }
  }
  team.team_barrier();
  for (int b = thread; b < 256; b += threads) {
    const size_type begin = found.start[b];
    const size_type end = found.start[b + 1];
    if (begin < end) {
      RadixScratch::set<Exec>(found.there, b);
      if (end - begin > most && !keys.equal(begin, end - 1))
        RadixScratch::set<Exec>(found.inner, b);
    }
    using Block = query::RadixRankBlock<Word>;
    if (begin - found.start[b / Block::size * Block::size] > Block::most_span)
      found.is_spread = 1;
  }
  team.team_barrier();
}

/// The form of a node with that many children.
KOKKOS_INLINE_FUNCTION query::RadixKind radix_kind(int children, int inner,
                                                   size_type entries,
                                                   bool is_spread) {
  using query::RadixKind;
  if (children > 4 && size_type(children) == entries) return RadixKind::bits;
  if (children > 48 && inner == 0 && !is_spread) return RadixKind::ranks;
  if (children > 4 && entries >= query::radix_busy_entries)
    return RadixKind::node256;
  return children <= 4    ? RadixKind::node4
         : children <= 16 ? RadixKind::node16
         : children <= 48 ? RadixKind::node48
                          : RadixKind::node256;
}

/// What the kernels of the build have in common: a team per node.
template <class Exec, class Word, class Keys>
struct RadixLevelKernel {
  using Child = query::RadixChild<Word>;
  using Arenas = RadixArenas<typename Keys::Prefix, Word>;

  Keys keys;
  RadixRecord* nodes;    ///< of this level
  std::uint32_t* fresh;  ///< eight words each: RadixScratch::fresh
  size_type count;       ///< how many
  size_type most;        ///< entries up to which different keys share a leaf
  Arenas arenas;         ///< of earlier nodes, if there are any, and of these

  template <class Member, class F>
  KOKKOS_FUNCTION void for_each_node(const Member& team, const F& f) const {
    auto& found = *query::take_scratch<RadixScratch, Exec>(team, 1);
    for (size_type n = team.league_rank(); n < count; n += team.league_size()) {
      f(n, found);
      team.team_barrier();
    }
  }
  /// The children of a node of whose entries and branch this is said.
  template <class Member>
  KOKKOS_FUNCTION void find(const Member& team, const RadixRecord& node,
                            RadixScratch& found) const {
    find_radix_children<Exec, Word>(team, keys, node.first, node.last,
                                    node.depth, most, found);
  }
  /// Those of node `n`, which is measured.
  template <class Member>
  KOKKOS_FUNCTION void find_again(const Member& team, size_type n,
                                  RadixScratch& found) const {
    for (int w = team.team_rank(); w < 8; w += team.team_size())
      found.fresh[w] = fresh[8 * n + w];
    find(team, nodes[n], found);
  }

  /// The earlier node of the entries below `node` by `byte`, if it is below
  /// `node.old` or that itself; a leaf if there is none.
  KOKKOS_FUNCTION Child old_child(const RadixRecord& node, int byte) const {
    const Child old = Child::of(node.old);
    if constexpr (Keys::change) {
      if (!old.is_leaf()) {
        if (node.replaces) return arenas.node_below(old, byte);
        // A path that is split.
        const auto prefix = arenas.head(old).prefix;
        if (keys.byte_above(prefix, node.depth) == byte) return old;
      }
    }
    return Child::leaf(0);
  }
};

/// Finds out where each node branches, which form it has, and which of its
/// children have to be written.
template <class Exec, class Word, class Keys>
struct MeasureRadixNodes : RadixLevelKernel<Exec, Word, Keys> {
  using Base = RadixLevelKernel<Exec, Word, Keys>;
  using Child = typename Base::Child;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    Base::for_each_node(team, [&](size_type n, RadixScratch& found) {
      RadixRecord measured = this->nodes[n];
      measured.number = RadixRecord::unnumbered;
      measured.inner = 0;
      measured.singles = 0;
      measured.height = 0;
      measured.replaces = false;
      if (this->keys.equal(measured.first, measured.last - 1)) {
        measured.kind = query::radix_kinds;
      } else {
        measured.depth = this->keys.common(measured.first, measured.last - 1);
        find_old(measured);
        if (team.team_rank() == 0) found.height = 0;
        Base::find(team, measured, found);
        find_fresh(team, measured, n, found);
        const int children = RadixScratch::below(found.there, 256);
        const int inner = RadixScratch::below(found.inner, 256);
        measured.inner = size_type(RadixScratch::below(found.fresh, 256));
        measured.height = found.height;
        measured.kind =
            int(radix_kind(children, inner, measured.last - measured.first,
                           found.is_spread != 0));
        number(measured);
      }
      team.team_barrier();
      if (team.team_rank() == 0) this->nodes[n] = measured;
    });
  }

 private:
  /// Follows what is left of an earlier path to where the node branches.
  KOKKOS_FUNCTION void find_old(RadixRecord& node) const {
    if constexpr (Keys::change) {
      Child old = Child::of(node.old);
      while (!old.is_leaf()) {
        const int depth = this->keys.depth(this->arenas.head(old).prefix);
        node.replaces = depth == node.depth;
        if (depth >= node.depth) break;
        old = this->arenas.node_below(old, this->keys.byte(node.first, depth));
      }
      node.old = old.word();
    }
  }

  /// Which children that are nodes are not as they were: those with more
  /// entries or less.
  template <class Member>
  KOKKOS_FUNCTION void find_fresh(const Member& team, const RadixRecord& node,
                                  size_type n, RadixScratch& found) const {
    const bool is_new = Child::of(node.old).is_leaf();
    for (int w = team.team_rank(); w < 8; w += team.team_size())
      found.fresh[w] = is_new ? found.inner[w] : 0;
    team.team_barrier();
    if constexpr (Keys::change) {
      if (!is_new) {
        for (int b = team.team_rank(); b < 256; b += team.team_size()) {
          if (!found.holds(found.inner, b)) continue;
          const Child old = Base::old_child(node, b);
          if (!old.is_leaf()) {
            const auto& head = this->arenas.head(old);
            if (head.last - head.first == found.start[b + 1] - found.start[b]) {
              const int height = this->keys.height(head.prefix);
              if constexpr (query::DeviceTraits<Exec>::is_gpu)
                Kokkos::atomic_max(&found.height, height);
              else
                found.height = height > found.height ? height : found.height;
              continue;
            }
          }
          RadixScratch::set<Exec>(found.fresh, b);
        }
        team.team_barrier();
      }
    }
    for (int w = team.team_rank(); w < 8; w += team.team_size())
      this->fresh[8 * n + w] = found.fresh[w];
  }

  /// Keeps the number of a node that it takes the place of, if both have the
  /// same form.
  KOKKOS_FUNCTION void number(RadixRecord& node) const {
    constexpr int bits = int(query::RadixKind::bits);
    if (node.kind == bits) node.singles = node.last - node.first;
    if constexpr (Keys::change) {
      if (!node.replaces) return;
      const Child old = Child::of(node.old);
      const int kind = int(old.kind());
      if (kind == node.kind) node.number = old.number();
      if (kind == bits) {
        const auto& head = this->arenas.head(old);
        node.singles -= head.last - head.first;
      }
    }
  }
};

/// What the nodes of a level come to.
struct RadixCounts {
  size_type fresh[query::radix_kinds];  ///< that need a number, by form
  size_type freed[query::radix_kinds];  ///< whose number is free then
  size_type inner;                      ///< records of the level below
  size_type singles;  ///< entries more in Bits than before, modulo 2^64
  size_type height;   ///< of the highest child without a record
  size_type words;    ///< sum of what refers to them, the first ones of a form

  KOKKOS_FUNCTION RadixCounts()
      : fresh{}, freed{}, inner(0), singles(0), height(0), words(0) {}
  KOKKOS_FUNCTION RadixCounts& operator+=(const RadixCounts& other) {
    for (int k = 0; k < query::radix_kinds; ++k) {
      fresh[k] += other.fresh[k];
      freed[k] += other.freed[k];
    }
    inner += other.inner;
    singles += other.singles;
    height = other.height > height ? other.height : height;
    words += other.words;
    return *this;
  }
};

/// Numbers the nodes of a level, behind those of the levels above, and the
/// records of the level below.
template <class Word>
struct NumberRadixNodes {
  using value_type = RadixCounts;
  using Child = query::RadixChild<Word>;
  RadixRecord* nodes;
  RadixCounts above;
  RadixNumbers<Word> numbers;

  KOKKOS_FUNCTION void operator()(size_type n, RadixCounts& sum,
                                  bool is_final) const {
    RadixRecord& node = nodes[n];
    const int kind = node.kind;
    const size_type inner = node.inner;
    const bool is_fresh =
        kind != query::radix_kinds && node.number == RadixRecord::unnumbered;
    const bool frees = node.replaces && is_fresh;
    const int old_kind = frees ? int(Child::of(node.old).kind()) : 0;
    const auto height = static_cast<size_type>(node.height);
    sum.words +=
        kind == query::radix_kinds
            ? Child::leaf(0).word()
            : Child::node(static_cast<query::RadixKind>(kind), node.depth > 0,
                          is_fresh ? numbers.of(kind, 0) : node.number)
                  .word();
    sum.singles += node.singles;
    if (is_final) {
      for (int k = 0; k < query::radix_kinds; ++k)
        if (is_fresh && k == kind)
          node.number = numbers.of(k, above.fresh[k] + sum.fresh[k]);
      node.inner = sum.inner;
    }
    for (int k = 0; k < query::radix_kinds; ++k) {
      sum.fresh[k] += is_fresh && k == kind ? 1 : 0;
      sum.freed[k] += frees && k == old_kind ? 1 : 0;
    }
    sum.inner += inner;
    sum.height = height > sum.height ? height : sum.height;
  }
};

/// Writes the ranges of the nodes of the level below.
template <class Exec, class Word, class Keys>
struct BranchRadixNodes : RadixLevelKernel<Exec, Word, Keys> {
  using Base = RadixLevelKernel<Exec, Word, Keys>;
  RadixRecord* below;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    Base::for_each_node(team, [&](size_type n, RadixScratch& found) {
      const RadixRecord node = this->nodes[n];
      Base::find_again(team, n, found);
      for (int b = team.team_rank(); b < 256; b += team.team_size())
        if (found.holds(found.fresh, b))
          below[node.inner + RadixScratch::below(found.fresh, b)] = {
              found.start[b],
              found.start[b + 1],
              Base::old_child(node, b).word(),
              0,
              RadixRecord::unnumbered,
              0,
              0,
              0,
              0,
              false};
    });
  }
};

/// Completes the heights of the nodes of a level from those of the level below.
struct RaiseRadixNodes {
  RadixRecord* nodes;
  size_type count;
  const RadixRecord* below;
  size_type below_count;

  KOKKOS_FUNCTION void operator()(size_type n) const {
    const size_type end = n + 1 < count ? nodes[n + 1].inner : below_count;
    int height = nodes[n].height;
    for (size_type b = nodes[n].inner; b < end; ++b)
      height = below[b].height > height ? below[b].height : height;
    nodes[n].height = height + 1;
  }
};

/// Writes the nodes of a level.
template <class Exec, class Word, class Keys>
struct WriteRadixNodes : RadixLevelKernel<Exec, Word, Keys> {
  using Base = RadixLevelKernel<Exec, Word, Keys>;
  using Prefix = typename Keys::Prefix;
  using Child = query::RadixChild<Word>;
  const RadixRecord* below;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    using query::RadixKind;
    Base::for_each_node(team, [&](size_type n, RadixScratch& found) {
      const RadixRecord node = this->nodes[n];
      Base::find_again(team, n, found);
      take_children(team, node, found);
      const auto kind = static_cast<RadixKind>(node.kind);
      switch (kind) {
        case RadixKind::node4: {
          auto& to = at<query::RadixNode4<Prefix, Word>>(node);
          write_places(team, node, found, to, 4, &to.bytes);
          break;
        }
        case RadixKind::node16: {
          auto& to = at<query::RadixNode16<Prefix, Word>>(node);
          write_places(team, node, found, to, 16, to.bytes);
          break;
        }
        case RadixKind::node48: {
          auto& to = at<query::RadixNode48<Prefix, Word>>(node);
          write_places(team, node, found, to, 48, nullptr);
          write_set(team, found, to.bytes);
          break;
        }
        case RadixKind::node256: {
          auto& to = at<query::RadixNode256<Prefix, Word>>(node);
          write_head(team, node, to.head);
          for (int b = team.team_rank(); b < 256; b += team.team_size())
            to.children[b] = child_of(node, found, b);
          break;
        }
        case RadixKind::ranks: {
          using Node = query::RadixRanks<Prefix, Word>;
          constexpr int size = Node::Block::size;
          auto& to = at<Node>(node);
          write_head(team, node, to.head);
          for (int b = team.team_rank(); b < Node::blocks * size;
               b += team.team_size()) {
            auto& block = to.ranks[b / size];
            const size_type first = found.start[b / size * size];
            const size_type start = found.start[b < 256 ? b : 255];
            if (b % size == 0) block.first = static_cast<Word>(first);
            block.offsets[b % size] = static_cast<std::uint8_t>(start - first);
          }
          break;
        }
        default: {
          auto& to = at<query::RadixBits<Prefix, Word>>(node);
          write_head(team, node, to.head);
          write_set(team, found, to.bytes);
        }
      }
    });
  }

 private:
  template <class Node>
  KOKKOS_FUNCTION Node& at(const RadixRecord& node) const {
    return this->arenas.template at<Node>(
        static_cast<query::RadixKind>(node.kind), node.number);
  }

  /// Notes the children that stay as they are, before the node is written where
  /// it may have been; if it has been elsewhere, that is free from now on.
  template <class Member>
  KOKKOS_FUNCTION void take_children(const Member& team,
                                     const RadixRecord& node,
                                     RadixScratch& found) const {
    if constexpr (Keys::change) {
      const Child old = Child::of(node.old);
      if (old.is_leaf()) return;
      for (int b = team.team_rank(); b < 256; b += team.team_size()) {
        if (!found.holds(found.inner, b) || found.holds(found.fresh, b))
          continue;
        const Child child = Base::old_child(node, b);
        const int depth = this->keys.depth(this->arenas.head(child).prefix);
        found.kept[b] =
            Child::node(child.kind(), depth > node.depth + 1, child.number())
                .word();
      }
      team.team_barrier();
      if (team.team_rank() == 0 && node.replaces &&
          int(old.kind()) != node.kind) {
        auto& head = this->arenas.head(old);
        head.first = head.last = 0;
      }
    }
  }

  template <class Member>
  KOKKOS_FUNCTION void write_head(const Member& team, const RadixRecord& node,
                                  query::RadixHead<Prefix, Word>& head) const {
    if (team.team_rank() == 0)
      head = {static_cast<Word>(node.first), static_cast<Word>(node.last),
              this->keys.prefix(node.first, node.depth, node.height)};
  }

  KOKKOS_FUNCTION Child child_of(const RadixRecord& node,
                                 const RadixScratch& found, int byte) const {
    if (!found.holds(found.inner, byte)) return Child::leaf(found.start[byte]);
    if (!found.holds(found.fresh, byte)) return Child::of(found.kept[byte]);
    const RadixRecord& child =
        below[node.inner + RadixScratch::below(found.fresh, byte)];
    return Child::node(static_cast<query::RadixKind>(child.kind),
                       child.depth > node.depth + 1, child.number);
  }

  /// The children in the order of their bytes, and those bytes unless they
  /// are written otherwise.
  template <class Member, class Node>
  KOKKOS_FUNCTION void write_places(const Member& team, const RadixRecord& node,
                                    const RadixScratch& found, Node& to,
                                    int places, std::uint32_t* bytes) const {
    write_head(team, node, to.head);
    auto* const byte_at = reinterpret_cast<std::uint8_t*>(bytes);
    const int children = RadixScratch::below(found.there, 256);
    for (int b = team.team_rank(); b < 256; b += team.team_size()) {
      if (!found.holds(found.there, b)) continue;
      const int place = RadixScratch::below(found.there, b);
      to.children[place] = child_of(node, found, b);
      if (bytes != nullptr) byte_at[place] = static_cast<std::uint8_t>(b);
    }
    for (int place = children + team.team_rank(); place < places;
         place += team.team_size()) {
      to.children[place] = Child::leaf(node.last);
      if (bytes != nullptr) byte_at[place] = 255;
    }
  }

  template <class Member>
  KOKKOS_FUNCTION static void write_set(const Member& team,
                                        const RadixScratch& found,
                                        query::RadixBytes& to) {
    for (int w = team.team_rank(); w < 4; w += team.team_size())
      to.words[w] = std::uint64_t{found.there[2 * w]} |
                    (std::uint64_t{found.there[2 * w + 1]} << 32);
  }
};

/// The nodes of a radix tree in memory, owned and counted like a View: one
/// arena per form. A tree that is built has them there by level and rank; one
/// that is changed writes those that change where they are, unless they have
/// another form then, and takes the places of nodes that are gone for new ones.
///
/// \tparam Prefix what nodes keep of the bytes above them.
template <class Prefix, class MemorySpace>
class RadixLevels {
 public:
  using Arena = Kokkos::View<std::byte*, MemorySpace>;  ///< nodes of one form

  /// No nodes.
  RadixLevels() = default;

  /// Shares the nodes, as a View does.
  RadixLevels(const RadixLevels&) = default;
  /// Shares the nodes, as a View does.
  RadixLevels& operator=(const RadixLevels&) = default;
  /// Takes the nodes, and leaves none.
  RadixLevels(RadixLevels&& other) noexcept
      : arenas_(std::exchange(other.arenas_, {})),
        counts_(std::exchange(other.counts_, {})),
        places_(std::exchange(other.places_, {})),
        huge_bytes_(std::exchange(other.huge_bytes_, {})),
        single_entries_(std::exchange(other.single_entries_, 0)),
        pages_(other.pages_),
        root_(std::exchange(other.root_, no_nodes())),
        height_(std::exchange(other.height_, 0)),
        is_wide_(std::exchange(other.is_wide_, false)),
        has_many_nodes_(std::exchange(other.has_many_nodes_, false)) {}
  /// Takes the nodes, and leaves none.
  RadixLevels& operator=(RadixLevels&& other) noexcept {
    RadixLevels taken(std::move(other));
    std::swap(arenas_, taken.arenas_);
    std::swap(counts_, taken.counts_);
    std::swap(places_, taken.places_);
    std::swap(huge_bytes_, taken.huge_bytes_);
    std::swap(single_entries_, taken.single_entries_);
    std::swap(pages_, taken.pages_);
    std::swap(root_, taken.root_);
    std::swap(height_, taken.height_);
    std::swap(is_wide_, taken.is_wide_);
    std::swap(has_many_nodes_, taken.has_many_nodes_);
    return *this;
  }
  ~RadixLevels() = default;

  /// The tree of `entries` ascending keys.
  ///
  /// Four kernels and a scan per level, with a team for each node in three of
  /// them, which searches the ranges of its up to 256 children; the scan's
  /// result, which fences `space`, is the size of the next level. Temporary
  /// memory: 96 bytes per node.
  ///
  /// \param label prefix of all labels.
  /// \param options how; leaves have at least 1 entry.
  template <class Exec, class Keys>
  RadixLevels(const Exec& space, const std::string& label, const Keys& keys,
              size_type entries, const RadixTreeOptions& options) {
    rebuild(space, label, keys, entries, options);
  }

  /// Makes the tree of other keys. Arenas that no copy shares are used again;
  /// those that are full become at least twice as large. If memory runs out,
  /// there are no nodes: all entries are one leaf, which is right for any keys.
  ///
  /// \param space, label, keys, entries, options as for the constructor.
  /// \param scratch memory for what is needed meanwhile, or null.
  template <class Exec, class Keys>
  void rebuild(const Exec& space, const std::string& label, const Keys& keys,
               size_type entries, const RadixTreeOptions& options,
               Scratch<MemorySpace>* scratch = nullptr) {
    has_many_nodes_ = false;
    if (!options.wide_references &&
        entries < query::RadixChild<std::uint32_t>::rank_end) {
      build<std::uint32_t>(space, label, keys, entries, options, scratch);
    } else {
      build<std::uint64_t>(space, label, keys, entries, options, scratch);
    }
  }

  /// Makes the tree of the same keys and some more, or less some.
  ///
  /// Only nodes are written anew that have more or fewer entries below: their
  /// ranges are searched as those of a build, level by level. Ranks in all
  /// others move by what came or went before them, in one kernel per form. So
  /// it costs, beside the levels, reading and writing the nodes once. Fences
  /// `space` as a build does, and once more. Arenas that are full become at
  /// least twice as large, those that a copy shares are copied first. If memory
  /// runs out, there are no nodes. Where changes are several times as many as
  /// nodes, so that all of these change, they are made anew, side by side.
  ///
  /// \param space, label, keys, entries, options as for rebuild, after the
  ///   change.
  /// \param shift RadixInsertions or RadixErasures.
  /// \param scratch as for rebuild.
  template <class Exec, class Keys, class Shift>
  void change(const Exec& space, const std::string& label, const Keys& keys,
              size_type entries, const RadixTreeOptions& options,
              const Shift& shift, Scratch<MemorySpace>* scratch = nullptr) {
    constexpr size_type end = query::RadixChild<std::uint32_t>::rank_end;
    const bool has_nodes =
        is_wide_ ? !query::RadixChild<std::uint64_t>::of(root_).is_leaf()
                 : !query::RadixChild<std::uint32_t>::of(root_).is_leaf();
    size_type nodes = 0;
    for (const size_type count : counts_) nodes += count;
    if (!has_nodes || shift.changes > 4 * nodes ||
        is_wide_ !=
            (options.wide_references || entries >= end || has_many_nodes_)) {
      rebuild(space, label, keys, entries, options, scratch);
    } else if (is_wide_) {
      build<std::uint64_t>(space, label, keys, entries, options, scratch,
                           &shift);
    } else {
      build<std::uint32_t>(space, label, keys, entries, options, scratch,
                           &shift);
    }
  }

  /// Whether there are places in the arenas whose nodes are gone.
  bool has_free_places() const { return places_ != counts_; }

  /// Bytes of all nodes.
  size_type node_bytes() const {
    size_type bytes = 0;
    for (int k = 0; k < query::radix_kinds; ++k)
      bytes += counts_[k] * bytes_of(static_cast<query::RadixKind>(k));
    return bytes;
  }

  /// Bytes held: those of the nodes, and of free room in their arenas.
  size_type memory_bytes() const {
    size_type bytes = 0;
    for (const Arena& arena : arenas_) bytes += arena.extent(0);
    return bytes;
  }

  /// Bytes of these for which huge pages were asked, and not refused.
  size_type huge_page_bytes() const {
    size_type bytes = 0;
    for (const size_type of_form : huge_bytes_) bytes += of_form;
    return bytes;
  }

  /// Has room for `times` as many nodes of each form as there are, in arenas
  /// that no copy shares. Those that are too small or shared are copied.
  template <class Exec>
  void reserve(const Exec& space, double times) {
    for (int k = 0; k < query::radix_kinds; ++k) {
      const size_type used =
          places_[k] * bytes_of(static_cast<query::RadixKind>(k));
      const auto wanted =
          static_cast<size_type>(times * static_cast<double>(used));
      if (arenas_[k].extent(0) < wanted || arenas_[k].use_count() > 1)
        resize(space, arenas_[k].label(), k, used,
               std::max<size_type>(wanted, arenas_[k].extent(0)));
    }
  }

  /// Leaves no free room in the arenas, behind the last places of nodes.
  template <class Exec>
  void shrink_to_fit(const Exec& space) {
    for (int k = 0; k < query::radix_kinds; ++k) {
      const size_type bytes =
          places_[k] * bytes_of(static_cast<query::RadixKind>(k));
      if (arenas_[k].extent(0) != bytes)
        resize(space, arenas_[k].label(), k, bytes, bytes);
    }
  }

  /// How many nodes have the form `kind`.
  size_type count(query::RadixKind kind) const { return counts_[int(kind)]; }

  /// How many entries are found by nodes alone, whatever their keys.
  size_type single_entries() const { return single_entries_; }

  /// The nodes of form `kind`.
  const Arena& arena(query::RadixKind kind) const { return arenas_[int(kind)]; }

  /// Has `nodes` refer to all of them.
  template <class Form>
  void refer(query::RadixNodes<Form>& nodes) const {
    nodes.node4 = arenas_[0].data();
    nodes.node16 = arenas_[1].data();
    nodes.node48 = arenas_[2].data();
    nodes.node256 = arenas_[3].data();
    nodes.ranks = arenas_[4].data();
    nodes.bits = arenas_[5].data();
    nodes.root = root_;
    nodes.is_wide = is_wide_;
  }

  /// The most nodes on a way from the root to a leaf.
  int height() const { return height_; }

  /// A RadixChild's word: the root.
  size_type root() const { return root_; }

  /// Whether that has 64 bits.
  bool is_wide() const { return is_wide_; }

 private:
  /// As a root: the leaf of all entries.
  static size_type no_nodes() {
    return query::RadixChild<std::uint32_t>::leaf(0).word();
  }

  /// What no tree that is built from nothing has.
  struct NoShift {};

  template <class Word, class Exec, class Keys, class Shift = NoShift>
  void build(const Exec& space, const std::string& label, const Keys& keys,
             size_type entries, const RadixTreeOptions& options,
             Scratch<MemorySpace>* scratch, const Shift* shift = nullptr);

  /// Which places new nodes take, and what is gone.
  template <class Word>
  struct Vacancies {
    Kokkos::View<Word*, MemorySpace> free;
    RadixNumbers<Word> numbers{};
    std::array<size_type, query::radix_kinds> freed{};  ///< nodes, by form
    size_type singles = 0;                              ///< their entries
  };

  /// Has ranks in all nodes that may stay moved, and lists free places.
  template <class Word, class Exec, class Keys, class Shift>
  Vacancies<Word> survey(
      const Exec& space, const std::string& label, const Keys& keys,
      const RadixTreeOptions& options, const Shift& shift,
      const std::array<size_type, query::radix_kinds>& places,
      Scratch<MemorySpace>* scratch);

  template <class Word>
  RadixArenas<Prefix, Word> arenas() const {
    RadixArenas<Prefix, Word> all;
    for (int k = 0; k < query::radix_kinds; ++k) all.of[k] = arenas_[k].data();
    return all;
  }

  /// Gives a form another arena of `bytes` bytes, with the first `used` of the
  /// one that it has.
  template <class Exec>
  void resize(const Exec& space, const std::string& label, int kind,
              size_type used, size_type bytes) {
    Arena arena;
    size_type huge = 0;
    if (bytes > 0) {
      arena = Arena(
          Kokkos::view_alloc(space, Kokkos::WithoutInitializing, label), bytes);
      huge = use_pages(pages_, arena);
    }
    const Kokkos::pair<size_type, size_type> range(0, used);
    if (used > 0)
      Kokkos::deep_copy(space, Kokkos::subview(arena, range),
                        Kokkos::subview(arenas_[kind], range));
    arenas_[kind] = arena;
    huge_bytes_[kind] = huge;
  }

  size_type bytes_of(query::RadixKind kind) const {
    return is_wide_ ? query::radix_node_bytes<Prefix, std::uint64_t>(kind)
                    : query::radix_node_bytes<Prefix, std::uint32_t>(kind);
  }

  /// A team for each node of `kernel`.
  template <class Exec, class Kernel>
  static void run(const Exec& space, const std::string& label,
                  const Kernel& kernel) {
    constexpr int threads = query::DeviceTraits<Exec>::is_gpu ? 128 : 1;
    query::run_tiled(space, label, kernel, kernel.count,
                     query::scratch_bytes_of<RadixScratch, Exec>(1), threads);
  }

  std::array<Arena, query::radix_kinds> arenas_;
  std::array<size_type, query::radix_kinds> counts_{};
  std::array<size_type, query::radix_kinds> places_{};  ///< with free ones
  std::array<size_type, query::radix_kinds> huge_bytes_{};
  size_type single_entries_ = 0;
  Pages pages_ = Pages::ordinary;
  size_type root_ = no_nodes();
  int height_ = 0;
  bool is_wide_ = false;
  bool has_many_nodes_ = false;  ///< more than references of 32 bits number
};

template <class Prefix, class MemorySpace>
template <class Word, class Exec, class Keys, class Shift>
auto RadixLevels<Prefix, MemorySpace>::survey(
    const Exec& space, const std::string& label, const Keys& keys,
    const RadixTreeOptions& options, const Shift& shift,
    const std::array<size_type, query::radix_kinds>& places,
    Scratch<MemorySpace>* scratch) -> Vacancies<Word> {
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
  for (int k = 0; k < query::radix_kinds; ++k)
    if (arenas_[k].use_count() > 1)
      resize(space, arenas_[k].label(), k,
             places[k] * bytes_of(static_cast<query::RadixKind>(k)),
             arenas_[k].extent(0));
  const auto all = arenas<Word>();
  RadixPlaces of_forms;
  size_type count = 0;
  for (int k = 0; k < query::radix_kinds; ++k) {
    of_forms.begin[k] = count;
    count += places[k];
  }
  const auto deltas =
      temporary<size_type>(space, label + "::deltas", count, scratch);
  const auto states =
      temporary<RadixPlaceState>(space, label + "::states", count, scratch);
  Kokkos::parallel_for(label + "::shift_nodes", Range(space, 0, count),
                       ShiftRadixNodes<Word, Keys, Shift>{
                           all, of_forms, keys, shift, options.leaf_entries,
                           deltas.data(), states.data()});
  const auto shift_form = [&](query::RadixKind kind, auto shifting) {
    const int k = int(kind);
    if (places[k] == 0) return;
    shifting.nodes = reinterpret_cast<decltype(shifting.nodes)>(all.of[k]);
    shifting.deltas = deltas.data() + of_forms.begin[k];
    Kokkos::parallel_for(label + "::shift_ranks",
                         Range(space, 0, places[k] * shifting.places),
                         shifting);
  };
  using query::RadixKind;
  shift_form(RadixKind::node4,
             ShiftRadixLeaves<query::RadixNode4<Prefix, Word>>{});
  shift_form(RadixKind::node16,
             ShiftRadixLeaves<query::RadixNode16<Prefix, Word>>{});
  shift_form(RadixKind::node48,
             ShiftRadixLeaves<query::RadixNode48<Prefix, Word>>{});
  shift_form(RadixKind::node256,
             ShiftRadixLeaves<query::RadixNode256<Prefix, Word>>{});
  shift_form(RadixKind::ranks,
             ShiftRadixRanks<query::RadixRanks<Prefix, Word>>{});

  Vacancies<Word> found;
  found.free = temporary<Word>(space, label + "::free_places", count, scratch);
  std::array<RadixSurvey, query::radix_kinds + 1> until;
  const auto before =
      temporary<RadixSurvey>(space, label + "::surveys", until.size(), scratch);
  Kokkos::parallel_scan(
      label + "::list_places", Range(space, 0, count),
      ListRadixPlaces<Prefix, Word>{all, of_forms, states.data(),
                                    found.free.data(), before.data(), count});
  Kokkos::deep_copy(space,
                    Kokkos::View<RadixSurvey*, Kokkos::HostSpace,
                                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                        until.data(), until.size()),
                    before);
  space.fence(label + "::surveys");
  const RadixSurvey total = until.back();
  for (int k = 0; k < query::radix_kinds; ++k)
    if (of_forms.begin[k] == count) until[k] = total;
  for (int k = 0; k < query::radix_kinds; ++k) {
    found.numbers.free[k] = found.free.data() + until[k].free;
    found.numbers.count[k] = until[k + 1].free - until[k].free;
    found.numbers.end[k] = places[k];
    found.freed[k] = until[k + 1].freed - until[k].freed;
  }
  found.singles = total.singles;
  return found;
}

template <class Prefix, class MemorySpace>
template <class Word, class Exec, class Keys, class Shift>
void RadixLevels<Prefix, MemorySpace>::build(
    const Exec& space, const std::string& label, const Keys& keys,
    size_type entries, const RadixTreeOptions& options,
    Scratch<MemorySpace>* scratch, const Shift* shift) {
  using Child = query::RadixChild<Word>;
  constexpr bool changes = !std::is_same_v<Shift, NoShift>;
  pages_ = options.pages;
  const size_type old_root = changes ? root_ : Child::leaf(0).word();
  auto counts = changes ? counts_ : decltype(counts_){};
  auto places = changes ? places_ : decltype(places_){};
  size_type singles = changes ? single_entries_ : 0;
  root_ = Child::leaf(0).word();
  is_wide_ = sizeof(Word) == 8;
  counts_ = {};
  places_ = {};
  single_entries_ = 0;
  height_ = 0;
  if (entries <= options.leaf_entries) return;
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
  Vacancies<Word> vacancies;
  if constexpr (changes) {
    vacancies =
        survey<Word>(space, label, keys, options, *shift, places, scratch);
    for (int k = 0; k < query::radix_kinds; ++k)
      counts[k] -= vacancies.freed[k];
    singles -= vacancies.singles;
  }
  const RadixNumbers<Word>& numbers = vacancies.numbers;
  struct Level {
    Kokkos::View<RadixRecord*, MemorySpace> records;
    Kokkos::View<std::uint32_t*, MemorySpace> fresh;
    size_type size() const { return records.extent(0); }
  };
  const auto level_of = [&](size_type count) {
    return Level{
        temporary<RadixRecord>(space, label + "::level", count, scratch),
        temporary<std::uint32_t>(space, label + "::level_of_fresh", 8 * count,
                                 scratch)};
  };
  const auto kernel_of = [&](const Level& level) {
    return RadixLevelKernel<Exec, Word, Keys>{
        keys,         level.records.data(), level.fresh.data(),
        level.size(), options.leaf_entries, arenas<Word>()};
  };
  std::vector<Level> levels{level_of(1)};
  Kokkos::parallel_for(
      label + "::write_root", Kokkos::RangePolicy<Exec>(space, 0, 1),
      WriteElement<RadixRecord>{
          {0, entries, old_root, 0, RadixRecord::unnumbered, 0, 0, 0, 0, false},
          levels[0].records.data()});
  RadixCounts above;
  size_type root = 0;
  size_type height = 0;
  for (;;) {
    const Level& level = levels.back();
    const auto of_level = kernel_of(level);
    run(space, label + "::measure_nodes",
        MeasureRadixNodes<Exec, Word, Keys>{of_level});
    RadixCounts here;
    Kokkos::parallel_scan(
        label + "::number_nodes", Range(space, 0, level.size()),
        NumberRadixNodes<Word>{level.records.data(), above, numbers}, here);
    above += here;
    if (levels.size() == 1) root = here.words;
    height = std::max(height, levels.size() + here.height);
    if (here.inner == 0) break;
    const Level below = level_of(here.inner);
    run(space, label + "::branch_nodes",
        BranchRadixNodes<Exec, Word, Keys>{of_level, below.records.data()});
    levels.push_back(below);
  }
  if (Child::of(root).is_leaf()) return;  // all keys are equal
  constexpr const char* names[] = {"node4",   "node16", "node48",
                                   "node256", "ranks",  "bits"};
  auto places_before = places;
  for (int k = 0; k < query::radix_kinds; ++k) {
    const size_type fresh = above.fresh[k];
    places[k] += fresh - std::min(fresh, numbers.count[k]);
    counts[k] += fresh - above.freed[k];
    if (sizeof(Word) == 4 && places[k] > Child::most_nodes) {
      // There may be fewer without free places.
      if (changes)
        return rebuild(space, label, keys, entries, options, scratch);
      has_many_nodes_ = true;
      return build<std::uint64_t>(space, label, keys, entries, options,
                                  scratch);
    }
  }
  for (int k = 0; k < query::radix_kinds; ++k) {
    const size_type of_one = bytes_of(static_cast<query::RadixKind>(k));
    const size_type bytes = places[k] * of_one;
    Arena& arena = arenas_[k];
    const bool is_shared = arena.use_count() > 1;
    if (bytes <= arena.extent(0) && !is_shared) continue;
    const size_type room = std::max(bytes, is_shared ? 0 : 2 * arena.extent(0));
    // Not both at once where what is in the old one is not needed any more.
    if (places_before[k] == 0) {
      arena = Arena();
      huge_bytes_[k] = 0;
    }
    resize(space, label + "::" + names[k], k, places_before[k] * of_one, room);
  }
  for (std::size_t l = levels.size(); l-- > 0;) {
    const bool is_last = l + 1 == levels.size();
    Kokkos::parallel_for(
        label + "::raise_nodes", Range(space, 0, levels[l].size()),
        RaiseRadixNodes{levels[l].records.data(), levels[l].size(),
                        is_last ? nullptr : levels[l + 1].records.data(),
                        is_last ? 0 : levels[l + 1].size()});
  }
  // From the root down: a node looks at what its children were.
  for (std::size_t l = 0; l < levels.size(); ++l)
    run(space, label + "::write_nodes",
        WriteRadixNodes<Exec, Word, Keys>{
            kernel_of(levels[l]),
            l + 1 < levels.size() ? levels[l + 1].records.data() : nullptr});
  counts_ = counts;
  places_ = places;
  single_entries_ = singles + above.singles;
  height_ = int(height);
  root_ = root;
}

}  // namespace build
}  // namespace kindex

#endif
