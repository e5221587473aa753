// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_HYBRIDLEARNEDINDEX_HPP
#define KINDEX_HYBRIDLEARNEDINDEX_HPP

/// \file
/// Ascending keys in host memory under a model in device memory.

#include <kindex/LearnedIndex.hpp>

#include <utility>

namespace kindex {

/// A LearnedIndex whose keys and values stay in host memory, as many as fit
/// there, while a device holds the model, which is a small part of them: for
/// indexes larger than device memory, and batches that are in host memory.
///
/// Every batch goes through a pipeline (query::HybridPipeline): the host copies
/// a bucket of queries to staging memory, the device predicts where each is,
/// 4 bytes per probe come back, and the host searches outwards from there, as
/// LearnedIndex does, and writes results to the caller's Views. These must be
/// in memory that the host can access, `range` leaves its hits in host memory,
/// and for_each_in_range calls `visit` on the host. Every call is ordered
/// behind earlier work on `space`, which it fences, and returns when the
/// results are there; HostBatches in the place of `space` control buckets and
/// memory. More in query::BulkQueries.
///
/// Cost per point query: its bytes to the device, 4 bytes back, a search of
/// the model there, and on the host mostly one or two lines of keys (and one of
/// values), of which each thread has those of 32 queries in flight while it
/// fetches the first ones of the next 32.
///
/// The division of work is that of Shahvarani and Jacobsen, "A Hybrid B+-tree
/// as Solution for In-Memory Indexing on CPU-GPU Heterogeneous Computing
/// Platforms", SIGMOD 2016; the model, of LearnedIndex.
///
/// \tparam Key, Value, Layout as for SortedArray.
/// \tparam MemorySpace memory of the device, where the model is. The host's:
///   everything as above with the host as the device, which is of use for
///   tests only.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA>
class HybridLearnedIndex
    : public query::BulkQueries<
          HybridLearnedIndex<Key, Value, MemorySpace, Layout>, Key, Value,
          MemorySpace, query::Hybrid> {
  using HostIndex = LearnedIndex<Key, Value, Kokkos::HostSpace, Layout>;
  using Model = build::SegmentModel<Key, MemorySpace>;

 public:
  /// The handle for the host's kernels: that of a LearnedIndex there.
  using Ref = typename HostIndex::Ref;
  /// The handle of the model for the device's kernels.
  using Router = typename Model::Router;

  /// The name that labels of queries carry. Those of builds, and messages of
  /// what a build refuses, name LearnedIndex.
  static constexpr const char* name() { return "HybridLearnedIndex"; }

  /// The empty index.
  HybridLearnedIndex() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// Fences `space`, so that earlier work may write keys and values, builds a
  /// LearnedIndex on the host with all of its threads, copies the model to the
  /// device and fences `space` again. Strategy::automatic is decided by what is
  /// faster on the host: where that is not so on the device, options must say
  /// it.
  ///
  /// \param space an instance of the device, which can access MemorySpace.
  /// \param keys a View of rank 1 in memory that the host can access.
  /// \param options as for LearnedIndex, but `epsilon` without a value is half
  ///   of the entries in 64 bytes: a host pays for every line that it reads.
  /// \throws Error as LearnedIndex.
  template <class Exec, class Keys>
  HybridLearnedIndex(const Exec& space, const Keys& keys,
                     const LearnedIndexOptions& options = {})
      : index_(on_host(space, chosen(options), keys)),
        model_(model_for(space)) {}

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, options as above.
  /// \param values a View of rank 1 in memory that the host can access, one per
  ///   key.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values>
  HybridLearnedIndex(const Exec& space, const Keys& keys, const Values& values,
                     const LearnedIndexOptions& options = {})
      : index_(on_host(space, chosen(options), keys, values)),
        model_(model_for(space)) {}

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store.
  ///
  /// \param space, keys, options as above.
  /// \param check whether it is checked that keys ascend.
  /// \throws Error as above.
  template <class Exec, class Keys>
  HybridLearnedIndex(const Exec& space, SortedTag, const Keys& keys,
                     Check check = Check::on,
                     const LearnedIndexOptions& options = {})
      : index_(on_host(space, chosen(options), sorted, keys, check)),
        model_(model_for(space)) {}

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values>
  HybridLearnedIndex(const Exec& space, SortedTag, const Keys& keys,
                     const Values& values, Check check = Check::on,
                     const LearnedIndexOptions& options = {})
      : index_(on_host(space, chosen(options), sorted, keys, values, check)),
        model_(model_for(space)) {}

  /// The number of entries.
  size_type size() const { return index_.size(); }

  /// Bytes that the index holds on the host, which keeps the model, too, and on
  /// the device.
  size_type memory_bytes() const {
    constexpr bool is_shared = std::is_same_v<MemorySpace, Kokkos::HostSpace>;
    return index_.memory_bytes() + (is_shared ? 0 : model_bytes());
  }

  /// Bytes of keys and values, in host memory.
  size_type data_bytes() const { return index_.data_bytes(); }

  /// Bytes of segments, levels and table, in device memory.
  size_type model_bytes() const { return model_.memory_bytes(); }

  /// Segments of the lowest level.
  size_type segments() const { return index_.segments(); }

  /// Levels of segments; 0 for no entries.
  int height() const { return index_.height(); }

  /// The most ranks by which a segment misses a key's.
  size_type epsilon() const { return index_.epsilon(); }

  /// How segments are found.
  Strategy strategy() const { return index_.strategy(); }

  /// The handle for kernels of the host: trivially copyable, non-owning.
  Ref ref() const { return index_.ref(); }

  /// The handle of the model for kernels of the device: trivially copyable,
  /// non-owning. For query::BulkQueries.
  Router router() const { return model_.router(); }

 private:
  static LearnedIndexOptions chosen(LearnedIndexOptions options) {
    if (!options.epsilon)
      options.epsilon = std::max<size_type>(HostIndex::line_entries / 2, 1);
    return options;
  }

  template <class Exec, class... Arguments>
  static HostIndex on_host(const Exec& space,
                           const LearnedIndexOptions& options,
                           const Arguments&... arguments) {
    return query::built_on_host<HostIndex, MemorySpace>(name(), space,
                                                        arguments..., options);
  }

  template <class Exec>
  Model model_for(const Exec& space) const {
    Model model = index_.model_.template copy_to<MemorySpace>(space);
    space.fence("kindex::HybridLearnedIndex::copy_model");
    return model;
  }

  HostIndex index_;
  Model model_;
};

/// \cond
template <class Exec, class Keys>
HybridLearnedIndex(const Exec&, const Keys&, const LearnedIndexOptions& = {})
    -> HybridLearnedIndex<typename Keys::non_const_value_type, std::uint32_t,
                          typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> HybridLearnedIndex(
    const Exec&, const Keys&, const Values&, const LearnedIndexOptions& = {})
->HybridLearnedIndex<typename Keys::non_const_value_type,
                     typename Values::non_const_value_type,
                     typename Exec::memory_space>;
template <class Exec, class Keys>
HybridLearnedIndex(const Exec&, SortedTag, const Keys&, Check = Check::on,
                   const LearnedIndexOptions& = {})
    -> HybridLearnedIndex<typename Keys::non_const_value_type, std::uint32_t,
                          typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> HybridLearnedIndex(
    const Exec&, SortedTag, const Keys&, const Values&, Check = Check::on,
    const LearnedIndexOptions& = {})
->HybridLearnedIndex<typename Keys::non_const_value_type,
                     typename Values::non_const_value_type,
                     typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
