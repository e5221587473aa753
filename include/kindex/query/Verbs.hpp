// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_VERBS_HPP
#define KINDEX_QUERY_VERBS_HPP

/// \file
/// The verbs, as the engine runs them: which probes a query needs and what is
/// written for their positions.

#include <kindex/query/Probe.hpp>
#include <kindex/query/Strided.hpp>

namespace kindex::query {

/// `find`: the value of the first equal key, or `missing`.
template <class Key, class Value, class Query, class Out>
struct FindVerb {
  static constexpr bool comes_back = true;
  static constexpr int probes = 1;
  static constexpr bool is_reorderable = true;
  using query_type = Query;
  using out_type = Out;
  Strided<const Query> queries;
  Strided<Out> out;
  Value missing;

  /// The same verb for other queries and results.
  FindVerb with(Strided<const Query> other_queries,
                Strided<Out> other_results) const {
    return {other_queries, other_results, missing};
  }
  /// Where results go.
  Strided<Out> output() const { return out; }

  KOKKOS_FUNCTION void make_probes(size_type i, Probe<Key> (&probe)[1]) const {
    probe[0] = lower_probe<Key>(queries(i));
  }
  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const Probe<Key> (&probe)[1],
                             const size_type (&position)[1]) const {
    out(i) =
        ref.is_hit(probe[0], position[0]) ? ref.value_at(position[0]) : missing;
  }
};

/// `contains`: whether a key is there.
template <class Key, class Query, class Out>
struct ContainsVerb {
  static constexpr bool comes_back = true;
  static constexpr int probes = 1;
  static constexpr bool is_reorderable = true;
  using query_type = Query;
  using out_type = Out;
  Strided<const Query> queries;
  Strided<Out> out;

  /// The same verb for other queries and results.
  ContainsVerb with(Strided<const Query> other_queries,
                    Strided<Out> other_results) const {
    return {other_queries, other_results};
  }
  /// Where results go.
  Strided<Out> output() const { return out; }

  KOKKOS_FUNCTION void make_probes(size_type i, Probe<Key> (&probe)[1]) const {
    probe[0] = lower_probe<Key>(queries(i));
  }
  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const Probe<Key> (&probe)[1],
                             const size_type (&position)[1]) const {
    out(i) = static_cast<Out>(ref.is_hit(probe[0], position[0]));
  }
};

/// `lower_bound` and, with `Upper`, `upper_bound`: a rank.
template <class Key, class Query, class Out, bool Upper>
struct BoundVerb {
  static constexpr bool comes_back = false;
  static constexpr int probes = 1;
  static constexpr bool is_reorderable = true;
  using query_type = Query;
  using out_type = Out;
  Strided<const Query> queries;
  Strided<Out> ranks;

  /// The same verb for other queries and results.
  BoundVerb with(Strided<const Query> other_queries,
                 Strided<Out> other_results) const {
    return {other_queries, other_results};
  }
  /// Where results go.
  Strided<Out> output() const { return ranks; }

  KOKKOS_FUNCTION void make_probes(size_type i, Probe<Key> (&probe)[1]) const {
    probe[0] =
        Upper ? upper_probe<Key>(queries(i)) : lower_probe<Key>(queries(i));
  }
  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const Probe<Key> (&)[1],
                             const size_type (&position)[1]) const {
    ranks(i) = static_cast<Out>(ref.rank_of(position[0]));
  }
};

/// What a pair of bounds becomes.
enum class PairForm {
  bounds,          ///< first = lower rank, second = upper rank
  count,           ///< first = number of entries
  first_and_count  ///< first = lower rank, second = number of entries
};

/// Everything that needs two bounds: `equal_range`, `count`, `range_count` and
/// the first pass of `range`. The bounds of `lo(i)` and `hi(i)` are searched
/// together.
template <class Key, class Query, class First, class Second, PairForm Form>
struct PairVerb {
  static constexpr bool comes_back = false;
  static constexpr int probes = 2;
  static constexpr bool is_reorderable = false;
  Strided<const Query> lo;
  Strided<const Query> hi;
  Strided<First> first;
  Strided<Second> second;

  KOKKOS_FUNCTION void make_probes(size_type i, Probe<Key> (&probe)[2]) const {
    probe[0] = lower_probe<Key>(lo(i));
    probe[1] = upper_probe<Key>(hi(i));
  }
  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const Probe<Key> (&)[2],
                             const size_type (&position)[2]) const {
    const size_type lower = ref.rank_of(position[0]);
    size_type upper = ref.rank_of(position[1]);
    if constexpr (Form == PairForm::bounds) {
      first(i) = static_cast<First>(lower);
      second(i) = static_cast<Second>(upper);
    } else {
      // lo > hi, or a NaN among them: no entries.
      if (upper < lower || is_nan(hi(i))) upper = lower;
      if constexpr (Form == PairForm::count) {
        first(i) = static_cast<First>(upper - lower);
      } else {
        first(i) = static_cast<First>(lower);
        second(i) = static_cast<Second>(upper - lower);
      }
    }
  }
};

}  // namespace kindex::query

#endif
