// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_EDITENTRIES_HPP
#define KINDEX_BUILD_EDITENTRIES_HPP

/// \file
/// Ascending entries from earlier ones and a sorted batch of changes.

#include <kindex/build/Entries.hpp>

#include <algorithm>
#include <string>

namespace kindex::build {

/// The first of `low`...`high` for which `is_true(i)` is false, or `high`, if
/// it is true for all before.
template <class IsTrue>
KOKKOS_INLINE_FUNCTION size_type count_true(size_type low, size_type high,
                                            const IsTrue& is_true) {
  while (low < high) {
    const size_type middle = low + (high - low) / 2;
    if (is_true(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Counts the changes up to every `step`-th new entry, so that those between
/// need not search all of them.
struct CountChanges {
  static constexpr size_type step = 1024;
  const size_type* starts;
  size_type changes;
  size_type* counts;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    counts[i] = count_true(0, changes,
                           [&](size_type j) { return starts[j] <= i * step; });
  }
};

/// Where new entries come from: changes ascend by the new position from which
/// on they count.
struct ChangePlan {
  const size_type* starts;
  size_type changes;
  const size_type* counts;  ///< by CountChanges

  /// The number of changes up to new entry `i`.
  KOKKOS_FUNCTION size_type before(size_type i) const {
    const size_type low = counts[i / CountChanges::step];
    const size_type high = counts[i / CountChanges::step + 1];
    return count_true(low, high, [&](size_type j) { return starts[j] <= i; });
  }
};

/// Turns the upper bounds of a batch into where its entries will be.
struct StartInsertions {
  size_type* starts;
  KOKKOS_FUNCTION void operator()(size_type j) const { starts[j] += j; }
};

/// The insertions of a sorted batch, and the memory of their plan.
template <class MemorySpace>
struct PlannedInsertions {
  Kokkos::View<size_type*, MemorySpace> starts;  ///< positions in the end
  Kokkos::View<size_type*, MemorySpace> counts;  ///< by CountChanges
  ChangePlan plan;
};

namespace impl {

/// What changes at the new positions `starts` make of `size` entries; `counts`
/// is their memory.
template <class Exec, class MemorySpace>
ChangePlan plan_changes(const std::string& label, const Exec& space,
                        const Kokkos::View<size_type*, MemorySpace>& starts,
                        size_type size,
                        Kokkos::View<size_type*, MemorySpace>& counts,
                        Scratch<MemorySpace>* scratch) {
  counts = temporary<size_type>(space, label + "::counts",
                                size / CountChanges::step + 2, scratch);
  Kokkos::parallel_for(
      label + "::count_changes",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                              counts.extent(0)),
      CountChanges{starts.data(), starts.extent(0), counts.data()});
  return {starts.data(), starts.extent(0), counts.data()};
}

}  // namespace impl

/// Where the entries of a batch, whose keys ascend, belong in an index: each
/// behind all that are equal. A batch of upper_bound, and two kernels.
///
/// \param label prefix of all labels.
template <class Exec, class Index, class Keys>
auto plan_insertions(const std::string& label, const Exec& space,
                     const Index& index, const Keys& keys,
                     Scratch<typename Keys::memory_space>* scratch = nullptr) {
  using Memory = typename Keys::memory_space;
  PlannedInsertions<Memory> planned;
  const size_type batch = keys.extent(0);
  planned.starts =
      temporary<size_type>(space, label + "::starts", batch, scratch);
  index.upper_bound(space, keys, planned.starts);
  Kokkos::parallel_for(
      label + "::start_insertions",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0, batch),
      StartInsertions{planned.starts.data()});
  planned.plan =
      impl::plan_changes(label, space, planned.starts, index.size() + batch,
                         planned.counts, scratch);
  return planned;
}

/// Entries with a batch among them: the entry of change j is new, and between
/// them come the earlier ones.
template <class Ref, class Batch, class Entry>
struct InsertedEntries {
  Ref earlier;
  Batch batch;
  ChangePlan plan;

  /// New entry `i`, which was at `i` or before.
  KOKKOS_FUNCTION Entry operator()(size_type i) const {
    const size_type before = plan.before(i);
    if (before > 0 && plan.starts[before - 1] == i)
      return {batch.key(before - 1), batch.value(before - 1)};
    return {earlier.key(i - before), earlier.value(i - before)};
  }
};

/// From the bounds of a sorted batch to the entries that it erases: where each
/// gap begins among those that stay, and how many are gone by then.
struct StartErasures {
  const size_type* lower;
  const size_type* upper;
  size_type* starts;
  size_type* gone;

  KOKKOS_FUNCTION void operator()(size_type j, size_type& sum,
                                  bool is_final) const {
    const size_type own = upper[j] - lower[j];
    // Equal keys erase the same entries, once.
    if (j == 0 || upper[j] != upper[j - 1]) sum += own;
    if (!is_final) return;
    starts[j] = lower[j] - (sum - own);
    gone[j] = sum;
  }
};

/// The erasures of a sorted batch, and the memory of their plan.
template <class MemorySpace>
struct PlannedErasures {
  Kokkos::View<size_type*, MemorySpace> lower;  ///< first position of each key
  Kokkos::View<size_type*, MemorySpace> starts, gone;  ///< by StartErasures
  Kokkos::View<size_type*, MemorySpace> counts;        ///< by CountChanges
  ChangePlan plan;                                     ///< if some are erased
  size_type erased = 0;                                ///< entries
};

/// Which entries of an index have one of the ascending `keys`. A batch of
/// equal_range, two kernels, and a fence for the number of entries.
///
/// \param label prefix of all labels.
template <class Exec, class Index, class Keys>
auto plan_erasures(const std::string& label, const Exec& space,
                   const Index& index, const Keys& keys,
                   Scratch<typename Keys::memory_space>* scratch = nullptr) {
  using Memory = typename Keys::memory_space;
  PlannedErasures<Memory> planned;
  const size_type batch = keys.extent(0);
  const auto alloc = [&](const char* what) {
    return temporary<size_type>(space, label + "::" + what, batch, scratch);
  };
  planned.lower = alloc("lower");
  planned.starts = alloc("starts");
  planned.gone = alloc("gone");
  const auto upper = alloc("upper");
  index.equal_range(space, keys, planned.lower, upper);
  Kokkos::parallel_scan(
      label + "::start_erasures",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0, batch),
      StartErasures{planned.lower.data(), upper.data(), planned.starts.data(),
                    planned.gone.data()},
      planned.erased);
  if (planned.erased > 0)
    planned.plan = impl::plan_changes(label, space, planned.starts,
                                      index.size() - planned.erased,
                                      planned.counts, scratch);
  return planned;
}

/// The entries that stay.
template <class Ref, class Entry>
struct KeptEntries {
  Ref earlier;
  ChangePlan plan;
  const size_type* gone;

  /// New entry `i`, which was at `i` or behind.
  KOKKOS_FUNCTION Entry operator()(size_type i) const {
    const size_type before = plan.before(i);
    const size_type from = before > 0 ? i + gone[before - 1] : i;
    return {earlier.key(from), earlier.value(from)};
  }
};

/// Stages the new entries of one piece of the slots while those of another,
/// staged before, are stored.
template <class Ref, class Entry, class Source>
struct EditPiece {
  Ref entries;
  Source source;
  size_type last;         ///< the last new entry, which padding repeats
  Entry* staged;          ///< to be written
  size_type stage_first;  ///< of the slots staged
  size_type stage_end;
  const Entry* ready;     ///< to be read
  size_type store_first;  ///< of the slots stored
  size_type store_end;

  KOKKOS_FUNCTION void operator()(size_type j) const {
    const size_type unchanged = source.plan.starts[0];
    const size_type in = stage_first + j;
    if (in < stage_end && in >= unchanged)
      staged[j] = source(in < last ? in : last);
    const size_type out = store_first + j;
    if (out < store_end && out >= unchanged)
      entries.set(out, ready[j].key, ready[j].value);
  }
};

/// Edits ascending entries where they are: writes slots [0, slots) with what
/// `source` says of `size` > 0 new entries, in pieces that stay in a cache
/// between being read and being written.
///
/// \tparam Source whose entries come all from the same place or before, or all
///   from there or behind, as `descending` says.
/// \param staged two pieces of at least `piece` entries.
/// \param piece a multiple of the block that padding fills.
template <class Exec, class Ref, class Source, class Entry>
void edit_entries(const std::string& label, const Exec& space,
                  const Ref& entries, const Source& source, size_type size,
                  size_type slots, bool descending, Entry* staged,
                  size_type piece) {
  const size_type pieces = (slots + piece - 1) / piece;
  // Where everything moves towards the end, the last comes first, so that
  // nothing is overwritten before it is staged.
  const auto first = [&](size_type p) {
    return (descending ? pieces - 1 - p : p) * piece;
  };
  const auto end = [&](size_type p) {
    return std::min(first(p) + piece, slots);
  };
  for (size_type p = 0; p <= pieces; ++p) {
    EditPiece<Ref, Entry, Source> kernel{entries,
                                         source,
                                         size - 1,
                                         staged + p % 2 * piece,
                                         0,
                                         0,
                                         staged + (p + 1) % 2 * piece,
                                         0,
                                         0};
    if (p < pieces) kernel.stage_first = first(p), kernel.stage_end = end(p);
    if (p > 0) kernel.store_first = first(p - 1), kernel.store_end = end(p - 1);
    Kokkos::parallel_for(
        label,
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(
            space, 0,
            std::max(kernel.stage_end - kernel.stage_first,
                     kernel.store_end - kernel.store_first)),
        kernel);
  }
}

/// Writes the values of a sorted batch to the entries with their keys: of equal
/// keys, the last.
template <class Ref, class Batch>
struct UpdateValues {
  Ref entries;
  Batch batch;
  const size_type* lower;
  const size_type* upper;

  KOKKOS_FUNCTION void operator()(size_type j) const {
    if (j + 1 < batch.size && lower[j + 1] == lower[j] &&
        upper[j + 1] == upper[j])
      return;
    for (size_type rank = lower[j]; rank < upper[j]; ++rank)
      entries.set_value(rank, batch.value(j));
  }
};

/// The same for all of a batch whose keys have these bounds.
///
/// \param label prefix of all labels.
template <class Exec, class Ref, class Batch, class Bounds>
void write_values(const std::string& label, const Exec& space,
                  const Ref& entries, const Batch& batch, const Bounds& lower,
                  const Bounds& upper) {
  Kokkos::parallel_for(
      label + "::update_values",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                              batch.size),
      UpdateValues<Ref, Batch>{entries, batch, lower.data(), upper.data()});
}

/// Lists the entries of a sorted batch whose keys an index does not have, of
/// equal keys the last, and where they will be.
template <class Batch>
struct ListAbsent {
  Batch batch;
  const size_type* lower;
  const size_type* upper;
  size_type* places;
  size_type* starts;

  KOKKOS_FUNCTION void operator()(size_type j, size_type& sum,
                                  bool is_final) const {
    if (lower[j] < upper[j] ||
        (j + 1 < batch.size && !(batch.key(j) < batch.key(j + 1))))
      return;
    if (is_final) {
      places[sum] = j;
      starts[sum] = upper[j] + sum;
    }
    ++sum;
  }
};

/// Some entries of a batch.
template <class Batch>
struct PickedEntries {
  Batch batch;
  const size_type* places;

  KOKKOS_FUNCTION decltype(auto) key(size_type i) const {
    return batch.key(places[i]);
  }
  KOKKOS_FUNCTION auto value(size_type i) const {
    return batch.value(places[i]);
  }
};

/// What becomes of a sorted batch that gives entries their value, and inserts
/// those that are not there; and the memory of its plan.
template <class MemorySpace>
struct PlannedAssignments {
  Kokkos::View<size_type*, MemorySpace> lower, upper;  ///< of all its keys
  Kokkos::View<size_type*, MemorySpace> places;        ///< of entries to insert
  PlannedInsertions<MemorySpace> insertions;
  size_type inserted = 0;  ///< how many these are
};

/// Which entries of a batch an index has. A batch of equal_range, a scan and a
/// fence for the number of those that it has not, and a kernel.
///
/// \param label prefix of all labels.
/// \param keys of the batch, ascending.
/// \param batch the same with values, as kernels see them.
template <class Exec, class Index, class Keys, class Batch>
auto plan_assignments(const std::string& label, const Exec& space,
                      const Index& index, const Keys& keys, const Batch& batch,
                      Scratch<typename Keys::memory_space>* scratch = nullptr) {
  using Memory = typename Keys::memory_space;
  PlannedAssignments<Memory> planned;
  const auto alloc = [&](const char* what) {
    return temporary<size_type>(space, label + "::" + what, keys.extent(0),
                                scratch);
  };
  planned.lower = alloc("lower");
  planned.upper = alloc("upper");
  planned.places = alloc("places");
  const auto starts = alloc("starts");
  index.equal_range(space, keys, planned.lower, planned.upper);
  Kokkos::parallel_scan(
      label + "::list_absent",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                              keys.extent(0)),
      ListAbsent<Batch>{batch, planned.lower.data(), planned.upper.data(),
                        planned.places.data(), starts.data()},
      planned.inserted);
  planned.insertions.starts = Kokkos::subview(
      starts, Kokkos::pair<size_type, size_type>(0, planned.inserted));
  if (planned.inserted > 0)
    planned.insertions.plan = impl::plan_changes(
        label, space, planned.insertions.starts,
        index.size() + planned.inserted, planned.insertions.counts, scratch);
  return planned;
}

/// Gives the entries of an index that have one of the ascending `keys` the
/// values of a batch: of equal keys, the last. A batch of equal_range, and a
/// kernel.
///
/// \param label prefix of all labels.
/// \param entries of the index, as kernels see them.
/// \param batch those whose keys these are.
template <class Exec, class Index, class Keys, class Ref, class Batch>
void update_values(const std::string& label, const Exec& space,
                   const Index& index, const Keys& keys, const Ref& entries,
                   const Batch& batch,
                   Scratch<typename Keys::memory_space>* scratch = nullptr) {
  const size_type size = keys.extent(0);
  const auto lower =
      temporary<size_type>(space, label + "::lower", size, scratch);
  const auto upper =
      temporary<size_type>(space, label + "::upper", size, scratch);
  index.equal_range(space, keys, lower, upper);
  write_values(label, space, entries, batch, lower, upper);
}

}  // namespace kindex::build

#endif
