// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_RADIXLEVELS_HPP
#define KINDEX_BUILD_RADIXLEVELS_HPP

/// \file
/// A radix tree from ascending keys, level by level, in parallel.

#include <kindex/build/Copy.hpp>
#include <kindex/query/Engine.hpp>
#include <kindex/query/RadixNodes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kindex::build {

/// Ascending keys of fixed size as the build sees them.
template <class Entries>
struct RadixKeys {
  using Key = std::decay_t<decltype(std::declval<Entries>().key(0))>;
  using Bits = typename KeyTraits<Key>::bits_type;
  using Prefix = Bits;  ///< what nodes keep of the bytes above them
  static constexpr int last_depth = int(sizeof(Bits)) - 1;

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
  /// What a node keeps of the first `depth` bytes of its keys.
  KOKKOS_FUNCTION Prefix prefix(size_type rank, int depth) const {
    // No node branches behind the last byte: it is free for the depth.
    return query::radix_with_byte(query::radix_prefix(bits(rank), depth),
                                  last_depth, depth);
  }
};

/// A node while the tree is built.
struct RadixRecord {
  size_type first;   ///< rank of its first entry
  size_type last;    ///< rank behind its last entry
  size_type inner;   ///< how many children are nodes; then, the number of the
                     ///< first of them in the level below
  size_type number;  ///< its number in the arena of its form
  int depth;         ///< the byte at which it branches
  int kind;          ///< its form, or query::radix_kinds: it is a leaf
};

/// What a team finds out about a node.
struct RadixScratch {
  size_type start[257];     ///< for each byte, the first rank not below it
  std::uint32_t there[8];   ///< bit b: whether byte b has a child
  std::uint32_t inner[8];   ///< bit b: whether that is a node
  std::uint32_t is_spread;  ///< whether a block of ranks spans too many

  /// The number of bits below `byte`.
  KOKKOS_FUNCTION static int below(const std::uint32_t (&bits)[8], int byte) {
    int count = 0;
    for (int w = 0; w < byte / 32; ++w) count += Kokkos::popcount(bits[w]);
    if (byte % 32 != 0)
      count += Kokkos::popcount(bits[byte / 32] &
                                ((std::uint32_t{1} << (byte % 32)) - 1));
    return count;
  }
  KOKKOS_FUNCTION bool holds(const std::uint32_t (&bits)[8], int byte) const {
    return (bits[byte / 32] >> (byte % 32) & 1) != 0;
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
  const auto set = [](std::uint32_t& word, int bit) {
    const std::uint32_t mask = std::uint32_t{1} << bit;
    if constexpr (query::DeviceTraits<Exec>::is_gpu) {
      Kokkos::atomic_or(&word, mask);
    } else {
      word |= mask;
    }
  };
  for (int b = thread; b < 256; b += threads) {
    const size_type begin = found.start[b];
    const size_type end = found.start[b + 1];
    if (begin < end) {
      set(found.there[b / 32], b % 32);
      if (end - begin > most && !keys.equal(begin, end - 1))
        set(found.inner[b / 32], b % 32);
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
  Keys keys;
  RadixRecord* nodes;  ///< of this level
  size_type count;     ///< how many
  size_type most;      ///< entries up to which different keys share a leaf

  template <class Member, class F>
  KOKKOS_FUNCTION void for_each_node(const Member& team, const F& f) const {
    auto& found = *query::take_scratch<RadixScratch, Exec>(team, 1);
    for (size_type n = team.league_rank(); n < count; n += team.league_size()) {
      f(nodes[n], found);
      team.team_barrier();
    }
  }
  template <class Member>
  KOKKOS_FUNCTION void find(const Member& team, const RadixRecord& node,
                            RadixScratch& found) const {
    find_radix_children<Exec, Word>(team, keys, node.first, node.last,
                                    node.depth, most, found);
  }
};

/// Finds out where each node branches and which form it has.
template <class Exec, class Word, class Keys>
struct MeasureRadixNodes : RadixLevelKernel<Exec, Word, Keys> {
  using Base = RadixLevelKernel<Exec, Word, Keys>;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    Base::for_each_node(team, [&](RadixRecord& node, RadixScratch& found) {
      RadixRecord measured = node;
      if (this->keys.equal(node.first, node.last - 1)) {
        measured.inner = 0;
        measured.kind = query::radix_kinds;
      } else {
        measured.depth = this->keys.common(node.first, node.last - 1);
        Base::find(team, measured, found);
        const int children = RadixScratch::below(found.there, 256);
        const int inner = RadixScratch::below(found.inner, 256);
        measured.inner = size_type(inner);
        measured.kind = int(radix_kind(children, inner, node.last - node.first,
                                       found.is_spread != 0));
      }
      team.team_barrier();
      if (team.team_rank() == 0) node = measured;
    });
  }
};

/// How many nodes of each form there are, how many children are nodes, how many
/// nodes branch behind the first byte, and how many entries are children alone.
struct RadixCounts {
  static constexpr int inner = query::radix_kinds;
  static constexpr int deep = query::radix_kinds + 1;
  static constexpr int single = query::radix_kinds + 2;
  size_type of[query::radix_kinds + 3];

  KOKKOS_FUNCTION RadixCounts() : of{} {}
  KOKKOS_FUNCTION RadixCounts& operator+=(const RadixCounts& other) {
    for (int k = 0; k <= single; ++k) of[k] += other.of[k];
    return *this;
  }
};

/// Numbers the nodes of a level by form, behind those of the levels above, and
/// those of the level below.
struct NumberRadixNodes {
  using value_type = RadixCounts;
  RadixRecord* nodes;
  RadixCounts above;

  KOKKOS_FUNCTION void operator()(size_type n, RadixCounts& sum,
                                  bool is_final) const {
    RadixRecord& node = nodes[n];
    const int kind = node.kind;
    const size_type inner = node.inner;
    const int depth = node.depth;
    const size_type entries = node.last - node.first;
    if (is_final) {
      for (int k = 0; k < query::radix_kinds; ++k)
        if (k == kind) node.number = above.of[k] + sum.of[k];
      node.inner = sum.of[RadixCounts::inner];
    }
    for (int k = 0; k < query::radix_kinds; ++k) sum.of[k] += k == kind ? 1 : 0;
    sum.of[RadixCounts::inner] += inner;
    sum.of[RadixCounts::deep] += depth > 0 ? 1 : 0;
    sum.of[RadixCounts::single] +=
        kind == int(query::RadixKind::bits) ? entries : 0;
  }
};

/// Writes the ranges of the nodes of the level below.
template <class Exec, class Word, class Keys>
struct BranchRadixNodes : RadixLevelKernel<Exec, Word, Keys> {
  using Base = RadixLevelKernel<Exec, Word, Keys>;
  RadixRecord* below;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    Base::for_each_node(
        team, [&](const RadixRecord& node, RadixScratch& found) {
          Base::find(team, node, found);
          for (int b = team.team_rank(); b < 256; b += team.team_size())
            if (found.holds(found.inner, b))
              below[node.inner + RadixScratch::below(found.inner, b)] = {
                  found.start[b], found.start[b + 1], 0, 0, 0, 0};
        });
  }
};

/// The arenas to be written.
struct RadixArenas {
  std::byte* node4;
  std::byte* node16;
  std::byte* node48;
  std::byte* node256;
  std::byte* ranks;
  std::byte* bits;
};

/// Writes the nodes of a level.
template <class Exec, class Word, class Keys>
struct WriteRadixNodes : RadixLevelKernel<Exec, Word, Keys> {
  using Base = RadixLevelKernel<Exec, Word, Keys>;
  using Prefix = typename Keys::Prefix;
  using Child = query::RadixChild<Word>;
  const RadixRecord* below;
  RadixArenas arenas;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    using query::RadixKind;
    Base::for_each_node(team, [&](const RadixRecord& node,
                                  RadixScratch& found) {
      Base::find(team, node, found);
      switch (static_cast<RadixKind>(node.kind)) {
        case RadixKind::node4: {
          auto& to = at<query::RadixNode4<Prefix, Word>>(arenas.node4, node);
          write_places(team, node, found, to, 4, &to.bytes);
          break;
        }
        case RadixKind::node16: {
          auto& to = at<query::RadixNode16<Prefix, Word>>(arenas.node16, node);
          write_places(team, node, found, to, 16, to.bytes);
          break;
        }
        case RadixKind::node48: {
          auto& to = at<query::RadixNode48<Prefix, Word>>(arenas.node48, node);
          write_places(team, node, found, to, 48, nullptr);
          write_set(team, found, to.bytes);
          break;
        }
        case RadixKind::node256: {
          auto& to =
              at<query::RadixNode256<Prefix, Word>>(arenas.node256, node);
          write_head(team, node, to.head);
          for (int b = team.team_rank(); b < 256; b += team.team_size())
            to.children[b] = child_of(node, found, b);
          break;
        }
        case RadixKind::ranks: {
          using Node = query::RadixRanks<Prefix, Word>;
          constexpr int size = Node::Block::size;
          auto& to = at<Node>(arenas.ranks, node);
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
          auto& to = at<query::RadixBits<Prefix, Word>>(arenas.bits, node);
          write_head(team, node, to.head);
          write_set(team, found, to.bytes);
        }
      }
    });
  }

 private:
  template <class Node>
  KOKKOS_FUNCTION static Node& at(std::byte* arena, const RadixRecord& node) {
    return reinterpret_cast<Node*>(arena)[node.number];
  }

  template <class Member>
  KOKKOS_FUNCTION void write_head(const Member& team, const RadixRecord& node,
                                  query::RadixHead<Prefix, Word>& head) const {
    if (team.team_rank() == 0)
      head = {static_cast<Word>(node.first), static_cast<Word>(node.last),
              this->keys.prefix(node.first, node.depth)};
  }

  KOKKOS_FUNCTION Child child_of(const RadixRecord& node,
                                 const RadixScratch& found, int byte) const {
    if (!found.holds(found.inner, byte)) return Child::leaf(found.start[byte]);
    const RadixRecord& child =
        below[node.inner + RadixScratch::below(found.inner, byte)];
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
/// arena per form, and in it the nodes by level and rank.
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
        single_entries_(std::exchange(other.single_entries_, 0)),
        root_(std::exchange(other.root_, no_nodes())),
        height_(std::exchange(other.height_, 0)),
        is_wide_(std::exchange(other.is_wide_, false)) {}
  /// Takes the nodes, and leaves none.
  RadixLevels& operator=(RadixLevels&& other) noexcept {
    RadixLevels taken(std::move(other));
    std::swap(arenas_, taken.arenas_);
    std::swap(counts_, taken.counts_);
    std::swap(single_entries_, taken.single_entries_);
    std::swap(root_, taken.root_);
    std::swap(height_, taken.height_);
    std::swap(is_wide_, taken.is_wide_);
    return *this;
  }
  ~RadixLevels() = default;

  /// The tree of `entries` ascending keys.
  ///
  /// Three kernels and a scan per level, with a team for each node, which
  /// searches the ranges of its up to 256 children; the scan's result, which
  /// fences `space`, is the size of the next level. Temporary memory: 40 bytes
  /// per node.
  ///
  /// \param label prefix of all labels.
  /// \param most entries up to which different keys share a leaf, at least 1.
  /// \param wide whether references have 64 bits even where 32 do.
  template <class Exec, class Keys>
  RadixLevels(const Exec& space, const std::string& label, const Keys& keys,
              size_type entries, size_type most, bool wide) {
    rebuild(space, label, keys, entries, most, wide);
  }

  /// Makes the tree of other keys. Arenas that no copy shares are used again;
  /// those that are full become at least twice as large. If memory runs out,
  /// there are no nodes: all entries are one leaf, which is right for any keys.
  ///
  /// \param space, label, keys, entries, most, wide as for the constructor.
  template <class Exec, class Keys>
  void rebuild(const Exec& space, const std::string& label, const Keys& keys,
               size_type entries, size_type most, bool wide) {
    if (!wide && entries < query::RadixChild<std::uint32_t>::rank_end) {
      build<std::uint32_t>(space, label, keys, entries, most);
    } else {
      build<std::uint64_t>(space, label, keys, entries, most);
    }
  }

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

  /// Leaves no free room in the arenas.
  template <class Exec>
  void shrink_to_fit(const Exec& space) {
    for (int k = 0; k < query::radix_kinds; ++k) {
      const size_type bytes =
          counts_[k] * bytes_of(static_cast<query::RadixKind>(k));
      Arena& arena = arenas_[k];
      if (arena.extent(0) == bytes) continue;
      const Arena less =
          bytes == 0 ? Arena() : allocate(space, arena.label(), bytes);
      if (bytes > 0)
        Kokkos::deep_copy(
            space, less,
            Kokkos::subview(arena,
                            Kokkos::pair<size_type, size_type>(0, bytes)));
      arena = less;
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

  template <class Word, class Exec, class Keys>
  void build(const Exec& space, const std::string& label, const Keys& keys,
             size_type entries, size_type most);

  size_type bytes_of(query::RadixKind kind) const {
    return is_wide_ ? query::radix_node_bytes<Prefix, std::uint64_t>(kind)
                    : query::radix_node_bytes<Prefix, std::uint32_t>(kind);
  }

  template <class Exec>
  static Arena allocate(const Exec& space, const std::string& label,
                        size_type bytes) {
    return Arena(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, label),
                 bytes);
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
  size_type single_entries_ = 0;
  size_type root_ = no_nodes();
  int height_ = 0;
  bool is_wide_ = false;
};

template <class Prefix, class MemorySpace>
template <class Word, class Exec, class Keys>
void RadixLevels<Prefix, MemorySpace>::build(const Exec& space,
                                             const std::string& label,
                                             const Keys& keys,
                                             size_type entries,
                                             size_type most) {
  root_ = query::RadixChild<Word>::leaf(0).word();
  is_wide_ = sizeof(Word) == 8;
  counts_ = {};
  single_entries_ = 0;
  height_ = 0;
  if (entries <= most) return;
  using Records = Kokkos::View<RadixRecord*, MemorySpace>;
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
  const auto records = [&](size_type count) {
    return Records(Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                      label + "::level"),
                   count);
  };
  std::vector<Records> levels{records(1)};
  Kokkos::parallel_for(
      label + "::write_root", Kokkos::RangePolicy<Exec>(space, 0, 1),
      WriteElement<RadixRecord>{{0, entries, 0, 0, 0, 0}, levels[0].data()});
  RadixCounts above;
  int root_kind = query::radix_kinds;
  bool root_has_path = false;
  for (;;) {
    const Records& level = levels.back();
    const RadixLevelKernel<Exec, Word, Keys> of_level{keys, level.data(),
                                                      level.extent(0), most};
    run(space, label + "::measure_nodes",
        MeasureRadixNodes<Exec, Word, Keys>{of_level});
    RadixCounts here;
    Kokkos::parallel_scan(label + "::number_nodes",
                          Range(space, 0, level.extent(0)),
                          NumberRadixNodes{level.data(), above}, here);
    above += here;
    if (levels.size() == 1) {
      root_has_path = here.of[RadixCounts::deep] > 0;
      root_kind =
          int(std::find(here.of, here.of + query::radix_kinds, 1) - here.of);
    }
    const size_type inner = here.of[RadixCounts::inner];
    if (inner == 0) break;
    const auto below = records(inner);
    run(space, label + "::branch_nodes",
        BranchRadixNodes<Exec, Word, Keys>{of_level, below.data()});
    levels.push_back(below);
  }
  if (root_kind == query::radix_kinds) return;  // all keys are equal
  std::array<size_type, query::radix_kinds> counts;
  std::copy_n(above.of, query::radix_kinds, counts.begin());
  if constexpr (sizeof(Word) == 4) {
    if (*std::max_element(counts.begin(), counts.end()) >
        query::RadixChild<Word>::most_nodes)
      return build<std::uint64_t>(space, label, keys, entries, most);
  }
  constexpr const char* names[] = {"node4",   "node16", "node48",
                                   "node256", "ranks",  "bits"};
  for (std::size_t k = 0; k < arenas_.size(); ++k) {
    const size_type bytes =
        counts[k] * bytes_of(static_cast<query::RadixKind>(k));
    Arena& arena = arenas_[k];
    const bool is_shared = arena.use_count() > 1;
    if (bytes <= arena.extent(0) && !is_shared) continue;
    const size_type room = is_shared ? 0 : 2 * arena.extent(0);
    // Not both at once: what is in the old one is not needed any more.
    arena = Arena();
    if (bytes > 0)
      arena = allocate(space, label + "::" + names[k], std::max(bytes, room));
  }
  for (std::size_t l = 0; l < levels.size(); ++l)
    run(space, label + "::write_nodes",
        WriteRadixNodes<Exec, Word, Keys>{
            {keys, levels[l].data(), levels[l].extent(0), most},
            l + 1 < levels.size() ? levels[l + 1].data() : nullptr,
            {arenas_[0].data(), arenas_[1].data(), arenas_[2].data(),
             arenas_[3].data(), arenas_[4].data(), arenas_[5].data()}});
  counts_ = counts;
  single_entries_ = above.of[RadixCounts::single];
  height_ = int(levels.size());
  root_ = query::RadixChild<Word>::node(
              static_cast<query::RadixKind>(root_kind), root_has_path, 0)
              .word();
}

}  // namespace kindex::build

#endif
