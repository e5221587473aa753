// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_ENTRIES_HPP
#define KINDEX_BUILD_ENTRIES_HPP

/// \file
/// Ascending entries in memory, in either layout, and how they come from the
/// caller's input: what every index over an ascending array begins with.

#include <kindex/build/Check.hpp>
#include <kindex/build/Sort.hpp>

#include <string>

namespace kindex::build {

/// A key and its value, side by side.
template <class Key, class Value>
struct Entry {
  Key key;      ///< what is searched
  Value value;  ///< what it maps to
};

/// Entries as kernels see them. \tparam Layout SoA or AoS.
template <class Key, class Value, class Layout>
struct EntriesRef;

/// Keys and values apart; without values, the position is the value.
template <class Key, class Value>
struct EntriesRef<Key, Value, SoA> {
  Key* keys = nullptr;      ///< `size` keys
  Value* values = nullptr;  ///< `size` values, or null: positions
  size_type size = 0;       ///< number of entries

  /// Key of entry `i`.
  KOKKOS_FUNCTION const Key& key(size_type i) const { return keys[i]; }
  /// Value of entry `i`.
  KOKKOS_FUNCTION Value value(size_type i) const {
    if constexpr (std::is_integral_v<Value>) {
      if (values == nullptr) return static_cast<Value>(i);
    }
    return values[i];
  }
  /// Writes entry `i`.
  KOKKOS_FUNCTION void set(size_type i, const Key& key,
                           const Value& value) const {
    keys[i] = key;
    if (values != nullptr) values[i] = value;
  }
};

/// Each key beside its value.
template <class Key, class Value>
struct EntriesRef<Key, Value, AoS> {
  Entry<Key, Value>* entries = nullptr;  ///< `size` entries
  size_type size = 0;                    ///< number of entries

  /// Key of entry `i`.
  KOKKOS_FUNCTION const Key& key(size_type i) const { return entries[i].key; }
  /// Value of entry `i`.
  KOKKOS_FUNCTION Value value(size_type i) const { return entries[i].value; }
  /// Writes entry `i`.
  KOKKOS_FUNCTION void set(size_type i, const Key& key,
                           const Value& value) const {
    entries[i] = {key, value};
  }
};

/// Stands for the row number where the caller gives no values.
struct RowIds {
  /// The row number itself.
  KOKKOS_FUNCTION size_type operator()(size_type row) const { return row; }
};

/// Stands for rows that are in order already.
struct InOrder {
  /// The position itself.
  KOKKOS_FUNCTION size_type operator()(size_type i) const { return i; }
};

/// Writes entry i from row `rows(i)` of the input.
template <class Ref, class Key, class Value, class Rows, class Values>
struct WriteEntries {
  Ref entries;
  query::Strided<const Key> keys;
  Rows rows;
  Values values;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const auto row = static_cast<size_type>(rows(i));
    entries.set(i, keys(row), static_cast<Value>(values(row)));
  }
};

/// Ascending entries in memory, owned and counted like a View.
template <class Key, class Value, class MemorySpace, class Layout>
class Entries {
  static_assert(is_key_v<Key>,
                "kindex: a key is an integer of 8 to 64 bits, float, double or "
                "kindex::Key128");
  static_assert(std::is_trivially_copyable_v<Value>,
                "kindex: values are trivially copyable");
  static constexpr bool is_soa = std::is_same_v<Layout, SoA>;
  static_assert(is_soa || std::is_same_v<Layout, AoS>,
                "kindex: a layout is kindex::SoA or kindex::AoS");

 public:
  using Ref = EntriesRef<Key, Value, Layout>;  ///< what kernels see

  /// No entries.
  Entries() = default;

  /// Sorts `keys` stably; values are row ids. \param name of the index.
  template <class Exec, class Keys>
  static Entries from_unsorted(const char* name, const Exec& space,
                               const Keys& keys) {
    check_row_ids<Value>(name, keys.extent(0));
    return sorted_by_key(name, space, input<Exec>(keys), RowIds{});
  }

  /// Sorts `keys` stably, and `values` with them. \param name of the index.
  template <class Exec, class Keys, class Values>
  static Entries from_unsorted(const char* name, const Exec& space,
                               const Keys& keys, const Values& values) {
    check_value_count(name, keys.extent(0), values.extent(0));
    return sorted_by_key(name, space, input<Exec>(keys),
                         query::strided<Exec>(values));
  }

  /// Copies ascending `keys`; values are row ids. \param name of the index.
  template <class Exec, class Keys>
  static Entries from_sorted(const char* name, const Exec& space,
                             const Keys& keys, Check check) {
    check_row_ids<Value>(name, keys.extent(0));
    const auto k = input<Exec>(keys);
    if (check == Check::on) check_keys(name, space, k, true);
    Entries entries(name, space, k.size, !is_soa);
    entries.write(name, space, k, InOrder{}, RowIds{});
    return entries;
  }

  /// Copies ascending `keys` and their values. \param name of the index.
  template <class Exec, class Keys, class Values>
  static Entries from_sorted(const char* name, const Exec& space,
                             const Keys& keys, const Values& values,
                             Check check) {
    check_value_count(name, keys.extent(0), values.extent(0));
    const auto k = input<Exec>(keys);
    if (check == Check::on) check_keys(name, space, k, true);
    Entries entries(name, space, k.size, true);
    entries.write(name, space, k, InOrder{}, query::strided<Exec>(values));
    return entries;
  }

  /// The number of entries.
  size_type size() const { return is_soa ? keys_.extent(0) : pairs_.extent(0); }

  /// Bytes held.
  size_type memory_bytes() const {
    return keys_.extent(0) * sizeof(Key) + values_.extent(0) * sizeof(Value) +
           pairs_.extent(0) * sizeof(Entry<Key, Value>);
  }

  /// The entries as kernels see them.
  Ref ref() const {
    if constexpr (is_soa) {
      return {keys_.data(), values_.data(), keys_.extent(0)};
    } else {
      return {pairs_.data(), pairs_.extent(0)};
    }
  }

 private:
  template <class Exec>
  Entries(const char* name, const Exec& space, size_type size,
          bool with_values) {
    const auto alloc = [&](const char* what) {
      return Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                std::string("kindex::") + name + "::" + what);
    };
    if constexpr (is_soa) {
      keys_ = Kokkos::View<Key*, MemorySpace>(alloc("keys"), size);
      if (with_values)
        values_ = Kokkos::View<Value*, MemorySpace>(alloc("values"), size);
    } else {
      pairs_ =
          Kokkos::View<Entry<Key, Value>*, MemorySpace>(alloc("entries"), size);
    }
  }

  template <class Exec, class Keys>
  static query::Strided<const Key> input(const Keys& keys) {
    static_assert(std::is_same_v<typename Keys::non_const_value_type, Key>,
                  "kindex: the View's elements are not the index's keys");
    static_assert(
        Kokkos::SpaceAccessibility<Exec, MemorySpace>::accessible,
        "kindex: the index's memory cannot be accessed from the execution "
        "space of the instance given");
    const auto k = query::strided<Exec>(keys);
    return {k.data, k.size, k.stride};
  }

  template <class Exec, class Rows, class Values>
  void write(const char* name, const Exec& space,
             query::Strided<const Key> keys, const Rows& rows,
             const Values& values) const {
    if (keys.size == 0) return;
    Kokkos::parallel_for(
        std::string("kindex::") + name + "::write_entries",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                                keys.size),
        WriteEntries<Ref, Key, Value, Rows, Values>{ref(), keys, rows, values});
  }

  template <class Exec, class Values>
  static Entries sorted_by_key(const char* name, const Exec& space,
                               query::Strided<const Key> keys,
                               const Values& values) {
    check_keys(name, space, keys, false);
    constexpr size_type most = std::numeric_limits<std::uint32_t>::max();
    return keys.size <= most
               ? sorted_by_key<std::uint32_t>(name, space, keys, values)
               : sorted_by_key<std::uint64_t>(name, space, keys, values);
  }

  template <class Row, class Exec, class Values>
  static Entries sorted_by_key(const char* name, const Exec& space,
                               query::Strided<const Key> keys,
                               const Values& values) {
    if (keys.size == 0) return Entries();
    constexpr bool rows_are_values =
        is_soa && std::is_same_v<Values, RowIds> && std::is_same_v<Row, Value>;
    const auto rows =
        sort_rows<Row>(std::string("kindex::") + name, space, keys);
    Entries entries(name, space, keys.size, !rows_are_values);
    const query::Strided<const Row> order{rows.data(), keys.size, 1};
    entries.write(name, space, keys, order, values);
    if constexpr (rows_are_values) entries.values_ = rows;
    return entries;
  }

  Kokkos::View<Key*, MemorySpace> keys_;
  Kokkos::View<Value*, MemorySpace> values_;
  Kokkos::View<Entry<Key, Value>*, MemorySpace> pairs_;
};

}  // namespace kindex::build

#endif
