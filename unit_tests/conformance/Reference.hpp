// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data sets, and the right answers computed with std::. One instantiation per
// key type.
#ifndef KINDEX_UNIT_TESTS_CONFORMANCE_REFERENCE_HPP
#define KINDEX_UNIT_TESTS_CONFORMANCE_REFERENCE_HPP

#include <kindex/Types.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/Keys.hpp"

namespace kindex_test {

using kindex::size_type;

template <class Key>
struct DataSet {
  std::string name;
  std::vector<Key> keys;
};

template <class Key>
struct Reference {
  std::string name;
  std::vector<Key> input;
  std::vector<Key> sorted;
  std::vector<size_type>
      order;  // order[rank] = position in the input; equal keys in input order

  std::vector<Key> queries;
  std::vector<size_type> lower, upper;

  std::vector<Key> lo, hi;
  std::vector<size_type> first, last;  // ranks [first, last) of the hits
  std::vector<size_type>
      offsets;  // exclusive sum of last - first, as in a CSR result

  Reference(const DataSet<Key>& data, std::size_t max_queries = 300)
      : name(data.name), input(data.keys) {
    order.resize(input.size());
    std::iota(order.begin(), order.end(), size_type{0});
    std::stable_sort(order.begin(), order.end(), [&](size_type a, size_type b) {
      return Keys<Key>::less(input[a], input[b]);
    });
    for (const size_type i : order) sorted.push_back(input[i]);
    make_queries(max_queries);
    make_ranges();
  }

  /// Leaves a batch without queries.
  void ask_nothing() {
    queries.clear();
    lo.clear();
    hi.clear();
    for (auto* answers : {&lower, &upper, &first, &last}) answers->clear();
    offsets = {0};
  }

  std::string describe() const {
    return name + " (n = " + std::to_string(input.size()) + ")";
  }

 private:
  using K = Keys<Key>;

  size_type lower_rank(Key q) const {
    if (K::is_nan(q)) return sorted.size();
    return std::lower_bound(sorted.begin(), sorted.end(), q, K::less) -
           sorted.begin();
  }
  size_type upper_rank(Key q) const {
    if (K::is_nan(q)) return sorted.size();
    return std::upper_bound(sorted.begin(), sorted.end(), q, K::less) -
           sorted.begin();
  }

  void make_queries(std::size_t max_queries) {
    std::mt19937_64 rng(sorted.size() + 1);
    for (const auto& more : {K::extremes(), K::odd_queries()})
      queries.insert(queries.end(), more.begin(), more.end());
    queries.push_back(K::min());
    queries.push_back(K::max());
    if (!sorted.empty()) {
      for (const Key k : {sorted.front(), sorted.back()})
        for (const Key q : {K::below(k), k, K::above(k)}) queries.push_back(q);
      const std::size_t sample = std::min(sorted.size(), max_queries / 4 + 1);
      for (std::size_t i = 0; i < sample; ++i) {
        const Key k =
            sorted[sample == sorted.size() ? i : rng() % sorted.size()];
        for (const Key q : {K::below(k), k, K::above(k)}) queries.push_back(q);
      }
    }
    for (int i = 0; i < 11; ++i) queries.push_back(K::random(rng));
    std::shuffle(queries.begin(), queries.end(), rng);
    for (const Key q : queries) {
      lower.push_back(lower_rank(q));
      upper.push_back(upper_rank(q));
    }
  }

  void make_ranges() {
    std::mt19937_64 rng(sorted.size() + 2);
    const auto add = [&](Key a, Key b) {
      lo.push_back(a);
      hi.push_back(b);
    };
    add(K::min(), K::max());
    add(K::max(), K::min());  // lo > hi
    for (const Key q : K::odd_queries()) {
      add(q, K::max());
      add(K::min(), q);
      add(q, q);
    }
    for (std::size_t i = 0; i < 14; ++i)
      add(queries[rng() % queries.size()], queries[rng() % queries.size()]);
    if (!sorted.empty()) {
      add(sorted.front(), sorted.back());
      add(K::below(sorted.front()), K::above(sorted.back()));
      for (std::size_t i = 0; i < 60; ++i) {
        const std::size_t from = rng() % sorted.size();
        const std::size_t to =
            std::min(sorted.size() - 1, from + (i % 4 == 0 ? 0 : rng() % 40));
        const Key a = sorted[from], b = sorted[to];
        switch (i % 5) {
          case 0: add(a, b); break;
          case 1: add(K::above(a), b); break;
          case 2: add(a, K::below(b)); break;
          case 3: add(K::below(a), K::above(b)); break;
          default: add(b, a); break;
        }
      }
    }
    offsets.push_back(0);
    for (std::size_t i = 0; i < lo.size(); ++i) {
      const bool ordered =
          !K::is_nan(lo[i]) && !K::is_nan(hi[i]) && !K::less(hi[i], lo[i]);
      first.push_back(lower_rank(lo[i]));
      last.push_back(ordered ? upper_rank(hi[i]) : first.back());
      offsets.push_back(offsets.back() + last.back() - first.back());
    }
  }
};

/// n keys of any bit pattern.
template <class Key>
DataSet<Key> random_keys(std::size_t n, unsigned seed = 1) {
  std::mt19937_64 rng(seed * 7919 + n);
  DataSet<Key> data{"random", {}};
  for (std::size_t i = 0; i < n; ++i)
    data.keys.push_back(Keys<Key>::random(rng));
  return data;
}

/// n keys drawn from `distinct` ones.
template <class Key>
DataSet<Key> duplicate_keys(std::size_t n, std::size_t distinct) {
  std::mt19937_64 rng(n + distinct);
  const auto pool = random_keys<Key>(distinct, 2).keys;
  DataSet<Key> data{"duplicates of " + std::to_string(distinct), {}};
  for (std::size_t i = 0; i < n; ++i)
    data.keys.push_back(pool[rng() % distinct]);
  return data;
}

template <class Key>
DataSet<Key> equal_keys(std::size_t n, Key key) {
  return {"all equal", std::vector<Key>(n, key)};
}

/// Consecutive integers (for 8 bits: as many as there are), shuffled.
template <class Key>
DataSet<Key> dense_keys(std::size_t n) {
  DataSet<Key> data{"dense", {}};
  Key k = Keys<Key>::of(std::is_unsigned_v<Key> ? 0 : -50);
  for (std::size_t i = 0; i < n; ++i) {
    data.keys.push_back(k);
    if constexpr (Keys<Key>::floating) {
      k += 1;
    } else {
      if (!Keys<Key>::less(k, Keys<Key>::max())) break;
      k = Keys<Key>::above(k);
    }
  }
  std::shuffle(data.keys.begin(), data.keys.end(), std::mt19937_64(n));
  return data;
}

/// Every neighbouring representable key from 1 on, shuffled.
template <class Key>
DataSet<Key> adjacent_keys(std::size_t n) {
  DataSet<Key> data{"adjacent", {}};
  Key k = Keys<Key>::of(1);
  for (std::size_t i = 0; i < n; ++i, k = Keys<Key>::above(k))
    data.keys.push_back(k);
  std::shuffle(data.keys.begin(), data.keys.end(), std::mt19937_64(n));
  return data;
}

/// The type's extremes, each `copies` times, among some random keys.
template <class Key>
DataSet<Key> extreme_keys(std::size_t copies, std::size_t others) {
  DataSet<Key> data = random_keys<Key>(others, 3);
  data.name = "extremes";
  for (std::size_t i = 0; i < copies; ++i)
    for (const Key k : Keys<Key>::extremes()) data.keys.push_back(k);
  std::shuffle(data.keys.begin(), data.keys.end(), std::mt19937_64(copies));
  return data;
}

/// Half duplicates, half random: for sweeps over n.
template <class Key>
DataSet<Key> mixed_keys(std::size_t n) {
  DataSet<Key> data = random_keys<Key>((n + 1) / 2, 4);
  data.name = "mixed";
  std::mt19937_64 rng(n);
  while (data.keys.size() < n)
    data.keys.push_back(data.keys[rng() % data.keys.size()]);
  std::shuffle(data.keys.begin(), data.keys.end(), rng);
  return data;
}

/// K^j - 1, K^j, K^j + 1 for the fan-outs of tree-like indexes, up to `limit`.
inline std::vector<std::size_t> sizes_around_powers(std::size_t limit) {
  std::vector<std::size_t> sizes;
  for (const std::size_t fan_out : {2, 3, 5, 9, 17, 33, 65})
    for (std::size_t power = fan_out; power + 1 <= limit; power *= fan_out)
      for (const std::size_t n : {power - 1, power, power + 1})
        if (n > 70) sizes.push_back(n);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace kindex_test

#endif
