// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_CHECK_HPP
#define KINDEX_BUILD_CHECK_HPP

/// \file
/// What every index verifies of its input before it builds on it.

#include <kindex/Error.hpp>
#include <kindex/Key.hpp>
#include <kindex/query/Strided.hpp>

#include <limits>
#include <string>

namespace kindex::build {

/// Flags the first NaN, or the first key below its predecessor.
template <class Key>
struct FindOffence {
  query::Strided<const Key> keys;
  bool in_order;  ///< whether order is checked, too

  KOKKOS_FUNCTION void operator()(size_type i, size_type& first) const {
    const Key key = keys(i);
    const bool offends =
        KeyTraits<Key>::is_nan(key) || (in_order && i > 0 && key < keys(i - 1));
    if (offends && i < first) first = i;
  }
};

/// Verifies that no key is NaN and, with `in_order`, that keys ascend.
///
/// One kernel, if there is anything to verify, and a fence of `space`, whose
/// result decides.
///
/// \param name of the index, for labels and messages.
/// \throws Error naming the position and the value of the first offence.
template <class Exec, class Key>
void check_keys(const char* name, const Exec& space,
                query::Strided<const Key> keys, bool in_order) {
  if (!in_order && !std::is_floating_point_v<Key>) return;
  if (keys.size == 0) return;
  constexpr size_type none = std::numeric_limits<size_type>::max();
  size_type position = none;
  Kokkos::parallel_reduce(
      std::string("kindex::") + name + "::check_keys",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                              keys.size),
      FindOffence<Key>{keys, in_order}, Kokkos::Min<size_type>(position));
  if (position >= keys.size) return;

  // Two keys at most travel, on the way out with an exception.
  const auto fetch = [&](size_type i) {
    Key key;
    const Kokkos::View<const Key, typename Exec::memory_space,
                       Kokkos::MemoryTraits<Kokkos::Unmanaged>>
        source(&keys(i));
    const Kokkos::View<Key, Kokkos::HostSpace,
                       Kokkos::MemoryTraits<Kokkos::Unmanaged>>
        target(&key);
    Kokkos::deep_copy(space, target, source);
    space.fence("kindex::check_keys::fetch");
    return key;
  };
  const std::string function = std::string("kindex::") + name;
  const Key key = fetch(position);
  if (KeyTraits<Key>::is_nan(key))
    kindex::impl::fail(function.c_str(), "keys(", position,
                       ") is not a number; an index has no place for NaN");
  kindex::impl::fail(function.c_str(), "keys are promised sorted, but keys(",
                     position, ") = ", key, " is below keys(", position - 1,
                     ") = ", fetch(position - 1));
}

/// Verifies that there is one value per key.
///
/// \throws Error otherwise.
inline void check_value_count(const char* name, size_type keys,
                              size_type values) {
  if (keys == values) return;
  kindex::impl::fail((std::string("kindex::") + name).c_str(), "values has ",
                     values, " elements for ", keys, " keys");
}

/// Verifies that `Value` can number `keys` rows.
///
/// \throws Error otherwise.
template <class Value>
void check_row_ids(const char* name, size_type keys) {
  static_assert(std::is_integral_v<Value>,
                "kindex: without values, an index maps keys to row ids, which "
                "are integers; pass values for any other Value");
  constexpr auto most =
      static_cast<size_type>(std::numeric_limits<Value>::max());
  if (keys == 0 || keys - 1 <= most) return;
  kindex::impl::fail(
      (std::string("kindex::") + name).c_str(), "keys has ", keys,
      " rows, but row ids of ", 8 * sizeof(Value), " bits number at most 2^",
      std::numeric_limits<Value>::digits, "; give the index a 64-bit Value");
}

}  // namespace kindex::build

#endif
