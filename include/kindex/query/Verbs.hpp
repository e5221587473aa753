// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_VERBS_HPP
#define KINDEX_QUERY_VERBS_HPP

/// \file
/// The verbs, as the engine runs them: which probes a query needs and what is
/// written for their positions.

#include <kindex/query/Probe.hpp>
#include <kindex/query/Strided.hpp>

namespace kindex::query {

/// Which bounds of a query, or of a pair of them, a verb searches.
enum class Bounds {
  lower,  ///< the lower bound
  upper,  ///< the upper bound
  both    ///< the lower bound of one, and the upper bound of another
};

/// What the verbs of one search per query share.
///
/// \tparam Verb the verb (curiously recurring), an aggregate over this base.
template <class Verb, class Key, class Query, class Out>
struct PointVerb {
  static constexpr Bounds bounds = Bounds::lower;
  static constexpr int probes = 1;
  static constexpr bool is_reorderable = true;
  using query_type = Query;
  using out_type = Out;
  Strided<const Query> queries;
  Strided<Out> out;

  /// The same verb for other queries and results.
  KOKKOS_FUNCTION Verb with(Strided<const Query> other_queries,
                            Strided<Out> other_results) const {
    Verb verb = static_cast<const Verb&>(*this);
    verb.queries = other_queries;
    verb.out = other_results;
    return verb;
  }

  KOKKOS_FUNCTION void make_probes(size_type i, Probe<Key> (&probe)[1]) const {
    probe[0] = lower_probe<Key>(queries(i));
  }
};

/// `find`: the value of the first equal key, or `missing`.
template <class Key, class Value, class Query, class Out>
struct FindVerb : PointVerb<FindVerb<Key, Value, Query, Out>, Key, Query, Out> {
  static constexpr bool finds = true;
  Value missing;

  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const size_type (&position)[1]) const {
    this->out(i) =
        position[0] < no_position(ref) ? ref.value_at(position[0]) : missing;
  }
};

/// `contains`: whether a key is there.
template <class Key, class Query, class Out>
struct ContainsVerb
    : PointVerb<ContainsVerb<Key, Query, Out>, Key, Query, Out> {
  static constexpr bool finds = true;

  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const size_type (&position)[1]) const {
    this->out(i) = static_cast<Out>(position[0] < no_position(ref));
  }
};

/// `lower_bound` and, with `Upper`, `upper_bound`: a rank.
template <class Key, class Query, class Out, bool Upper>
struct BoundVerb
    : PointVerb<BoundVerb<Key, Query, Out, Upper>, Key, Query, Out> {
  static constexpr Bounds bounds = Upper ? Bounds::upper : Bounds::lower;
  static constexpr bool finds = false;

  KOKKOS_FUNCTION void make_probes(size_type i, Probe<Key> (&probe)[1]) const {
    probe[0] = Upper ? upper_probe<Key>(this->queries(i))
                     : lower_probe<Key>(this->queries(i));
  }
  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const size_type (&position)[1]) const {
    this->out(i) = static_cast<Out>(ref.rank_of(position[0]));
  }
};

/// What the verbs of two searches per query share: those of the bounds of
/// `lo(i)` and `hi(i)`, together.
template <class Key, class Query>
struct RangeVerb {
  static constexpr Bounds bounds = Bounds::both;
  static constexpr bool finds = false;
  static constexpr int probes = 2;
  static constexpr bool is_reorderable = false;
  Strided<const Query> lo;
  Strided<const Query> hi;

  KOKKOS_FUNCTION void make_probes(size_type i, Probe<Key> (&probe)[2]) const {
    probe[0] = lower_probe<Key>(lo(i));
    probe[1] = upper_probe<Key>(hi(i));
  }
};

/// What a pair of bounds becomes.
enum class PairForm {
  bounds,           ///< first = lower rank, second = upper rank
  count,            ///< first = number of entries
  first_and_count,  ///< first = lower rank, second = number of entries
  last_and_count    ///< first = entries behind the last, second = their number
};

/// `longest_prefix_match`: the entry that has most leading bits in common.
template <class Key>
struct MatchVerb : PointVerb<MatchVerb<Key>, Key, Key, PrefixMatch> {
  static constexpr bool finds = false;

  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const size_type (&position)[1]) const {
    this->out(i) = ref.match_near(ref.rank_of(position[0]), this->queries(i));
  }
};

/// Everything that needs two bounds: `equal_range`, `count`, `range_count` and
/// the first pass of `range`.
template <class Key, class Query, class First, class Second, PairForm Form>
struct PairVerb : RangeVerb<Key, Query> {
  Strided<First> first;
  Strided<Second> second;

  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const size_type (&position)[2]) const {
    const size_type lower = ref.rank_of(position[0]);
    size_type upper = ref.rank_of(position[1]);
    if constexpr (Form == PairForm::bounds) {
      first(i) = static_cast<First>(lower);
      second(i) = static_cast<Second>(upper);
    } else {
      // lo > hi, or a NaN among them: no entries.
      if (upper < lower || is_nan(this->hi(i))) upper = lower;
      if constexpr (Form == PairForm::count) {
        first(i) = static_cast<First>(upper - lower);
      } else {
        first(i) = static_cast<First>(
            Form == PairForm::last_and_count ? ref.size() - upper : lower);
        second(i) = static_cast<Second>(upper - lower);
      }
    }
  }
};

/// `for_each_in_range` where bounds are searched first: calls `visit(i, key,
/// value)` for the entries between them, one thread per range.
template <class Key, class Query, class Visit>
struct VisitVerb : RangeVerb<Key, Query> {
  Visit visit;

  template <class Ref>
  KOKKOS_FUNCTION void store(const Ref& ref, size_type i,
                             const size_type (&position)[2]) const {
    if (is_nan(this->hi(i))) return;
    for_each_position(
        ref, ref.rank_of(position[0]), ref.rank_of(position[1]),
        [&](size_type at) { visit(i, ref.key_at(at), ref.value_at(at)); });
  }
};

}  // namespace kindex::query

#endif
