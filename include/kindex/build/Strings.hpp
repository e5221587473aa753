// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_STRINGS_HPP
#define KINDEX_BUILD_STRINGS_HPP

/// \file
/// Byte strings in memory, ascending, and how they come from the caller's.

#include <kindex/Bytes.hpp>
#include <kindex/build/Entries.hpp>
#include <kindex/build/HugePages.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kindex::build {

/// Strings one behind the other, as kernels see them.
struct StringsRef {
  const size_type* offsets = nullptr;    ///< `size` + 1
  const unsigned char* chars = nullptr;  ///< from `offsets[0]` on
  size_type size = 0;                    ///< number of strings

  /// String `i`.
  KOKKOS_FUNCTION Bytes operator()(size_type i) const {
    const size_type begin = offsets[i];
    return {chars + begin, static_cast<std::uint32_t>(offsets[i + 1] - begin),
            Edge::at};
  }
};

/// Copies offsets.
template <class Offset>
struct TakeOffsets {
  query::Strided<const Offset> from;
  size_type* to;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    to[i] = static_cast<size_type>(from(i));
  }
};

/// Flags the first of offsets that are no strings in `chars` chars.
template <class Offset>
struct FindOffsetOffence {
  query::Strided<const Offset> offsets;
  size_type chars;

  KOKKOS_FUNCTION void operator()(size_type i, size_type& first) const {
    const auto offset = static_cast<size_type>(offsets(i));
    constexpr size_type most = (size_type{1} << 31) - 1;
    const bool offends =
        offset > chars ||
        (i > 0 && (offset < static_cast<size_type>(offsets(i - 1)) ||
                   offset - static_cast<size_type>(offsets(i - 1)) > most));
    if (offends && i < first) first = i;
  }
};

/// Throws unless offsets ascend within `chars` bytes. Fences.
template <class Exec, class Offset>
void check_offsets(const std::string& label, const Exec& space,
                   const query::Strided<const Offset>& offsets,
                   size_type chars) {
  constexpr size_type none = std::numeric_limits<size_type>::max();
  size_type at = none;
  Kokkos::parallel_reduce(
      label + "::check_offsets",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                              offsets.size),
      FindOffsetOffence<Offset>{offsets, chars}, Kokkos::Min<size_type>(at));
  if (at == none) return;
  const auto fetch = [&](size_type i) {
    Offset offset{};
    Kokkos::deep_copy(space, Kokkos::View<Offset, Kokkos::HostSpace>(&offset),
                      Kokkos::View<const Offset, typename Exec::memory_space,
                                   Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                          offsets.data + i * offsets.stride));
    space.fence(label + "::check_offsets: the offence");
    // Not as a character.
    using Printed = std::conditional_t<std::is_signed_v<Offset>, std::int64_t,
                                       std::uint64_t>;
    return static_cast<Printed>(offset);
  };
  const auto own = fetch(at);
  if (static_cast<size_type>(own) > chars)
    kindex::impl::fail(label.c_str(), "offsets(", at, ") = ", own,
                       ", but chars has ", chars, " elements");
  const auto before = fetch(at - 1);
  if (own < before)
    kindex::impl::fail(label.c_str(), "offsets(", at, ") = ", own,
                       " is below offsets(", at - 1, ") = ", before);
  kindex::impl::fail(label.c_str(), "string ", at - 1, " has ", own - before,
                     " bytes, more than 2^31 - 1");
}

/// Throws unless the bytes of a string stand one behind the other.
template <class Chars>
void check_stride(const std::string& label, const Chars& chars) {
  if (chars.size > 1 && chars.stride != 1)
    kindex::impl::fail(label.c_str(), "chars has a stride of ", chars.stride,
                       "; the bytes of a string stand one behind the other");
}

/// Flags the first string below its predecessor.
struct FindStringOffence {
  StringsRef strings;

  KOKKOS_FUNCTION void operator()(size_type i, size_type& first) const {
    if (i > 0 && i < first && strings(i) < strings(i - 1)) first = i;
  }
};

/// Seven bytes of a string and how many there are from them on, up to 8: in
/// the order of strings whose bytes before are equal.
KOKKOS_INLINE_FUNCTION std::uint64_t string_chunk(const Bytes& string,
                                                  size_type number) {
  const size_type begin = 7 * number;
  if (begin >= string.size) return 0;
  const size_type left = string.size - begin;
  std::uint64_t chunk = 0;
  for (size_type i = 0; i < 7; ++i)
    chunk = chunk << 8 | (i < left ? string.data[begin + i] : 0);
  return chunk << 8 | (left < 8 ? left : 8);
}

/// Whether a chunk is not the last of its string.
KOKKOS_INLINE_FUNCTION bool chunk_goes_on(std::uint64_t chunk) {
  return (chunk & 255) == 8;
}

/// Writes the first chunks of all strings.
struct TakeFirstChunks {
  StringsRef strings;
  std::uint64_t* chunks;

  KOKKOS_FUNCTION void operator()(size_type i) const {
    chunks[i] = string_chunk(strings(i), 0);
  }
};

/// Numbers the groups of strings whose chunks so far are equal.
template <class Row>
struct NumberGroups {
  StringsRef strings;
  const Row* rows;
  const size_type* before;  ///< groups by the chunks before, or null
  size_type* groups;
  size_type chunk;  ///< the last one so far

  KOKKOS_FUNCTION void operator()(size_type i, size_type& sum,
                                  bool is_final) const {
    const bool begins = i == 0 ||
                        (before != nullptr && before[i] != before[i - 1]) ||
                        string_chunk(strings(rows[i]), chunk) !=
                            string_chunk(strings(rows[i - 1]), chunk);
    sum += begins ? 1 : 0;
    if (is_final) groups[i] = sum;
  }
};

/// Lists the places of strings that chunks so far leave undecided.
template <class Row>
struct ListUndecided {
  StringsRef strings;
  const Row* rows;
  const size_type* groups;
  size_type chunk;
  Row* places;

  KOKKOS_FUNCTION void operator()(size_type i, size_type& sum,
                                  bool is_final) const {
    const bool is_alone = (i == 0 || groups[i - 1] != groups[i]) &&
                          (i + 1 == strings.size || groups[i + 1] != groups[i]);
    if (is_alone || !chunk_goes_on(string_chunk(strings(rows[i]), chunk)))
      return;
    if (is_final) places[sum] = static_cast<Row>(i);
    ++sum;
  }
};

/// Writes what orders the undecided strings, and where they come from.
template <class Row>
struct TakeChunks {
  StringsRef strings;
  const Row* rows;
  const size_type* groups;
  const Row* places;
  size_type chunk;
  Key128* keys;
  Row* from;

  KOKKOS_FUNCTION void operator()(size_type j) const {
    const Row place = places[j];
    keys[j] = {groups[place], string_chunk(strings(rows[place]), chunk)};
    from[j] = rows[place];
  }
};

/// Puts the undecided strings in order.
template <class Row>
struct PlaceRows {
  const Row* order;
  const Row* from;
  const Row* places;
  Row* rows;

  KOKKOS_FUNCTION void operator()(size_type j) const {
    rows[places[j]] = from[order[j]];
  }
};

/// The rows of strings in ascending order, equal ones in the order of the
/// input.
///
/// Seven bytes at a time, most significant first: a sort (sort_rows) of all
/// strings by their first bytes, then of those that share them, each within its
/// group, by the next. Fences `space` once for each such step, of which there
/// is one for every seven bytes that two different strings share, and which
/// reads some bytes of each string, decided or not. Temporary
/// memory: up to 56 bytes per string and what sort_rows takes.
template <class Row, class Exec>
Kokkos::View<Row*, typename Exec::memory_space> sort_strings(
    const std::string& label, const Exec& space, const StringsRef& strings) {
  using Memory = typename Exec::memory_space;
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
  const auto alloc = [&](const char* what) {
    return Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                              label + "::sort::" + what);
  };
  const size_type n = strings.size;
  const Range all(space, 0, n);
  const Kokkos::View<std::uint64_t*, Memory> chunks(alloc("chunks"), n);
  Kokkos::parallel_for(label + "::sort::take_first_chunks", all,
                       TakeFirstChunks{strings, chunks.data()});
  const auto rows = sort_rows<Row>(
      label, space, query::Strided<const std::uint64_t>{chunks.data(), n, 1});
  Kokkos::View<size_type*, Memory> before, groups(alloc("groups"), n);
  const Kokkos::View<Row*, Memory> places(alloc("places"), n);
  for (size_type chunk = 0;; ++chunk) {
    Kokkos::parallel_scan(label + "::sort::number_groups", all,
                          NumberGroups<Row>{strings, rows.data(), before.data(),
                                            groups.data(), chunk});
    size_type undecided = 0;
    Kokkos::parallel_scan(
        label + "::sort::list_undecided", all,
        ListUndecided<Row>{strings, rows.data(), groups.data(), chunk,
                           places.data()},
        undecided);
    if (undecided == 0) return rows;
    const Kokkos::View<Key128*, Memory> keys(alloc("keys"), undecided);
    const Kokkos::View<Row*, Memory> from(alloc("from"), undecided);
    const Range open(space, 0, undecided);
    Kokkos::parallel_for(
        label + "::sort::take_chunks", open,
        TakeChunks<Row>{strings, rows.data(), groups.data(), places.data(),
                        chunk + 1, keys.data(), from.data()});
    const auto order = sort_rows<Row>(
        label, space, query::Strided<const Key128>{keys.data(), undecided, 1});
    Kokkos::parallel_for(
        label + "::sort::place_rows", open,
        PlaceRows<Row>{order.data(), from.data(), places.data(), rows.data()});
    if (before.extent(0) == 0)
      before = Kokkos::View<size_type*, Memory>(alloc("groups"), n);
    std::swap(before, groups);
  }
}

/// Stands for the type of values where the caller gives none.
struct RowIds {};

/// Ascending strings and their values, as kernels see them.
template <class Value>
struct StringEntriesRef {
  StringsRef strings;
  Value* values = nullptr;  ///< or null: positions
  size_type size = 0;       ///< number of strings

  /// String `i`.
  KOKKOS_FUNCTION Bytes key(size_type i) const { return strings(i); }
  /// Its value.
  KOKKOS_FUNCTION Value value(size_type i) const {
    if constexpr (std::is_integral_v<Value>) {
      if (values == nullptr) return static_cast<Value>(i);
    }
    return values[i];
  }
  /// Writes the value of string `i`; they are stored.
  KOKKOS_FUNCTION void set_value(size_type i, const Value& value) const {
    values[i] = value;
  }
};

/// The caller's strings in the order of `rows`.
template <class Value, class Given>
struct GivenStrings {
  StringsRef from;
  RowOrder rows;
  query::Strided<const Given> given;

  KOKKOS_FUNCTION Entry<Bytes, Value> operator()(size_type i) const {
    const size_type row = rows(i);
    if constexpr (std::is_same_v<Given, RowIds>) {
      return {from(row), static_cast<Value>(row)};
    } else {
      return {from(row), static_cast<Value>(given(row))};
    }
  }
};

/// Writes where strings begin that `source` says, `size` of them.
template <class Source>
struct PlaceStrings {
  Source source;
  size_type size;
  size_type* offsets;

  KOKKOS_FUNCTION void operator()(size_type i, size_type& sum,
                                  bool is_final) const {
    if (is_final) offsets[i] = sum;
    if (i < size) sum += source(i).key.size;
  }
};

/// Copies these strings and their values.
template <class Value, class Source>
struct WriteStrings {
  Source source;
  const size_type* offsets;
  unsigned char* chars;
  Value* values;  ///< or null

  KOKKOS_FUNCTION void operator()(size_type i) const {
    const auto entry = source(i);
    for (std::uint32_t c = 0; c < entry.key.size; ++c)
      chars[offsets[i] + c] = entry.key.data[c];
    if (values != nullptr) values[i] = entry.value;
  }
};

/// Copies values.
template <class Value>
struct TakeValues {
  StringEntriesRef<Value> from;
  Value* to;

  KOKKOS_FUNCTION void operator()(size_type i) const { to[i] = from.value(i); }
};

/// Ascending strings and their values, owned and counted like a View.
template <class Value, class MemorySpace>
class Strings {
  static_assert(std::is_trivially_copyable_v<Value>,
                "kindex: values are trivially copyable");

 public:
  /// No strings.
  Strings() = default;
  /// Shares the strings, as a View does.
  Strings(const Strings&) = default;
  /// Shares the strings, as a View does.
  Strings& operator=(const Strings&) = default;
  /// Takes the strings, and leaves none.
  Strings(Strings&& other) noexcept
      : offsets_(std::exchange(other.offsets_, {})),
        chars_(std::exchange(other.chars_, {})),
        values_(std::exchange(other.values_, {})),
        pages_(other.pages_),
        huge_text_(std::exchange(other.huge_text_, 0)),
        huge_values_(std::exchange(other.huge_values_, 0)) {}
  /// Takes the strings, and leaves none.
  Strings& operator=(Strings&& other) noexcept {
    Strings taken(std::move(other));
    std::swap(offsets_, taken.offsets_);
    std::swap(chars_, taken.chars_);
    std::swap(values_, taken.values_);
    std::swap(pages_, taken.pages_);
    std::swap(huge_text_, taken.huge_text_);
    std::swap(huge_values_, taken.huge_values_);
    return *this;
  }
  ~Strings() = default;

  /// From the caller's strings; for the rest as Entries.
  ///
  /// \param is_sorted whether the caller promises that they ascend.
  /// \param check whether that is verified.
  /// \param given values, or of RowIds.
  /// \param pages where the memory is a host's.
  template <class Exec, class Offsets, class Chars, class Given>
  Strings(const char* name, const Exec& space, const Offsets& offsets,
          const Chars& chars, bool is_sorted, Check check,
          query::Strided<const Given> given, Pages pages = Pages::ordinary)
      : pages_(pages) {
    using Char = typename Chars::non_const_value_type;
    static_assert(sizeof(Char) == 1 && std::is_trivially_copyable_v<Char>,
                  "kindex: strings consist of bytes");
    static_assert(std::is_integral_v<typename Offsets::non_const_value_type>,
                  "kindex: offsets are integers");
    static_assert(
        Kokkos::SpaceAccessibility<Exec, MemorySpace>::accessible,
        "kindex: the index's memory cannot be accessed from the execution "
        "space of the instance given");
    const std::string label = std::string("kindex::") + name;
    const auto o = query::as_input(query::strided<Exec>(offsets));
    const auto c = query::strided<Exec>(chars);
    check_stride(label, c);
    const size_type n = o.size == 0 ? 0 : o.size - 1;
    if constexpr (std::is_same_v<Given, RowIds>) {
      check_row_ids<Value>(name, n);
    } else {
      check_value_count(name, n, given.size);
    }
    if (o.size == 0) return;
    check_offsets(label, space, o, c.size);
    if (n == 0) return;
    using Offset = typename Offsets::non_const_value_type;
    const Kokkos::View<size_type*, MemorySpace> starts(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                           label + "::starts"),
        n + 1);
    Kokkos::parallel_for(
        label + "::take_offsets",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                                n + 1),
        TakeOffsets<Offset>{o, starts.data()});
    const StringsRef from{starts.data(),
                          reinterpret_cast<const unsigned char*>(c.data), n};
    if (is_sorted) {
      if (check == Check::on) check_order(label, space, from);
      write(label, space, GivenStrings<Value, Given>{from, {}, given}, n,
            !std::is_same_v<Given, RowIds>);
    } else if (n <= std::numeric_limits<std::uint32_t>::max()) {
      const auto rows = sort_strings<std::uint32_t>(label, space, from);
      write(label, space,
            GivenStrings<Value, Given>{from, RowOrder::of(rows), given}, n,
            true);
    } else {
      const auto rows = sort_strings<std::uint64_t>(label, space, from);
      write(label, space,
            GivenStrings<Value, Given>{from, RowOrder::of(rows), given}, n,
            true);
    }
  }

  /// The strings that `source` says, with values that are stored. A scan, a
  /// kernel, and a fence of `space` for the number of chars.
  ///
  /// \param label prefix of all labels.
  /// \param source `Entry<Bytes, Value> source(i)`, ascending.
  /// \param size how many.
  /// \param pages where the memory is a host's.
  template <class Exec, class Source>
  static Strings from_source(const std::string& label, const Exec& space,
                             const Source& source, size_type size,
                             Pages pages) {
    Strings strings;
    strings.pages_ = pages;
    if (size > 0) strings.write(label, space, source, size, true);
    return strings;
  }

  /// The number of strings.
  size_type size() const {
    return offsets_.extent(0) == 0 ? 0 : offsets_.extent(0) - 1;
  }

  /// Bytes held.
  size_type memory_bytes() const {
    return offsets_.extent(0) * sizeof(size_type) + chars_.extent(0) +
           values_.extent(0) * sizeof(Value);
  }

  /// Bytes of these for which huge pages were asked, and not refused.
  size_type huge_page_bytes() const { return huge_text_ + huge_values_; }

  /// The strings as kernels see them.
  StringsRef ref() const { return {offsets_.data(), chars_.data(), size()}; }

  /// Both they and their values.
  StringEntriesRef<Value> entries() const {
    return {ref(), values_.data(), size()};
  }

  /// Where each string begins, and where the last ends.
  const Kokkos::View<size_type*, MemorySpace>& offsets() const {
    return offsets_;
  }
  /// Their bytes.
  const Kokkos::View<unsigned char*, MemorySpace>& chars() const {
    return chars_;
  }

  /// Has values that are stored, and no copy shares. A kernel, if there were
  /// none.
  template <class Exec>
  void own_values(const std::string& label, const Exec& space) {
    if (size() == 0 || (values_.extent(0) > 0 && values_.use_count() == 1))
      return;
    const Kokkos::View<Value*, MemorySpace> own(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                           label + "::values"),
        size());
    huge_values_ = use_pages(pages_, own);
    Kokkos::parallel_for(
        label + "::take_values",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                                size()),
        TakeValues<Value>{entries(), own.data()});
    values_ = own;
  }

 private:
  template <class Exec, class Source>
  void write(const std::string& label, const Exec& space, const Source& source,
             size_type size, bool with_values) {
    using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
    const auto alloc = [&](const char* what) {
      return Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                label + "::" + what);
    };
    offsets_ =
        Kokkos::View<size_type*, MemorySpace>(alloc("offsets"), size + 1);
    huge_text_ = use_pages(pages_, offsets_);
    size_type chars = 0;
    Kokkos::parallel_scan(label + "::place_strings", Range(space, 0, size + 1),
                          PlaceStrings<Source>{source, size, offsets_.data()},
                          chars);
    chars_ = Kokkos::View<unsigned char*, MemorySpace>(alloc("chars"), chars);
    if (with_values)
      values_ = Kokkos::View<Value*, MemorySpace>(alloc("values"), size);
    huge_text_ += use_pages(pages_, chars_);
    huge_values_ = use_pages(pages_, values_);
    Kokkos::parallel_for(
        label + "::write_strings", Range(space, 0, size),
        WriteStrings<Value, Source>{source, offsets_.data(), chars_.data(),
                                    values_.data()});
  }

  template <class T, class Exec>
  static std::vector<T> fetch(const Exec& space, const T* from,
                              size_type count) {
    std::vector<T> to(count);
    Kokkos::deep_copy(
        space,
        Kokkos::View<T*, Kokkos::HostSpace,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>(to.data(), count),
        Kokkos::View<const T*, typename Exec::memory_space,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>(from, count));
    space.fence("kindex::Strings::fetch");
    return to;
  }

  template <class Exec>
  static void check_order(const std::string& label, const Exec& space,
                          const StringsRef& strings) {
    size_type offence = std::numeric_limits<size_type>::max();
    Kokkos::parallel_reduce(
        label + "::check_order",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                                strings.size),
        FindStringOffence{strings}, Kokkos::Min<size_type>(offence));
    if (offence >= strings.size) return;
    const auto text_of = [&](size_type i) {
      const auto bounds = fetch(space, strings.offsets + i, 2);
      constexpr size_type most = 40;
      const size_type size = bounds[1] - bounds[0];
      constexpr char digits[] = "0123456789abcdef";
      std::string text = "\"";
      for (const unsigned char c :
           fetch(space, strings.chars + bounds[0], std::min(size, most))) {
        if (c >= 32 && c < 127 && c != '"' && c != '\\') {
          text += static_cast<char>(c);
        } else {
          text += std::string("\\x") + digits[c / 16] + digits[c % 16];
        }
      }
      return text + (size > most ? "\"..." : "\"");
    };
    kindex::impl::fail(label.c_str(),
                       "strings are promised sorted, but string ", offence,
                       ", ", text_of(offence), ", is below string ",
                       offence - 1, ", ", text_of(offence - 1));
  }

  Kokkos::View<size_type*, MemorySpace> offsets_;
  Kokkos::View<unsigned char*, MemorySpace> chars_;
  Kokkos::View<Value*, MemorySpace> values_;
  Pages pages_ = Pages::ordinary;
  size_type huge_text_ = 0;    ///< bytes of offsets and chars on huge pages
  size_type huge_values_ = 0;  ///< the same of values
};

/// Ascending byte strings as the build of a radix tree sees them.
struct RadixStrings {
  using Prefix = std::uint32_t;  ///< the number of bytes above a node
  static constexpr bool change = false;
  StringsRef strings;

  KOKKOS_FUNCTION int common(size_type a, size_type b) const {
    return int(common_bytes(strings(a), strings(b)));
  }
  KOKKOS_FUNCTION bool equal(size_type a, size_type b) const {
    return strings(a) == strings(b);
  }
  KOKKOS_FUNCTION int byte(size_type rank, int depth) const {
    const Bytes string = strings(rank);
    return std::uint32_t(depth) < string.size ? string.data[depth] : -1;
  }
  KOKKOS_FUNCTION Prefix prefix(size_type /*rank*/, int depth,
                                int /*height*/) const {
    return Prefix(depth);
  }
};

}  // namespace kindex::build

#endif
