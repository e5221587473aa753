// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_REGULAREDITOR_HPP
#define KINDEX_BUILD_REGULAREDITOR_HPP

/// \file
/// How regular B+-trees are built on the host, and how batches of operations
/// change them.

#include <kindex/build/Entries.hpp>
#include <kindex/build/HostLoop.hpp>
#include <kindex/build/HugePages.hpp>
#include <kindex/build/RegularNodes.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kindex::build {

/// Builds a tree in pools of its own, and changes it: new nodes are written in
/// the place of those that change, up to the root, so that earlier versions
/// stay what they were for those who read them. A node that no version in use
/// has is written again.
///
/// A batch goes down the tree, sorted, level by level, and splits at each node
/// into the parts of its children; then leaves with operations are written
/// anew, then their parents, and so on. Each node is one thread's: there are no
/// locks, and what comes out does not depend on who was first. A node with more
/// than it holds becomes several, equally full to three quarters; one with less
/// than a quarter is joined with a neighbour below the same parent.
///
/// Where nobody reads, nodes that neither split nor join are written where they
/// are instead, and those above them only where a largest key or a child
/// changes. All of it is planned, and room made, before the first is written.
///
/// Separators are exact: the largest key below. So a lookup never has to go on
/// to the next leaf, though there are no links.
template <class Key, class Value>
class RegularEditor {
  using Shape = query::RegularShape<Key>;

 public:
  using Pools = RegularPools<Key, Value>;            ///< where nodes are
  using Operations = RegularOperations<Key, Value>;  ///< a batch

  /// \param pages of the pools.
  explicit RegularEditor(Pages pages) : pages_(pages) {}

  /// Where nodes are.
  const Pools& pools() const { return pools_; }

  /// A tree of ascending entries.
  ///
  /// \param fill how full nodes are, in (0, 1].
  RegularDraft build(const EntriesRef<Key, Value, SoA>& entries, double fill,
                     const HostLoop& loop) {
    return guarded(
        [&](RegularDraft& draft) { build_into(draft, entries, fill, loop); });
  }

  /// The tree after a batch of operations on `top`, in other places than that.
  RegularDraft apply(const RegularTop& top, const Operations& operations,
                     const HostLoop& loop) {
    return guarded([&](RegularDraft& draft) {
      draft.top = top;
      draft.report.operations = operations.size;
      if (operations.size == 0) return;
      if (top.size > 0) {
        Batch batch(*this, draft, operations, loop, RegularPlaces::others);
        batch.plan();
        batch.write();
      } else if (operations.change == RegularChange::insert) {
        // Only read.
        build_into(draft,
                   {const_cast<Key*>(operations.keys),
                    const_cast<Value*>(operations.values), operations.size},
                   0.75, loop);
        draft.report.entries_added = operations.size;
      }
    });
  }

  /// Makes the tree `top`, which has entries, that after a batch, where it is.
  /// Returns false, and has changed nothing, where its root splits, goes or is
  /// left with one child, or `ready` refuses.
  ///
  /// \param ready `bool ready(draft)`, called before the first write, if any:
  ///   what may throw is there, and before.
  template <class Ready>
  bool apply_in_place(RegularDraft& draft, const RegularTop& top,
                      const Operations& operations, const HostLoop& loop,
                      const Ready& ready) {
    bool is_done = false;
    draft = guarded([&](RegularDraft& made) {
      made.top = top;
      made.report.operations = operations.size;
      const Pools before = pools_;
      Batch batch(*this, made, operations, loop, RegularPlaces::the_same);
      if (operations.change == RegularChange::update) {
        batch.plan_values();
        is_done = ready(made);
        if (is_done) batch.write_values();
      } else if (batch.plan()) {
        is_done = !batch.changes_nodes() || ready(made);
        if (is_done) batch.write_in_place();
      }
      if (!is_done) {
        roll_back(made, before);
        made = RegularDraft{};
      }
    });
    return is_done;
  }

  /// Takes back the nodes that a draft made in place has no more.
  void settle(const RegularDraft& draft) {
    leaf_numbers_.give_back(draft.gone_leaves);
    inner_numbers_.give_back(draft.gone_inner);
  }

  /// Forgets a draft that nobody has seen, the newest of all, and room that was
  /// made for it: where there is not enough memory for that, the next batch may
  /// do with less.
  ///
  /// \param before the pools of the version before.
  void roll_back(const RegularDraft& draft, const Pools& before) {
    leaf_numbers_.give_back(draft.new_leaves);
    inner_numbers_.give_back(draft.new_inner);
    pools_ = before;
    leaf_numbers_.cut(before.leaves());
    inner_numbers_.cut(before.inner_nodes());
  }

  /// Remembers the nodes that are not in a draft any more until `is_in_use` of
  /// the version before it is false.
  void retire(std::shared_ptr<const std::atomic<bool>> is_in_use,
              RegularDraft& draft) {
    retired_.push_back({std::move(is_in_use), std::move(draft.gone_leaves),
                        std::move(draft.gone_inner)});
  }

  /// Forgets the newest call of retire.
  void unretire() { retired_.pop_back(); }

  /// Whether no version in use but the newest has nodes of its own: after
  /// reclaim.
  bool has_one_version() const { return retired_.empty(); }

  /// Takes back nodes that no version in use has.
  void reclaim() {
    // In order: a node is in all versions up to that which it is retired with.
    while (!retired_.empty() &&
           !retired_.front().is_in_use->load(std::memory_order_acquire)) {
      leaf_numbers_.give_back(retired_.front().leaves);
      inner_numbers_.give_back(retired_.front().inner);
      retired_.pop_front();
    }
  }

 private:
  struct Retired {
    std::shared_ptr<const std::atomic<bool>> is_in_use;
    std::vector<std::uint32_t> leaves, inner;
  };

  /// A child as its parent sees it.
  struct Child {
    std::uint32_t node;
    Key largest;  ///< key below it
  };

  template <class Make>
  RegularDraft guarded(const Make& make) {
    const Pools before = pools_;
    RegularDraft draft;
    try {
      make(draft);
      draft.is_new = !draft.new_leaves.empty() || !draft.gone_leaves.empty() ||
                     !draft.kept_leaves.empty();
      UpdateReport& report = draft.report;
      report.leaves_written =
          draft.new_leaves.size() + draft.kept_leaves.size();
      report.inner_nodes_written =
          draft.new_inner.size() + draft.kept_inner.size();
      report.nodes_in_place =
          draft.kept_leaves.size() + draft.kept_inner.size();
    } catch (...) {
      roll_back(draft, before);
      throw;
    }
    return draft;
  }

  // ---- pools ----------------------------------------------------------------

  /// Returns for how many bytes huge pages were asked, and not refused.
  template <class T>
  size_type grow(const char* what, Kokkos::View<T*, Kokkos::HostSpace>& array,
                 size_type per_node, size_type used, size_type nodes,
                 const HostLoop& loop) const {
    const Kokkos::DefaultHostExecutionSpace host;
    Kokkos::View<T*, Kokkos::HostSpace> larger(
        Kokkos::view_alloc(host, Kokkos::WithoutInitializing,
                           std::string("kindex::RegularBPlusTree::") + what),
        nodes * per_node);
    const size_type huge = use_pages(pages_, larger);
    // Versions that are being read keep the smaller one.
    loop.in_shares("copy_nodes", used * per_node, size_type{1} << 16,
                   [&](size_type begin, size_type end) {
                     std::copy(array.data() + begin, array.data() + end,
                               larger.data() + begin);
                   });
    array = larger;
    return huge;
  }

  /// Makes room for `needed` nodes, and as much again as there is unless that
  /// is too much.
  template <class Grow>
  static void make_room(size_type needed, size_type room, const Grow& grow) {
    if (needed <= room) return;
    if (needed < 2 * room) {
      try {
        return grow(2 * room);
      } catch (const std::bad_alloc&) {
      }
    }
    grow(needed);
  }

  /// Makes room for `count` leaves more, whose numbers it adds to `taken`.
  void take_leaves(size_type count, std::vector<std::uint32_t>& taken,
                   const HostLoop& loop) {
    make_room(
        leaf_numbers_.end_with(count), pools_.leaves(), [&](size_type room) {
          const size_type used = leaf_numbers_.end();
          Pools larger = pools_;
          larger.huge_leaf_bytes =
              grow("keys", larger.keys, Shape::leaf_keys, used, room, loop) +
              grow("values", larger.values, Shape::leaf_keys, used, room,
                   loop) +
              grow("last_inner_nodes", larger.last, Shape::last_node_keys, used,
                   room, loop) +
              grow("entries_of_leaves", larger.entries, 1, used, room, loop);
          pools_ = larger;
        });
    leaf_numbers_.take(count, taken);
  }

  /// The same for inner nodes.
  void take_inner(size_type count, std::vector<std::uint32_t>& taken,
                  const HostLoop& loop) {
    make_room(inner_numbers_.end_with(count), pools_.inner_nodes(),
              [&](size_type room) {
                const size_type used = inner_numbers_.end();
                Pools larger = pools_;
                larger.huge_inner_bytes =
                    grow("inner_nodes", larger.inner, Shape::inner_node_keys,
                         used, room, loop) +
                    grow("children", larger.children, Shape::fan_out, used,
                         room, loop) +
                    grow("numbers_of_children", larger.child_counts, 1, used,
                         room, loop);
                pools_ = larger;
              });
    inner_numbers_.take(count, taken);
  }

  // ---- builds ---------------------------------------------------------------

  /// The first of the `total` items of part `i` of `parts`: as many each, but
  /// for one.
  static size_type begin_of(size_type i, size_type parts, size_type total) {
    return total / parts * i + std::min(i, total % parts);
  }

  void build_into(RegularDraft& draft,
                  const EntriesRef<Key, Value, SoA>& entries, double fill,
                  const HostLoop& loop) {
    const size_type size = entries.size;
    if (size == 0) return;
    const auto per_leaf =
        static_cast<size_type>(std::max(1.0, fill * double(Shape::leaf_keys)));
    const size_type leaves = (size + per_leaf - 1) / per_leaf;
    take_leaves(leaves, draft.new_leaves, loop);
    std::vector<Child> level(leaves);
    loop("write_leaves", leaves, [&](size_type i) {
      const std::uint32_t leaf = draft.new_leaves[i];
      const size_type begin = begin_of(i, leaves, size);
      const size_type count = begin_of(i + 1, leaves, size) - begin;
      std::copy_n(entries.keys + begin, count, pools_.leaf_keys(leaf));
      Value* const values = pools_.leaf_values(leaf);
      for (size_type e = 0; e < count; ++e)
        values[e] = entries.value(begin + e);
      pools_.seal_leaf(leaf, count);
      level[i] = {leaf, pools_.leaf_keys(leaf)[count - 1]};
    });
    draft.top = {size, 0, 0, 0};
    build_above(draft, level, fill, loop);
  }

  /// Builds levels above `level`, which is `draft.top.height` high, until there
  /// is a root.
  void build_above(RegularDraft& draft, std::vector<Child>& level, double fill,
                   const HostLoop& loop) {
    const auto per_node =
        static_cast<size_type>(std::max(2.0, fill * double(Shape::fan_out)));
    while (level.size() > 1) {
      const size_type below = level.size();
      const size_type nodes = below <= size_type(Shape::fan_out)
                                  ? 1
                                  : (below + per_node - 1) / per_node;
      const size_type first = draft.new_inner.size();
      take_inner(nodes, draft.new_inner, loop);
      std::vector<Child> above(nodes);
      loop("write_inner_nodes", nodes, [&](size_type i) {
        const std::uint32_t node = draft.new_inner[first + i];
        const size_type begin = begin_of(i, nodes, below);
        const size_type count = begin_of(i + 1, nodes, below) - begin;
        for (size_type c = 0; c < count; ++c) {
          pools_.children_of(node)[c] = level[begin + c].node;
          pools_.separators(node)[c] = level[begin + c].largest;
        }
        pools_.seal_inner(node, count);
        above[i] = {node, level[begin + count - 1].largest};
      });
      level = std::move(above);
      ++draft.top.height;
    }
    draft.top.root = level[0].node;
    find_last_leaf(draft.top);
  }

  void find_last_leaf(RegularTop& top) const {
    size_type node = top.root;
    for (int height = top.height; height > 0; --height)
      node = pools_.children_of(node)[pools_.child_counts(node) - 1];
    top.last_leaf = static_cast<std::uint32_t>(node);
  }

  // ---- batches --------------------------------------------------------------

  class Batch;

  Pages pages_;
  Pools pools_;
  RegularNumbers leaf_numbers_, inner_numbers_;
  std::deque<Retired> retired_;
};

/// One batch on its way through the tree.
template <class Key, class Value>
class RegularEditor<Key, Value>::Batch {
 public:
  Batch(RegularEditor& editor, RegularDraft& draft,
        const Operations& operations, const HostLoop& loop,
        RegularPlaces places)
      : editor_(editor),
        draft_(draft),
        operations_(operations),
        loop_(loop),
        in_place_(places == RegularPlaces::the_same),
        root_(draft.top.root),
        levels_(draft.top.height + 2) {}

  /// Finds out which nodes change, and makes room for new ones. Returns false
  /// where nodes are to be written in place, but the tree will have another
  /// root.
  bool plan() {
    lead_down();
    count_in_leaves();
    const int height = draft_.top.height;
    for (int h = 0; h <= height; ++h) plan(h);
    if (!in_place_) return true;
    const bool has_one_child = height > 0 && levels_[height].counts[0] == 1;
    return levels_[height + 1].dirty[0] == 0 && !has_one_child;
  }

  /// Whether anything is written.
  bool changes_nodes() const {
    const auto& dirty = levels_[0].dirty;
    return std::find(dirty.begin(), dirty.end(), 1) != dirty.end();
  }

  /// Writes what is planned in place: nothing may fail any more.
  void write_in_place() noexcept {
    for (int h = 0; h <= draft_.top.height; ++h) write(h);
    editor_.find_last_leaf(draft_.top);
  }

  /// Writes what is planned, and what it needs above that.
  void write() {
    RegularTop& top = draft_.top;
    const int height = top.height;
    for (int h = 0; h <= height; ++h) write(h);
    Level& above = levels_[height + 1];
    if (above.dirty[0] == 0) return;
    auto& roots = above.children;
    if (roots.empty()) {
      top = {};
      return;
    }
    editor_.build_above(draft_, roots, 0.75, loop_);
    // A root with one child is none; it may be new itself.
    const auto& pools = editor_.pools_;
    while (top.height > 0 && pools.child_counts(top.root) == 1) {
      draft_.gone_inner.push_back(top.root);
      top.root = pools.children_of(top.root)[0];
      --top.height;
    }
    editor_.find_last_leaf(top);
  }

  /// Finds the leaves of new values, and makes room to count them.
  void plan_values() {
    lead_down();
    const size_type leaves = levels_[0].touched.size();
    levels_[0].counts.resize(leaves);
    draft_.kept_leaves.reserve(leaves);
  }

  /// Writes new values in place, which changes no node: nothing may fail any
  /// more.
  void write_values() noexcept {
    const auto& touched = levels_[0].touched;
    auto& hits = levels_[0].counts;
    loop_("write_values", touched.size(), [&](size_type t) {
      fetch_ahead(t);
      const Touched& leaf = touched[t];
      Value* const values = editor_.pools_.leaf_values(leaf.node);
      hits[t] =
          for_each_hit(leaf, [&](size_type o, size_type from, size_type to) {
            while (from < to) values[from++] = operations_.values[o];
          });
    });
    for (size_type t = 0; t < touched.size(); ++t) {
      draft_.report.entries_updated += hits[t];
      if (hits[t] > 0) draft_.kept_leaves.push_back(touched[t].node);
    }
  }

 private:
  /// A node with operations below it.
  struct Touched {
    std::uint32_t node;
    std::uint32_t slot;    ///< among the children of its parent
    size_type begin, end;  ///< its operations
  };

  /// Neighbours below the same parent: kept as they are if not `dirty`, then
  /// it is one, else written as `nodes` nodes.
  struct Cluster {
    std::uint32_t first, last;  ///< children of the parent, past-last
    std::uint32_t touched;      ///< the first touched from `first` on
    std::uint32_t sources;      ///< children that are not empty
    size_type total;            ///< entries, or children, of all
    size_type nodes;
    size_type number;  ///< its first node among those that the level writes
    bool dirty;
  };

  /// How the children of a parent are divided into clusters.
  struct Plan {
    size_type first_cluster = 0, clusters = 0;
    size_type children = 0;  ///< afterwards
  };

  /// A cluster to write.
  struct Job {
    size_type parent, cluster;
  };

  /// The touched nodes of a level.
  struct Level {
    std::vector<Touched> touched;
    std::vector<size_type> first;  ///< of each touched parent, and past-last
    std::vector<unsigned char> dirty;  ///< whether it has to be written
    /// Whether its largest key may change, of those that are dirty.
    std::vector<unsigned char> tops_change;
    std::vector<size_type> counts;  ///< entries, or children, after the batch
    /// New children of those that are dirty, from `first_child` on.
    std::vector<size_type> first_child;
    std::vector<Child> children;

    // What becomes of its nodes and their neighbours.
    std::vector<Plan> plans;  ///< of touched parents
    std::vector<Cluster> clusters;
    std::vector<Job> jobs;
    std::vector<Child> written;  ///< by the jobs
  };

  static bool inserts(const Operations& o) {
    return o.change == RegularChange::insert;
  }

  // ---- down -----------------------------------------------------------------

  /// Calls `visit(slot, begin, end)` for the children of a node that have
  /// operations of [begin, end). An insertion belongs behind all equal entries;
  /// what erases or updates, to all children that may have equal ones.
  template <class Visit>
  void for_each_child(std::uint32_t node, size_type begin, size_type end,
                      const Visit& visit) const {
    const Key* const separators = editor_.pools_.separators(node);
    const std::uint32_t last = editor_.pools_.child_counts(node) - 1;
    const Key* const keys = operations_.keys;
    std::uint32_t slot = 0;
    for (size_type at = begin; at < end;) {
      const Key key = keys[at];
      slot = static_cast<std::uint32_t>(
          (inserts(operations_)
               ? std::upper_bound(separators + slot, separators + last, key)
               : std::lower_bound(separators + slot, separators + last, key)) -
          separators);
      if (slot == last) return visit(last, at, end);
      const Key separator = separators[slot];
      if (inserts(operations_)) {
        const auto stop = static_cast<size_type>(
            std::lower_bound(keys + at, keys + end, separator) - keys);
        visit(slot, at, stop);
        at = stop;
      } else {
        const auto stop = static_cast<size_type>(
            std::upper_bound(keys + at, keys + end, separator) - keys);
        visit(slot, at, stop);
        // Those of the separator itself concern the next child, too.
        at = static_cast<size_type>(
            std::lower_bound(keys + at, keys + stop, separator) - keys);
        ++slot;
      }
    }
  }

  void lead_down() {
    const int height = draft_.top.height;
    levels_[height].touched = {{root_, 0, 0, operations_.size}};
    levels_[height].first = {0, 1};
    for (int h = height; h > 0; --h) lead_down(levels_[h], levels_[h - 1]);
  }

  void lead_down(const Level& parents, Level& below) const {
    const size_type n = parents.touched.size();
    below.first.assign(n + 1, 0);
    loop_("count_children", n, [&](size_type p) {
      const Touched& parent = parents.touched[p];
      for_each_child(
          parent.node, parent.begin, parent.end,
          [&](std::uint32_t, size_type, size_type) { ++below.first[p + 1]; });
    });
    for (size_type p = 0; p < n; ++p) below.first[p + 1] += below.first[p];
    below.touched.resize(below.first[n]);
    loop_("find_children", n, [&](size_type p) {
      const Touched& parent = parents.touched[p];
      Touched* next = &below.touched[below.first[p]];
      for_each_child(parent.node, parent.begin, parent.end,
                     [&](std::uint32_t slot, size_type begin, size_type end) {
                       *next++ = {editor_.pools_.children_of(parent.node)[slot],
                                  slot, begin, end};
                     });
    });
  }

  // ---- leaves ---------------------------------------------------------------

  /// Has a host fetch what searches in leaves after leaf `t` read: nodes above
  /// one, and lines of another, whose node has come by now.
  void fetch_ahead(size_type t) const {
    const auto& touched = levels_[0].touched;
    const Pools& pools = editor_.pools_;
    if (t + 8 < touched.size()) {
      const size_type leaf = touched[t + 8].node;
      const Key* const node = pools.last.data() + leaf * Shape::last_node_keys;
      for (int line = 0; line < Shape::last_node_lines; ++line)
        query::prefetch(node + line * Shape::line_keys);
      query::prefetch(&pools.entries(leaf));
    }
    if (t + 4 >= touched.size()) return;
    const Touched& next = touched[t + 4];
    // Of more, the last ones come while the first are searched.
    const size_type end = std::min(next.end, next.begin + 4);
    for (size_type o = next.begin; o < end; ++o) {
      const size_type line = line_in<false>(next.node, pools.entries(next.node),
                                            operations_.keys[o]);
      query::prefetch(pools.leaf_keys(next.node) + line);
      query::prefetch(pools.leaf_values(next.node) + line);
    }
  }

  void count_in_leaves() {
    Level& leaves = levels_[0];
    const size_type n = leaves.touched.size();
    leaves.dirty.assign(n, 0);
    leaves.tops_change.assign(n, 0);
    leaves.counts.assign(n, 0);
    std::vector<size_type> hits(n);
    loop_("count_in_leaves", n, [&](size_type t) {
      const Touched& leaf = leaves.touched[t];
      const size_type before = editor_.pools_.entries(leaf.node);
      if (inserts(operations_)) {
        hits[t] = leaf.end - leaf.begin;
        // Elsewhere, a separator is above what comes.
        leaves.tops_change[t] = leaf.node == draft_.top.last_leaf &&
                                editor_.pools_.largest(0, leaf.node) <
                                    operations_.keys[leaf.end - 1];
      } else {
        fetch_ahead(t);
        hits[t] = for_each_hit(leaf, [&](size_type, size_type, size_type to) {
          if (to == before) leaves.tops_change[t] = 1;
        });
      }
      leaves.dirty[t] = hits[t] > 0;
      leaves.counts[t] =
          operations_.change == RegularChange::insert  ? before + hits[t]
          : operations_.change == RegularChange::erase ? before - hits[t]
                                                       : before;
    });
    size_type all = 0;
    for (const size_type of_leaf : hits) all += of_leaf;
    UpdateReport& report = draft_.report;
    switch (operations_.change) {
      case RegularChange::insert:
        report.entries_added = all;
        draft_.top.size += all;
        break;
      case RegularChange::erase:
        report.entries_erased = all;
        draft_.top.size -= all;
        break;
      case RegularChange::update: report.entries_updated = all; break;
    }
  }

  template <bool above>
  static size_type place_among(const Key* keys, size_type n, const Key& key) {
    return static_cast<size_type>(
        (above ? std::upper_bound(keys, keys + n, key)
               : std::lower_bound(keys, keys + n, key)) -
        keys);
  }

  /// Where the line begins that has the first key of a leaf of `count` entries
  /// that is not below `key`, or the first above it; or the last line.
  template <bool above>
  size_type line_in(std::uint32_t leaf, size_type count, const Key& key) const {
    constexpr size_type line = Shape::line_keys;
    return line * place_among<above>(editor_.pools_.last_of_lines(leaf),
                                     (count - 1) / line, key);
  }

  /// The place of that key, `count` where there is none.
  template <bool above>
  size_type place_in(std::uint32_t leaf, size_type count,
                     const Key& key) const {
    constexpr size_type line = Shape::line_keys;
    const size_type begin = line_in<above>(leaf, count, key);
    return begin + place_among<above>(editor_.pools_.leaf_keys(leaf) + begin,
                                      std::min(line, count - begin), key);
  }

  /// Calls `visit(o, from, to)` for the entries of a leaf that equal an
  /// operation's key, and the last such operation. Returns how many they are.
  template <class Visit>
  size_type for_each_hit(const Touched& leaf, const Visit& visit) const {
    const Key* const keys = editor_.pools_.leaf_keys(leaf.node);
    const size_type count = editor_.pools_.entries(leaf.node);
    size_type hits = 0;
    for (size_type o = leaf.begin; o < leaf.end; ++o) {
      const Key key = operations_.keys[o];
      if (o + 1 < leaf.end && operations_.keys[o + 1] == key) continue;
      const size_type from = place_in<false>(leaf.node, count, key);
      if (from == count) break;
      if (!(keys[from] == key)) continue;
      const bool is_one = from + 1 == count || !(keys[from + 1] == key);
      const size_type to =
          is_one ? from + 1 : place_in<true>(leaf.node, count, key);
      visit(o, from, to);
      hits += to - from;
    }
    return hits;
  }

  /// Inserts into a leaf that has room, from behind.
  void insert_in_place(const Touched& leaf) const {
    const Pools& pools = editor_.pools_;
    Key* const keys = pools.leaf_keys(leaf.node);
    Value* const values = pools.leaf_values(leaf.node);
    size_type end = pools.entries(leaf.node);  // of what is not moved yet
    const size_type count = end + leaf.end - leaf.begin;
    for (size_type o = leaf.end; o-- > leaf.begin;) {
      const size_type place =
          end == 0 ? 0 : place_in<true>(leaf.node, end, operations_.keys[o]);
      const size_type shift = o + 1 - leaf.begin;
      std::copy_backward(keys + place, keys + end, keys + end + shift);
      std::copy_backward(values + place, values + end, values + end + shift);
      keys[place + shift - 1] = operations_.keys[o];
      values[place + shift - 1] = operations_.values[o];
      end = place;
    }
    pools.seal_leaf(leaf.node, count, end);
  }

  /// Erases from a leaf, of which something is left.
  void erase_in_place(const Touched& leaf) const {
    const Pools& pools = editor_.pools_;
    Key* const keys = pools.leaf_keys(leaf.node);
    Value* const values = pools.leaf_values(leaf.node);
    const size_type before = pools.entries(leaf.node);
    size_type first = before;  // that is erased
    size_type end = 0;         // of what is in place
    size_type from = 0;        // what is to be moved there
    const auto move_up_to = [&](size_type to) {
      if (end < from) {
        std::copy(keys + from, keys + to, keys + end);
        std::copy(values + from, values + to, values + end);
      }
      end += to - from;
    };
    for_each_hit(leaf, [&](size_type, size_type hit, size_type behind) {
      first = std::min(first, hit);
      move_up_to(hit);
      from = behind;
    });
    move_up_to(before);
    pools.seal_leaf(leaf.node, end, first);
  }

  /// Calls `emit(key, value)` for the entries of a leaf after its operations.
  template <class Emit>
  void merge(const Touched& leaf, const Emit& emit) const {
    const Key* const keys = editor_.pools_.leaf_keys(leaf.node);
    const Value* const values = editor_.pools_.leaf_values(leaf.node);
    const size_type count = editor_.pools_.entries(leaf.node);
    size_type o = leaf.begin;
    for (size_type e = 0; e < count; ++e) {
      for (; o < leaf.end && operations_.keys[o] < keys[e]; ++o)
        if (inserts(operations_))
          emit(operations_.keys[o], operations_.values[o]);
      const bool hit = !inserts(operations_) && o < leaf.end &&
                       operations_.keys[o] == keys[e];
      if (!hit) {
        emit(keys[e], values[e]);
      } else if (operations_.change == RegularChange::update) {
        // The last one wins.
        while (o + 1 < leaf.end && operations_.keys[o + 1] == keys[e]) ++o;
        emit(keys[e], operations_.values[o]);
      }
    }
    if (inserts(operations_))
      for (; o < leaf.end; ++o)
        emit(operations_.keys[o], operations_.values[o]);
  }

  // ---- up -------------------------------------------------------------------

  /// Where the sources of a parent's new children are.
  class Sources {
   public:
    Sources(const Batch& batch, int height, const Level& level,
            const Touched* parent, size_type p)
        : pools_(batch.editor_.pools_), height_(height), level_(level) {
      if (parent != nullptr) {
        node_ = parent->node;
        count_ = pools_.child_counts(node_);
        children_ = pools_.children_of(node_);
      } else {
        count_ = 1;
        children_ = &batch.root_;
      }
      touched_ = level.first[p];
      touched_end_ = level.first[p + 1];
      is_root_ = parent == nullptr;
    }

    std::uint32_t count() const { return count_; }
    std::uint32_t node(std::uint32_t slot) const { return children_[slot]; }
    /// The first touched of the parent.
    size_type touched() const { return touched_; }
    /// Whether touched `t` is the child in `slot`.
    bool is_at(size_type t, std::uint32_t slot) const {
      return t < touched_end_ && level_.touched[t].slot == slot;
    }
    size_type size(size_type t, std::uint32_t slot) const {
      if (is_at(t, slot)) return level_.counts[t];
      return height_ == 0 ? pools_.entries(node(slot))
                          : pools_.child_counts(node(slot));
    }
    Key largest(std::uint32_t slot) const {
      return is_root_ ? pools_.largest(height_, node(slot))
                      : pools_.largest_below(height_ + 1, node_, slot);
    }

   private:
    const Pools& pools_;
    int height_;
    const Level& level_;
    std::uint32_t node_ = 0, count_ = 0;
    const std::uint32_t* children_ = nullptr;
    size_type touched_ = 0, touched_end_ = 0;
    bool is_root_ = false;
  };

  /// Of touched parent `p` of a level.
  Sources sources_of(int height, size_type p) const {
    const Level& parents = levels_[height + 1];
    const bool is_root = parents.touched.empty();
    return Sources(*this, height, levels_[height],
                   is_root ? nullptr : &parents.touched[p], p);
  }

  /// Whether a cluster is written where it is.
  bool stays(const Cluster& cluster) const {
    return in_place_ && cluster.dirty && cluster.sources == 1 &&
           cluster.nodes == 1;
  }

  /// Divides the children of a parent into clusters.
  Plan plan_of(int height, const Level& level, const Sources& sources,
               Cluster* clusters) const {
    const size_type capacity = height == 0 ? Shape::leaf_keys : Shape::fan_out;
    const size_type least = capacity / 4;
    Plan plan;
    size_type t = sources.touched();
    for (std::uint32_t slot = 0; slot < sources.count(); ++slot) {
      const bool is_touched = sources.is_at(t, slot);
      const size_type size = sources.size(t, slot);
      const bool dirty = is_touched && level.dirty[t] != 0;
      Cluster* const last =
          plan.clusters > 0 ? &clusters[plan.clusters - 1] : nullptr;
      if (size > 0) {
        if (last != nullptr && last->dirty && last->total < least) {
          last->last = slot + 1;
          last->total += size;
          ++last->sources;
        } else {
          clusters[plan.clusters++] = {
              slot, slot + 1, static_cast<std::uint32_t>(t), 1, size, 1,
              0,    dirty};
        }
      }
      t += is_touched ? 1 : 0;
    }
    if (plan.clusters > 1) {
      Cluster& last = clusters[plan.clusters - 1];
      if (last.dirty && last.total < least) {
        Cluster& before = clusters[plan.clusters - 2];
        before.last = last.last;
        before.total += last.total;
        before.sources += last.sources;
        before.dirty = true;
        --plan.clusters;
      }
    }
    const size_type full = capacity * 3 / 4;
    for (size_type c = 0; c < plan.clusters; ++c) {
      Cluster& cluster = clusters[c];
      if (cluster.dirty) {
        cluster.nodes =
            cluster.total <= capacity ? 1 : (cluster.total + full - 1) / full;
      }
      plan.children += cluster.nodes;
    }
    return plan;
  }

  /// Plans what becomes of the nodes of a level, which numbers they have, and
  /// which of their parents change.
  void plan(int height) {
    Level& level = levels_[height];
    Level& parents = levels_[height + 1];
    const size_type n = level.first.size() - 1;
    parents.dirty.assign(n, 0);
    parents.tops_change.assign(n, 0);
    parents.counts.assign(n, 0);
    parents.first_child.assign(n + 1, 0);
    level.plans.resize(n);
    const bool is_root = parents.touched.empty();
    std::vector<unsigned char> has_dirty(n, 0);
    size_type most = 0;
    for (size_type p = 0; p < n; ++p) {
      level.plans[p].first_cluster = most;
      for (size_type t = level.first[p]; t < level.first[p + 1]; ++t)
        has_dirty[p] |= level.dirty[t];
      parents.counts[p] = sources_of(height, p).count();
      most += has_dirty[p] != 0 ? parents.counts[p] : 0;
    }
    level.clusters.resize(most);
    loop_("plan_nodes", n, [&](size_type p) {
      if (has_dirty[p] == 0) return;
      const size_type first = level.plans[p].first_cluster;
      Plan& plan = level.plans[p];
      plan = plan_of(height, level, sources_of(height, p),
                     level.clusters.data() + first);
      plan.first_cluster = first;
      parents.counts[p] = plan.children;
      for (size_type c = 0; c < plan.clusters; ++c) {
        const Cluster& cluster = level.clusters[first + c];
        const bool is_last = c + 1 == plan.clusters;
        const bool is_new_to_parent =
            cluster.dirty &&
            (!stays(cluster) ||
             (level.tops_change[cluster.touched] != 0 && !is_root));
        parents.dirty[p] |= is_new_to_parent;
        if (is_last && is_new_to_parent) parents.tops_change[p] = 1;
      }
      // The last one may have gone.
      const size_type before = sources_of(height, p).count();
      const bool is_less =
          plan.clusters == 0 ||
          level.clusters[first + plan.clusters - 1].last != before;
      parents.dirty[p] |= is_less || plan.children != before;
      parents.tops_change[p] |= is_less;
    });

    // What is written, in order: numbers do not depend on threads.
    size_type nodes = 0, new_nodes = 0;
    for (size_type p = 0; p < n; ++p) {
      const Plan& plan = level.plans[p];
      parents.first_child[p + 1] =
          parents.first_child[p] + (parents.dirty[p] != 0 ? plan.children : 0);
      if (has_dirty[p] == 0) continue;
      for (size_type c = 0; c < plan.clusters; ++c) {
        Cluster& cluster = level.clusters[plan.first_cluster + c];
        if (!cluster.dirty) continue;
        cluster.number = nodes;
        nodes += cluster.nodes;
        new_nodes += stays(cluster) ? 0 : cluster.nodes;
        level.jobs.push_back({p, plan.first_cluster + c});
      }
      retire(height, level, sources_of(height, p), plan,
             level.clusters.data() + plan.first_cluster);
    }
    level.written.resize(nodes);
    parents.children.resize(parents.first_child[n]);
    auto& taken = height == 0 ? draft_.new_leaves : draft_.new_inner;
    auto& kept = height == 0 ? draft_.kept_leaves : draft_.kept_inner;
    size_type next = taken.size();
    if (height == 0) {
      editor_.take_leaves(new_nodes, taken, loop_);
    } else {
      editor_.take_inner(new_nodes, taken, loop_);
    }
    for (const Job& job : level.jobs) {
      const Cluster& cluster = level.clusters[job.cluster];
      Child* const written = level.written.data() + cluster.number;
      if (stays(cluster)) {
        written->node = sources_of(height, job.parent).node(cluster.first);
        kept.push_back(written->node);
      } else {
        for (size_type i = 0; i < cluster.nodes; ++i)
          written[i].node = taken[next++];
      }
    }
  }

  /// Writes the nodes of a level that change, and the new children of their
  /// parents.
  void write(int height) {
    Level& level = levels_[height];
    Level& parents = levels_[height + 1];
    loop_(height == 0 ? "write_leaves" : "write_inner_nodes", level.jobs.size(),
          [&](size_type j) {
            const Cluster& cluster = level.clusters[level.jobs[j].cluster];
            Child* const written = level.written.data() + cluster.number;
            if (height == 0 && stays(cluster)) {
              const Touched& leaf = level.touched[cluster.touched];
              if (inserts(operations_)) {
                insert_in_place(leaf);
              } else {
                erase_in_place(leaf);
              }
              written->largest = editor_.pools_.largest(0, leaf.node);
              return;
            }
            const Sources sources = sources_of(height, level.jobs[j].parent);
            if (height == 0) {
              write_leaves(level, sources, cluster, written);
            } else {
              write_inner(height, level, sources, cluster, written);
            }
          });
    loop_("list_children", level.plans.size(), [&](size_type p) {
      if (parents.dirty[p] == 0) return;
      const Plan& plan = level.plans[p];
      const Sources sources = sources_of(height, p);
      Child* next = parents.children.data() + parents.first_child[p];
      for (size_type c = 0; c < plan.clusters; ++c) {
        const Cluster& cluster = level.clusters[plan.first_cluster + c];
        if (cluster.dirty) {
          next = std::copy_n(level.written.data() + cluster.number,
                             cluster.nodes, next);
        } else {
          *next++ = {sources.node(cluster.first),
                     sources.largest(cluster.first)};
        }
      }
    });
  }

  /// Retires what a parent's children are no more, and counts.
  void retire(int height, const Level& level, const Sources& sources,
              const Plan& plan, const Cluster* clusters) {
    UpdateReport& report = draft_.report;
    auto& gone = height == 0 ? draft_.gone_leaves : draft_.gone_inner;
    size_type splits = 0, merges = 0;
    size_type t = sources.touched();
    size_type c = 0;
    for (std::uint32_t slot = 0; slot < sources.count(); ++slot) {
      while (c < plan.clusters && clusters[c].last <= slot) ++c;
      const Cluster* const cluster =
          c < plan.clusters && clusters[c].first <= slot ? &clusters[c]
                                                         : nullptr;
      const bool is_touched = sources.is_at(t, slot);
      const bool changed = is_touched && level.dirty[t] != 0;
      const bool emptied = changed && level.counts[t] == 0;
      const bool is_alone = cluster != nullptr && cluster->sources == 1 &&
                            cluster->nodes == 1 && !emptied;
      const bool is_written = changed || (cluster != nullptr && cluster->dirty);
      if (is_written && !(is_alone && stays(*cluster)))
        gone.push_back(sources.node(slot));
      merges += emptied ? 1 : 0;
      if (height == 0 && changed && !is_alone) {
        // One that concerns several leaves counts once.
        const Touched& leaf = level.touched[t];
        const size_type begin = std::max(leaf.begin, deferred_);
        deferred_ = std::max(leaf.end, deferred_);
        report.deferred += deferred_ - std::min(begin, deferred_);
      }
      t += is_touched ? 1 : 0;
    }
    for (c = 0; c < plan.clusters; ++c) {
      const Cluster& cluster = clusters[c];
      if (cluster.nodes > cluster.sources)
        splits += cluster.nodes - cluster.sources;
      else
        merges += cluster.sources - cluster.nodes;
    }
    (height == 0 ? report.leaf_splits : report.inner_splits) += splits;
    (height == 0 ? report.leaf_merges : report.inner_merges) += merges;
  }

  void write_leaves(const Level& level, const Sources& sources,
                    const Cluster& cluster, Child* written) const {
    const Pools& pools = editor_.pools_;
    size_type n = 0, at = 0, quota = quota_of(cluster, 0);
    Key* keys = pools.leaf_keys(written[0].node);
    Value* values = pools.leaf_values(written[0].node);
    const auto emit = [&](const Key& key, const Value& value) {
      keys[at] = key;
      values[at] = value;
      if (++at < quota) return;
      pools.seal_leaf(written[n].node, at);
      written[n].largest = key;
      at = 0;
      if (++n == cluster.nodes) return;
      quota = quota_of(cluster, n);
      keys = pools.leaf_keys(written[n].node);
      values = pools.leaf_values(written[n].node);
    };
    size_type t = cluster.touched;
    for (std::uint32_t slot = cluster.first; slot < cluster.last; ++slot) {
      const bool is_touched = sources.is_at(t, slot);
      if (is_touched && level.dirty[t] != 0) {
        if (level.counts[t] > 0) merge(level.touched[t], emit);
      } else {
        const std::uint32_t leaf = sources.node(slot);
        for (size_type e = 0; e < pools.entries(leaf); ++e)
          emit(pools.leaf_keys(leaf)[e], pools.leaf_values(leaf)[e]);
      }
      t += is_touched ? 1 : 0;
    }
  }

  void write_inner(int height, const Level& level, const Sources& sources,
                   const Cluster& cluster, Child* written) const {
    const Pools& pools = editor_.pools_;
    size_type n = 0, at = 0, quota = quota_of(cluster, 0);
    const auto emit = [&](const Child& child) {
      pools.children_of(written[n].node)[at] = child.node;
      pools.separators(written[n].node)[at] = child.largest;
      if (++at < quota) return;
      pools.seal_inner(written[n].node, at);
      written[n].largest = child.largest;
      at = 0;
      if (++n < cluster.nodes) quota = quota_of(cluster, n);
    };
    size_type t = cluster.touched;
    for (std::uint32_t slot = cluster.first; slot < cluster.last; ++slot) {
      const bool is_touched = sources.is_at(t, slot);
      if (is_touched && level.dirty[t] != 0) {
        for (size_type i = level.first_child[t]; i < level.first_child[t + 1];
             ++i)
          emit(level.children[i]);
      } else {
        const std::uint32_t node = sources.node(slot);
        for (std::uint32_t i = 0; i < pools.child_counts(node); ++i)
          emit({pools.children_of(node)[i],
                pools.largest_below(height, node, i)});
      }
      t += is_touched ? 1 : 0;
    }
  }

  /// Entries, or children, of new node `n` of a cluster.
  static size_type quota_of(const Cluster& cluster, size_type n) {
    return begin_of(n + 1, cluster.nodes, cluster.total) -
           begin_of(n, cluster.nodes, cluster.total);
  }

  RegularEditor& editor_;
  RegularDraft& draft_;
  const Operations& operations_;
  const HostLoop& loop_;
  bool in_place_;
  std::uint32_t root_;
  std::vector<Level> levels_;  ///< from leaves up to what is above the root
  size_type deferred_ = 0;     ///< operations before it have been counted
};

}  // namespace kindex::build

#endif
