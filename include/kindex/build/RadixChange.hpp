// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_RADIXCHANGE_HPP
#define KINDEX_BUILD_RADIXCHANGE_HPP

/// \file
/// What becomes of the nodes of a radix tree when entries come or go: which
/// ones stay, which are free, and by how much ranks move.

#include <kindex/build/EditEntries.hpp>
#include <kindex/query/RadixNodes.hpp>

#include <cstddef>

namespace kindex::build {

/// Arenas that are read and written, by form.
template <class Prefix, class Word>
struct RadixArenas {
  using Child = query::RadixChild<Word>;
  using Head = query::RadixHead<Prefix, Word>;

  std::byte* of[query::radix_kinds];

  /// Node `number` of its form.
  template <class Node>
  KOKKOS_FUNCTION Node& at(query::RadixKind kind, size_type number) const {
    return reinterpret_cast<Node*>(of[int(kind)])[number];
  }
  /// What it begins with.
  KOKKOS_FUNCTION Head& head(query::RadixKind kind, size_type number) const {
    return *reinterpret_cast<Head*>(
        of[int(kind)] + number * query::radix_node_bytes<Prefix, Word>(kind));
  }
  KOKKOS_FUNCTION Head& head(Child node) const {
    return head(node.kind(), node.number());
  }

  /// The node below another by `byte`; a leaf if there is none.
  KOKKOS_FUNCTION Child node_below(Child node, int byte) const {
    using query::RadixKind;
    const auto in = [byte](const auto& parent) {
      const query::RadixPlace found = query::radix_place(parent, byte);
      return found.is_there ? parent.children[found.place] : Child::leaf(0);
    };
    const size_type number = node.number();
    switch (node.kind()) {
      case RadixKind::node4:
        return in(at<query::RadixNode4<Prefix, Word>>(node.kind(), number));
      case RadixKind::node16:
        return in(at<query::RadixNode16<Prefix, Word>>(node.kind(), number));
      case RadixKind::node48:
        return in(at<query::RadixNode48<Prefix, Word>>(node.kind(), number));
      case RadixKind::node256:
        return at<query::RadixNode256<Prefix, Word>>(node.kind(), number)
            .children[byte];
      default: return Child::leaf(0);
    }
  }
};

/// By how much ranks move, modulo 2^64, when sorted entries come.
struct RadixInsertions {
  static constexpr bool removes = false;
  const size_type* starts;  ///< ranks that the new entries have then
  size_type changes;        ///< how many

  /// The entries that come before that of rank `rank`.
  KOKKOS_FUNCTION size_type delta(size_type rank) const {
    return count_true(0, changes,
                      [&](size_type j) { return starts[j] - j <= rank; });
  }
  /// By how much the rank behind those before `last` moves, if none comes
  /// there.
  KOKKOS_FUNCTION size_type delta_behind(size_type last) const {
    return delta(last - 1);
  }
};

/// The same when entries go.
struct RadixErasures {
  static constexpr bool removes = true;
  const size_type* lower;  ///< first rank of a run of entries that go
  const size_type* gone;   ///< how many go up to the end of it
  size_type changes;       ///< runs, of which some may be empty

  /// Less the entries that go before that of rank `rank`, which stays.
  KOKKOS_FUNCTION size_type delta(size_type rank) const {
    const size_type runs =
        count_true(0, changes, [&](size_type j) { return lower[j] < rank; });
    return runs == 0 ? 0 : 0 - gone[runs - 1];
  }
  /// By how much the rank behind those before `last` moves.
  KOKKOS_FUNCTION size_type delta_behind(size_type last) const {
    return delta(last);
  }
};

/// What becomes of a place in an arena.
enum class RadixPlaceState : unsigned char {
  taken,  ///< by a node
  freed,  ///< by this change
  free    ///< already
};

/// Which places there are: those of all arenas in a row.
struct RadixPlaces {
  size_type begin[query::radix_kinds];  ///< the first of each form

  /// The form of place `i`.
  KOKKOS_FUNCTION int kind(size_type i) const {
    int kind = 0;
    for (int k = 1; k < query::radix_kinds; ++k)
      if (begin[k] <= i) kind = k;
    return kind;
  }
};

/// Takes the ranges of nodes to where they will be; those of nodes that are
/// certain to be written anew stay. A node goes if what is left of it is a
/// leaf, or branches further down.
///
/// \tparam Keys as for RadixLevels: of the entries after the change.
/// \tparam Shift RadixInsertions or RadixErasures.
template <class Word, class Keys, class Shift>
struct ShiftRadixNodes {
  RadixArenas<typename Keys::Prefix, Word> arenas;
  RadixPlaces places;
  Keys keys;
  Shift shift;
  size_type most;     ///< as for RadixLevels
  size_type* deltas;  ///< for each place, by how much its node's ranks move
  RadixPlaceState* states;  ///< of each place

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const int kind = places.kind(i);
    auto& head = arenas.head(static_cast<query::RadixKind>(kind),
                             i - places.begin[kind]);
    const size_type first = head.first;
    const size_type last = head.last;
    size_type delta = 0;
    RadixPlaceState state = RadixPlaceState::free;
    if (first != last) {
      state = RadixPlaceState::taken;
      delta = shift.delta(first);
      const size_type behind = shift.delta_behind(last);
      if (delta != behind) {
        if constexpr (Shift::removes)
          if (is_leaf(first + delta, last + behind, keys.depth(head.prefix)))
            state = RadixPlaceState::freed;
        delta = 0;
      }
      head.first = static_cast<Word>(first + delta);
      head.last = static_cast<Word>(last + delta);
    }
    deltas[i] = delta;
    states[i] = state;
  }

  /// Whether entries [first, last) need no node that branches at `depth`.
  KOKKOS_FUNCTION bool is_leaf(size_type first, size_type last,
                               int depth) const {
    return last - first <= most || keys.equal(first, last - 1) ||
           keys.common(first, last - 1) != depth;
  }
};

/// What there is in some places.
struct RadixSurvey {
  size_type free;     ///< those without a node
  size_type freed;    ///< of these, by this change
  size_type singles;  ///< entries of Bits among those

  KOKKOS_FUNCTION RadixSurvey() : free(0), freed(0), singles(0) {}
  KOKKOS_FUNCTION RadixSurvey& operator+=(const RadixSurvey& other) {
    free += other.free;
    freed += other.freed;
    singles += other.singles;
    return *this;
  }
};

/// Lists the places that are free, in ascending order, and empties the ranges
/// of nodes that are gone.
template <class Prefix, class Word>
struct ListRadixPlaces {
  using value_type = RadixSurvey;

  RadixArenas<Prefix, Word> arenas;
  RadixPlaces places;
  const RadixPlaceState* states;
  Word* free;           ///< their numbers
  RadixSurvey* before;  ///< what comes before the first place of each form,
                        ///< and, at last, what there is in all
  size_type count;      ///< of places

  KOKKOS_FUNCTION void operator()(size_type i, RadixSurvey& sum,
                                  bool is_final) const {
    if (is_final)
      for (int k = 0; k < query::radix_kinds; ++k)
        if (places.begin[k] == i) before[k] = sum;
    if (states[i] != RadixPlaceState::taken) add(i, sum, is_final);
    if (is_final && i + 1 == count) before[query::radix_kinds] = sum;
  }

 private:
  KOKKOS_FUNCTION void add(size_type i, RadixSurvey& sum, bool is_final) const {
    const int kind = places.kind(i);
    const size_type number = i - places.begin[kind];
    if (is_final) free[sum.free] = static_cast<Word>(number);
    ++sum.free;
    if (states[i] == RadixPlaceState::free) return;
    auto& head = arenas.head(static_cast<query::RadixKind>(kind), number);
    ++sum.freed;
    if (kind == int(query::RadixKind::bits))
      sum.singles += head.last - head.first;
    if (is_final) head.first = head.last = 0;
  }
};

/// Moves the ranks of leaves below nodes of one form.
///
/// \tparam Node RadixNode4, 16, 48 or 256.
template <class Node>
struct ShiftRadixLeaves {
  static constexpr int places =
      int(sizeof(Node::children)) / int(sizeof(Node::children[0]));
  Node* nodes;
  const size_type* deltas;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type delta = deltas[i / places];
    if (delta == 0) return;
    auto& child = nodes[i / places].children[i % places];
    using Child = std::decay_t<decltype(child)>;
    if (child.is_leaf()) child = Child::leaf(child.rank() + delta);
  }
};

/// The same of RadixRanks.
template <class Node>
struct ShiftRadixRanks {
  static constexpr int places = Node::blocks;
  Node* nodes;
  const size_type* deltas;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type delta = deltas[i / places];
    if (delta == 0) return;
    auto& first = nodes[i / places].ranks[i % places].first;
    first = static_cast<std::decay_t<decltype(first)>>(first + delta);
  }
};

/// Which numbers new nodes take: free ones first, in ascending order.
template <class Word>
struct RadixNumbers {
  const Word* free[query::radix_kinds];
  size_type count[query::radix_kinds];  ///< of those
  size_type end[query::radix_kinds];    ///< behind all numbers

  /// That of the `i`-th new node of a form.
  KOKKOS_FUNCTION size_type of(int kind, size_type i) const {
    return i < count[kind] ? size_type(free[kind][i])
                           : end[kind] + (i - count[kind]);
  }
};

}  // namespace kindex::build

#endif
