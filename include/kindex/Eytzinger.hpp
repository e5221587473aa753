// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_EYTZINGER_HPP
#define KINDEX_EYTZINGER_HPP

/// \file
/// Keys in K-ary level order: a search tree without a byte beside its keys.

#include <kindex/build/Entries.hpp>
#include <kindex/build/EytzingerShape.hpp>
#include <kindex/query/BulkQueries.hpp>
#include <kindex/query/Node.hpp>
#include <kindex/query/RefVerbs.hpp>

namespace kindex {

/// Keys in K-ary level order (for K = 2 the order of Eytzinger's genealogy,
/// 1590; Khuong and Morin, "Array layouts for comparison-based searching",
/// 2017; K-ary: Schlegel, Gemulla and Lehner, "k-ary search on modern
/// processors", 2009): the top of the tree is one dense block that caches
/// keep, and a node's K−1 keys are loaded together. No memory per key beside
/// keys and values but one slot, with K = 2 in front, so that siblings share a
/// cache line. Duplicates keep the order of the input.
///
/// A lookup reads one node per level, log_K(n) of them, in loads of 16 bytes;
/// on a GPU a group of lanes reads it together. Where lanes work alone and keys
/// are unique, it stops early at a hit in an inner node.
///
/// Built out of place in parallel: one load and one store per slot, by the
/// closed form of build::EytzingerShape.
///
/// \tparam Key, Value, MemorySpace, Layout as for SortedArray.
/// \tparam K children of a node, at least 2. Default: nodes of 64 bytes.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA, int K = 64 / int(sizeof(Key)) + 1>
class Eytzinger
    : public query::BulkQueries<Eytzinger<Key, Value, MemorySpace, Layout, K>,
                                Key, Value, MemorySpace> {
  static_assert(K >= 2, "kindex: a node has at least two children");

  using Shape = build::EytzingerShape<K>;
  using Storage = build::Entries<Key, Value, MemorySpace, Layout, Shape>;

 public:
  class Ref;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "Eytzinger"; }

  /// The empty index.
  Eytzinger() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// \param space, keys as for SortedArray.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys>
  Eytzinger(const Exec& space, const Keys& keys)
      : entries_(Storage::from_unsorted(name(), space, keys)) {
    flag_duplicates(space);
  }

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, values as for SortedArray.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> Eytzinger(
      const Exec& space, const Keys& keys, const Values& values)
      : entries_(Storage::from_unsorted(name(), space, keys, values)) {
    flag_duplicates(space);
  }

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store: they follow from the slot.
  ///
  /// \param space, keys, check as for SortedArray.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys>
  Eytzinger(const Exec& space, SortedTag, const Keys& keys,
            Check check = Check::on)
      : entries_(Storage::from_sorted(name(), space, keys, check)) {
    flag_duplicates(space);
  }

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check as for SortedArray.
  /// \throws Error as SortedArray.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> Eytzinger(
      const Exec& space, SortedTag, const Keys& keys, const Values& values,
      Check check = Check::on)
      : entries_(Storage::from_sorted(name(), space, keys, values, check)) {
    flag_duplicates(space);
  }

  /// The number of entries.
  size_type size() const { return entries_.size(); }

  /// Bytes that the index holds: n·sizeof(Key), n·sizeof(Value) where values
  /// are stored (AoS: n times the padded pair), and one slot for alignment.
  size_type memory_bytes() const { return entries_.memory_bytes(); }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const {
    Ref ref;
    ref.entries_ = entries_.ref();
    ref.shape_ = Shape(size());
    return ref;
  }

 private:
  template <class Exec>
  void flag_duplicates(const Exec& space);

  Storage entries_;
};

/// The handle of an Eytzinger index in a kernel: see query::RefVerbs for its
/// verbs. Positions are slots.
template <class Key, class Value, class MemorySpace, class Layout, int K>
class Eytzinger<Key, Value, MemorySpace, Layout, K>::Ref
    : public query::RefVerbs<Ref, Key, Value> {
  static constexpr int node_keys = K - 1;

 public:
  /// A range is a run of slots per level, not one run.
  static constexpr bool is_contiguous = false;
  /// Lanes that read a node together, 16 bytes each; with values between the
  /// keys, each lane by itself.
  static constexpr int lanes =
      std::is_same_v<Layout, SoA> ? query::node_lanes<Key, node_keys> : 1;
  /// The same with one key each, where that is a power of two up to a warp.
  static constexpr int most_lanes =
      lanes > 1 && node_keys <= 32 ? node_keys : lanes;
  /// Measured on an H100 to lose while the index fits the L2 cache.
  static constexpr bool sorting_pays = false;
  /// Whether partitions gain where they can.
  KOKKOS_FUNCTION bool partitioning_pays(bool /*finds*/) const { return true; }

  /// The number of entries.
  KOKKOS_FUNCTION size_type size() const { return shape_.size(); }

  /// The positions of each lane's own keys, which the lanes of a group search
  /// together.
  ///
  /// \tparam finds whether the first equal entry is wanted, or size(), instead
  ///   of the lower bound.
  template <bool finds, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search(const Group& group, const Top& top,
                              const Key (&keys)[Own],
                              size_type (&positions)[Own]) const {
    if ((size() + K) * K < (size_type{1} << 32)) {
      search_with<finds, std::uint32_t>(group, top, keys, positions);
    } else {
      search_with<finds, size_type>(group, top, keys, positions);
    }
  }

  /// How many keys are pinned for `steps` levels (−1: all), at most `most`, in
  /// whole nodes.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    return query::pinned_nodes<K>(steps, size(), most);
  }

  /// The key in slot i.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const { return key_at(i); }

  /// The key in slot `position`.
  KOKKOS_FUNCTION Key key_at(size_type position) const {
    return entries_.key(position);
  }
  /// The value in slot `position`.
  KOKKOS_FUNCTION Value value_at(size_type position) const {
    if constexpr (std::is_same_v<Layout, SoA> && std::is_integral_v<Value>) {
      if (entries_.values == nullptr)
        return static_cast<Value>(shape_.rank_of(position));
    }
    return entries_.value(position);
  }
  /// The rank of the entry in slot `position`; size() behind the last.
  KOKKOS_FUNCTION size_type rank_of(size_type position) const {
    return position < size() ? shape_.rank_of(position) : size();
  }
  /// The slot of the entry of rank `rank`.
  KOKKOS_FUNCTION size_type position_of(size_type rank) const {
    return shape_.slot_of(rank);
  }
  /// A range is one run of slots per level.
  KOKKOS_FUNCTION int runs() const { return shape_.levels(); }
  /// The slots of the entries of ranks `first` to `last` - 1 in the level with
  /// `i` levels below it.
  KOKKOS_FUNCTION Kokkos::pair<size_type, size_type> run(int i, size_type first,
                                                         size_type last) const {
    return shape_.run(i, first, last);
  }
  /// The value of rank `rank`, which is the rank where none are stored.
  KOKKOS_FUNCTION Value value(size_type rank) const {
    if constexpr (std::is_same_v<Layout, SoA> && std::is_integral_v<Value>) {
      if (entries_.values == nullptr) return static_cast<Value>(rank);
    }
    return value_at(position_of(rank));
  }

 private:
  friend class Eytzinger;

  template <bool finds, class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search_with(const Group& group, const Top& top,
                                   const Key (&own)[Own],
                                   size_type (&positions)[Own]) const {
    constexpr int W = Own * Group::size;
    Key keys[W];
    query::gather_lanes(group, own, keys);
    const auto end = static_cast<Index>(size());
    Index node[W];
    Index best[W];  // the slot of the smallest key met that is not below
    for (int w = 0; w < W; ++w) {
      node[w] = 0;
      best[w] = end;
    }
    const bool stop_at_hits =
        Group::size == 1 && size() > 0 && *duplicates() == 0;
    const int levels = shape_.levels();
    for (int level = 0; level < levels; ++level) {
      unsigned counts[W];
      for (int w = 0; w < W; ++w)
        counts[w] =
            count_in_node(group, top, node[w] * Index(node_keys), end, keys[w]);
      query::sum_counts<node_keys>(group, counts);
      bool all_hit = stop_at_hits;
      for (int w = 0; w < W; ++w) {
        const Index slot = node[w] * Index(node_keys) + Index(counts[w]);
        if (counts[w] < unsigned(node_keys) && slot < end) best[w] = slot;
        node[w] = node[w] * K + 1 + Index(counts[w]);
        // Past the last node: what is left of the way changes nothing.
        if (stop_at_hits)
          all_hit =
              all_hit && best[w] < end && entries_.key(best[w]) == keys[w];
      }
      if (all_hit) break;
    }
    for (int o = 0; o < Own; ++o) {
      const Index slot = query::own_of(group, &best[o * Group::size]);
      positions[o] = finds ? this->if_equal(slot, own[o]) : slot;
    }
  }

  /// This lane's part of the number of keys below `key` in the node from slot
  /// `first`; the last node may be incomplete, and there may be no node.
  template <class Index, class Group, class Top>
  KOKKOS_FUNCTION unsigned count_in_node(const Group& group, const Top& top,
                                         Index first, Index end,
                                         const Key& key) const {
    if constexpr (Top::is_pinned) {
      if (top.holds(first, node_keys))
        return query::count_below(
            query::load_keys<node_keys>(group, top.first, first), key);
    }
    if constexpr (std::is_same_v<Layout, SoA> && K > 2) {
      if (first + Index(node_keys) <= end)
        return query::count_below(
            query::load_keys<node_keys>(group, entries_.keys, first), key);
    }
    unsigned count = 0;
    for (Index i = Index(group.lane()); i < Index(node_keys);
         i += Index(Group::size))
      if (first + i < end) count += entries_.key(first + i) < key ? 1 : 0;
    return count;
  }

  /// Where the spare slot says whether keys repeat: then a hit in an inner node
  /// may not be the first.
  KOKKOS_FUNCTION unsigned char* duplicates() const {
    const auto spare = [&](auto* slots) {
      return reinterpret_cast<unsigned char*>(
          Shape::front > 0 ? slots - 1 : slots + size());
    };
    if constexpr (std::is_same_v<Layout, SoA>) {
      return spare(entries_.keys);
    } else {
      return spare(entries_.entries);
    }
  }

  typename Storage::Ref entries_;
  Shape shape_;
};

template <class Key, class Value, class MemorySpace, class Layout, int K>
template <class Exec>
void Eytzinger<Key, Value, MemorySpace, Layout, K>::flag_duplicates(
    const Exec& space) {
  if (size() == 0) return;
  const Ref handle = ref();
  Kokkos::parallel_reduce(
      "kindex::Eytzinger::flag_duplicates",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0, size()),
      build::FindDuplicates<Ref>{handle},
      Kokkos::LOr<unsigned char, MemorySpace>(
          Kokkos::View<unsigned char, MemorySpace>(handle.duplicates())));
}

/// \cond
template <class Exec, class Keys>
Eytzinger(const Exec&, const Keys&)
    -> Eytzinger<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
Eytzinger(const Exec&, const Keys&, const Values&)
    -> Eytzinger<typename Keys::non_const_value_type,
                 typename Values::non_const_value_type,
                 typename Exec::memory_space>;
template <class Exec, class Keys>
Eytzinger(const Exec&, SortedTag, const Keys&, Check = Check::on)
    -> Eytzinger<typename Keys::non_const_value_type, std::uint32_t,
                 typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> Eytzinger(const Exec&, SortedTag,
                                             const Keys&, const Values&,
                                             Check = Check::on)
->Eytzinger<typename Keys::non_const_value_type,
            typename Values::non_const_value_type, typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
