// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_QUERIES_HPP
#define KINDEX_PERF_QUERIES_HPP

/// \file
/// Batches of queries on a key set, with the reference's answers.

#include "DataSet.hpp"
#include "Options.hpp"
#include "PortableMath.hpp"
#include "Zipf.hpp"

#include <algorithm>
#include <optional>

namespace kindex::perf {

/// A key strictly between two keys, or nothing if there is none.
template <class Key>
std::optional<Key> key_between(const Key& low, const Key& high,
                               std::uint64_t draw) {
  using Traits = KeyTraits<Key>;
  const auto a = Traits::to_bits(low), b = Traits::to_bits(high);
  if constexpr (std::is_same_v<Key, Key128>) {
    const std::uint64_t width = b.hi - a.hi - (b.lo < a.lo ? 1 : 0);
    if (width > 0)  // some 2^64 away, and still below `high`
      return Key128{a.hi + scale_to(draw, width) + (a.lo == ~0ull ? 1 : 0),
                    a.lo + 1};
    if (b.lo - a.lo < 2) return std::nullopt;
    const std::uint64_t lo = a.lo + 1 + scale_to(draw, b.lo - a.lo - 1);
    return Key128{a.hi + (lo < a.lo ? 1 : 0), lo};
  } else {
    const auto width = static_cast<std::uint64_t>(b - a);
    if (b < a || width < 2) return std::nullopt;
    return Traits::from_bits(static_cast<typename Traits::bits_type>(
        a + 1 + scale_to(draw, width - 1)));
  }
}

/// Draws positions of a sorted set, and keys at or between them.
template <class Key>
class Sampler {
 public:
  Sampler(const DataSet<Key>& data, const QueryOrder& order, std::uint64_t seed)
      : data_(data),
        kind_(order.kind),
        ranks_(seed, 10),
        gaps_(seed, 11),
        coins_(seed, 12),
        scatter_(data.size(), seed) {
    if (order.kind == QueryOrder::Kind::zipf)
      zipf_.emplace(data.size(), order.theta);
  }

  /// A position: all alike, popular ones scattered over the set, or ones
  /// around a part of it.
  std::uint64_t rank(std::uint64_t i) const {
    if (zipf_) return scatter_((*zipf_)(ranks_, i));
    if (kind_ == QueryOrder::Kind::normal) return skewed(i, normal_fraction);
    if (kind_ == QueryOrder::Kind::gamma) return skewed(i, gamma_fraction);
    return ranks_.below(data_.size(), i);
  }

  bool is_hit(std::uint64_t i, double hit_rate) const {
    return coins_.unit(i) < hit_rate;
  }

  /// A key of the set with probability `hit_rate`; otherwise one between its
  /// keys, if there is room.
  Key key(std::uint64_t i, double hit_rate) const {
    const std::uint64_t place = rank(i);
    if (is_hit(i, hit_rate)) return data_.sorted(place);
    constexpr std::uint64_t attempts = 32;
    const CounterRandom draws(gaps_(i), 0);
    for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
      // Gap g lies below key g; gap size() lies above all keys.
      const std::uint64_t gap =
          attempt == 0 ? place + (draws(0) & 1)
                       : draws.below(data_.size() + 1, 2 * attempt);
      if (auto key = key_in_gap(gap, draws(2 * attempt + 1))) return *key;
    }
    if (auto key = key_in_gap(data_.size(), draws(1))) return *key;
    if (auto key = key_in_gap(0, draws(1))) return *key;
    return data_.sorted(place);
  }

 private:
  /// N(0.5, 0.125).
  static double normal_fraction(const CounterRandom& random, std::uint64_t i) {
    return 0.5 + 0.125 * portable_normal_quantile(random.unit(i));
  }

  /// Gamma(3, 3), whose mean is 9, by 48.
  static double gamma_fraction(const CounterRandom& random, std::uint64_t i) {
    double sum = 0;
    for (std::uint64_t part = 0; part < 3; ++part)
      sum -= 3 * portable_log(random.unit(3 * i + part));
    return sum / 48;
  }

  /// A position at a random fraction of the set, drawn again where that is
  /// outside.
  template <class Fraction>
  std::uint64_t skewed(std::uint64_t i, const Fraction& fraction) const {
    const CounterRandom tries(ranks_(i), 0);
    const auto size = static_cast<double>(data_.size());
    for (std::uint64_t attempt = 0;; ++attempt) {
      const double place = fraction(tries, attempt) * size;
      if (place >= 0 && place < size) return static_cast<std::uint64_t>(place);
    }
  }

  std::optional<Key> key_in_gap(std::uint64_t gap, std::uint64_t draw) const {
    const auto& keys = data_.sorted;
    const Key low = gap == 0 ? KeyTraits<Key>::lowest() : keys(gap - 1);
    const Key high =
        gap == data_.size() ? KeyTraits<Key>::highest() : keys(gap);
    return key_between(low, high, draw);
  }

  const DataSet<Key>& data_;
  QueryOrder::Kind kind_;
  CounterRandom ranks_, gaps_, coins_;
  Permutation scatter_;
  std::optional<Zipf> zipf_;
};

template <class Key>
std::uint32_t reference_lower_bound(const DataSet<Key>& data, const Key& key) {
  const Key* begin = data.sorted.data();
  return static_cast<std::uint32_t>(
      std::lower_bound(begin, begin + data.size(), key, is_less<Key>) - begin);
}

template <class Key>
std::uint32_t reference_upper_bound(const DataSet<Key>& data, const Key& key) {
  const Key* begin = data.sorted.data();
  return static_cast<std::uint32_t>(
      std::upper_bound(begin, begin + data.size(), key, is_less<Key>) - begin);
}

/// Point queries and their lower bounds.
template <class Key>
struct PointQueries {
  HostArray<Key> keys;
  HostArray<std::uint32_t> ranks;
  double hit_rate = 0;  ///< as it came out

  std::uint64_t size() const { return keys.extent(0); }

  /// Whether query `i` is a key of `data`.
  bool hits(const DataSet<Key>& data, std::uint64_t i) const {
    return ranks(i) < data.size() && !is_less(keys(i), data.sorted(ranks(i)));
  }

  /// `size` queries; where the order is `sorted`, each `batch` of them is.
  static PointQueries make(const DataSet<Key>& data, const Options& options,
                           std::uint64_t size, std::uint64_t batch) {
    PointQueries queries;
    queries.keys = host_array<Key>("queries", size);
    queries.ranks = host_array<std::uint32_t>("reference_ranks", size);
    const Progress progress("answering " + std::to_string(size) +
                            " point queries by the host reference");
    const Sampler<Key> sampler(data, options.order, options.seed);
    if constexpr (is_string<Key>)
      queries.draw_strings(data, sampler, options.hit_rate);
    else
      host_parallel_for(size, [&](std::uint64_t i) {
        queries.keys(i) = sampler.key(i, options.hit_rate);
      });
    if (options.order.kind == QueryOrder::Kind::sorted) {
      queries.sort_batches(batch);
      if constexpr (is_string<Key>) queries.pack();
    }
    host_parallel_for(size, [&](std::uint64_t i) {
      queries.ranks(i) = reference_lower_bound(data, queries.keys(i));
    });
    queries.hit_rate =
        static_cast<double>(host_parallel_sum(
            size,
            [&](std::uint64_t i) { return queries.hits(data, i) ? 1u : 0u; })) /
        static_cast<double>(size);
    return queries;
  }

 private:
  /// Strings of the set; of those that shall miss, the last byte is one that
  /// no generator writes.
  void draw_strings(const DataSet<Key>& data, const Sampler<Key>& sampler,
                    double hit_rate) {
    const auto drawn = [&](std::uint64_t i) {
      return data.sorted(sampler.rank(i));
    };
    keys = packed_strings<Kokkos::HostSpace>(
        "queries", size(), [&](std::uint64_t i) { return drawn(i).size; },
        [&](std::uint64_t i, unsigned char* to) {
          const Bytes from = drawn(i);
          std::copy_n(from.data, from.size, to);
          if (!sampler.is_hit(i, hit_rate)) to[from.size - 1] ^= 0x80;
        });
  }

  /// Copies strings, so that they stand in memory as they are asked.
  void pack() {
    keys = packed<Kokkos::HostSpace>("queries", HostArray<const Key>(keys));
  }

  void sort_batches(std::uint64_t batch) {
    for (std::uint64_t begin = 0; begin < size(); begin += batch) {
      const auto end = std::min(begin + batch, size());
      const HostArray<Key> part = Kokkos::subview(keys, std::pair(begin, end));
      const auto entries = sorted_entries<Key>(part);
      host_parallel_for(end - begin,
                        [&](std::uint64_t i) { part(i) = entries(i).key; });
    }
  }
};

/// Range queries, where their hits begin, and how many there are.
template <class Key>
struct RangeQueries {
  HostArray<Key> lo, hi;
  HostArray<std::uint32_t> first;    ///< rank of the first hit
  HostArray<std::uint64_t> offsets;  ///< prefix sums of the numbers of hits

  std::uint64_t size() const { return lo.extent(0); }
  std::uint64_t hits() const { return offsets(size()); }

  /// Up to `size` ranges of `hits` keys (more where the last one
  /// has equals), but only as many as `most_hits` admits, and at least one.
  static RangeQueries make(const DataSet<Key>& data, const Options& options,
                           std::uint64_t hits, std::uint64_t size,
                           std::uint64_t most_hits) {
    RangeQueries queries;
    const Progress progress("answering " + std::to_string(size) +
                            " range queries by the host reference");
    queries.draw(data, options, hits, size);
    queries.answer(data);
    std::uint64_t fit = size;
    while (fit > 1 && queries.offsets(fit) > most_hits) fit = (fit + 1) / 2;
    if (fit < size) queries.keep(fit);
    return queries;
  }

 private:
  void draw(const DataSet<Key>& data, const Options& options,
            std::uint64_t hits, std::uint64_t size) {
    lo = host_array<Key>("range_lo", size);
    hi = host_array<Key>("range_hi", size);
    const Sampler<Key> sampler(data, options.order, options.seed + 1);
    auto ranks = host_array<std::uint32_t>("range_ranks", size);
    host_parallel_for(size, [&](std::uint64_t i) {
      ranks(i) = static_cast<std::uint32_t>(sampler.rank(i));
    });
    if (options.order.kind == QueryOrder::Kind::sorted) {
      const auto entries = sorted_entries<std::uint32_t>(ranks);
      host_parallel_for(size,
                        [&](std::uint64_t i) { ranks(i) = entries(i).key; });
    }
    host_parallel_for(size, [&](std::uint64_t i) {
      const std::uint64_t last = std::min(ranks(i) + hits, data.size()) - 1;
      lo(i) = data.sorted(ranks(i));
      hi(i) = data.sorted(last);
    });
  }

  void answer(const DataSet<Key>& data) {
    first = host_array<std::uint32_t>("range_first", size());
    offsets = host_array<std::uint64_t>("range_offsets", size() + 1);
    host_parallel_for(size(), [&](std::uint64_t i) {
      first(i) = reference_lower_bound(data, lo(i));
      offsets(i + 1) = reference_upper_bound(data, hi(i)) - first(i);
    });
    offsets(0) = 0;
    for (std::uint64_t i = 0; i < size(); ++i) offsets(i + 1) += offsets(i);
  }

  void keep(std::uint64_t fit) {
    lo = Kokkos::subview(lo, std::pair<std::uint64_t, std::uint64_t>(0, fit));
    hi = Kokkos::subview(hi, std::pair<std::uint64_t, std::uint64_t>(0, fit));
  }
};

}  // namespace kindex::perf

#endif
