// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares every verb of an index with the reference, in bulk and through ref()
// inside a kernel.
#ifndef KINDEX_UNIT_TESTS_CONFORMANCE_CHECKS_HPP
#define KINDEX_UNIT_TESTS_CONFORMANCE_CHECKS_HPP

#include <Kokkos_Core.hpp>

#include <kindex/query/LookupPolicy.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "conformance/Reference.hpp"
#include "support/Devices.hpp"
#include "support/Values.hpp"

namespace kindex_test {

/// What went wrong: one line per verb, naming the first wrong answer.
struct Failures {
  std::vector<std::string> lines;

  bool empty() const { return lines.empty(); }
  std::string text() const {
    std::string all;
    for (std::size_t i = 0; i < lines.size() && i < 12; ++i)
      all += lines[i] + "\n";
    if (lines.size() > 12)
      all += "... and " + std::to_string(lines.size() - 12) + " more\n";
    return all;
  }
  void operator+=(const Failures& more) {
    lines.insert(lines.end(), more.lines.begin(), more.lines.end());
  }

  /// `of(i)` says to what the i-th answer belongs.
  template <class T, class Of>
  void compare(const std::string& verb, const std::vector<T>& expected,
               const std::vector<T>& got, const Of& of) {
    if (expected.size() != got.size()) {
      lines.push_back(verb + ": " + std::to_string(got.size()) +
                      " answers instead of " + std::to_string(expected.size()));
      return;
    }
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!(expected[i] == got[i]) && wrong++ == 0) first = i;
    if (wrong > 0)
      lines.push_back(verb + ": " + std::to_string(wrong) + " of " +
                      std::to_string(expected.size()) + " wrong; first at " +
                      std::to_string(first) + ", " + of(first) + ": expected " +
                      to_text(expected[first]) + ", got " +
                      to_text(got[first]));
  }
};

/// The right answers that depend on the values, computed once per data set and
/// index type.
template <class Key, class Value>
struct Answers {
  std::vector<Value> find, find_or;
  std::vector<unsigned char> contains;
  std::vector<size_type> count, range_count;
  std::vector<Value> hits;
  std::vector<Key> hit_keys;
  std::vector<std::uint64_t> value_sum, key_sum;  // per range
  Value missing = make_value<Value>(4711);

  Answers(const Reference<Key>& r, const std::vector<Value>& values_by_rank) {
    for (std::size_t i = 0; i < r.queries.size(); ++i) {
      const bool hit = r.lower[i] != r.upper[i];
      contains.push_back(hit);
      count.push_back(r.upper[i] - r.lower[i]);
      find.push_back(hit ? values_by_rank[r.lower[i]] : all_bits_one<Value>());
      find_or.push_back(hit ? values_by_rank[r.lower[i]] : missing);
    }
    for (std::size_t i = 0; i < r.lo.size(); ++i) {
      range_count.push_back(r.last[i] - r.first[i]);
      value_sum.push_back(0);
      key_sum.push_back(0);
      for (size_type rank = r.first[i]; rank < r.last[i]; ++rank) {
        hits.push_back(values_by_rank[rank]);
        hit_keys.push_back(r.sorted[rank]);
        value_sum.back() += hash_of(values_by_rank[rank]);
        key_sum.back() += hash_of(r.sorted[rank]);
      }
    }
  }
};

/// The queries of a reference on a device.
template <class Exec, class Key>
struct Batch {
  DeviceView<Key, Exec> queries, lo, hi;
  explicit Batch(const Reference<Key>& r)
      : queries(to_device<Exec>(r.queries)),
        lo(to_device<Exec>(r.lo)),
        hi(to_device<Exec>(r.hi)) {}
};

template <class Exec>
struct SumHits {
  DeviceView<std::uint64_t, Exec> hits, value_sum, key_sum;
  template <class Key, class Value>
  KOKKOS_FUNCTION void operator()(size_type q, Key key, Value value) const {
    Kokkos::atomic_add(&hits(q), std::uint64_t{1});
    Kokkos::atomic_add(&value_sum(q), hash_of(value));
    Kokkos::atomic_add(&key_sum(q), hash_of(key));
  }
};

/// All verbs in bulk. `space` searches; Exec accesses Views, which is another
/// one where an index takes those of the host only.
template <bool ranges, class Space, class Index, class Exec, class Key,
          class Value>
Failures check_bulk(const Space& space, const Index& index,
                    const Reference<Key>& r, const Answers<Key, Value>& answers,
                    const Batch<Exec, Key>& batch,
                    const kindex::LookupPolicy& policy,
                    const std::string& what) {
  const std::size_t m = r.queries.size(), mr = r.lo.size();
  Failures failures;
  const auto query = [&](std::size_t i) {
    return "query " + to_text(r.queries[i]);
  };
  const auto range = [&](std::size_t i) {
    return "range [" + to_text(r.lo[i]) + ", " + to_text(r.hi[i]) + "]";
  };
  const std::string on = " of " + what + " on " + r.describe();

  auto found = filled<Value, Exec>(m), found_or = filled<Value, Exec>(m);
  auto contained = filled<bool, Exec>(m);
  auto counts = filled<size_type, Exec>(m);
  index.find(space, batch.queries, found, kindex::default_missing<Value>(),
             policy);
  index.find(space, batch.queries, found_or, answers.missing, policy);
  index.contains(space, batch.queries, contained, policy);
  index.count(space, batch.queries, counts, policy);
  failures.compare("find" + on, answers.find, to_host(found), query);
  failures.compare("find with missing" + on, answers.find_or, to_host(found_or),
                   query);
  failures.compare("contains" + on, answers.contains, to_host(contained),
                   query);
  failures.compare("count" + on, answers.count, to_host(counts), query);

  if constexpr (ranges) {
    auto lower = filled<size_type, Exec>(m), upper = filled<size_type, Exec>(m);
    auto first = filled<size_type, Exec>(m), last = filled<size_type, Exec>(m);
    auto range_counts = filled<size_type, Exec>(mr);
    SumHits<Exec> sum{filled<std::uint64_t, Exec>(mr, 0),
                      filled<std::uint64_t, Exec>(mr, 0),
                      filled<std::uint64_t, Exec>(mr, 0)};
    index.lower_bound(space, batch.queries, lower, policy);
    index.upper_bound(space, batch.queries, upper, policy);
    index.equal_range(space, batch.queries, first, last, policy);
    index.range_count(space, batch.lo, batch.hi, range_counts, policy);
    index.for_each_in_range(space, batch.lo, batch.hi, sum, policy);
    const auto hits = index.range(space, batch.lo, batch.hi, policy);
    const auto hits_with_keys =
        index.range(space, batch.lo, batch.hi, kindex::with_keys, policy);
    failures.compare("lower_bound" + on, r.lower, to_host(lower), query);
    failures.compare("upper_bound" + on, r.upper, to_host(upper), query);
    failures.compare("equal_range.first" + on, r.lower, to_host(first), query);
    failures.compare("equal_range.second" + on, r.upper, to_host(last), query);
    failures.compare("range_count" + on, answers.range_count,
                     to_host(range_counts), range);
    failures.compare("for_each_in_range: number of hits" + on,
                     answers.range_count, to_host(sum.hits), range);
    failures.compare("for_each_in_range: values" + on, answers.value_sum,
                     to_host(sum.value_sum), range);
    failures.compare("for_each_in_range: keys" + on, answers.key_sum,
                     to_host(sum.key_sum), range);
    const auto hit = [&](std::size_t i) {
      std::size_t q = 0;
      while (r.offsets[q + 1] <= i) ++q;
      return range(q);
    };
    const auto offset = [&](std::size_t i) {
      return "offset " + std::to_string(i);
    };
    failures.compare("range: offsets" + on, r.offsets, to_host(hits.offsets),
                     offset);
    failures.compare("range: values" + on, answers.hits, to_host(hits.values),
                     hit);
    failures.compare("range with keys: offsets" + on, r.offsets,
                     to_host(hits_with_keys.offsets), offset);
    failures.compare("range with keys: values" + on, answers.hits,
                     to_host(hits_with_keys.values), hit);
    failures.compare("range with keys: keys" + on, answers.hit_keys,
                     to_host(hits_with_keys.keys), hit);
  }
  return failures;
}

/// All point verbs of a ref, in one kernel.
template <class Exec, class Ref, class Key, class Value>
struct PointKernel {
  Ref ref;
  DeviceView<Key, Exec> queries;
  Value missing;
  DeviceView<Value, Exec> found, found_or;
  DeviceView<bool, Exec> contained;
  DeviceView<size_type, Exec> counts;
  KOKKOS_FUNCTION void operator()(size_type i) const {
    const Key q = queries(i);
    found(i) = ref.find(q);
    found_or(i) = ref.find(q, missing);
    contained(i) = ref.contains(q);
    counts(i) = ref.count(q);
  }
};

template <class Exec, class Ref, class Key>
struct BoundKernel {
  Ref ref;
  DeviceView<Key, Exec> queries;
  DeviceView<size_type, Exec> lower, upper, first, last;
  KOKKOS_FUNCTION void operator()(size_type i) const {
    const Key q = queries(i);
    lower(i) = ref.lower_bound(q);
    upper(i) = ref.upper_bound(q);
    const auto both = ref.equal_range(q);
    first(i) = both.first;
    last(i) = both.second;
  }
};

template <class Exec, class Ref, class Key>
struct RangeKernel {
  Ref ref;
  DeviceView<Key, Exec> lo, hi;
  DeviceView<size_type, Exec> counts, first, last;
  DeviceView<std::uint64_t, Exec> value_sum, key_sum;
  KOKKOS_FUNCTION void operator()(size_type i) const {
    counts(i) = ref.range_count(lo(i), hi(i));
    const auto both = ref.range(lo(i), hi(i));
    first(i) = both.first;
    last(i) = both.second;
    std::uint64_t values = 0, keys = 0;
    ref.for_each_in_range(lo(i), hi(i),
                          [&](const auto& key, const auto& value) {
                            keys += hash_of(key);
                            values += hash_of(value);
                          });
    value_sum(i) = values;
    key_sum(i) = keys;
  }
};

template <class Exec, class Ref, class Key, class Value>
struct ContentKernel {
  Ref ref;
  DeviceView<Key, Exec> keys;
  DeviceView<Value, Exec> values;
  KOKKOS_FUNCTION void operator()(size_type rank) const {
    keys(rank) = ref.key(rank);
    values(rank) = ref.value(rank);
  }
};

/// All verbs of a ref, and all that it holds.
template <bool ranges, class Exec, class Ref, class Key, class Value>
Failures check_ref(const Exec& space, const Ref& ref, const Reference<Key>& r,
                   const std::vector<Value>& values_by_rank,
                   const Answers<Key, Value>& answers,
                   const Batch<Exec, Key>& batch, const std::string& what) {
  static_assert(std::is_trivially_copyable_v<Ref>);
  const std::size_t m = r.queries.size(), mr = r.lo.size();
  Failures failures;
  const auto query = [&](std::size_t i) {
    return "query " + to_text(r.queries[i]);
  };
  const auto range = [&](std::size_t i) {
    return "range [" + to_text(r.lo[i]) + ", " + to_text(r.hi[i]) + "]";
  };
  const std::string on = " of " + what + " on " + r.describe();
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;

  PointKernel<Exec, Ref, Key, Value> point{ref,
                                           batch.queries,
                                           answers.missing,
                                           filled<Value, Exec>(m),
                                           filled<Value, Exec>(m),
                                           filled<bool, Exec>(m),
                                           filled<size_type, Exec>(m)};
  Kokkos::parallel_for("test::PointKernel", Policy(space, 0, m), point);
  failures.compare("ref.find" + on, answers.find, to_host(point.found), query);
  failures.compare("ref.find with missing" + on, answers.find_or,
                   to_host(point.found_or), query);
  failures.compare("ref.contains" + on, answers.contains,
                   to_host(point.contained), query);
  failures.compare("ref.count" + on, answers.count, to_host(point.counts),
                   query);
  if (ref.size() != r.sorted.size())
    failures.lines.push_back("ref.size" + on + " is " +
                             std::to_string(ref.size()));

  if constexpr (ranges) {
    BoundKernel<Exec, Ref, Key> bound{ref,
                                      batch.queries,
                                      filled<size_type, Exec>(m),
                                      filled<size_type, Exec>(m),
                                      filled<size_type, Exec>(m),
                                      filled<size_type, Exec>(m)};
    Kokkos::parallel_for("test::BoundKernel", Policy(space, 0, m), bound);
    failures.compare("ref.lower_bound" + on, r.lower, to_host(bound.lower),
                     query);
    failures.compare("ref.upper_bound" + on, r.upper, to_host(bound.upper),
                     query);
    failures.compare("ref.equal_range.first" + on, r.lower,
                     to_host(bound.first), query);
    failures.compare("ref.equal_range.second" + on, r.upper,
                     to_host(bound.last), query);

    RangeKernel<Exec, Ref, Key> kernel{ref,
                                       batch.lo,
                                       batch.hi,
                                       filled<size_type, Exec>(mr),
                                       filled<size_type, Exec>(mr),
                                       filled<size_type, Exec>(mr),
                                       filled<std::uint64_t, Exec>(mr),
                                       filled<std::uint64_t, Exec>(mr)};
    Kokkos::parallel_for("test::RangeKernel", Policy(space, 0, mr), kernel);
    failures.compare("ref.range_count" + on, answers.range_count,
                     to_host(kernel.counts), range);
    failures.compare("ref.for_each_in_range: values" + on, answers.value_sum,
                     to_host(kernel.value_sum), range);
    failures.compare("ref.for_each_in_range: keys" + on, answers.key_sum,
                     to_host(kernel.key_sum), range);
    // Where an empty range begins is not specified.
    auto first = to_host(kernel.first), last = to_host(kernel.last);
    for (std::size_t i = 0; i < mr; ++i)
      if (first[i] == last[i] && r.first[i] == r.last[i])
        first[i] = last[i] = r.first[i];
    failures.compare("ref.range.first" + on, r.first, first, range);
    failures.compare("ref.range.second" + on, r.last, last, range);

    const std::size_t n = r.sorted.size();
    ContentKernel<Exec, Ref, Key, Value> content{ref, filled<Key, Exec>(n),
                                                 filled<Value, Exec>(n)};
    Kokkos::parallel_for("test::ContentKernel", Policy(space, 0, n), content);
    const auto rank = [&](std::size_t i) {
      return "rank " + std::to_string(i);
    };
    failures.compare("ref.key" + on, r.sorted, to_host(content.keys), rank);
    failures.compare("ref.value" + on, values_by_rank, to_host(content.values),
                     rank);
  }
  return failures;
}

}  // namespace kindex_test

#endif
