// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_ANY_INDEX_HPP
#define KINDEX_PERF_ANY_INDEX_HPP

/// \file
/// Indexes and baselines behind one interface, so that what measures them is
/// compiled once per key type and not once per index.

#include "KeyType.hpp"
#include "OneThread.hpp"
#include "Options.hpp"

#include <kindex/Error.hpp>
#include <kindex/Types.hpp>
#include <kindex/query/BulkQueries.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kindex::perf {

/// The views that pass between kindex_bench and an index.
template <class Key, class Value, class Exec>
struct Views {
  using Memory = typename Exec::memory_space;
  using Keys = Kokkos::View<const Key*, Memory>;
  using ValuesIn = Kokkos::View<const Value*, Memory>;
  using Values = Kokkos::View<Value*, Memory>;
  using Ranks = Kokkos::View<std::uint32_t*, Memory>;
  using Offsets = Kokkos::View<size_type*, Memory>;
  using HostKeys = Kokkos::View<const Key*, Kokkos::HostSpace>;
  using HostValues = Kokkos::View<Value*, Kokkos::HostSpace>;
  using HostValuesIn = Kokkos::View<const Value*, Kokkos::HostSpace>;
  using HostRanks = Kokkos::View<std::uint32_t*, Kokkos::HostSpace>;

  struct Hits {
    Offsets offsets;
    Values values;
  };
  struct HostHits {
    Kokkos::View<size_type*, Kokkos::HostSpace> offsets;
    HostValues values;
  };
};

/// What an index is built from: sorted keys, or keys and values.
template <class Key, class Value, class Exec>
struct BuildInput {
  using V = Views<Key, Value, Exec>;
  // In the memory of `Exec`, unless the index takes its entries on the host.
  typename V::Keys keys;
  typename V::ValuesIn values;
  // In host memory, otherwise.
  typename V::HostKeys host_keys;
  typename V::HostValuesIn host_values;
};

/// An index, or whatever else answers queries.
template <class Key, class Value, class Exec>
class AnyIndex {
 public:
  using V = Views<Key, Value, Exec>;

  virtual ~AnyIndex() = default;
  virtual void find(const Exec& space, const typename V::Keys& queries,
                    const typename V::Values& out) const = 0;
  /// The same in a kernel of one's own.
  virtual void ref_find(const Exec& space, const typename V::Keys& queries,
                        const typename V::Values& out) const = 0;
  virtual void lower_bound(const Exec& space, const typename V::Keys& queries,
                           const typename V::Ranks& ranks) const = 0;
  virtual void count(const Exec& space, const typename V::Keys& queries,
                     const typename V::Ranks& counts) const = 0;
  virtual typename V::Hits range(const Exec& space, const typename V::Keys& lo,
                                 const typename V::Keys& hi) const = 0;
  /// Adds to `counts(i)` the marked entries of range `i`, visited one by one.
  virtual void count_marked(const Exec& space, const typename V::Keys& lo,
                            const typename V::Keys& hi,
                            const typename V::Ranks& counts) const = 0;
  /// The same for queries and results in any memory of the host.
  virtual void find(const HostBatches<Exec>& batches,
                    const typename V::HostKeys& queries,
                    const typename V::HostValues& out) const = 0;
  virtual void lower_bound(const HostBatches<Exec>& batches,
                           const typename V::HostKeys& queries,
                           const typename V::HostRanks& ranks) const = 0;
  virtual typename V::HostHits range(const HostBatches<Exec>& batches,
                                     const typename V::HostKeys& lo,
                                     const typename V::HostKeys& hi) const = 0;
  /// Of an index whose searches the host may begin.
  virtual void set_division(const WorkDivision& division) = 0;
  virtual WorkDivision balance(const HostBatches<Exec>& batches,
                               const typename V::HostKeys& sample) = 0;
  virtual int height() const = 0;
  /// The parts of lower_bound that device and host have, each alone, of an
  /// index that takes no others than batches in host memory.
  virtual void guess(const Exec& space, const typename V::Keys& queries,
                     const typename V::Ranks& guesses) const = 0;
  virtual void finish(const typename V::HostKeys& queries,
                      const typename V::HostRanks& guesses,
                      const typename V::HostRanks& ranks) const = 0;
  virtual std::uint64_t memory_bytes() const = 0;
};

/// Whether for_each_in_range counts an entry: one in 64. The others are read,
/// and leave the memory alone.
template <class Key, class Value>
KOKKOS_INLINE_FUNCTION bool is_marked(const Key& key, const Value& value) {
  std::uint64_t bits = static_cast<std::uint64_t>(value);
  if constexpr (std::is_integral_v<Key>)
    bits ^= static_cast<std::uint64_t>(key);
  return bits % 64 == 0;
}

/// What for_each_in_range is called with.
template <class Key, class Value, class Counts>
struct CountMarked {
  Counts counts;

  KOKKOS_FUNCTION void operator()(size_type query, const Key& key,
                                  const Value& value) const {
    if (is_marked(key, value)) Kokkos::atomic_inc(&counts(query));
  }
};

namespace impl {

struct NoHits {};
template <class Index>
struct HitsOf {
  using type = NoHits;
};
template <class Index>
requires requires { typename Index::hits_type; }
struct HitsOf<Index> {
  using type = typename Index::hits_type;
};

/// Threads that make a lookup of `Index` together; 0 of what has no handle for
/// kernels.
template <class Index>
struct LanesOf {
  static constexpr int value = 0;
};
template <class Index>
requires requires { Index::Ref::lanes; }
struct LanesOf<Index> {
  static constexpr int value = Index::Ref::lanes;
};

}  // namespace impl

/// What `Index` writes the hits of ranges to.
template <class Index>
using HitsOf = typename impl::HitsOf<Index>::type;

/// What `Index` must offer, by the public names of the library's indexes; verbs
/// that it lacks are not measured. A `static bool supports(Op, ValueMode)`
/// restricts it further.
///
///     Index(space, kindex::sorted, keys);  Index(space, keys, values);
///     Index(space, kindex::sorted, keys, values);
///     find, lower_bound, count (space, queries, out);  range(space, lo, hi,
///     hits), with a hits_type;  memory_bytes();
template <class Index, class Key, class Value, class Exec>
class Adapter final : public AnyIndex<Key, Value, Exec> {
 public:
  using V = Views<Key, Value, Exec>;
  using Keys = typename V::Keys;
  using Values = typename V::Values;
  using Ranks = typename V::Ranks;
  using HostKeys = typename V::HostKeys;

  template <class... Arguments>
  explicit Adapter(const Exec& space, const Arguments&... arguments)
      : index_(space, arguments...) {}

  static constexpr bool has_find =
      requires(const Index& i, Exec e, Keys k, Values v) {
    i.find(e, k, v);
  };
  /// Of what one thread looks up alone anyway. Others would be compiled for
  /// the sake of what their users should not do.
  static constexpr bool has_ref_find =
      impl::LanesOf<Index>::value == 1 &&
      (is_wide_unsigned<Key> || is_string<Key>);
  static constexpr bool has_lower_bound =
      requires(const Index& i, Exec e, Keys k, Ranks r) {
    i.lower_bound(e, k, r);
  };
  static constexpr bool has_count =
      requires(const Index& i, Exec e, Keys k, Ranks r) {
    i.count(e, k, r);
  };
  static constexpr bool has_range =
      requires(const Index& i, Exec e, Keys k, HitsOf<Index>& h) {
    i.range(e, k, k, h);
  };
  static constexpr bool has_visits =
      requires(const Index& i, Exec e, Keys k, Ranks r) {
    i.count_marked(e, k, k, r);
  };
  /// Of batches in host memory, with the hits there, too.
  static constexpr bool has_host_range = requires(
      const Index& i, HostBatches<Exec> b, HostKeys k, HitsOf<Index>& h) {
    i.host_range(b, k, k, h);
  };

  /// Whether the work of its searches can be divided.
  static constexpr bool is_divisible = requires(Index & i, WorkDivision d) {
    i.set_division(d);
  };

  /// Whether it takes no others than batches in host memory.
  static constexpr bool takes_no_others = requires {
    Index::takes_host_batches;
  };
  /// Whether it takes batches in host memory: the library's indexes do.
  static constexpr bool takes_host_batches =
      takes_no_others ||
      std::is_base_of_v<
          query::BulkQueries<Index, Key, Value, typename Exec::memory_space>,
          Index>;

  static bool supports(Op op, ValueMode mode) {
    if constexpr (requires { Index::supports(op, mode); })
      if (!Index::supports(op, mode)) return false;
    if (takes_no_others)
      return op == Op::build || op == Op::find || op == Op::lower_bound ||
             (op == Op::range && has_host_range) ||
             (op == Op::divide && is_divisible);
    switch (op) {
      case Op::build: return true;
      case Op::build_sorted: return mode != ValueMode::none;
      case Op::fit:     // of keys, not of an index
      case Op::update:  // of some indexes, with their own cases
      case Op::parent_chain:
      case Op::divide:  // of batches in host memory
        return false;
      case Op::find: return has_find;
      case Op::ref_find: return has_ref_find;
      case Op::lower_bound: return has_lower_bound;
      case Op::count: return has_count;
      case Op::range: return has_range;
      case Op::for_each_in_range: return has_visits;
    }
    return false;
  }

  void find(const Exec& space, const Keys& queries,
            const Values& out) const override {
    if constexpr (has_find)
      index_.find(space, queries, out);
    else
      unsupported();
  }
  void ref_find(const Exec& space, const Keys& queries,
                const Values& out) const override {
    if constexpr (has_ref_find)
      find_alone(space, index_.ref(), queries, out);
    else
      unsupported();
  }
  void lower_bound(const Exec& space, const Keys& queries,
                   const Ranks& ranks) const override {
    if constexpr (has_lower_bound)
      index_.lower_bound(space, queries, ranks);
    else
      unsupported();
  }
  void count(const Exec& space, const Keys& queries,
             const Ranks& counts) const override {
    if constexpr (has_count)
      index_.count(space, queries, counts);
    else
      unsupported();
  }
  typename V::Hits range(const Exec& space, const Keys& lo,
                         const Keys& hi) const override {
    if constexpr (has_range) {
      index_.range(space, lo, hi, hits_);
      return {hits_.offsets, hits_.values};
    } else {
      unsupported();
    }
  }
  void count_marked(const Exec& space, const Keys& lo, const Keys& hi,
                    const Ranks& counts) const override {
    if constexpr (has_visits)
      index_.count_marked(space, lo, hi, counts);
    else
      unsupported();
  }
  void find(const HostBatches<Exec>& batches, const HostKeys& queries,
            const typename V::HostValues& out) const override {
    if constexpr (takes_host_batches)
      index_.find(batches, queries, out);
    else
      unsupported();
  }
  void lower_bound(const HostBatches<Exec>& batches, const HostKeys& queries,
                   const typename V::HostRanks& ranks) const override {
    if constexpr (takes_host_batches)
      index_.lower_bound(batches, queries, ranks);
    else
      unsupported();
  }
  typename V::HostHits range(const HostBatches<Exec>& batches,
                             const HostKeys& lo,
                             const HostKeys& hi) const override {
    if constexpr (has_host_range) {
      index_.host_range(batches, lo, hi, hits_);
      return {hits_.offsets, hits_.values};
    } else {
      unsupported();
    }
  }
  void set_division(const WorkDivision& division) override {
    if constexpr (is_divisible)
      index_.set_division(division);
    else
      unsupported();
  }
  WorkDivision balance(const HostBatches<Exec>& batches,
                       const HostKeys& sample) override {
    if constexpr (is_divisible)
      return index_.balance(batches, sample);
    else
      unsupported();
  }
  int height() const override {
    if constexpr (is_divisible)
      return index_.height();
    else
      unsupported();
  }
  void guess(const Exec& space, const Keys& queries,
             const Ranks& guesses) const override {
    if constexpr (takes_no_others)
      index_.guess(space, queries, guesses);
    else
      unsupported();
  }
  void finish(const HostKeys& queries, const typename V::HostRanks& guesses,
              const typename V::HostRanks& ranks) const override {
    if constexpr (takes_no_others)
      index_.finish(queries, guesses, ranks);
    else
      unsupported();
  }
  std::uint64_t memory_bytes() const override { return index_.memory_bytes(); }

 private:
  [[noreturn]] static void unsupported() {
    throw Error("kindex_bench: the index lacks this operation");
  }

  Index index_;
  /// Of the last batch: its memory is used again, as a program would do.
  mutable HitsOf<Index> hits_;
};

/// A registered index: its name, what it can do, and how it is built.
template <class Key, class Value, class Exec>
struct IndexEntry {
  using Any = AnyIndex<Key, Value, Exec>;
  using Build = std::function<std::unique_ptr<Any>(
      const Exec&, const BuildInput<Key, Value, Exec>&)>;

  std::string name;
  bool (*supports)(Op, ValueMode);
  Build from_sorted;
  Build from_pairs;
  Build from_sorted_pairs;          ///< empty: it cannot be built so
  bool takes_host_batches = false;  ///< find and lower_bound do
  bool takes_no_others = false;     ///< than batches in host memory
  bool takes_host_ranges = false;   ///< range does
  bool is_ablation = false;         ///< measured only where asked for
};

/// The indexes registered for a key type, a value type and a space.
template <class Key, class Value, class Exec>
class IndexList {
 public:
  using Entry = IndexEntry<Key, Value, Exec>;
  using V = Views<Key, Value, Exec>;

  /// `leading` come before the keys in the arguments of Index's constructor.
  template <class Index, class... Leading>
  void add(std::string name, const Leading&... leading) {
    using Adapted = Adapter<Index, Key, Value, Exec>;
    using Input = BuildInput<Key, Value, Exec>;
    const auto keys_of = [](const Input& input) {
      if constexpr (Adapted::takes_no_others) {
        return input.host_keys;
      } else {
        return input.keys;
      }
    };
    const auto values_of = [](const Input& input) {
      if constexpr (Adapted::takes_no_others) {
        return input.host_values;
      } else {
        return input.values;
      }
    };
    const auto from_sorted = [=](const Exec& space, const Input& input) {
      return std::make_unique<Adapted>(space, leading..., sorted,
                                       keys_of(input));
    };
    const auto from_pairs = [=](const Exec& space, const Input& input) {
      return std::make_unique<Adapted>(space, leading..., keys_of(input),
                                       values_of(input));
    };
    Entry entry{std::move(name),
                &Adapted::supports,
                from_sorted,
                from_pairs,
                {},
                Adapted::takes_host_batches,
                Adapted::takes_no_others,
                Adapted::has_host_range};
    if constexpr (std::is_constructible_v<Index, Exec, Leading..., SortedTag,
                                          typename V::Keys,
                                          typename V::ValuesIn>)
      entry.from_sorted_pairs = [=](const Exec& space, const Input& input) {
        return std::make_unique<Adapted>(space, leading..., sorted,
                                         keys_of(input), values_of(input));
      };
    entries_.push_back(std::move(entry));
  }

  /// The same for what `--index all` leaves out.
  template <class Index, class... Leading>
  void add_ablation(std::string name, const Leading&... leading) {
    add<Index>(std::move(name), leading...);
    entries_.back().is_ablation = true;
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace kindex::perf

#endif
