// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_PROBE_HPP
#define KINDEX_QUERY_PROBE_HPP

/// \file
/// A query of any admitted type, turned into one key of the index, exactly.

#include <kindex/Bytes.hpp>

#include <type_traits>

namespace kindex::query {

/// What an index searches for. Every bound of every query is the lower bound
/// of one probe: `upper_bound(q)` is the lower bound of the smallest key above
/// `q`. So an index implements one search, and a query of another type (or
/// NaN) costs it nothing.
template <class Key>
struct Probe {
  Key key;     ///< the smallest key that is not below the query's bound
  bool above;  ///< there is no such key: the rank is size()
  bool exact;  ///< `key` equals the query
};

namespace impl {

/// 2 to the number of value bits of `Integer`: the first value above it, exact
/// in every floating-point type.
template <class Float, class Integer>
KOKKOS_FUNCTION constexpr Float first_above() {
  Float power = 1;
  for (int bit = 0;
       bit < int(8 * sizeof(Integer)) - (std::is_signed_v<Integer> ? 1 : 0);
       ++bit)
    power *= 2;
  return power;
}

template <class Key, class Query>
KOKKOS_FUNCTION Probe<Key> probe_integer_by_integer(Query query) {
  using Traits = KeyTraits<Key>;
  if constexpr (std::is_signed_v<Query>) {
    if (query < 0) {
      if constexpr (std::is_signed_v<Key>) {
        using Wide = std::int64_t;
        const bool below = Wide(query) < Wide(Traits::lowest());
        return {below ? Traits::lowest() : static_cast<Key>(query), false,
                !below};
      } else {
        return {Traits::lowest(), false, false};
      }
    }
  }
  using Wide = std::uint64_t;
  const bool above = Wide(query) > Wide(Traits::highest());
  return {above ? Traits::highest() : static_cast<Key>(query), above, !above};
}

template <class Key, class Query>
KOKKOS_FUNCTION Probe<Key> probe_integer_by_float(Query query) {
  using Traits = KeyTraits<Key>;
  // Also true for NaN.
  if (!(query < first_above<Query, Key>()))
    return {Traits::highest(), true, false};
  if (query < Query(Traits::lowest())) return {Traits::lowest(), false, false};
  const Query up = Kokkos::ceil(query);
  if (!(up < first_above<Query, Key>()))
    return {Traits::highest(), true, false};
  return {static_cast<Key>(up), false, up == query};
}

template <class Key, class Query>
KOKKOS_FUNCTION Probe<Key> probe_float_by_integer(Query query) {
  Key key = static_cast<Key>(query);
  if (key >= first_above<Key, Query>()) {
    // Rounded up past the query's whole type.
    return {key, false, false};
  }
  const Query back = static_cast<Query>(key);
  if (back < query) return {KeyTraits<Key>::next(key), false, false};
  return {key, false, back == query};
}

template <class Key, class Query>
KOKKOS_FUNCTION Probe<Key> probe_float_by_float(Query query) {
  if (query != query) return {KeyTraits<Key>::highest(), true, false};
  const Key key = static_cast<Key>(query);
  if constexpr (sizeof(Key) < sizeof(Query)) {
    if (Query(key) < query) return {KeyTraits<Key>::next(key), false, false};
    return {key, false, Query(key) == query};
  } else {
    return {key, false, true};
  }
}

/// For keys whose order is that of their bits.
template <class Key>
KOKKOS_FUNCTION Probe<Key> probe_prefix_bits(const Prefix<Key>& prefix,
                                             bool behind) {
  using Traits = KeyTraits<Key>;
  auto bits = kindex::impl::leading_bits(Traits::to_bits(prefix.key),
                                         prefix.bits, behind);
  // Some bits are no floating-point numbers: those above and below all.
  const auto highest = Traits::to_bits(Traits::highest());
  if (behind ? !(bits < highest) : highest < bits)
    return {Traits::highest(), true, false};
  const auto lowest = Traits::to_bits(Traits::lowest());
  if (bits < lowest) return {Traits::lowest(), false, false};
  if constexpr (std::is_same_v<Key, Key128>) {
    return {behind ? Traits::next(bits) : bits, false, false};
  } else {
    // Not the next key: behind the bits of -0.0, which keys do not have, come
    // those of zero.
    using Bits = typename Traits::bits_type;
    return {Traits::from_bits(Bits(bits + (behind ? 1 : 0))), false, false};
  }
}

/// The smallest key that begins with `prefix`, or, with `behind`, the smallest
/// above all of them.
template <class Key>
KOKKOS_FUNCTION Probe<Key> probe_prefix(const Prefix<Key>& prefix,
                                        bool behind) {
  if constexpr (std::is_same_v<Key, Bytes>) {
    Bytes key = prefix.key;
    if (behind) key.edge = Edge::behind_all;
    return {key, false, false};
  } else {
    return probe_prefix_bits(prefix, behind);
  }
}

}  // namespace impl

/// Whether queries of type `Query` can be compared exactly with keys of type
/// `Key`: all pairs of numbers, Key128 with itself and with integers.
template <class Key, class Query>
inline constexpr bool is_comparable_v =
    (is_key_v<Query> &&
     ((!std::is_same_v<Key, Key128> && !std::is_same_v<Query, Key128>) ||
      !(std::is_floating_point_v<Key> || std::is_floating_point_v<Query>))) ||
    std::is_same_v<Query, Prefix<Key>> ||
    (std::is_same_v<Key, Bytes> && std::is_same_v<Query, Bytes>);

/// The smallest key that is not below `query`; nothing is rounded on the way.
/// NaN is above every key.
template <class Key, class Query>
KOKKOS_FUNCTION Probe<Key> lower_probe(const Query& query) {
  static_assert(is_comparable_v<Key, Query>,
                "kindex: queries of this type cannot be compared exactly with "
                "the index's keys");
  if constexpr (is_prefix_v<Query>) {
    return impl::probe_prefix(query, false);
  } else if constexpr (std::is_same_v<Key, Query> &&
                       !std::is_floating_point_v<Query>) {
    return {query, false, true};
  } else if constexpr (std::is_same_v<Key, Key128>) {
    if constexpr (std::is_signed_v<Query>) {
      if (query < 0) return {KeyTraits<Key>::lowest(), false, false};
    }
    return {Key128{0, static_cast<std::uint64_t>(query)}, false, true};
  } else if constexpr (std::is_same_v<Query, Key128>) {
    if (query.hi != 0) return {KeyTraits<Key>::highest(), true, false};
    return impl::probe_integer_by_integer<Key>(query.lo);
  } else if constexpr (std::is_integral_v<Key> && std::is_integral_v<Query>) {
    return impl::probe_integer_by_integer<Key>(query);
  } else if constexpr (std::is_integral_v<Key>) {
    return impl::probe_integer_by_float<Key>(query);
  } else if constexpr (std::is_integral_v<Query>) {
    return impl::probe_float_by_integer<Key>(query);
  } else {
    return impl::probe_float_by_float<Key>(query);
  }
}

/// The smallest key above `query`.
template <class Key, class Query>
KOKKOS_FUNCTION Probe<Key> upper_probe(const Query& query) {
  if constexpr (is_prefix_v<Query>) {
    return impl::probe_prefix(query, true);
  } else if constexpr (std::is_same_v<Key, Bytes>) {
    return {Bytes{query.data, query.size, Edge::behind}, false, false};
  } else {
    using Traits = KeyTraits<Key>;
    Probe<Key> probe = lower_probe<Key>(query);
    if (probe.exact) {
      // `<` alone would do, but for −0.0 and +0.0, which are one key here.
      if (probe.key < Traits::highest()) {
        probe.key = Traits::next(probe.key);
      } else {
        probe.above = true;
      }
      probe.exact = false;
    }
    return probe;
  }
}

/// The position that stands for no entry: behind all others, size() unless the
/// handle says otherwise.
template <class Ref>
KOKKOS_FUNCTION size_type no_position(const Ref& ref) {
  if constexpr (requires { ref.no_position(); }) {
    return ref.no_position();
  } else {
    return ref.size();
  }
}

/// Whether a probe that is nowhere gets no_position(), and not what a search
/// for the highest key leads to: true unless the handle says otherwise.
template <class Ref>
KOKKOS_FUNCTION bool has_nowhere(const Ref& ref) {
  if constexpr (requires { ref.has_nowhere(); }) {
    return ref.has_nowhere();
  } else {
    return true;
  }
}

/// Calls `visit(position)` for the entries of ranks `first` to `last` - 1.
template <class Ref, class Visit>
KOKKOS_FUNCTION void for_each_position(const Ref& ref, size_type first,
                                       size_type last, const Visit& visit) {
  if constexpr (requires { ref.positions_from(first); }) {
    while (first < last) {
      auto run = ref.positions_from(first);
      for (; run.first < run.second && first < last; ++first)
        visit(run.first++);
    }
  } else {
    for (size_type rank = first; rank < last; ++rank)
      visit(ref.position_of(rank));
  }
}

/// Whether `query` is not a number.
template <class Query>
KOKKOS_FUNCTION bool is_nan([[maybe_unused]] const Query& query) {
  if constexpr (is_prefix_v<Query>) {
    return false;
  } else {
    return KeyTraits<Query>::is_nan(query);
  }
}

}  // namespace kindex::query

#endif
