// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_REGULARNODES_HPP
#define KINDEX_BUILD_REGULARNODES_HPP

/// \file
/// Pools of nodes of a regular B+-tree on the host, and what batches of
/// operations on it are made of.

#include <kindex/Error.hpp>
#include <kindex/query/RegularRouter.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace kindex {

/// What a batch of operations did to a RegularBPlusTree.
struct UpdateReport {
  size_type operations = 0;     ///< in the batch
  size_type entries_added = 0;  ///< by insert
  size_type entries_erased = 0;
  size_type entries_updated = 0;
  size_type groups = 0;  ///< of operations, after each of which readers see it
  /// Operations in leaves that were split, joined or removed; all others were
  /// resolved in their leaf.
  size_type deferred = 0;
  size_type leaves_written = 0;
  size_type leaf_splits = 0;  ///< leaves more, by splits
  size_type leaf_merges = 0;  ///< leaves less, joined with others or emptied
  size_type inner_nodes_written = 0;  ///< without those of leaves
  size_type nodes_in_place = 0;       ///< of all those, written where they were
  size_type inner_splits = 0;         ///< the same of inner nodes
  size_type inner_merges = 0;         ///< the same of inner nodes
  size_type bytes_to_device = 0;      ///< of inner nodes

  /// Adds those of another group of the same batch.
  UpdateReport& operator+=(const UpdateReport& more) {
    for (const auto field :
         {&UpdateReport::operations, &UpdateReport::entries_added,
          &UpdateReport::entries_erased, &UpdateReport::entries_updated,
          &UpdateReport::groups, &UpdateReport::deferred,
          &UpdateReport::leaves_written, &UpdateReport::leaf_splits,
          &UpdateReport::leaf_merges, &UpdateReport::inner_nodes_written,
          &UpdateReport::nodes_in_place, &UpdateReport::inner_splits,
          &UpdateReport::inner_merges, &UpdateReport::bytes_to_device})
      this->*field += more.*field;
    return *this;
  }
};

namespace build {

/// Pools of nodes in host memory. See query::RegularRouter for inner nodes; the
/// keys of leaf l are those from l * leaf_keys on, behind its last up to the
/// end of the line the type's largest, which is never counted.
template <class Key, class Value>
struct RegularPools {
  using Shape = query::RegularShape<Key>;  ///< sizes of nodes
  /// An array of the host.
  template <class T>
  using Array = Kokkos::View<T*, Kokkos::HostSpace>;

  Array<Key> keys;                    ///< of leaves
  Array<Value> values;                ///< of leaves
  Array<std::uint32_t> entries;       ///< number of entries, per leaf
  Array<Key> last;                    ///< keys of last inner nodes
  Array<Key> inner;                   ///< keys of inner nodes
  Array<std::uint32_t> children;      ///< of inner nodes
  Array<std::uint32_t> child_counts;  ///< number of children, per inner node
  /// Bytes for which huge pages were asked, and not refused: of the arrays that
  /// grow with leaves, and of the others.
  size_type huge_leaf_bytes = 0, huge_inner_bytes = 0;

  /// Leaves for which there is room.
  size_type leaves() const { return entries.extent(0); }
  /// Inner nodes for which there is room.
  size_type inner_nodes() const { return child_counts.extent(0); }
  /// Bytes of leaves and values.
  size_type leaf_bytes() const {
    return bytes_of(keys) + bytes_of(values) + bytes_of(entries);
  }
  /// Bytes of inner nodes.
  size_type inner_bytes() const {
    return bytes_of(last) + bytes_of(inner) + bytes_of(children) +
           bytes_of(child_counts);
  }

  /// Keys of a leaf.
  Key* leaf_keys(size_type leaf) const {
    return keys.data() + leaf * Shape::leaf_keys;
  }
  /// Values of a leaf.
  Value* leaf_values(size_type leaf) const {
    return values.data() + leaf * Shape::leaf_keys;
  }
  /// The largest keys below the children of an inner node, but for the last.
  Key* separators(size_type node) const {
    return inner.data() + node * Shape::inner_node_keys + Shape::line_keys;
  }
  /// Children of an inner node.
  std::uint32_t* children_of(size_type node) const {
    return children.data() + node * Shape::fan_out;
  }

  /// The largest key below a node `height` levels above the leaves.
  Key largest(int height, size_type node) const {
    for (; height > 0; --height)
      node = children_of(node)[child_counts(node) - 1];
    return leaf_keys(node)[entries(node) - 1];
  }

  /// The largest key below child `child` of an inner node.
  Key largest_below(int height, size_type node, std::uint32_t child) const {
    return child + 1 < child_counts(node)
               ? separators(node)[child]
               : largest(height - 1, children_of(node)[child]);
  }

  /// The last key of each line of a leaf but the last that has any, above
  /// them the type's largest.
  Key* last_of_lines(size_type leaf) const {
    return last.data() + leaf * Shape::last_node_keys +
           (Shape::last_lines > 1 ? Shape::line_keys : 0);
  }

  /// Completes a leaf whose entries are written, from `first` on if those
  /// before are what they were.
  void seal_leaf(size_type leaf, size_type count, size_type first = 0) const {
    entries(leaf) = static_cast<std::uint32_t>(count);
    Key* const k = leaf_keys(leaf);
    constexpr size_type line = Shape::line_keys;
    const size_type lines = (count + line - 1) / line;
    std::fill(k + count, k + lines * line, KeyTraits<Key>::highest());
    Key* const of_lines = last_of_lines(leaf);
    // What was the last line has no key there.
    const size_type first_line = first / line - (first >= line ? 1 : 0);
    for (size_type i = first_line; i < Shape::leaf_lines; ++i)
      of_lines[i] =
          i + 1 < lines ? k[(i + 1) * line - 1] : KeyTraits<Key>::highest();
    if constexpr (Shape::last_lines > 1)
      write_first_line(last.data() + leaf * Shape::last_node_keys,
                       Shape::last_lines);
  }

  /// Completes an inner node whose children and separators are written.
  void seal_inner(size_type node, size_type count) const {
    child_counts(node) = static_cast<std::uint32_t>(count);
    Key* const k = separators(node);
    std::fill(k + count - 1, k + Shape::fan_out, KeyTraits<Key>::highest());
    std::fill(children_of(node) + count, children_of(node) + Shape::fan_out,
              0U);
    write_first_line(k - Shape::line_keys, Shape::inner_lines);
  }

 private:
  template <class T>
  static size_type bytes_of(const Array<T>& array) {
    return array.extent(0) * sizeof(T);
  }

  /// Writes the last key of each of the `lines` lines behind a line to that.
  static void write_first_line(Key* node, int lines) {
    for (int i = 0; i < Shape::line_keys; ++i)
      node[i] = i < lines ? node[(i + 2) * Shape::line_keys - 1]
                          : KeyTraits<Key>::highest();
  }
};

/// What a version of the tree is, beside the pools.
struct RegularTop {
  size_type size = 0;           ///< entries; 0: there are no nodes
  std::uint32_t root = 0;       ///< number of the root
  std::uint32_t last_leaf = 0;  ///< the leaf of the largest keys
  int height = 0;               ///< levels above the leaves
};

/// What a batch does.
enum class RegularChange { insert, erase, update };

/// Operations in ascending order of their keys, equal keys in the order of the
/// batch.
template <class Key, class Value>
struct RegularOperations {
  RegularChange change = RegularChange::insert;  ///< what all of them do
  const Key* keys = nullptr;
  const Value* values = nullptr;  ///< not of erase
  size_type size = 0;
};

/// A new version of the tree, and what it took.
struct RegularDraft {
  RegularTop top;
  bool is_new = false;  ///< whether it is another one than that before
  std::vector<std::uint32_t> new_leaves, new_inner;    ///< written for it
  std::vector<std::uint32_t> kept_leaves, kept_inner;  ///< written in place
  std::vector<std::uint32_t> gone_leaves, gone_inner;  ///< not in it any more
  UpdateReport report;
};

/// Where a batch writes nodes that change.
enum class RegularPlaces {
  others,   ///< all in other places, so that earlier versions stay
  the_same  ///< where they are, but for those that split or join
};

/// Numbers of nodes of a pool that are in use.
class RegularNumbers {
 public:
  /// Takes `count` numbers, and adds them to `taken`.
  void take(size_type count, std::vector<std::uint32_t>& taken) {
    constexpr size_type most = std::numeric_limits<std::uint32_t>::max();
    const size_type used_again = std::min<size_type>(count, free_.size());
    if (end_with(count) > most)
      kindex::impl::fail("kindex::RegularBPlusTree", "more than ", most,
                         " nodes are needed");
    taken.reserve(taken.size() + count);
    // Room to give all of them back: that must not throw.
    if (free_.capacity() < end_ + count)
      free_.reserve(std::max(end_ + count, 2 * free_.capacity()));
    for (size_type i = 0; i < used_again; ++i) {
      taken.push_back(free_.back());
      free_.pop_back();
    }
    for (size_type i = used_again; i < count; ++i)
      taken.push_back(static_cast<std::uint32_t>(end_++));
  }

  /// As end(), once `count` numbers more are taken.
  size_type end_with(size_type count) const {
    return end_ + (count - std::min<size_type>(count, free_.size()));
  }

  /// Forgets the numbers from `end` on, of which none is taken; never throws.
  void cut(size_type end) {
    if (end >= end_) return;
    end_ = end;
    std::erase_if(free_, [&](std::uint32_t number) { return number >= end; });
  }

  /// Gives numbers back; never throws.
  void give_back(const std::vector<std::uint32_t>& numbers) {
    free_.insert(free_.end(), numbers.rbegin(), numbers.rend());
  }

  /// All numbers that were ever taken are below.
  size_type end() const { return end_; }

 private:
  std::vector<std::uint32_t> free_;
  size_type end_ = 0;
};

}  // namespace build
}  // namespace kindex

#endif
