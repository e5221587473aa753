// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_HYBRIDBPLUSTREE_HPP
#define KINDEX_HYBRIDBPLUSTREE_HPP

/// \file
/// A B+-tree with leaves in host memory and inner nodes in device memory.

#include <kindex/BPlusTree.hpp>

namespace kindex {

/// A BPlusTree whose leaves stay in host memory, as many as fit there, while a
/// device holds a copy of the inner nodes, 1/16 of the keys' memory where they
/// have 4 bytes and 1/8 where they have 8: for indexes larger than device
/// memory, and batches that are in host memory. (Shahvarani and Jacobsen, "A
/// Hybrid B+-tree as Solution for In-Memory Indexing on CPU-GPU Heterogeneous
/// Computing Platforms", SIGMOD 2016: the HB+-tree, in its implicit form.)
///
/// Every batch goes through a pipeline (query::HybridPipeline): the host copies
/// a bucket of queries to staging memory, the device follows the inner nodes to
/// a leaf, of which 4 bytes per probe come back, and the host searches the leaf
/// and writes results to the caller's Views. These must be in memory that the
/// host can access, `range` leaves its hits in host memory, and
/// for_each_in_range calls `visit` on the host. Every call is ordered behind
/// earlier work on `space`, which it fences, and returns when the results are
/// there; HostBatches in the place of `space` control buckets and memory. More
/// in query::BulkQueries.
///
/// Where the device is slower than the host, the host may follow the topmost
/// levels, too (set_division), as many as measuring says (balance).
///
/// Cost per point query: its bytes to the device, 4 bytes back, a line per
/// level there, and on the host one line of keys (and one of values, except for
/// AoS), of which each thread has those of 32 queries in flight while it
/// fetches those of the next 32.
///
/// \tparam Key, Value, Layout as for SortedArray.
/// \tparam MemorySpace memory of the device, where the inner nodes are. The
///   host's: everything as above with the host as the device, which is of use
///   for tests only.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA>
class HybridBPlusTree : public query::BulkQueries<
                            HybridBPlusTree<Key, Value, MemorySpace, Layout>,
                            Key, Value, MemorySpace, query::Hybrid> {
  using HostIndex = BPlusTree<Key, Value, Kokkos::HostSpace, Layout>;
  using Levels = build::PivotLevels<Key, HostIndex::fan_out, MemorySpace>;

 public:
  /// The handle for the host's kernels: that of a BPlusTree there.
  using Ref = typename HostIndex::Ref;
  /// The handle of the inner nodes for the device's kernels.
  using Router = typename HostIndex::Router;

  /// The name that labels of queries carry. Those of builds, and messages of
  /// what a build refuses, name BPlusTree.
  static constexpr const char* name() { return "HybridBPlusTree"; }

  /// The empty index.
  HybridBPlusTree() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// Fences `space`, so that earlier work may write keys and values, builds a
  /// BPlusTree on the host with all of its threads, copies the inner nodes to
  /// the device and fences `space` again.
  ///
  /// \param space an instance of the device, which can access MemorySpace.
  /// \param keys a View of rank 1 in memory that the host can access.
  /// \param options as for BPlusTree.
  /// \throws Error as BPlusTree.
  template <class Exec, class Keys>
  HybridBPlusTree(const Exec& space, const Keys& keys,
                  const BPlusTreeOptions& options = {})
      : index_(on_host(space, keys, options)), levels_(levels_for(space)) {}

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, options as above.
  /// \param values a View of rank 1 in memory that the host can access, one per
  ///   key.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> HybridBPlusTree(
      const Exec& space, const Keys& keys, const Values& values,
      const BPlusTreeOptions& options = {})
      : index_(on_host(space, keys, values, options)),
        levels_(levels_for(space)) {}

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store.
  ///
  /// \param space, keys, options as above.
  /// \param check whether it is checked that keys ascend.
  /// \throws Error as above.
  template <class Exec, class Keys>
  HybridBPlusTree(const Exec& space, SortedTag, const Keys& keys,
                  Check check = Check::on, const BPlusTreeOptions& options = {})
      : index_(on_host(space, sorted, keys, check, options)),
        levels_(levels_for(space)) {}

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> HybridBPlusTree(
      const Exec& space, SortedTag, const Keys& keys, const Values& values,
      Check check = Check::on, const BPlusTreeOptions& options = {})
      : index_(on_host(space, sorted, keys, values, check, options)),
        levels_(levels_for(space)) {}

  /// The number of entries.
  size_type size() const { return index_.size(); }

  /// Bytes that the index holds on the host, which keeps the inner nodes, too,
  /// and on the device.
  size_type memory_bytes() const {
    constexpr bool is_shared = std::is_same_v<MemorySpace, Kokkos::HostSpace>;
    return index_.memory_bytes() + (is_shared ? 0 : inner_bytes());
  }

  /// Bytes of leaves and values, in host memory.
  size_type leaf_bytes() const { return index_.leaf_bytes(); }

  /// Bytes of inner nodes, in device memory.
  size_type inner_bytes() const { return index_.inner_bytes(); }

  /// Levels of inner nodes; 0: up to one leaf.
  int height() const { return index_.height(); }

  /// As BPlusTree::node_search, of the host's part.
  NodeSearch node_search() const { return index_.node_search(); }

  /// As BPlusTree::huge_page_bytes, of the host's part.
  size_type huge_page_bytes() const { return index_.huge_page_bytes(); }

  /// How searches are divided between host and device; at first, the host ends
  /// them only.
  WorkDivision division() const { return division_; }

  /// Sets how searches are divided, of this copy of the index. What the host
  /// does of inner nodes costs it a kernel or two per bucket, and 4 bytes more
  /// per probe to the device.
  ///
  /// \throws Error if there are less levels than `division.levels`, one more
  ///   for a share above 0, or if the share is not in [0, 1].
  void set_division(const WorkDivision& division) {
    query::check_division("kindex::HybridBPlusTree::set_division", division,
                          height());
    division_ = division;
  }

  /// Sets the division of work under which `lower_bound` of a sample of queries
  /// is answered fastest, and returns it. To be called again where the machine
  /// has other work to do, or queries are others. Measures: some 10 to 20
  /// divisions, four batches each, on a machine that should be as loaded as it
  /// is going to be.
  ///
  /// \param space as for all verbs.
  /// \param sample several buckets of queries, in memory that the host can
  ///   access.
  template <class Space, class Queries>
  WorkDivision balance(const Space& space, const Queries& sample) {
    division_ = {};
    if (size() == 0 || sample.extent(0) == 0) return division_;
    HybridBPlusTree tried = *this;
    division_ = query::measured_division(
        name(), height(), sample.extent(0),
        [&](const WorkDivision& division, const auto& ranks) {
          tried.division_ = division;
          tried.lower_bound(space, sample, ranks);
        });
    return division_;
  }

  /// The handle for kernels of the host: trivially copyable, non-owning.
  Ref ref() const { return index_.ref(); }

  /// The handle of the inner nodes for kernels of the device: trivially
  /// copyable, non-owning. For query::BulkQueries.
  Router router() const { return levels_.router(index_.node_search()); }

  /// The host's first levels. For query::BulkQueries.
  query::HybridHead<Router> head() const {
    query::HybridHead<Router> head{index_.router(), division_};
    // Nodes, and some behind a level's end, are handed on in 32 bits.
    const auto nodes_fit = [&](int level) {
      const size_type nodes = level < height() ? head.router.levels[level].nodes
                                               : head.router.units;
      return nodes < size_type{1} << 31;
    };
    while (head.division.levels > 0 &&
           !nodes_fit(head.division.levels + (head.division.share > 0 ? 1 : 0)))
      head.division = {head.division.levels - 1, 0};
    return head;
  }

 private:
  template <class Exec, class... Arguments>
  static HostIndex on_host(const Exec& space, const Arguments&... arguments) {
    return query::built_on_host<HostIndex, MemorySpace>(name(), space,
                                                        arguments...);
  }

  template <class Exec>
  Levels levels_for(const Exec& space) const {
    Levels levels = index_.levels_.template copy_to<MemorySpace>(space);
    space.fence("kindex::HybridBPlusTree::copy_inner_nodes");
    return levels;
  }

  HostIndex index_;
  Levels levels_;
  WorkDivision division_;
};

/// \cond
template <class Exec, class Keys>
HybridBPlusTree(const Exec&, const Keys&, const BPlusTreeOptions& = {})
    -> HybridBPlusTree<typename Keys::non_const_value_type, std::uint32_t,
                       typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> HybridBPlusTree(const Exec&, const Keys&,
                                                   const Values&,
                                                   const BPlusTreeOptions& = {})
->HybridBPlusTree<typename Keys::non_const_value_type,
                  typename Values::non_const_value_type,
                  typename Exec::memory_space>;
template <class Exec, class Keys>
HybridBPlusTree(const Exec&, SortedTag, const Keys&, Check = Check::on,
                const BPlusTreeOptions& = {})
    -> HybridBPlusTree<typename Keys::non_const_value_type, std::uint32_t,
                       typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> HybridBPlusTree(const Exec&, SortedTag,
                                                   const Keys&, const Values&,
                                                   Check = Check::on,
                                                   const BPlusTreeOptions& = {})
->HybridBPlusTree<typename Keys::non_const_value_type,
                  typename Values::non_const_value_type,
                  typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
