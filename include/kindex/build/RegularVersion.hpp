// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_REGULARVERSION_HPP
#define KINDEX_BUILD_REGULARVERSION_HPP

/// \file
/// Versions of a regular B+-tree: what readers hold while it changes.

#include <kindex/build/HostLoop.hpp>
#include <kindex/build/RegularNodes.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace kindex::build {

// ---- the device's copy ------------------------------------------------------

/// What nodes are copied in: loads of 16 bytes.
struct alignas(16) NodeUnit {
  std::uint64_t halves[2];
};

/// Copies unit i of nodes that lie side by side to where they belong.
struct ScatterNodes {
  const NodeUnit* from;
  const std::uint32_t* nodes;
  NodeUnit* to;
  size_type units;  ///< of a node

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type node = i / units;
    to[nodes[node] * units + (i - node * units)] = from[i];
  }
};

/// Memory through which nodes go to the device together: 4 MiB on either side,
/// kept from batch to batch, since freeing it would fence.
template <class MemorySpace>
struct RegularStaging {
  static constexpr size_type bytes = size_type{4} << 20;  ///< at once
  /// Nodes at once: none is smaller than a line.
  static constexpr size_type nodes = bytes / query::line_bytes;

  Kokkos::View<NodeUnit*, Kokkos::HostSpace> packed;  ///< nodes
  Kokkos::View<NodeUnit*, MemorySpace> arrived;       ///< the same
  Kokkos::View<std::uint32_t*, MemorySpace> places;   ///< where they belong

  /// Allocates it.
  template <class Exec>
  void reserve(const Exec& space) {
    if (places.extent(0) == nodes) return;
    const std::string prefix = "kindex::RegularBPlusTree::";
    constexpr size_type units = bytes / sizeof(NodeUnit);
    // By the host: an instance of a GPU cannot.
    packed = Kokkos::View<NodeUnit*, Kokkos::HostSpace>(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, prefix + "packed"),
        units);
    const auto alloc = [&](const char* what) {
      return Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                prefix + what);
    };
    arrived = Kokkos::View<NodeUnit*, MemorySpace>(alloc("arrived"), units);
    places = Kokkos::View<std::uint32_t*, MemorySpace>(alloc("places"), nodes);
  }
};

/// A copy of the inner nodes in another memory, in the same places.
template <class Key, class MemorySpace>
struct RegularMirror {
  using Shape = query::RegularShape<Key>;  ///< sizes of nodes
  template <class T>
  using Array = Kokkos::View<T*, MemorySpace>;

  Array<Key> last;                ///< as RegularPools::last
  Array<Key> inner;               ///< as RegularPools::inner
  Array<std::uint32_t> children;  ///< as RegularPools::children

  /// Bytes of inner nodes.
  size_type memory_bytes() const {
    return (last.extent(0) + inner.extent(0)) * sizeof(Key) +
           children.extent(0) * sizeof(std::uint32_t);
  }

  /// Makes room for as many nodes as there is room for in `pools`; old copies
  /// of this stay as they are.
  template <class Exec, class Pools>
  void grow(const Exec& space, const Pools& pools) {
    grow(space, last, pools.last);
    grow(space, inner, pools.inner);
    grow(space, children, pools.children);
  }

  /// Copies the first nodes of all pools. Fences `space`.
  template <class Exec, class Pools>
  void send_first(const Exec& space, const Pools& pools, size_type leaves,
                  size_type inner_nodes) const {
    send_range(space, pools.last, last, Shape::last_node_keys, 0, leaves);
    send_range(space, pools.inner, inner, Shape::inner_node_keys, 0,
               inner_nodes);
    send_range(space, pools.children, children, Shape::fan_out, 0, inner_nodes);
    space.fence("kindex::RegularBPlusTree::send_nodes");
  }

  /// Copies nodes together: packed, copied and put in place, as many at once as
  /// `staging` holds. Fences `space`. Returns how many bytes.
  template <class Exec, class Pools>
  size_type send(const Exec& space, RegularStaging<MemorySpace>& staging,
                 const Pools& pools, const RegularDraft& draft,
                 const HostLoop& loop) const {
    staging.reserve(space);
    size_type bytes = 0;
    for (const auto* const leaves : {&draft.new_leaves, &draft.kept_leaves})
      bytes += send(space, staging, pools.last, last, Shape::last_node_keys,
                    *leaves, loop);
    for (const auto* const nodes : {&draft.new_inner, &draft.kept_inner}) {
      bytes += send(space, staging, pools.inner, inner, Shape::inner_node_keys,
                    *nodes, loop);
      bytes += send(space, staging, pools.children, children, Shape::fan_out,
                    *nodes, loop);
    }
    return bytes;
  }

  /// Copies nodes one by one. Fences `space`. Returns how many bytes.
  template <class Exec, class Pools>
  size_type send_one_by_one(const Exec& space, const Pools& pools,
                            const RegularDraft& draft) const {
    size_type bytes = 0;
    for (const std::uint32_t node : draft.new_leaves)
      bytes += send_range(space, pools.last, last, Shape::last_node_keys, node,
                          size_type{node} + 1);
    for (const std::uint32_t node : draft.new_inner) {
      bytes += send_range(space, pools.inner, inner, Shape::inner_node_keys,
                          node, size_type{node} + 1);
      bytes += send_range(space, pools.children, children, Shape::fan_out, node,
                          size_type{node} + 1);
    }
    space.fence("kindex::RegularBPlusTree::send_nodes");
    return bytes;
  }

 private:
  using Range = Kokkos::pair<size_type, size_type>;

  template <class Exec, class T>
  static void grow(const Exec& space, Array<T>& array,
                   const Kokkos::View<T*, Kokkos::HostSpace>& like) {
    if (array.extent(0) >= like.extent(0)) return;
    const Array<T> larger(Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                             like.label() + "_on_device"),
                          like.extent(0));
    if (array.extent(0) > 0)
      Kokkos::deep_copy(
          space, Kokkos::subview(larger, Range(0, array.extent(0))), array);
    space.fence("kindex::RegularBPlusTree::grow_on_device");
    array = larger;
  }

  template <class Exec, class T>
  static size_type send_range(const Exec& space,
                              const Kokkos::View<T*, Kokkos::HostSpace>& from,
                              const Array<T>& to, size_type size,
                              size_type begin, size_type end) {
    const Range range(begin * size, end * size);
    if (begin < end)
      Kokkos::deep_copy(space, Kokkos::subview(to, range),
                        Kokkos::subview(from, range));
    return (end - begin) * size * sizeof(T);
  }

  template <class Exec, class T>
  static size_type send(const Exec& space,
                        const RegularStaging<MemorySpace>& staging,
                        const Kokkos::View<T*, Kokkos::HostSpace>& from,
                        const Array<T>& to, size_type size,
                        const std::vector<std::uint32_t>& nodes,
                        const HostLoop& loop) {
    const size_type units = size * sizeof(T) / sizeof(NodeUnit);
    const size_type room =
        RegularStaging<MemorySpace>::bytes / (size * sizeof(T));
    const auto* const source = reinterpret_cast<const NodeUnit*>(from.data());
    for (size_type begin = 0; begin < nodes.size(); begin += room) {
      const size_type count = std::min<size_type>(room, nodes.size() - begin);
      loop("pack_nodes", count, [&](size_type i) {
        std::copy_n(source + nodes[begin + i] * units, units,
                    staging.packed.data() + i * units);
      });
      const Range range(0, count * units);
      Kokkos::deep_copy(space, Kokkos::subview(staging.arrived, range),
                        Kokkos::subview(staging.packed, range));
      Kokkos::deep_copy(space, Kokkos::subview(staging.places, Range(0, count)),
                        Kokkos::View<const std::uint32_t*, Kokkos::HostSpace,
                                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                            nodes.data() + begin, count));
      Kokkos::parallel_for(
          "kindex::RegularBPlusTree::scatter_nodes",
          Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(
              space, 0, count * units),
          ScatterNodes{staging.arrived.data(), staging.places.data(),
                       reinterpret_cast<NodeUnit*>(to.data()), units});
      // Before the next ones are packed.
      space.fence("kindex::RegularBPlusTree::send_nodes");
    }
    return nodes.size() * size * sizeof(T);
  }
};

// ---- ranks ------------------------------------------------------------------

/// Where the ranks of a version are, as kernels see it.
struct RegularRanksRef {
  /// Leaves in ascending order.
  const std::uint32_t* leaves = nullptr;
  /// Rank of the first entry of each, in that order, and past-last.
  const size_type* firsts = nullptr;
  /// The same by number of the leaf.
  const size_type* first_of_leaf = nullptr;
  /// For every `block` ranks, in that order, the leaf of the first of them.
  const std::uint32_t* blocks = nullptr;
  std::uint32_t count = 0;  ///< leaves
};

/// Where the ranks of a version are: some 25 bytes per leaf.
template <class Key>
class RegularRanks {
  using Shape = query::RegularShape<Key>;
  template <class T>
  using Array = Kokkos::View<T*, Kokkos::HostSpace>;

 public:
  /// Ranks of a block: a leaf has more, most often.
  static constexpr size_type block = Shape::leaf_keys / 2;

  /// None.
  RegularRanks() = default;

  /// Those of a version with entries: goes down the tree, a level at a time.
  template <class Pools>
  RegularRanks(const Pools& pools, const RegularTop& top,
               const HostLoop& loop) {
    std::vector<std::uint32_t> nodes{top.root};
    std::vector<size_type> first;
    for (int height = top.height; height > 0; --height) {
      const size_type n = nodes.size();
      first.assign(n + 1, 0);
      for (size_type i = 0; i < n; ++i)
        first[i + 1] = first[i] + pools.child_counts(nodes[i]);
      std::vector<std::uint32_t> below(first[n]);
      loop("list_leaves", n, [&](size_type i) {
        std::copy_n(pools.children_of(nodes[i]), first[i + 1] - first[i],
                    below.data() + first[i]);
      });
      nodes = std::move(below);
    }
    const size_type n = nodes.size();
    leaves_ = allocated<std::uint32_t>("order_of_leaves", n);
    firsts_ = allocated<size_type>("ranks_of_leaves", n + 1);
    first_of_leaf_ = allocated<size_type>("ranks_by_number", pools.leaves());
    blocks_ = allocated<std::uint32_t>("leaves_of_ranks", top.size / block + 1);
    std::copy_n(nodes.data(), n, leaves_.data());
    loop.in_shares("count_entries", n, 1024,
                   [&](size_type begin, size_type end) {
                     for (size_type i = begin; i < end; ++i)
                       firsts_(i) = pools.entries(nodes[i]);
                   });
    size_type sum = 0;
    for (size_type i = 0; i < n; ++i) {
      const size_type entries = firsts_(i);
      firsts_(i) = sum;
      sum += entries;
    }
    firsts_(n) = sum;
    loop.in_shares("number_entries", n, 1024,
                   [&](size_type begin, size_type end) {
                     for (size_type i = begin; i < end; ++i) {
                       first_of_leaf_(nodes[i]) = firsts_(i);
                       for (size_type b = (firsts_(i) + block - 1) / block;
                            b * block < firsts_(i + 1); ++b)
                         blocks_(b) = static_cast<std::uint32_t>(i);
                     }
                   });
  }

  /// As kernels see it.
  RegularRanksRef ref() const {
    return {leaves_.data(), firsts_.data(), first_of_leaf_.data(),
            blocks_.data(), static_cast<std::uint32_t>(leaves_.extent(0))};
  }

  /// Bytes held.
  size_type memory_bytes() const {
    return (leaves_.extent(0) + blocks_.extent(0)) * sizeof(std::uint32_t) +
           (firsts_.extent(0) + first_of_leaf_.extent(0)) * sizeof(size_type);
  }

 private:
  template <class T>
  static Array<T> allocated(const char* what, size_type size) {
    return Array<T>(
        Kokkos::view_alloc(Kokkos::WithoutInitializing,
                           std::string("kindex::RegularBPlusTree::") + what),
        size);
  }

  Array<std::uint32_t> leaves_;
  Array<size_type> firsts_;
  Array<size_type> first_of_leaf_;
  Array<std::uint32_t> blocks_;
};

// ---- versions ---------------------------------------------------------------

/// What a reader of the tree holds: nodes that nobody writes as long as it
/// does.
template <class Key, class Value, class MemorySpace>
class RegularVersion {
 public:
  /// Inner nodes in the device's memory.
  using Mirror = RegularMirror<Key, MemorySpace>;

  /// \param pools, top of the tree.
  RegularVersion(const RegularPools<Key, Value>& pools, const RegularTop& top)
      : pools_(pools), top_(top) {}
  RegularVersion(const RegularVersion&) = delete;
  RegularVersion& operator=(const RegularVersion&) = delete;
  /// After that, what only this version has is written again.
  ~RegularVersion() { is_in_use_->store(false, std::memory_order_release); }

  const RegularPools<Key, Value>& pools() const { return pools_; }
  const RegularTop& top() const { return top_; }
  const Mirror& mirror() const { return mirror_; }
  /// Before the version is published.
  void set_mirror(const Mirror& mirror) { mirror_ = mirror; }
  /// The same.
  void set_top(const RegularTop& top) { top_ = top; }

  /// Becomes false when nobody holds the version.
  std::shared_ptr<const std::atomic<bool>> is_in_use() const {
    return is_in_use_;
  }

  /// Ranks, made by the first of those who ask. (While they are made, others
  /// wait.)
  RegularRanksRef ranks() const {
    std::call_once(ranked_, [this] {
      if (top_.size > 0)
        ranks_ = RegularRanks<Key>(
            pools_, top_, HostLoop("kindex::RegularBPlusTree::", true));
    });
    return ranks_.ref();
  }

 private:
  RegularPools<Key, Value> pools_;
  RegularTop top_;
  Mirror mirror_;
  std::shared_ptr<std::atomic<bool>> is_in_use_ =
      std::make_shared<std::atomic<bool>>(true);
  mutable std::once_flag ranked_;
  mutable RegularRanks<Key> ranks_;
};

}  // namespace kindex::build

#endif
