// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_SORTEDARRAY_HPP
#define KINDEX_SORTEDARRAY_HPP

/// \file
/// Ascending keys and binary search: the smallest index.

#include <kindex/build/Entries.hpp>
#include <kindex/query/AscendingRef.hpp>
#include <kindex/query/BulkQueries.hpp>

namespace kindex {

/// Keys in ascending order, searched by halving: no memory beside the keys and
/// values, the cheapest build, and the fewest surprises. Duplicates keep the
/// order of the input.
///
/// The search is a binary search on an offset (Knuth, The Art of Computer
/// Programming 3, 6.2.1, "uniform binary search", 1973; on GPUs: Henneberg and
/// Schuhknecht, "Is Binary Search Really All You Need?", 2025): the window's
/// length is the same for all lookups at each step and only its offset
/// depends on the key, so that lookups neither branch nor diverge, and several
/// of them overlap their loads.
///
/// A lookup reads one key per halving, about log2(n) of which the last few
/// share a cache line: from memory it costs one 32-byte sector for each level
/// beyond those that the caches hold, and one more for the value.
///
/// Copies are shallow and counted, like those of Views.
///
/// \tparam Key see is_key_v.
/// \tparam Value what a key maps to: any trivially copyable type. Default: the
///   row id, the position in the caller's input, of 32 bits.
/// \tparam MemorySpace where the index lives.
/// \tparam Layout SoA or AoS.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA>
class SortedArray
    : public query::BulkQueries<SortedArray<Key, Value, MemorySpace, Layout>,
                                Key, Value, MemorySpace> {
  using Storage = build::Entries<Key, Value, MemorySpace, Layout>;

 public:
  class Ref;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "SortedArray"; }

  /// The empty index.
  SortedArray() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// Sorts (see build::sort_rows for its memory) and gathers. Ordered on
  /// `space`; fences it to report NaN, and where a host sorts.
  ///
  /// \param space the instance on which the index is built.
  /// \param keys n keys: a rank-1 View of any layout that `space` can access.
  /// \throws Error for NaN, naming the position of the first, and for more
  ///   rows than `Value` can number.
  template <class Exec, class Keys>
  SortedArray(const Exec& space, const Keys& keys)
      : entries_(Storage::from_unsorted(name(), space, keys)) {}

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys as above.
  /// \param values n values, in the order of the keys.
  /// \throws Error for NaN, or if there is not one value per key.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> SortedArray(
      const Exec& space, const Keys& keys, const Values& values)
      : entries_(Storage::from_unsorted(name(), space, keys, values)) {}

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store: the position is the answer.
  ///
  /// Copies the keys in one kernel, after one that checks them, whose result
  /// fences `space`; with Check::off there is no fence.
  ///
  /// \param space, keys as above.
  /// \param check whether the promise is verified.
  /// \throws Error naming the position and the value of the first key below its
  ///   predecessor, or of the first NaN; and for more rows than `Value` can
  ///   number.
  template <class Exec, class Keys>
  SortedArray(const Exec& space, SortedTag, const Keys& keys,
              Check check = Check::on)
      : entries_(Storage::from_sorted(name(), space, keys, check)) {}

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check as above.
  /// \throws Error as above, or if there is not one value per key.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> SortedArray(
      const Exec& space, SortedTag, const Keys& keys, const Values& values,
      Check check = Check::on)
      : entries_(Storage::from_sorted(name(), space, keys, values, check)) {}

  /// The number of entries.
  size_type size() const { return entries_.size(); }

  /// Bytes that the index holds: n·sizeof(Key), and n·sizeof(Value) where
  /// values are stored (AoS: n times the padded pair).
  size_type memory_bytes() const { return entries_.memory_bytes(); }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const { return Ref(entries_.ref()); }

 private:
  Storage entries_;
};

/// The handle of a SortedArray in a kernel: see query::RefVerbs for its verbs.
template <class Key, class Value, class MemorySpace, class Layout>
class SortedArray<Key, Value, MemorySpace, Layout>::Ref
    : public query::AscendingRef<Ref, Key, Value, Layout> {
  using Base = query::AscendingRef<Ref, Key, Value, Layout>;

 public:
  using Base::key_at;
  using Base::size;

  /// Each lookup reads one key at a time: nothing to share among lanes.
  static constexpr int lanes = 1;
  /// The same.
  static constexpr int most_lanes = 1;
  /// On a GPU, large batches are faster if teams sort their lookups.
  static constexpr bool sorting_pays = true;
  /// Whether partitions gain where they can.
  KOKKOS_FUNCTION bool partitioning_pays(bool /*finds*/) const { return true; }

  /// A handle of the empty index.
  Ref() = default;

  /// A handle of `entries`, which ascend by key.
  KOKKOS_FUNCTION explicit Ref(const typename Storage::Ref& entries)
      : Base(entries) {}

  /// The positions of W keys; their loads overlap.
  ///
  /// \tparam finds whether the first equal entry is wanted, or size(), instead
  ///   of the lower bound.
  template <bool finds, class Group, class Top, int W>
  KOKKOS_FUNCTION void search(const Group&, const Top& top,
                              const Key (&keys)[W],
                              size_type (&positions)[W]) const {
    if (size() < (size_type{1} << 31)) {
      search_with<finds, std::uint32_t>(top, keys, positions);
    } else {
      search_with<finds, size_type>(top, keys, positions);
    }
  }

  /// How many keys are pinned for `steps` steps of the search (−1: all), at
  /// most `most`.
  KOKKOS_FUNCTION size_type pinned_size(int steps, size_type most) const {
    int halvings = 0;
    for (size_type length = size(); length > 1; length -= length / 2)
      ++halvings;
    const int pinned = steps < 0 || steps > halvings ? halvings : steps;
    return query::pinned_nodes<2>(pinned, ~size_type{0} / 4, most);
  }

  /// Key i of the search order: the 2^s keys that step s may compare with stand
  /// one after the other, in order, behind those of the steps before.
  KOKKOS_FUNCTION Key pinned_key(size_type i) const {
    int step = 0;
    while ((i + 1) >> (step + 1) != 0) ++step;
    size_type offset = 0;
    size_type length = size();
    for (int bit = step - 1; bit >= 0; --bit) {
      const size_type half = length / 2;
      offset += ((i + 1) >> bit) % 2 * half;
      length -= half;
    }
    return key_at(offset + length / 2 - 1);
  }

 private:
  template <bool finds, class Offset, class Top, int W>
  KOKKOS_FUNCTION void search_with(const Top& top, const Key (&keys)[W],
                                   size_type (&positions)[W]) const {
    Offset offset[W];
    for (int w = 0; w < W; ++w) offset[w] = 0;
    if (size() > 0) {
      // The lower bound is in [offset, offset + length].
      auto length = static_cast<Offset>(size());
      if constexpr (Top::is_pinned) {
        Offset path[W];  // the comparisons so far, a bit each
        for (int w = 0; w < W; ++w) path[w] = 0;
        for (Offset first = 0; top.holds(first, 1) && length > 1;
             first = 2 * first + 1) {
          const Offset half = length / 2;
          for (int w = 0; w < W; ++w) {
            const Key key = top.holds(first + path[w], 1)
                                ? top.first[first + path[w]]
                                : key_at(offset[w] + half - 1);
            const bool below = key < keys[w];
            offset[w] += below ? half : 0;
            path[w] = 2 * path[w] + (below ? 1 : 0);
          }
          length -= half;
        }
      }
      while (length > 1) {
        const Offset half = length / 2;
        for (int w = 0; w < W; ++w) {
          const bool below = key_at(offset[w] + half - 1) < keys[w];
          offset[w] += below ? half : 0;
        }
        length -= half;
      }
      for (int w = 0; w < W; ++w)
        offset[w] += key_at(offset[w]) < keys[w] ? 1 : 0;
    }
    for (int w = 0; w < W; ++w)
      positions[w] = finds ? this->if_equal(offset[w], keys[w]) : offset[w];
  }
};

/// \cond
template <class Exec, class Keys>
SortedArray(const Exec&, const Keys&)
    -> SortedArray<typename Keys::non_const_value_type, std::uint32_t,
                   typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
SortedArray(const Exec&, const Keys&, const Values&)
    -> SortedArray<typename Keys::non_const_value_type,
                   typename Values::non_const_value_type,
                   typename Exec::memory_space>;
template <class Exec, class Keys>
SortedArray(const Exec&, SortedTag, const Keys&, Check = Check::on)
    -> SortedArray<typename Keys::non_const_value_type, std::uint32_t,
                   typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> SortedArray(const Exec&, SortedTag,
                                               const Keys&, const Values&,
                                               Check = Check::on)
->SortedArray<typename Keys::non_const_value_type,
              typename Values::non_const_value_type,
              typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
