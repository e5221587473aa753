// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_ENTRIES_HPP
#define KINDEX_BUILD_ENTRIES_HPP

/// \file
/// Ascending entries in memory, in either layout, and how they come from the
/// caller's input: what every index over an ascending array begins with.

#include <kindex/build/Check.hpp>
#include <kindex/build/HugePages.hpp>
#include <kindex/build/Sort.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace kindex::build {

/// The alignment of a pair: its size if that is a power of two up to 16 bytes,
/// so that a GPU reads and writes it whole.
template <class Key, class Value>
inline constexpr std::size_t entry_alignment = [] {
  constexpr std::size_t size = sizeof(Key) + sizeof(Value);
  constexpr std::size_t needed = std::max(alignof(Key), alignof(Value));
  return size <= 16 && (size & (size - 1)) == 0 ? std::max(size, needed)
                                                : needed;
}();

/// A key and its value, side by side.
template <class Key, class Value>
struct alignas(entry_alignment<Key, Value>) Entry {
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

  /// Whether a value takes a read of its own.
  KOKKOS_FUNCTION bool has_values_apart() const { return values != nullptr; }
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
  /// Writes the value of entry `i`, where values are stored.
  KOKKOS_FUNCTION void set_value(size_type i, const Value& value) const {
    values[i] = value;
  }
};

/// Each key beside its value.
template <class Key, class Value>
struct EntriesRef<Key, Value, AoS> {
  Entry<Key, Value>* entries = nullptr;  ///< `size` entries
  size_type size = 0;                    ///< number of entries

  /// Whether a value takes a read of its own.
  KOKKOS_FUNCTION bool has_values_apart() const { return false; }
  /// Key of entry `i`.
  KOKKOS_FUNCTION const Key& key(size_type i) const { return entries[i].key; }
  /// Value of entry `i`.
  KOKKOS_FUNCTION Value value(size_type i) const { return entries[i].value; }
  /// Writes entry `i`.
  KOKKOS_FUNCTION void set(size_type i, const Key& key,
                           const Value& value) const {
    entries[i] = {key, value};
  }
  /// Writes the value of entry `i`.
  KOKKOS_FUNCTION void set_value(size_type i, const Value& value) const {
    entries[i].value = value;
  }
};

/// Where the rows of the input stand in ascending order: a permutation of 32-
/// or 64-bit row numbers, or, without one, where they are.
struct RowOrder {
  const std::uint32_t* narrow = nullptr;  ///< row numbers, or null
  const std::uint64_t* wide = nullptr;    ///< row numbers, or null

  /// The order that `rows` says.
  template <class Row, class... Properties>
  static RowOrder of(const Kokkos::View<Row*, Properties...>& rows) {
    if constexpr (sizeof(Row) == 4) {
      return {rows.data(), nullptr};
    } else {
      return {nullptr, rows.data()};
    }
  }

  /// The row of rank `rank`.
  KOKKOS_FUNCTION size_type operator()(size_type rank) const {
    return narrow != nullptr ? narrow[rank]
           : wide != nullptr ? wide[rank]
                             : rank;
  }
};

/// Writes slot i: the entry of rank r = `order.rank_of(i)` comes from row
/// `rows(r)` of the input; behind the last slot, padding repeats it.
///
/// \tparam Given the type of the values given; without any, they are row ids.
template <class Ref, class Key, class Value, class Order, class Given>
struct WriteEntries {
  Ref entries;
  query::Strided<const Key> keys;
  Order order;
  RowOrder rows;
  query::Strided<const Given> values;

  KOKKOS_FUNCTION Value value_of(size_type row) const {
    if constexpr (std::is_integral_v<Value>) {
      if (values.data == nullptr) return static_cast<Value>(row);
    }
    return static_cast<Value>(values(row));
  }

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type last = keys.size - 1;
    const size_type row = rows(order.rank_of(i < last ? i : last));
    entries.set(i, keys(row), value_of(row));
  }
};

/// Writes slot i of `to` as that of `from`; padding repeats the last entry.
template <class Ref>
struct CopySlots {
  Ref from;
  Ref to;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const size_type entry = i < from.size ? i : from.size - 1;
    to.set(i, from.key(entry), from.value(entry));
  }
};

/// The order in which entries are stored unless an index wants another one.
class AscendingOrder {
 public:
  /// Slots that stay free in front of the first entry.
  static constexpr size_type front = 0;
  /// Slots that stay free behind the last entry.
  static constexpr size_type back = 0;
  /// The order of no entries.
  AscendingOrder() = default;
  /// The order of `size` entries.
  explicit AscendingOrder(size_type /*size*/) {}
  /// The rank of the entry in slot `slot`.
  KOKKOS_FUNCTION size_type rank_of(size_type slot) const { return slot; }
};

/// How entries are stored beside their order.
struct StorageForm {
  /// In blocks of `block_size` entries, the last padded with copies of the last
  /// entry.
  StorageForm(size_type block_size = 1, Pages of_host = Pages::ordinary)
      : block(block_size), pages(of_host) {}

  size_type block;  ///< what the number of slots is a multiple of
  Pages pages;      ///< where the memory is a host's
};

/// Entries in memory, owned and counted like a View.
///
/// \tparam Order where an entry of given rank stands: AscendingOrder, or what
///   has its members.
template <class Key, class Value, class MemorySpace, class Layout,
          class Order = AscendingOrder>
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

  /// Shares the entries, as a View does.
  Entries(const Entries&) = default;
  /// Shares the entries, as a View does.
  Entries& operator=(const Entries&) = default;
  /// Takes the entries, and leaves none.
  Entries(Entries&& other) noexcept
      : size_(std::exchange(other.size_, 0)),
        huge_bytes_(std::exchange(other.huge_bytes_, 0)),
        keys_(std::exchange(other.keys_, {})),
        values_(std::exchange(other.values_, {})),
        pairs_(std::exchange(other.pairs_, {})) {}
  /// Takes the entries, and leaves none.
  Entries& operator=(Entries&& other) noexcept {
    const size_type size = std::exchange(other.size_, 0);
    keys_ = std::exchange(other.keys_, {});
    values_ = std::exchange(other.values_, {});
    pairs_ = std::exchange(other.pairs_, {});
    size_ = size;
    huge_bytes_ = std::exchange(other.huge_bytes_, 0);
    return *this;
  }
  ~Entries() = default;

  // For all of them: `name` of the index, for labels and messages; `scratch`,
  // where entries are for one batch, memory for them and for the sort.

  /// Sorts `keys` stably; values are row ids.
  template <class Exec, class Keys>
  static Entries from_unsorted(const char* name, const Exec& space,
                               const Keys& keys, const StorageForm& form = {},
                               Scratch<MemorySpace>* scratch = nullptr) {
    check_row_ids<Value>(name, keys.extent(0));
    return sorted_by_key(name, space, input<Exec>(keys), row_ids(), form,
                         scratch);
  }

  /// Sorts `keys` stably, and `values` with them.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Values>
  static Entries from_unsorted(const char* name, const Exec& space,
                               const Keys& keys, const Values& values,
                               const StorageForm& form = {},
                               Scratch<MemorySpace>* scratch = nullptr) {
    check_value_count(name, keys.extent(0), values.extent(0));
    return sorted_by_key(name, space, input<Exec>(keys),
                         query::as_input(query::strided<Exec>(values)), form,
                         scratch);
  }

  /// Copies ascending `keys`; values are row ids.
  template <class Exec, class Keys>
  static Entries from_sorted(const char* name, const Exec& space,
                             const Keys& keys, Check check,
                             const StorageForm& form = {}) {
    check_row_ids<Value>(name, keys.extent(0));
    const auto k = input<Exec>(keys);
    if (check == Check::on) check_keys(name, space, k, true);
    Entries entries(name, space, k.size, !is_soa, form);
    entries.write(name, space, k, RowOrder{}, row_ids());
    return entries;
  }

  /// Copies ascending `keys` and their values.
  template <class Exec, class Keys, class Values>
  static Entries from_sorted(const char* name, const Exec& space,
                             const Keys& keys, const Values& values,
                             Check check, const StorageForm& form = {}) {
    check_value_count(name, keys.extent(0), values.extent(0));
    const auto k = input<Exec>(keys);
    if (check == Check::on) check_keys(name, space, k, true);
    Entries entries(name, space, k.size, true, form);
    entries.write(name, space, k, RowOrder{},
                  query::as_input(query::strided<Exec>(values)));
    return entries;
  }

  /// The number of entries.
  size_type size() const { return size_; }

  /// The number of entries, with padding, for which there is memory.
  size_type capacity() const {
    const size_type held = is_soa ? keys_.extent(0) : pairs_.extent(0);
    return held == 0 ? 0 : held - Order::front - Order::back;
  }

  /// Slots of `size` entries, with their padding.
  static size_type slots(size_type size, const StorageForm& form) {
    return (size + form.block - 1) / form.block * form.block;
  }

  /// Bytes of the entries and their padding: those held but for free room.
  size_type used_bytes(const StorageForm& form) const {
    const size_type used = slots(size_, form);
    // Row ids that are values are not padded.
    return is_soa ? used * sizeof(Key) +
                        std::min(used, values_.extent(0)) * sizeof(Value)
                  : used * sizeof(Entry<Key, Value>);
  }

  /// Has entries in ascending order stand where they may be edited: in memory
  /// that no copy shares, with their values, and with room for `size` of them,
  /// at least for those that there are. What they are stays. Where that takes
  /// other memory, a kernel of `space` copies them: if there was not enough, to
  /// room for at least `room` entries, otherwise to as much.
  template <class Exec>
  void make_room(const char* name, const Exec& space, size_type size,
                 size_type room, const StorageForm& form) {
    static_assert(std::is_same_v<Order, AscendingOrder>);
    const size_type needed = std::max(size, size_);
    const bool is_full = slots(needed, form) > capacity();
    const bool is_shared =
        is_soa ? keys_.use_count() > 1 || values_.use_count() > 1
               : pairs_.use_count() > 1;
    // Row ids that are values are not padded, or not stored.
    const bool has_values = !is_soa || values_.extent(0) >= capacity();
    if (!is_full && !is_shared && has_values) return;
    *this = copied(name, space, is_full ? std::max(needed, room) : capacity(),
                   true, form);
  }

  /// The same entries in memory of their own, without free room.
  template <class Exec>
  Entries copied(const char* name, const Exec& space,
                 const StorageForm& form) const {
    return copied(name, space, size_, !is_soa || values_.extent(0) > 0, form);
  }

  /// There are `size` entries now, as many as fit, all of them written.
  void resize(size_type size) { size_ = size; }

  /// Bytes held.
  size_type memory_bytes() const {
    return keys_.extent(0) * sizeof(Key) + values_.extent(0) * sizeof(Value) +
           pairs_.extent(0) * sizeof(Entry<Key, Value>);
  }

  /// Bytes for which huge pages were asked, and not refused.
  size_type huge_page_bytes() const { return huge_bytes_; }

  /// The entries as kernels see them.
  Ref ref() const {
    if constexpr (is_soa) {
      return {keys_.data() + front(keys_), values_.data() + front(values_),
              size_};
    } else {
      return {pairs_.data() + front(pairs_), size_};
    }
  }

 private:
  template <class Exec>
  Entries(const char* name, const Exec& space, size_type entries,
          bool with_values, const StorageForm& form,
          Scratch<MemorySpace>* scratch = nullptr)
      : size_(entries) {
    const size_type size =
        entries == 0 ? 0 : Order::front + slots(entries, form) + Order::back;
    const std::string label = std::string("kindex::") + name + "::";
    if constexpr (is_soa) {
      keys_ = temporary<Key>(space, label + "keys", size, scratch);
      if (with_values)
        values_ = temporary<Value>(space, label + "values", size, scratch);
    } else {
      pairs_ =
          temporary<Entry<Key, Value>>(space, label + "entries", size, scratch);
    }
    huge_bytes_ = use_pages(form.pages, keys_) +
                  use_pages(form.pages, values_) +
                  use_pages(form.pages, pairs_);
  }

  template <class Exec>
  Entries copied(const char* name, const Exec& space, size_type room,
                 bool with_values, const StorageForm& form) const {
    static_assert(std::is_same_v<Order, AscendingOrder>);
    Entries copy(name, space, room, with_values, form);
    copy.size_ = size_;
    if (size_ > 0)
      Kokkos::parallel_for(
          std::string("kindex::") + name + "::copy_entries",
          Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(
              space, 0, slots(size_, form)),
          CopySlots<Ref>{ref(), copy.ref()});
    return copy;
  }

  /// Slots in front of the first entry, none where nothing is stored.
  template <class View>
  static size_type front(const View& view) {
    return view.extent(0) == 0 ? 0 : Order::front;
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

  /// Stands for the row numbers where the caller gives no values.
  static query::Strided<const Value> row_ids() { return {}; }

  template <class Exec, class Given>
  void write(const char* name, const Exec& space,
             query::Strided<const Key> keys, const RowOrder& rows,
             query::Strided<const Given> values) const {
    if (keys.size == 0) return;
    Kokkos::parallel_for(
        std::string("kindex::") + name + "::write_entries",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(
            space, 0,
            (is_soa ? keys_.extent(0) : pairs_.extent(0)) - Order::front -
                Order::back),
        WriteEntries<Ref, Key, Value, Order, Given>{
            ref(), keys, Order(keys.size), rows, values});
  }

  template <class Exec, class Given>
  static Entries sorted_by_key(const char* name, const Exec& space,
                               query::Strided<const Key> keys,
                               query::Strided<const Given> values,
                               const StorageForm& form,
                               Scratch<MemorySpace>* scratch) {
    check_keys(name, space, keys, false);
    constexpr size_type most = std::numeric_limits<std::uint32_t>::max();
    return keys.size <= most ? sorted_by_key<std::uint32_t>(
                                   name, space, keys, values, form, scratch)
                             : sorted_by_key<std::uint64_t>(
                                   name, space, keys, values, form, scratch);
  }

  template <class Row, class Exec, class Given>
  static Entries sorted_by_key(const char* name, const Exec& space,
                               query::Strided<const Key> keys,
                               query::Strided<const Given> values,
                               const StorageForm& form,
                               Scratch<MemorySpace>* scratch) {
    if (keys.size == 0) return Entries();
    constexpr bool rows_can_be_values =
        is_soa && std::is_same_v<Order, AscendingOrder> &&
        std::is_same_v<Row, Value> &&
        std::is_same_v<typename Exec::memory_space, MemorySpace>;
    // Not of what would be on other pages.
    constexpr bool is_host = std::is_same_v<MemorySpace, Kokkos::HostSpace>;
    const bool rows_are_values = rows_can_be_values && values.data == nullptr &&
                                 !(is_host && form.pages == Pages::huge);
    const auto rows =
        sort_rows<Row>(std::string("kindex::") + name, space, keys,
                       scratch_in<typename Exec::memory_space>(scratch));
    Entries entries(name, space, keys.size, !rows_are_values, form, scratch);
    entries.write(name, space, keys, RowOrder::of(rows), values);
    if constexpr (rows_can_be_values) {
      if (rows_are_values) entries.values_ = rows;
    }
    return entries;
  }

  size_type size_ = 0;
  size_type huge_bytes_ = 0;
  Kokkos::View<Key*, MemorySpace> keys_;
  Kokkos::View<Value*, MemorySpace> values_;
  Kokkos::View<Entry<Key, Value>*, MemorySpace> pairs_;
};

}  // namespace kindex::build

#endif
