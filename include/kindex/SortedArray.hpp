// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_SORTEDARRAY_HPP
#define KINDEX_SORTEDARRAY_HPP

/// \file
/// Ascending keys and binary search: the smallest index.

#include <kindex/build/Entries.hpp>
#include <kindex/query/BulkQueries.hpp>
#include <kindex/query/RefVerbs.hpp>

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
    : public query::RefVerbs<Ref, Key, Value> {
 public:
  /// Positions are ranks.
  static constexpr bool is_contiguous = true;
  /// Each lookup reads one key at a time: nothing to share among lanes.
  static constexpr int lanes = 1;

  /// A handle of the empty index.
  Ref() = default;

  /// A handle of `entries`, which ascend by key.
  KOKKOS_FUNCTION explicit Ref(const typename Storage::Ref& entries)
      : entries_(entries) {}

  /// The number of entries.
  KOKKOS_FUNCTION size_type size() const { return entries_.size; }

  /// The lower bounds of W keys; their loads overlap.
  template <bool /*comes_back*/, class Group, int W>
  KOKKOS_FUNCTION void search(const Group&, const Key (&keys)[W],
                              size_type (&positions)[W]) const {
    if (size() < (size_type{1} << 31)) {
      search_with<std::uint32_t>(keys, positions);
    } else {
      search_with<size_type>(keys, positions);
    }
  }

  /// The key at `position`.
  KOKKOS_FUNCTION Key key_at(size_type position) const {
    return entries_.key(position);
  }
  /// The value at `position`.
  KOKKOS_FUNCTION Value value_at(size_type position) const {
    return entries_.value(position);
  }
  /// The identity.
  KOKKOS_FUNCTION size_type rank_of(size_type position) const {
    return position;
  }
  /// The identity.
  KOKKOS_FUNCTION size_type position_of(size_type rank) const { return rank; }

 private:
  template <class Offset, int W>
  KOKKOS_FUNCTION void search_with(const Key (&keys)[W],
                                   size_type (&positions)[W]) const {
    Offset offset[W];
    for (int w = 0; w < W; ++w) offset[w] = 0;
    if (size() > 0) {
      // The lower bound is in [offset, offset + length].
      for (auto length = static_cast<Offset>(size()); length > 1;) {
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
    for (int w = 0; w < W; ++w) positions[w] = offset[w];
  }

  typename Storage::Ref entries_;
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
