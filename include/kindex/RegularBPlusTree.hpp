// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_REGULARBPLUSTREE_HPP
#define KINDEX_REGULARBPLUSTREE_HPP

/// \file
/// A B+-tree of large nodes in pools, with updates, and its hybrid.

#include <kindex/build/RegularEditor.hpp>
#include <kindex/build/RegularVersion.hpp>
#include <kindex/query/BulkQueries.hpp>
#include <kindex/query/RefVerbs.hpp>
#include <kindex/query/SnapshotVerbs.hpp>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kindex {

/// How a RegularBPlusTree is built.
struct RegularBPlusTreeOptions {
  /// How a thread finds its way through a line.
  NodeSearch node_search = NodeSearch::automatic;
  /// The pages of nodes and values.
  Pages pages = Pages::huge;
  /// How full leaves and inner nodes are, in (0, 1]: what is free takes
  /// insertions without splits.
  double fill = 0.75;
};

/// How a batch of operations changes a RegularBPlusTree. Never changes what
/// comes out.
enum class UpdateMethod {
  /// In place where nobody reads, else chosen by the size of the batch, so that
  /// readers see all of it or nothing, unless groups are smaller than
  /// most_synchronised.
  automatic,
  /// All threads of the host change the tree, then inner nodes that are new go
  /// to the device together; readers see the whole batch or nothing, and go on
  /// with the version before until then.
  asynchronous,
  /// The calling thread changes the tree, group by group, while another sends
  /// nodes to the device one by one; readers see each group when it is there.
  synchronised,
  /// As asynchronous, but nodes that neither split nor join are written where
  /// they are, several times as many operations per second; readers that come
  /// while they are written wait. Where a snapshot or a verb of another thread
  /// has this version or an older one, or the root becomes another, it is
  /// asynchronous. The calling thread alone does what is small (most_by_one).
  in_place
};

/// How a batch of operations goes.
struct UpdateOptions {
  UpdateMethod method = UpdateMethod::automatic;  ///< never changes a result
  /// Operations that readers see together (synchronised).
  size_type group_size = size_type{1} << 14;
};

/// A B+-tree of large nodes out of pools, whose batches of queries go on while
/// batches of insertions, erasures and updates change it. Leaves and values are
/// in host memory, and so are inner nodes, of which a device may have a copy.
/// (Shahvarani and Jacobsen, "A Hybrid B+-tree as Solution for In-Memory
/// Indexing on CPU-GPU Heterogeneous Computing Platforms", SIGMOD 2016: the
/// HB+-tree, in its regular form.)
///
/// A node's keys are lines of 64 bytes below a line of the last key of each:
/// two lines of an inner node lead to one of 64 children (keys of 8 bytes; 256
/// for 4), and two lines of the last inner node to one of the 64 lines of its
/// leaf (16 for keys of 16 bytes). See query::RegularShape. Nodes are numbers
/// of 32 bits, not pointers; a leaf and the last inner node above it have the
/// same. Hosts search lines with SIMD, many lookups in turns (NodeSearch).
///
/// **On a host** (`MemorySpace` is Kokkos::HostSpace) batches are searched by
/// the threads of `space`; **hybrid** (any other, or `Placement` is
/// query::Hybrid) they go through a pipeline as those of HybridBPlusTree: the
/// device leads each query to a line of a leaf, 4 bytes of it come back, and
/// the host searches that line. All Views are in memory that the host can
/// access. As there, the host may follow the topmost levels, too
/// (set_division), as many as measuring says (balance).
///
/// **Duplicates** are kept in the order in which they came: of the input, then
/// of batches. `find` returns the first, as in all indexes.
///
/// **Operations.** A batch has the result of its operations one after the
/// other:
/// - `insert` adds an entry behind all that are equal, as std::multimap does;
/// - `erase` removes all entries with a key, none where there are none;
/// - `update` gives all entries with a key a value, where there are any: of
///   several in a batch with the same key, the last one wins.
///
/// They return when the result is there for readers; batches of several threads
/// follow each other. What comes out does not depend on threads or methods.
///
/// **Readers** have a version that stays as it is. A call of a verb, from any
/// thread and at any time, answers all of its queries from one version;
/// snapshot() keeps one for several calls. While any version is held, nodes
/// that change are written anew, in other places, from leaves up to the root.
/// While none is, they are written where they are (UpdateMethod::in_place), and
/// whoever comes meanwhile waits until they are. (So a kernel on the host's
/// default instance must not ask an index for its size, a handle or a snapshot
/// while another thread changes it: the batch may wait for that instance. A
/// handle that was taken before is safe.) A verb on an execution space
/// that returns before its kernels end (no host space that Kokkos has by
/// default does) needs a snapshot that lives as long.
///
/// A leaf has the values of all of its places: large ones make large leaves.
///
/// Cost of a batch on n entries: sort it (synchronised: its groups), allocate
/// twice its keys, values and numbers, and:
/// - in place, read a line or two of keys per operation, and write a value; or
///   write the leaf from where it changes on, and of its neighbours and of the
///   inner nodes above what splits or joins;
/// - otherwise, read and write each leaf that changes (2 to 16 KiB, with
///   values) and the inner nodes above. Batches that change all leaves need
///   memory for a second tree. Nodes are written again when no reader has them,
///   nor an older version.
///
/// Pools grow to the double, and never shrink. The first verb after a batch of
/// insertions or erasures that needs ranks (all but `find` and `contains`, and
/// ref()) reads and writes some 25 bytes per leaf; updates keep ranks, in
/// place.
///
/// Errors: what throws Error throws before anything changes. Where memory runs
/// out, a batch leaves the index as it was, a synchronised one as it was before
/// or after one of its groups.
///
/// \tparam Key, Value as for SortedArray.
/// \tparam MemorySpace memory of the device.
/// \tparam Placement query::InOneMemory or query::Hybrid; the latter with
///   HostSpace has the host for a device, which is of use for tests only.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Placement =
              std::conditional_t<std::is_same_v<MemorySpace, Kokkos::HostSpace>,
                                 query::InOneMemory, query::Hybrid>>
class RegularBPlusTree
    : public query::SnapshotVerbs<
          RegularBPlusTree<Key, Value, MemorySpace, Placement>> {
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Version = build::RegularVersion<Key, Value, MemorySpace>;
  using Editor = build::RegularEditor<Key, Value>;
  using Operations = build::RegularOperations<Key, Value>;
  using Input = build::Entries<Key, Value, Kokkos::HostSpace, SoA>;
  using Shape = query::RegularShape<Key>;
  static constexpr bool is_hybrid = std::is_same_v<Placement, query::Hybrid>;
  static_assert(is_hybrid || std::is_same_v<MemorySpace, Kokkos::HostSpace>,
                "kindex: the leaves of a RegularBPlusTree are in host memory: "
                "with device memory, it is a hybrid index");

 public:
  using key_type = Key;              ///< type of the keys
  using value_type = Value;          ///< type of the values
  using memory_space = MemorySpace;  ///< where the device's inner nodes are

  /// Children of an inner node.
  static constexpr int fan_out = Shape::fan_out;
  /// Most entries of a leaf.
  static constexpr int leaf_entries = Shape::leaf_keys;
  /// Batches up to this many operations are synchronised by
  /// UpdateMethod::automatic where others read. Measured with 16 cores of the
  /// hosts of an H100 and an H200, 2^24 keys of 8 bytes, operations all over
  /// them (perf/results/h100-updates.json and h200-updates.json). On a host
  /// alone: of 4 operations, one thread does 2.5 to 4 times as many per second
  /// as all that have to be woken, of 16 from 1.2 to 1.7 times; of 64, all do
  /// 1.1 to 1.7 times as many, of 2^16 15 times and more. With inner nodes on a
  /// GPU: of 4, one by one 1.2 to 1.9 times as many, of 16 all at once 1.2
  /// to 1.4 times. (On a host of 2 busy threads, both are alike from 1024 to
  /// 16384.)
  static constexpr size_type most_synchronised = is_hybrid ? 8 : 16;
  /// Batches up to this many operations are changed in place by the calling
  /// thread alone.
  static constexpr size_type most_by_one = 256;

  class Ref;
  class Snapshot;
  /// The handle of the inner nodes.
  using Router = query::RegularRouter<Key>;
  /// What range returns.
  using hits_type = RangeHits<Key, Value, Kokkos::HostSpace>;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "RegularBPlusTree"; }

  /// The empty index.
  RegularBPlusTree() : RegularBPlusTree(RegularBPlusTreeOptions{}) {}

  /// The empty index.
  ///
  /// \param options of later insertions: their `fill` has no meaning.
  /// \throws Error if the processor has not the instructions that options name,
  ///   or the fill is not in (0, 1].
  explicit RegularBPlusTree(const RegularBPlusTreeOptions& options)
      : state_(std::make_shared<State>(checked(options))) {}

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// Fences `space`, so that earlier work may write keys and values, sorts and
  /// copies on the host with all of its threads, writes leaves and inner nodes
  /// from there, copies these to the device and fences `space` again. Takes
  /// temporary memory for the entries and for the sort.
  ///
  /// \param space an instance of the device, which can access MemorySpace.
  /// \param keys a View of rank 1 in memory that the host can access.
  /// \param options as above.
  /// \throws Error as SortedArray, and as above.
  template <class Exec, class Keys>
  RegularBPlusTree(const Exec& space, const Keys& keys,
                   const RegularBPlusTreeOptions& options = {})
      : RegularBPlusTree(options) {
    build(space, [&](const Host& host) {
      return Input::from_unsorted(name(), host, keys);
    });
  }

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, options as above.
  /// \param values a View of rank 1 in memory that the host can access, one per
  ///   key.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values>
  RegularBPlusTree(const Exec& space, const Keys& keys, const Values& values,
                   const RegularBPlusTreeOptions& options = {})
      : RegularBPlusTree(options) {
    build(space, [&](const Host& host) {
      return Input::from_unsorted(name(), host, keys, values);
    });
  }

  /// Builds from ascending keys; values are the row ids 0...n-1.
  ///
  /// \param space, keys, options as above.
  /// \param check whether it is checked that keys ascend.
  /// \throws Error as above.
  template <class Exec, class Keys>
  RegularBPlusTree(const Exec& space, SortedTag, const Keys& keys,
                   Check check = Check::on,
                   const RegularBPlusTreeOptions& options = {})
      : RegularBPlusTree(options) {
    build(space, [&](const Host& host) {
      return Input::from_sorted(name(), host, keys, check);
    });
  }

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values>
  RegularBPlusTree(const Exec& space, SortedTag, const Keys& keys,
                   const Values& values, Check check = Check::on,
                   const RegularBPlusTreeOptions& options = {})
      : RegularBPlusTree(options) {
    build(space, [&](const Host& host) {
      return Input::from_sorted(name(), host, keys, values, check);
    });
  }

  // ---- operations -----------------------------------------------------------

  /// Adds entries, each behind all with an equal key, in the order of the
  /// batch.
  ///
  /// \param space an instance of the device, behind whose earlier work the call
  ///   is ordered; it fences it.
  /// \param keys a View of rank 1 in memory that the host can access.
  /// \param values the same, one per key.
  /// \param options how.
  /// \throws Error if a key is NaN, if there is not one value per key, or if
  ///   options.group_size is 0.
  template <class Exec, class Keys, class Values>
  UpdateReport insert(const Exec& space, const Keys& keys, const Values& values,
                      const UpdateOptions& options = {}) {
    check_values<Values>();
    return change(build::RegularChange::insert, "insert", space, keys, values,
                  options);
  }

  /// Removes all entries with one of the keys.
  ///
  /// \param space, keys, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys>
  UpdateReport erase(const Exec& space, const Keys& keys,
                     const UpdateOptions& options = {}) {
    return change(build::RegularChange::erase, "erase", space, keys, keys,
                  options);
  }

  /// Gives all entries with one of the keys its value; of equal keys in the
  /// batch, the last one wins.
  ///
  /// \param space, keys, values, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  UpdateReport update(const Exec& space, const Keys& keys, const Values& values,
                      const UpdateOptions& options = {}) {
    check_values<Values>();
    return change(build::RegularChange::update, "update", space, keys, values,
                  options);
  }

  // ---- versions -------------------------------------------------------------

  /// The index as it is now, with all verbs, whatever operations do later.
  /// Costs nothing but memory: no node that is replaced while it lives is
  /// written again, be it newer than the snapshot or not.
  Snapshot snapshot() const { return Snapshot(now(), how(), true, division_); }

  /// The same, with `find` and `contains` only: it makes no ranks.
  Snapshot snapshot_for_points() const {
    return Snapshot(now(), how(), false, division_);
  }

  /// The handle for kernels of the host: trivially copyable, non-owning; until
  /// the next operation, where a snapshot's lives as long as it.
  Ref ref() const { return snapshot().ref(); }

  /// The handle of the inner nodes for kernels of the device, as long.
  Router router() const { return snapshot_for_points().router(); }

  /// The number of entries.
  size_type size() const {
    const auto version = now();
    return version == nullptr ? 0 : version->top().size;
  }

  /// Levels of inner nodes; 0: there are no entries.
  int height() const { return snapshot_for_points().height(); }

  /// Bytes of pools, of the newest version and of what is free, on the host and
  /// on the device. Ranks come to it, and, of a hybrid index from the first
  /// batch on that is not synchronised, 4 MiB of staging memory on either side.
  size_type memory_bytes() const {
    return leaf_bytes() + inner_bytes() + device_bytes();
  }
  /// Bytes of leaves and values.
  size_type leaf_bytes() const {
    const auto version = now();
    return version == nullptr ? 0 : version->pools().leaf_bytes();
  }
  /// Bytes of inner nodes, in host memory.
  size_type inner_bytes() const {
    const auto version = now();
    return version == nullptr ? 0 : version->pools().inner_bytes();
  }
  /// Bytes of inner nodes, in device memory.
  size_type device_bytes() const {
    const auto version = now();
    return version == nullptr ? 0 : version->mirror().memory_bytes();
  }

  /// Bytes of the host's for which huge pages were asked, and not refused:
  /// whole ones inside the arrays of pools. 0 where there are none, or with
  /// Pages::ordinary.
  size_type huge_page_bytes() const {
    const auto version = now();
    return version == nullptr ? 0
                              : version->pools().huge_leaf_bytes +
                                    version->pools().huge_inner_bytes;
  }

  /// How nodes are searched on this host, never NodeSearch::automatic.
  NodeSearch node_search() const { return how(); }

  // ---- division of work -----------------------------------------------------

  /// How searches of a hybrid index are divided between host and device; at
  /// first, the host ends them only.
  WorkDivision division() const requires is_hybrid { return division_; }

  /// Sets how searches are divided, of this copy of the index and of snapshots
  /// that it gives later; not while other threads use this copy. Costs what
  /// HybridBPlusTree::set_division says. Where operations leave fewer levels,
  /// the host follows all of them.
  ///
  /// \throws Error if there are less levels than `division.levels`, one more
  ///   for a share above 0, or if the share is not in [0, 1].
  void set_division(const WorkDivision& division) requires is_hybrid {
    query::check_division("kindex::RegularBPlusTree::set_division", division,
                          height());
    division_ = division;
  }

  /// As HybridBPlusTree::balance, of the index as it is now.
  ///
  /// \param space as for all verbs.
  /// \param sample several buckets of queries, in memory that the host can
  ///   access.
  template <class Space, class Queries>
  requires is_hybrid WorkDivision balance(const Space& space,
                                          const Queries& sample) {
    division_ = {};
    auto tried = snapshot();
    if (tried.size() == 0 || sample.extent(0) == 0) return division_;
    division_ = query::measured_division(
        name(), tried.height(), sample.extent(0),
        [&](const WorkDivision& division, const auto& ranks) {
          tried.division_ = division;
          tried.lower_bound(space, sample, ranks);
        });
    return division_;
  }

 private:
  /// What copies of an index share.
  struct State {
    explicit State(const RegularBPlusTreeOptions& given)
        : options(given), editor(given.pages) {}

    const RegularBPlusTreeOptions options;
    std::mutex published;  ///< guards `current`
    std::shared_ptr<const Version> current;
    std::mutex editing;  ///< guards what follows
    Editor editor;
    typename Version::Mirror mirror;  ///< with the newest places
    build::RegularStaging<MemorySpace> staging;
  };

  static RegularBPlusTreeOptions checked(RegularBPlusTreeOptions options) {
    constexpr const char* function = "kindex::RegularBPlusTree";
    if (!is_available(options.node_search))
      impl::fail(function, "options.node_search is ",
                 name_of(options.node_search),
                 ", which this processor does not have");
    if (!(options.fill > 0 && options.fill <= 1))
      impl::fail(function, "options.fill is ", options.fill, ", not in (0, 1]");
    options.node_search = query::chosen_node_search(options.node_search);
    return options;
  }

  std::shared_ptr<const Version> now() const {
    if (state_ == nullptr) return nullptr;  // moved from
    const std::lock_guard<std::mutex> lock(state_->published);
    return state_->current;
  }

  NodeSearch how() const {
    return state_ == nullptr ? query::chosen_node_search()
                             : state_->options.node_search;
  }

  /// \param nodes pools or their copies.
  template <class Nodes>
  static Router router_of(const Version& version, const Nodes& nodes,
                          NodeSearch how) {
    const auto& top = version.top();
    Router router;
    router.inner = nodes.inner.data();
    router.children = nodes.children.data();
    router.last = nodes.last.data();
    router.root = top.root;
    router.last_leaf = top.last_leaf;
    router.height = top.height + 1;
    router.how = how;
    router.fit_guesses(top.size, version.pools().leaves());
    return router;
  }

  /// \param version with entries.
  static Ref ref_of(const Version& version, NodeSearch how, bool has_ranks) {
    const auto& pools = version.pools();
    const auto& top = version.top();
    Ref ref;
    ref.router_ = router_of(version, pools, how);
    ref.keys_ = pools.keys.data();
    ref.values_ = pools.values.data();
    ref.size_ = top.size;
    ref.end_ = size_type{top.last_leaf} * Shape::leaf_keys +
               pools.entries(top.last_leaf);
    if (has_ranks) ref.ranks_ = version.ranks();
    return ref;
  }

  static std::string label(const char* what) {
    return std::string("kindex::RegularBPlusTree::") + what;
  }

  static void publish(State& state, std::shared_ptr<const Version> version) {
    {
      const std::lock_guard<std::mutex> lock(state.published);
      state.current.swap(version);
    }
    // The last reader of the version before may be this one: not under the
    // lock.
  }

  template <class Exec, class Sort>
  void build(const Exec& space, const Sort& sorted) {
    static_assert(
        Kokkos::SpaceAccessibility<Exec, MemorySpace>::accessible,
        "kindex: the index's memory cannot be accessed from the execution "
        "space of the instance given");
    const Host host;
    space.fence(label("earlier_work"));
    const Input input = sorted(host);
    host.fence(label("build"));
    State& state = *state_;
    const build::HostLoop loop(label("build::"), true);
    const auto draft =
        state.editor.build(input.ref(), state.options.fill, loop);
    const auto version =
        std::make_shared<Version>(state.editor.pools(), draft.top);
    if constexpr (is_hybrid) {
      state.mirror.grow(space, version->pools());
      state.mirror.send_first(space, version->pools(), draft.new_leaves.size(),
                              draft.new_inner.size());
      version->set_mirror(state.mirror);
    }
    state.current = version;
  }

  /// Brings new inner nodes to the device; returns how many bytes.
  template <class Exec>
  static size_type send(const Exec& space, State& state, Version& version,
                        const build::RegularDraft& draft,
                        const build::HostLoop& loop, bool one_by_one) {
    if constexpr (is_hybrid) {
      state.mirror.grow(space, version.pools());
      const size_type bytes =
          one_by_one
              ? state.mirror.send_one_by_one(space, version.pools(), draft)
              : state.mirror.send(space, state.staging, version.pools(), draft,
                                  loop);
      version.set_mirror(state.mirror);
      return bytes;
    } else {
      return 0;
    }
  }

  // ---- batches --------------------------------------------------------------

  template <class Values>
  static constexpr void check_values() {
    static_assert(
        std::is_convertible_v<typename Values::non_const_value_type, Value>,
        "kindex: the View's elements are no values of the index");
  }

  /// A batch, or a group of it, sorted.
  struct Sorted {
    Kokkos::View<Key*, Kokkos::HostSpace> keys;
    Kokkos::View<Value*, Kokkos::HostSpace> values;

    Operations operations(build::RegularChange change) const {
      return {change, keys.data(), values.data(), keys.extent(0)};
    }
  };

  template <class Row, class Given>
  static Sorted sorted_by(query::Strided<const Key> keys,
                          query::Strided<const Given> values, bool with_values,
                          const build::HostLoop& loop) {
    using Entry = build::SortEntry<typename KeyTraits<Key>::bits_type, Row>;
    const auto alloc = [&](const char* what) {
      return Kokkos::view_alloc(Kokkos::WithoutInitializing,
                                loop.label() + what);
    };
    constexpr size_type share = 4096;
    const Kokkos::View<Entry*, Kokkos::HostSpace> order(alloc("sort::entries"),
                                                        keys.size);
    loop.in_shares(
        "sort::make_entries", keys.size, share,
        [&](size_type begin, size_type end) {
          for (size_type i = begin; i < end; ++i)
            order(i) = {KeyTraits<Key>::to_bits(keys(i)), static_cast<Row>(i)};
        });
    build::sort_entries_on_host(order.data(), keys.size,
                                loop.is_parallel() ? Host().concurrency() : 1);
    Sorted sorted;
    sorted.keys =
        Kokkos::View<Key*, Kokkos::HostSpace>(alloc("keys"), keys.size);
    if (with_values)
      sorted.values =
          Kokkos::View<Value*, Kokkos::HostSpace>(alloc("values"), keys.size);
    loop.in_shares("sort::take_rows", keys.size, share,
                   [&](size_type begin, size_type end) {
                     for (size_type i = begin; i < end; ++i) {
                       const size_type row = order(i).row;
                       sorted.keys(i) = keys(row);
                       if constexpr (std::is_convertible_v<Given, Value>) {
                         if (with_values)
                           sorted.values(i) = static_cast<Value>(values(row));
                       }
                     }
                   });
    return sorted;
  }

  template <class Given>
  static Sorted sorted_batch(query::Strided<const Key> keys,
                             query::Strided<const Given> values,
                             bool with_values, const build::HostLoop& loop) {
    return keys.size <= ~std::uint32_t{0}
               ? sorted_by<std::uint32_t>(keys, values, with_values, loop)
               : sorted_by<std::uint64_t>(keys, values, with_values, loop);
  }

  template <class Exec, class Keys, class Values>
  UpdateReport change(build::RegularChange what, const char* verb,
                      const Exec& space, const Keys& keys, const Values& values,
                      const UpdateOptions& options) {
    static_assert(
        Kokkos::SpaceAccessibility<Exec, MemorySpace>::accessible,
        "kindex: the index's memory cannot be accessed from the execution "
        "space of the instance given");
    static_assert(std::is_same_v<typename Keys::non_const_value_type, Key>,
                  "kindex: the View's elements are not the index's keys");
    const auto k = query::as_input(query::strided<Host>(keys));
    const auto v = query::as_input(query::strided<Host>(values));
    const std::string function = std::string(name()) + "::" + verb;
    build::check_value_count(function.c_str(), k.size, v.size);
    if (options.group_size == 0)
      impl::fail(("kindex::" + function).c_str(), "options.group_size is 0");
    space.fence(label("earlier_work"));
    build::check_keys(function.c_str(), Host(), k, false);
    if (state_ == nullptr) *this = RegularBPlusTree();  // moved from

    State& state = *state_;
    const std::lock_guard<std::mutex> lock(state.editing);
    const std::string labels = "kindex::" + function + "::";
    UpdateMethod method = options.method;
    if (method == UpdateMethod::automatic && k.size <= most_synchronised &&
        has_readers(state))
      method = UpdateMethod::synchronised;
    return method == UpdateMethod::synchronised
               ? synchronised(state, what, space, k, v, labels,
                              options.group_size)
               : all_at_once(state, what, space, k, v, labels,
                             method != UpdateMethod::asynchronous);
  }

  /// Whether anybody else holds the newest version, or an older one with nodes
  /// that it has, too.
  static bool has_readers(State& state) {
    const std::lock_guard<std::mutex> lock(state.published);
    return is_held(state);
  }

  /// The same where nobody can come, as `published` is held.
  static bool is_held(State& state) {
    state.editor.reclaim();
    const bool is_shared =
        !state.editor.has_one_version() || state.current.use_count() > 1;
    // What the last reader read comes before what is written now.
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_shared;
  }

  /// A version after some operations, not published yet.
  struct Step {
    std::shared_ptr<const Version> before;
    build::RegularDraft draft;
    std::shared_ptr<Version> version;
  };

  static Step step(State& state, std::shared_ptr<const Version> before,
                   const Operations& operations, const build::HostLoop& loop) {
    Editor& editor = state.editor;
    editor.reclaim();
    Step step;
    step.before = std::move(before);
    step.draft = editor.apply(
        step.before == nullptr ? build::RegularTop{} : step.before->top(),
        operations, loop);
    step.draft.report.groups = 1;
    if (!step.draft.is_new) return step;
    try {
      step.version = std::make_shared<Version>(editor.pools(), step.draft.top);
      if (step.before != nullptr)
        editor.retire(step.before->is_in_use(), step.draft);
    } catch (...) {
      editor.roll_back(step.draft, step.before == nullptr
                                       ? typename Editor::Pools()
                                       : step.before->pools());
      throw;
    }
    return step;
  }

  /// Forgets the newest step, which nobody has seen.
  static void undo(State& state, Step& undone) {
    if (undone.version == nullptr) return;
    if (undone.before != nullptr) state.editor.unretire();
    state.editor.roll_back(undone.draft, undone.before == nullptr
                                             ? typename Editor::Pools()
                                             : undone.before->pools());
    undone.version = nullptr;
  }

  template <class Exec, class Given>
  static UpdateReport all_at_once(State& state, build::RegularChange what,
                                  const Exec& space,
                                  query::Strided<const Key> keys,
                                  query::Strided<const Given> values,
                                  const std::string& labels, bool in_place) {
    // A few operations do not pay for waking other threads.
    const build::HostLoop loop(labels, !in_place || keys.size > most_by_one);
    const Sorted sorted =
        sorted_batch(keys, values, what != build::RegularChange::erase, loop);
    const Operations operations = sorted.operations(what);
    if (in_place) {
      build::RegularDraft draft;
      if (changed_in_place(state, space, operations, loop, draft))
        return draft.report;
    }
    return asynchronous(state, space, operations, loop);
  }

  /// Changes the tree where it is, if nobody reads: returns whether that is so.
  template <class Exec>
  static bool changed_in_place(State& state, const Exec& space,
                               const Operations& operations,
                               const build::HostLoop& loop,
                               build::RegularDraft& draft) {
    if (operations.size == 0 || has_readers(state)) return false;
    const std::shared_ptr<const Version>& current = state.current;
    if (current == nullptr || current->top().size == 0) return false;
    const bool changes_nodes =
        operations.change != build::RegularChange::update;
    std::shared_ptr<Version> next;
    // Freed when readers go on.
    std::shared_ptr<const Version> before;
    std::unique_lock<std::mutex> lock(state.published, std::defer_lock);
    const bool is_written = state.editor.apply_in_place(
        draft, current->top(), operations, loop,
        [&](const build::RegularDraft& planned) {
          if (changes_nodes) {
            next = std::make_shared<Version>(state.editor.pools(), planned.top);
            if constexpr (is_hybrid) {
              state.mirror.grow(space, next->pools());
              state.staging.reserve(space);
              next->set_mirror(state.mirror);
            }
          }
          // Readers wait from here on until the tree is whole again.
          lock.lock();
          return !is_held(state);
        });
    if (!is_written) return false;
    draft.report.groups = 1;
    if (next == nullptr) return true;  // no more than values
    next->set_top(draft.top);
    before = std::exchange(state.current, next);
    state.editor.settle(draft);
    if constexpr (is_hybrid)
      draft.report.bytes_to_device =
          next->mirror().send(space, state.staging, next->pools(), draft, loop);
    return true;
  }

  template <class Exec>
  static UpdateReport asynchronous(State& state, const Exec& space,
                                   const Operations& operations,
                                   const build::HostLoop& loop) {
    Step next = step(state, state.current, operations, loop);
    if (next.version != nullptr) {
      try {
        next.draft.report.bytes_to_device =
            send(space, state, *next.version, next.draft, loop, false);
      } catch (...) {
        undo(state, next);
        throw;
      }
      publish(state, std::move(next.version));
    }
    return next.draft.report;
  }

  /// Steps on their way from the thread that changes the tree to the one that
  /// sends nodes and publishes.
  template <class Exec>
  class Synchroniser {
   public:
    /// \param most steps that are handed on.
    Synchroniser(State& state, const Exec& space, size_type most)
        : state_(state), space_(space), loop_(label("send::"), false) {
      steps_.reserve(most);
      if constexpr (is_hybrid) thread_ = std::thread([this] { run(); });
    }
    ~Synchroniser() { settle(); }
    Synchroniser(const Synchroniser&) = delete;
    Synchroniser& operator=(const Synchroniser&) = delete;

    /// Hands on a step; false: sending has failed.
    bool hand_on(std::unique_ptr<Step> step) {
      std::unique_lock<std::mutex> lock(mutex_);
      steps_.push_back(std::move(step));
      if constexpr (is_hybrid) {
        // A few ahead: no more memory than needed to keep both busy.
        constexpr std::size_t ahead = 4;
        changed_.notify_all();
        changed_.wait(lock, [&] {
          return steps_.size() - published_ <= ahead || error_ != nullptr;
        });
        return error_ == nullptr;
      } else {
        publish_next(*steps_.back());
        return true;
      }
    }

    /// Waits until all steps are published, or undoes those that are not and
    /// throws what was thrown. Returns what all did.
    UpdateReport finish() {
      settle();
      if (error_ != nullptr) std::rethrow_exception(error_);
      UpdateReport report;
      for (const auto& step : steps_) report += step->draft.report;
      return report;
    }

   private:
    void settle() {
      if (!thread_.joinable()) return;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_last_ = true;
      }
      changed_.notify_all();
      thread_.join();
      while (steps_.size() > published_) {
        undo(state_, *steps_.back());
        steps_.pop_back();
      }
    }

    void run() {
      std::unique_lock<std::mutex> lock(mutex_);
      for (;;) {
        changed_.wait(lock,
                      [&] { return is_last_ || steps_.size() > published_; });
        if (steps_.size() == published_) return;
        Step& next = *steps_[published_];
        lock.unlock();
        std::exception_ptr error;
        try {
          publish_next(next);
        } catch (...) {
          error = std::current_exception();
        }
        lock.lock();
        if (error != nullptr) {
          error_ = error;
          changed_.notify_all();
          return;
        }
        ++published_;
        changed_.notify_all();
      }
    }

    void publish_next(Step& step) {
      if (step.version != nullptr) {
        step.draft.report.bytes_to_device =
            send(space_, state_, *step.version, step.draft, loop_, true);
        publish(state_, step.version);
      }
      // What is held here is in use.
      step.version = nullptr;
      step.before = nullptr;
      step.draft.new_leaves = {};
      step.draft.new_inner = {};
    }

    State& state_;
    Exec space_;
    build::HostLoop loop_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::unique_ptr<Step>> steps_;
    std::size_t published_ = 0;
    bool is_last_ = false;
    std::exception_ptr error_;
    std::thread thread_;
  };

  template <class Exec, class Given>
  static UpdateReport synchronised(State& state, build::RegularChange what,
                                   const Exec& space,
                                   query::Strided<const Key> keys,
                                   query::Strided<const Given> values,
                                   const std::string& labels,
                                   size_type group_size) {
    const build::HostLoop loop(labels, false);
    Synchroniser<Exec> synchroniser(
        state, space,
        keys.size / group_size + (keys.size % group_size > 0 ? 1 : 0));
    std::shared_ptr<const Version> newest = state.current;
    for (size_type begin = 0; begin < keys.size; begin += group_size) {
      const size_type end = std::min(keys.size, begin + group_size);
      const bool erases = what == build::RegularChange::erase;
      const Sorted sorted = sorted_batch(
          keys.from(begin, end),
          erases ? query::Strided<const Given>{} : values.from(begin, end),
          !erases, loop);
      // All memory first: what has been made must be handed on.
      auto next = std::make_unique<Step>();
      *next = step(state, newest, sorted.operations(what), loop);
      if (next->version != nullptr) newest = next->version;
      if (!synchroniser.hand_on(std::move(next))) break;
    }
    newest = nullptr;
    return synchroniser.finish();
  }

  std::shared_ptr<State> state_;
  WorkDivision division_;  ///< of a hybrid index
};

/// A RegularBPlusTree as it was when it was asked for: shared, counted, with
/// all verbs (see query::BulkQueries), for any number of threads. Nodes that
/// only it has are kept as long as it lives.
template <class Key, class Value, class MemorySpace, class Placement>
class RegularBPlusTree<Key, Value, MemorySpace, Placement>::Snapshot
    : public query::BulkQueries<Snapshot, Key, Value, MemorySpace, Placement> {
 public:
  /// The name that labels and messages carry.
  static constexpr const char* name() { return "RegularBPlusTree"; }

  /// The empty index.
  Snapshot() = default;

  /// The number of entries.
  size_type size() const {
    return version_ == nullptr ? 0 : version_->top().size;
  }

  /// As RegularBPlusTree::height.
  int height() const { return size() == 0 ? 0 : version_->top().height + 1; }

  /// As RegularBPlusTree::memory_bytes.
  size_type memory_bytes() const {
    return version_ == nullptr ? 0
                               : version_->pools().leaf_bytes() +
                                     version_->pools().inner_bytes() +
                                     version_->mirror().memory_bytes();
  }

  /// The handle for kernels of the host: trivially copyable, non-owning.
  Ref ref() const {
    return size() == 0 ? Ref() : ref_of(*version_, how_, has_ranks_);
  }

  /// The handle of the inner nodes for kernels of the device: trivially
  /// copyable, non-owning. For query::BulkQueries.
  Router router() const {
    return size() == 0 ? Router()
                       : router_of(*version_, version_->mirror(), how_);
  }

  /// The host's first levels. For query::BulkQueries.
  query::HybridHead<Router> head() const {
    if (size() == 0) return {};
    WorkDivision division = division_;
    if (division.levels >= height()) division = {height(), 0};
    return {router_of(*version_, version_->pools(), how_), division};
  }

  /// How many inner nodes differ from their copies on the device: none, but for
  /// a bug. Copies all of these to the host.
  template <class Exec>
  size_type nodes_out_of_step(const Exec& space) const {
    if (!is_hybrid || size() == 0) return 0;
    const auto& pools = version_->pools();
    const auto& top = version_->top();
    const auto& mirror = version_->mirror();
    const auto on_host = [&](const auto& array) {
      using T = typename std::decay_t<decltype(array)>::value_type;
      const Kokkos::View<T*, Kokkos::HostSpace> copy(
          Kokkos::view_alloc(Kokkos::WithoutInitializing,
                             label("nodes_out_of_step")),
          array.extent(0));
      Kokkos::deep_copy(space, copy, array);
      return copy;
    };
    const auto last = on_host(mirror.last);
    const auto inner = on_host(mirror.inner);
    const auto children = on_host(mirror.children);
    space.fence(label("nodes_out_of_step"));
    const auto differ = [](const auto& a, const auto& b, size_type node,
                           size_type n) {
      return !std::equal(a.data() + node * n, a.data() + (node + 1) * n,
                         b.data() + node * n);
    };
    size_type wrong = 0;
    std::vector<std::uint32_t> level{top.root};
    for (int height = top.height; height > 0; --height) {
      std::vector<std::uint32_t> below;
      for (const std::uint32_t node : level) {
        wrong += differ(inner, pools.inner, node, Shape::inner_node_keys) ||
                 differ(children, pools.children, node, Shape::fan_out);
        below.insert(below.end(), pools.children_of(node),
                     pools.children_of(node) + pools.child_counts(node));
      }
      level = std::move(below);
    }
    for (const std::uint32_t leaf : level)
      wrong += differ(last, pools.last, leaf, Shape::last_node_keys);
    return wrong;
  }

 private:
  friend class RegularBPlusTree;

  Snapshot(std::shared_ptr<const Version> version, NodeSearch how,
           bool has_ranks, const WorkDivision& division)
      : version_(std::move(version)),
        how_(how),
        has_ranks_(has_ranks),
        division_(division) {}

  std::shared_ptr<const Version> version_;
  NodeSearch how_ = NodeSearch::scalar;
  bool has_ranks_ = true;
  WorkDivision division_;  ///< of a hybrid index
};

/// The handle of a RegularBPlusTree in a kernel of the host: see
/// query::RefVerbs for its verbs.
template <class Key, class Value, class MemorySpace, class Placement>
class RegularBPlusTree<Key, Value, MemorySpace, Placement>::Ref
    : public query::RefVerbs<Ref, Key, Value> {
  static constexpr size_type leaf_keys = Shape::leaf_keys;

 public:
  /// Lanes that read a line together, 16 bytes each.
  static constexpr int lanes = Router::lanes;
  /// The same.
  static constexpr int most_lanes = lanes;
  /// Not on a host.
  static constexpr bool sorting_pays = false;
  /// Positions are places in leaves.
  static constexpr bool is_contiguous = false;
  /// Not on a host.
  KOKKOS_FUNCTION bool partitioning_pays(bool /*finds*/) const { return false; }

  /// A handle of the empty index.
  Ref() = default;

  /// The number of entries.
  KOKKOS_FUNCTION size_type size() const { return size_; }
  /// Behind all positions.
  KOKKOS_FUNCTION size_type no_position() const { return ~size_type{0}; }
  /// The key at `position`.
  KOKKOS_FUNCTION Key key_at(size_type position) const {
    return keys_[position];
  }
  /// The value at `position`.
  KOKKOS_FUNCTION Value value_at(size_type position) const {
    return values_[position];
  }

  /// The rank of the entry at `position`; size() behind the last.
  KOKKOS_FUNCTION size_type rank_of(size_type position) const {
    return position == no_position()
               ? size_
               : ranks_.first_of_leaf[position / leaf_keys] +
                     position % leaf_keys;
  }
  /// The position of the entry of rank `rank`, which is below size().
  KOKKOS_FUNCTION size_type position_of(size_type rank) const {
    const std::uint32_t leaf = leaf_of(rank);
    return ranks_.leaves[leaf] * leaf_keys + (rank - ranks_.firsts[leaf]);
  }

  /// The same, and behind the last position of its leaf.
  KOKKOS_FUNCTION Kokkos::pair<size_type, size_type> positions_from(
      size_type rank) const {
    const std::uint32_t leaf = leaf_of(rank);
    const size_type at = ranks_.leaves[leaf] * leaf_keys;
    const size_type first = ranks_.firsts[leaf];
    return {at + (rank - first), at + (ranks_.firsts[leaf + 1] - first)};
  }

  /// A range is a run of positions per leaf.
  KOKKOS_FUNCTION int runs() const {
    constexpr std::uint32_t most = 0x7fffffff;
    return static_cast<int>(ranks_.count < most ? ranks_.count : most);
  }
  /// Run `i`, in ascending order.
  KOKKOS_FUNCTION Kokkos::pair<size_type, size_type> run(int i, size_type first,
                                                         size_type last) const {
    const size_type leaf =
        size_type{leaf_of(first)} + static_cast<size_type>(i);
    const size_type begin = ranks_.firsts[leaf];
    const size_type end = ranks_.firsts[leaf + 1];
    const size_type at = ranks_.leaves[leaf] * leaf_keys;
    return {at + (first > begin ? first - begin : 0),
            at + (last < end ? last : end) - begin};
  }

  /// The positions of each lane's own keys, which the lanes of a group search
  /// together.
  ///
  /// \tparam finds whether the first equal entry is wanted, or no_position(),
  ///   instead of the lower bound.
  template <bool finds, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search(const Group& group, const Top& /*top*/,
                              const Key (&own)[Own],
                              size_type (&positions)[Own]) const {
    constexpr int W = Own * Group::size;
    if (size_ == 0) {
      for (int o = 0; o < Own; ++o) positions[o] = no_position();
      return;
    }
    Key keys[W];
    size_type line[W];
    query::gather_lanes(group, own, keys);
    router_.descend(group, keys, line, keys_);
    search_lines<finds>(group, own, keys, line, positions);
  }

  /// The same from lines on that a router of the same nodes guesses. See
  /// query::Hybrid.
  template <bool finds, class Group, int Own>
  KOKKOS_FUNCTION void finish(const Group& group, const Key (&own)[Own],
                              size_type (&positions)[Own]) const {
    constexpr int W = Own * Group::size;
    if (size_ == 0) {
      for (int o = 0; o < Own; ++o) positions[o] = no_position();
      return;
    }
    Key keys[W];
    size_type line[W];
    query::gather_lanes(group, own, keys);
    query::gather_lanes(group, positions, line);
    for (int w = 0; w < W; ++w) line[w] = router_.line_of(line[w]);
    if (router_.dropped > 0) {
      size_type leaf[W];
      for (int w = 0; w < W; ++w) leaf[w] = line[w] / Shape::leaf_lines;
      router_.search_last(group, keys, leaf, line, keys_);
    }
    search_lines<finds>(group, own, keys, line, positions);
  }

  /// Has a host fetch what `finish` reads first from a guess; not where there
  /// are no entries.
  KOKKOS_FUNCTION void prefetch(size_type guess) const {
    query::prefetch(keys_ + router_.line_of(guess) * Shape::line_keys);
  }

  /// Nothing is pinned.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    return router_.pinned_size(steps, most);
  }
  /// Not called.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const {
    return router_.pinned_key(i);
  }

 private:
  friend class RegularBPlusTree;

  /// The place of the leaf of a rank among all leaves.
  KOKKOS_FUNCTION std::uint32_t leaf_of(size_type rank) const {
    std::uint32_t leaf = ranks_.blocks[rank / build::RegularRanks<Key>::block];
    while (ranks_.firsts[leaf + 1] <= rank) ++leaf;
    return leaf;
  }

  template <bool finds, class Group, int Own>
  KOKKOS_FUNCTION void search_lines(const Group& group, const Key (&own)[Own],
                                    const Key (&keys)[Own * Group::size],
                                    const size_type (&line)[Own * Group::size],
                                    size_type (&positions)[Own]) const {
    unsigned counts[Own * Group::size];
    router_.count_below_in(group, keys_, keys, line, counts);
    for (int o = 0; o < Own; ++o) {
      const size_type mine = query::own_of(group, &line[o * Group::size]);
      const size_type position = mine * Shape::line_keys +
                                 query::own_of(group, &counts[o * Group::size]);
      // Separators are exact: only above all keys does a search end behind a
      // leaf's entries.
      const bool is_behind =
          mine / Shape::leaf_lines == router_.last_leaf && position >= end_;
      const bool is_there = !is_behind && (!finds || keys_[position] == own[o]);
      positions[o] = is_there ? position : no_position();
    }
  }

  Router router_;
  const Key* keys_ = nullptr;
  const Value* values_ = nullptr;
  size_type size_ = 0;
  size_type end_ = 0;  ///< behind the position of the last entry
  build::RegularRanksRef ranks_;
};

/// \cond
template <class Exec, class Keys>
RegularBPlusTree(const Exec&, const Keys&, const RegularBPlusTreeOptions& = {})
    -> RegularBPlusTree<typename Keys::non_const_value_type, std::uint32_t,
                        typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> RegularBPlusTree(
    const Exec&, const Keys&, const Values&,
    const RegularBPlusTreeOptions& = {})
->RegularBPlusTree<typename Keys::non_const_value_type,
                   typename Values::non_const_value_type,
                   typename Exec::memory_space>;
template <class Exec, class Keys>
RegularBPlusTree(const Exec&, SortedTag, const Keys&, Check = Check::on,
                 const RegularBPlusTreeOptions& = {})
    -> RegularBPlusTree<typename Keys::non_const_value_type, std::uint32_t,
                        typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> RegularBPlusTree(
    const Exec&, SortedTag, const Keys&, const Values&, Check = Check::on,
    const RegularBPlusTreeOptions& = {})
->RegularBPlusTree<typename Keys::non_const_value_type,
                   typename Values::non_const_value_type,
                   typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
