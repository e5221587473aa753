// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_EDITENTRIES_HPP
#define KINDEX_BUILD_EDITENTRIES_HPP

/// \file
/// Ascending entries from earlier ones and a sorted batch of changes.

#include <kindex/build/Entries.hpp>

namespace kindex::build {

/// The number of ascending `starts` not above `at`, which is from `low` to
/// `high`.
KOKKOS_INLINE_FUNCTION size_type count_starts(const size_type* starts,
                                              size_type at, size_type low,
                                              size_type high) {
  while (low < high) {
    const size_type middle = low + (high - low) / 2;
    if (starts[middle] <= at) {
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
    counts[i] = count_starts(starts, i * step, 0, changes);
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
    return count_starts(starts, i, low, high);
  }
};

/// Turns the upper bounds of a batch into where its entries will be.
struct StartInsertions {
  size_type* starts;
  KOKKOS_FUNCTION void operator()(size_type j) const { starts[j] += j; }
};

/// Writes entries with a batch among them: the entry of change j is new, and
/// between them come the earlier ones.
template <class Ref, class Batch, class Key, class Value>
struct MergeEntries {
  Ref ref;
  Batch batch;
  ChangePlan plan;
  Key* keys;
  Value* values;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type before = plan.before(i);
    if (before > 0 && plan.starts[before - 1] == i) {
      keys[i] = batch.key(before - 1);
      values[i] = batch.value(before - 1);
    } else {
      keys[i] = ref.key_at(i - before);
      values[i] = ref.value_at(i - before);
    }
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

/// Writes the entries that stay.
template <class Ref, class Key, class Value>
struct KeepEntries {
  Ref ref;
  ChangePlan plan;
  const size_type* gone;
  Key* keys;
  Value* values;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type before = plan.before(i);
    const size_type from = before > 0 ? i + gone[before - 1] : i;
    keys[i] = ref.key_at(from);
    values[i] = ref.value_at(from);
  }
};

/// Writes all entries.
template <class Ref, class Key, class Value>
struct CopyEntries {
  Ref ref;
  Key* keys;
  Value* values;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    keys[i] = ref.key_at(i);
    values[i] = ref.value_at(i);
  }
};

/// Writes the values of a sorted batch to the entries with their keys: of equal
/// keys, the last.
template <class Batch, class Value>
struct UpdateValues {
  Batch batch;
  const size_type* lower;
  const size_type* upper;
  Value* values;

  KOKKOS_FUNCTION void operator()(size_type j) const {
    if (j + 1 < batch.size && lower[j + 1] == lower[j] &&
        upper[j + 1] == upper[j])
      return;
    for (size_type rank = lower[j]; rank < upper[j]; ++rank)
      values[rank] = batch.value(j);
  }
};

}  // namespace kindex::build

#endif
