// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An adaptive radix tree that grows by one key at a time, and how the tree of a
// RadixTree differs from it.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_RADIXREFERENCE_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_RADIXREFERENCE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <kindex/build/RadixLevels.hpp>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/Devices.hpp"
#include "support/Queries.hpp"

namespace kindex_test {

using kindex::query::RadixKind;

/// The bits of a key in order, as bytes.
template <class Key>
std::string radix_bytes(Key key) {
  const auto bits = kindex::KeyTraits<Key>::to_bits(key);
  std::string bytes;
  for (int shift = 8 * int(sizeof(Key)) - 8; shift >= 0; shift -= 8) {
    if constexpr (std::is_same_v<Key, kindex::Key128>)
      bytes += static_cast<char>(
          (shift >= 64 ? bits.hi >> (shift - 64) : bits.lo >> shift) & 255);
    else
      bytes += static_cast<char>((bits >> shift) & 255);
  }
  return bytes;
}

/// A tree of byte strings, or a subtree.
class RadixReference {
 public:
  /// \param most entries up to which different keys share a leaf.
  explicit RadixReference(std::size_t most) : most_(most) {}

  void insert(const std::string& key) {
    if (is_leaf()) {
      keys_.insert(key);
      if (keys_.size() > most_ && *keys_.begin() != *keys_.rbegin()) split();
      return;
    }
    const std::size_t common = common_bytes(key, path_);
    if (common < path_.size()) {
      // The path splits: what was here moves below.
      auto old = std::make_unique<RadixReference>(most_);
      std::swap(*old, *this);
      path_ = old->path_.substr(0, common);
      const int byte = byte_of(old->path_, common);
      size_ = old->size_;
      children_[byte] = std::move(old);
    }
    ++size_;
    auto& child = children_[byte_of(key, path_.size())];
    if (child == nullptr) child = std::make_unique<RadixReference>(most_);
    child->insert(key);
  }

  bool is_leaf() const { return children_.empty(); }
  std::size_t size() const { return is_leaf() ? keys_.size() : size_; }
  std::size_t depth() const { return path_.size(); }
  /// Levels of nodes.
  int height() const {
    int below = 0;
    for (const auto& child : children_)
      below = std::max(below, child.second->height());
    return is_leaf() ? 0 : below + 1;
  }
  const std::string& path() const { return path_; }
  /// By byte; -1: the keys that end where the node branches.
  const std::map<int, std::unique_ptr<RadixReference>>& children() const {
    return children_;
  }

  /// The form that the node should have. \param block ranks in a block.
  RadixKind kind(int block) const {
    std::size_t count = 0, single = 0;
    bool leaves = true;
    std::array<std::size_t, 257> start{};
    std::size_t rank = 0;
    int next = 0;
    for (const auto& [byte, child] : children_) {
      if (byte >= 0) {
        for (; next <= byte; ++next) start[std::size_t(next)] = rank;
        ++count;
        single += child->size() == 1;
        leaves = leaves && child->is_leaf();
      }
      rank += child->size();
    }
    for (; next <= 256; ++next) start[std::size_t(next)] = rank;
    bool spans_fit = true;
    for (int b = 0; b < 256; ++b)
      spans_fit =
          spans_fit &&
          start[std::size_t(b)] - start[std::size_t(b / block * block)] <= 255;
    if (count > 4 && single == count && count == children_.size())
      return RadixKind::bits;
    if (count > 48 && leaves && spans_fit) return RadixKind::ranks;
    if (count > 4 && size() >= 8192) return RadixKind::node256;
    return count <= 4    ? RadixKind::node4
           : count <= 16 ? RadixKind::node16
           : count <= 48 ? RadixKind::node48
                         : RadixKind::node256;
  }

 private:
  static std::size_t common_bytes(const std::string& a, const std::string& b) {
    std::size_t common = 0;
    while (common < a.size() && common < b.size() && a[common] == b[common])
      ++common;
    return common;
  }
  static int byte_of(const std::string& key, std::size_t depth) {
    return depth < key.size() ? static_cast<unsigned char>(key[depth]) : -1;
  }
  void split() {
    path_ =
        keys_.begin()->substr(0, common_bytes(*keys_.begin(), *keys_.rbegin()));
    size_ = keys_.size();
    for (const auto& key : keys_) {
      auto& child = children_[byte_of(key, path_.size())];
      if (child == nullptr) child = std::make_unique<RadixReference>(most_);
      child->insert(key);
    }
    keys_.clear();
  }

  std::size_t most_;
  std::size_t size_ = 0;
  std::string path_;
  std::multiset<std::string> keys_;
  std::map<int, std::unique_ptr<RadixReference>> children_;
};

/// Nodes by form.
using KindCounts = std::array<size_type, kindex::query::radix_kinds>;

/// Where the nodes of a tree are in their arenas.
enum class NodeOrder {
  by_level,  ///< and rank: it was built
  any        ///< each in a place of its own: it was changed
};

/// Compares trees node by node.
template <class Prefix, class Word>
class RadixComparison {
 public:
  template <class Levels>
  explicit RadixComparison(const Levels& levels)
      : height_(levels.height()), singles_(levels.single_entries()) {
    for (int k = 0; k < kindex::query::radix_kinds; ++k) {
      const auto& arena = levels.arena(static_cast<RadixKind>(k));
      if (arena.extent(0) > 0) arenas_[std::size_t(k)] = to_host(arena);
      counts_[std::size_t(k)] = levels.count(static_cast<RadixKind>(k));
    }
  }

  /// What differs, or nothing. \param last_depth byte of a prefix that holds
  /// its length, or -1: a prefix is its length.
  std::string differences(const RadixReference& reference, size_type root,
                          int last_depth, NodeOrder order) {
    struct Place {
      const RadixReference* reference;
      Child child;
      size_type first;
      int depth;
    };
    KindCounts seen{};
    size_type singles = 0;
    std::set<std::pair<RadixKind, size_type>> taken;
    expect("height", reference.height(), height_);
    std::deque<Place> open{{&reference, Child::of(root), 0, 0}};
    while (!open.empty() && text_.str().size() < 1000) {
      const Place at = open.front();
      open.pop_front();
      where_ = "path of " + std::to_string(at.reference->depth()) +
               " bytes, first rank " + std::to_string(at.first);
      if (at.reference->is_leaf()) {
        expect("is a leaf", true, at.child.is_leaf());
        if (at.child.is_leaf()) expect("rank", at.first, at.child.rank());
        continue;
      }
      expect("is a leaf", false, at.child.is_leaf());
      if (at.child.is_leaf()) continue;
      const auto kind =
          at.reference->kind(kindex::query::RadixRankBlock<Word>::size);
      expect("form", int(kind), int(at.child.kind()));
      if (kind != at.child.kind()) continue;
      const size_type nth = seen[std::size_t(kind)]++;
      if (order == NodeOrder::by_level)
        expect("number", nth, at.child.number());
      expect("has a place of its own", true,
             taken.emplace(kind, at.child.number()).second);
      if (kind == RadixKind::bits) singles += at.reference->size();
      const int depth = int(at.reference->depth());
      expect("has a path", depth > at.depth, at.child.has_path());
      const auto& head =
          *reinterpret_cast<const kindex::query::RadixHead<Prefix, Word>*>(
              node(at.child));
      expect("first", at.first, head.first);
      expect("last", at.first + at.reference->size(), head.last);
      if (last_depth >= 0) {
        const int last = kindex::query::radix_byte(head.prefix, last_depth);
        expect("depth", depth, last & 15);
        expect("height", at.reference->height(), (last >> 4) + 1);
      } else if constexpr (std::is_integral_v<Prefix>) {
        expect("depth", depth, head.prefix);
      }
      size_type rank = at.first;
      int next = 0;
      for (const auto& [byte, child] : at.reference->children()) {
        if (byte >= 0) {
          for (; next < byte; ++next)
            expect("rank of no child " + std::to_string(next), rank,
                   absent_rank(at.child, next, head.last));
          next = byte + 1;
          open.push_back(
              {child.get(), child_of(at.child, byte), rank, depth + 1});
        }
        rank += child->size();
      }
      for (; next < 256; ++next)
        expect("rank of no child " + std::to_string(next), rank,
               absent_rank(at.child, next, head.last));
    }
    where_ = "in all";
    for (std::size_t k = 0; k < seen.size(); ++k)
      expect("nodes of form " + std::to_string(k), seen[k], counts_[k]);
    expect("single entries", singles, singles_);
    return text_.str();
  }

 private:
  using Child = kindex::query::RadixChild<Word>;

  template <class T>
  static T as(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  const std::byte* node(Child child) const {
    return arenas_[std::size_t(child.kind())].data() +
           child.number() *
               kindex::query::radix_node_bytes<Prefix, Word>(child.kind());
  }
  /// The children that are stored, with their bytes.
  std::vector<std::pair<int, Child>> stored(Child child) const {
    using namespace kindex::query;
    std::vector<std::pair<int, Child>> all;
    const auto from_bytes = [&](const auto& n, int places) {
      for (int i = 0; i < places; ++i)
        all.emplace_back(reinterpret_cast<const std::uint8_t*>(&n.bytes)[i],
                         n.children[i]);
    };
    switch (child.kind()) {
      case RadixKind::node4:
        from_bytes(as<RadixNode4<Prefix, Word>>(node(child)), 4);
        break;
      case RadixKind::node16:
        from_bytes(as<RadixNode16<Prefix, Word>>(node(child)), 16);
        break;
      case RadixKind::node48: {
        const auto n = as<RadixNode48<Prefix, Word>>(node(child));
        for (int b = 0, i = 0; b < 256; ++b)
          if (n.bytes.holds(b)) all.emplace_back(b, n.children[i++]);
        break;
      }
      case RadixKind::node256: {
        const auto n = as<RadixNode256<Prefix, Word>>(node(child));
        for (int b = 0; b < 256; ++b) all.emplace_back(b, n.children[b]);
        break;
      }
      case RadixKind::ranks: {
        const auto n = as<RadixRanks<Prefix, Word>>(node(child));
        for (int b = 0; b < 256; ++b)
          all.emplace_back(b, Child::leaf(n.rank(b)));
        break;
      }
      default: {
        const auto n = as<RadixBits<Prefix, Word>>(node(child));
        for (int b = 0, i = 0; b < 256; ++b)
          if (n.bytes.holds(b))
            all.emplace_back(b, Child::leaf(n.head.first + Word(i++)));
      }
    }
    return all;
  }
  Child child_of(Child child, int byte) {
    for (const auto& [b, of_byte] : stored(child))
      if (b == byte) return of_byte;
    expect("whether there is child " + std::to_string(byte), true, false);
    return Child::leaf(0);
  }
  /// The first rank behind byte `byte`, which has no child.
  size_type absent_rank(Child child, int byte, size_type last) const {
    for (const auto& [b, of_byte] : stored(child))
      if (b >= byte)
        return of_byte.is_leaf()
                   ? of_byte.rank()
                   : as<kindex::query::RadixHead<Prefix, Word>>(node(of_byte))
                         .first;
    return last;
  }
  template <class A, class B>
  void expect(const std::string& what, const A& expected, const B& got) {
    if constexpr (std::is_integral_v<A>) {
      if (size_type(expected) == size_type(got)) return;
    } else {
      if (expected == got) return;
    }
    text_ << where_ << ": " << what << " is " << got << " instead of "
          << expected << "\n";
  }

  int height_;
  size_type singles_;
  KindCounts counts_{};
  std::array<std::vector<std::byte>, kindex::query::radix_kinds> arenas_;
  std::string where_;
  std::ostringstream text_;
};

/// The same for trees with references of either width.
template <class Prefix, class Index>
std::string differences_from(const RadixReference& reference,
                             const Index& index, int last_depth,
                             NodeOrder order = NodeOrder::by_level) {
  const auto& levels = index.levels();
  return levels.is_wide()
             ? RadixComparison<Prefix, std::uint64_t>(levels).differences(
                   reference, levels.root(), last_depth, order)
             : RadixComparison<Prefix, std::uint32_t>(levels).differences(
                   reference, levels.root(), last_depth, order);
}

/// What in the tree of `index` differs from the one that grows by one key at a
/// time, in the order of `keys`.
template <class Index, class Key>
std::string differences_from_growth(const Index& index,
                                    const std::vector<Key>& keys,
                                    NodeOrder order = NodeOrder::by_level) {
  RadixReference reference(index.leaf_entries());
  for (const Key& key : keys) reference.insert(radix_bytes(key));
  return differences_from<typename kindex::KeyTraits<Key>::bits_type>(
      reference, index, int(sizeof(Key)) - 1, order);
}

}  // namespace kindex_test

#endif
