// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_CHAIN_CASE_HPP
#define KINDEX_PERF_CHAIN_CASE_HPP

/// \file
/// Lookups that follow keys to the root of a hierarchy: verified, then timed.

#include "Random.hpp"
#include "Subject.hpp"
#include "Timing.hpp"

#include <algorithm>
#include <string>

namespace kindex::perf {

struct ChainCase {
  std::string index;
  std::uint64_t queries;  ///< per batch
};

/// A hierarchy of the keys of a set, equal ones taken for one: each has as many
/// children as another, as far as there are keys, at places without order.
template <class Key>
struct Hierarchy {
  static constexpr std::uint64_t fan_out = 10;

  DataSet<Key> data;                 ///< the keys
  HostArray<std::uint32_t> parents;  ///< ranks; the root is its own
  HostArray<Key> parent_keys;
  std::uint64_t height = 0;  ///< most steps to the root

  /// Node 0 is the root; children of node i are those from `fan_out` i + 1 on.
  static std::uint64_t parent(std::uint64_t node) {
    return node == 0 ? 0 : (node - 1) / fan_out;
  }

  Hierarchy(const DataSet<Key>& all, std::uint64_t seed) {
    const Progress progress("making a hierarchy of " +
                            std::to_string(all.size()) + " keys");
    auto keys = host_array<Key>("hierarchy_keys", all.size());
    const Key* const begin = all.sorted.data();
    const auto size = static_cast<std::uint64_t>(
        std::unique_copy(begin, begin + all.size(), keys.data()) - keys.data());
    data.sorted =
        Kokkos::subview(keys, std::pair<std::uint64_t, std::uint64_t>(0, size));
    data.keys = data.sorted;
    parents = host_array<std::uint32_t>("parents", size);
    parent_keys = host_array<Key>("parent_keys", size);
    const Permutation place(size, seed);
    host_parallel_for(size, [&](std::uint64_t node) {
      const std::uint64_t rank = place(node), above = place(parent(node));
      parents(rank) = static_cast<std::uint32_t>(above);
      parent_keys(rank) = data.sorted(above);
    });
    for (std::uint64_t node = size - 1; node > 0; node = parent(node)) ++height;
  }

  /// Calls `visit(parent)` with the ranks of the ancestors of a key; ends where
  /// it returns false.
  template <class Visit>
  void for_each_parent(std::uint32_t rank, const Visit& visit) const {
    for (; parents(rank) != rank; rank = parents(rank))
      if (!visit(parents(rank))) return;
  }
};

/// Keys to start from, and room for what is found.
template <class Key, class Exec>
struct ChainBuffers {
  using Memory = typename Exec::memory_space;

  PointQueries<Key> asked;
  std::uint64_t lookups;  ///< that the chains of `asked` take
  Kokkos::View<const Key*, Memory> keys;
  Kokkos::View<Key**, Memory> parents;
  Kokkos::View<std::uint32_t*, Memory> lengths;

  ChainBuffers(const Hierarchy<Key>& hierarchy, const Options& options,
               std::uint64_t queries, std::uint64_t batch)
      : asked(PointQueries<Key>::make(hierarchy.data, options, queries, batch)),
        lookups(host_parallel_sum(queries,
                                  [&](std::uint64_t i) {
                                    // That of its last ancestor fails, or finds
                                    // the root to be its own parent.
                                    std::uint64_t steps = 1;
                                    if (asked.hits(hierarchy.data, i))
                                      hierarchy.for_each_parent(
                                          asked.ranks(i), [&](std::uint32_t) {
                                            ++steps;
                                            return true;
                                          });
                                    return steps;
                                  })),
        keys(on_device<Exec>("chain_keys", HostArray<const Key>(asked.keys))),
        // One more than there can be, so that the last search is made, too.
        parents(Kokkos::view_alloc("kindex_bench::parents",
                                   Kokkos::WithoutInitializing),
                queries, hierarchy.height + 1),
        lengths(array_in<std::uint32_t, Memory>("chain_lengths", queries)) {}
};

template <class Key, class Exec>
std::string chain_name(const Subject<Key, std::uint32_t, Exec>& subject,
                       const ChainCase& chain) {
  return subject.key_name(name_of(Op::parent_chain), chain.index) +
         "/values:parents/fan_out:" + std::to_string(Hierarchy<Key>::fan_out) +
         subject.hit_suffix() +
         subject.batch_suffix(chain.queries, Transfers::out);
}

/// A benchmark of parent_chain that is ready to run.
///
/// \tparam Index from keys to keys.
template <class Index, class Key, class Exec>
class ChainRun {
  using Buffers = ChainBuffers<Key, Exec>;

 public:
  ChainRun(const Subject<Key, std::uint32_t, Exec>& subject,
           const ChainCase& chain)
      : subject_(subject),
        chain_(chain),
        hierarchy_(hierarchy()),
        batches_(batches_in_turn(
            chain.queries,
            sizeof(Key) * (hierarchy_.height + 2) + sizeof(std::uint32_t))),
        buffers_(buffers()),
        index_(index()) {}

  /// Answers a batch, and waits for it.
  void run(std::uint64_t batch) const {
    const std::uint64_t begin = batch % batches_ * chain_.queries;
    const std::pair slice(begin, begin + chain_.queries);
    index_.parent_chain(space_, Kokkos::subview(buffers_.keys, slice),
                        Kokkos::subview(buffers_.parents, slice, Kokkos::ALL),
                        Kokkos::subview(buffers_.lengths, slice));
    space_.fence("kindex_bench: a batch is done");
  }

  /// Answers all batches and compares every chain with the reference.
  void verify() const {
    Kokkos::deep_copy(buffers_.parents, Key{});
    Kokkos::deep_copy(buffers_.lengths, 0x5a5a5a5a);
    for (std::uint64_t batch = 0; batch < batches_; ++batch) run(batch);
    const auto parents = Kokkos::create_mirror_view_and_copy(
        Kokkos::HostSpace{}, buffers_.parents);
    const auto lengths = Kokkos::create_mirror_view_and_copy(
        Kokkos::HostSpace{}, buffers_.lengths);
    const auto is_right = [&](std::uint64_t i) {
      std::uint32_t level = 0;
      bool same = true;
      if (buffers_.asked.hits(hierarchy_.data, i))
        hierarchy_.for_each_parent(
            buffers_.asked.ranks(i), [&](std::uint32_t parent) {
              same = parents(i, level) == hierarchy_.data.sorted(parent);
              ++level;
              return same;
            });
      return same && lengths(i) == level;
    };
    const std::uint64_t n = buffers_.asked.size();
    const std::uint64_t wrong = host_parallel_find_first(
        n, [&](std::uint64_t i) { return !is_right(i); });
    if (wrong < n)
      throw Error("wrong result: parent_chain of key " +
                  printed(buffers_.asked.keys(wrong)) + " (query " +
                  std::to_string(wrong) + ") gave a chain of " +
                  std::to_string(lengths(wrong)) +
                  " keys that is not that of the host reference");
  }

  /// Of a batch, on average.
  double lookups() const {
    return static_cast<double>(buffers_.lookups) /
           static_cast<double>(batches_);
  }
  double hit_rate() const { return buffers_.asked.hit_rate; }
  std::uint64_t index_bytes() const { return index_.memory_bytes(); }

 private:
  std::string key() const {
    return subject_.data_key() + " hierarchy " + Exec::name();
  }

  const Hierarchy<Key>& hierarchy() const {
    const DataSet<Key>& data = subject_.data();
    return subject_.session.cache.template get<Hierarchy<Key>>(
        "hierarchy", subject_.data_key(),
        [&] { return Hierarchy<Key>(data, subject_.session.options.seed); });
  }

  const Buffers& buffers() const {
    const Options& options = subject_.session.options;
    return subject_.session.cache.template get<Buffers>(
        "chains", key() + std::to_string(chain_.queries), [&] {
          return Buffers(hierarchy_, options, chain_.queries * batches_,
                         chain_.queries);
        });
  }

  const Index& index() const {
    return subject_.session.cache.template get<Index>(
        "index", chain_.index + key(), [&] {
          const Progress progress("building " + chain_.index + " of " +
                                  subject_.spec.description() +
                                  " and their parents on " + Exec::name());
          const Index built(
              space_, sorted, on_device<Exec>("keys", hierarchy_.data.sorted),
              on_device<Exec>("parents",
                              HostArray<const Key>(hierarchy_.parent_keys)),
              Check::off);
          space_.fence("kindex_bench: built");
          return built;
        });
  }

  Exec space_;
  const Subject<Key, std::uint32_t, Exec>& subject_;
  ChainCase chain_;
  const Hierarchy<Key>& hierarchy_;
  std::uint64_t batches_;
  const Buffers& buffers_;
  const Index& index_;
};

template <class Index, class Key, class Exec>
void measure_chains(const Subject<Key, std::uint32_t, Exec>& subject,
                    const ChainCase& chain, benchmark::State& state) {
  Session& session = subject.session;
  const std::string name = chain_name(subject, chain);
  run_guarded(session, name, state, [&](benchmark::State& guarded) {
    const ChainRun<Index, Key, Exec> run(subject, chain);
    verify_once(session, name, [&] { run.verify(); });
    const double seconds =
        time_batches(guarded, [&](std::uint64_t batch) { run.run(batch); });

    const auto queries = static_cast<double>(chain.queries);
    const double lookups = run.lookups();
    // A query and the length of its chain, each ancestor as it is written, and
    // one sector per lookup.
    const double bytes = queries * (sizeof(Key) + sizeof(std::uint32_t)) +
                         (lookups - queries) * sizeof(Key) + lookups * 32;
    guarded.counters["items_per_second"] = queries / seconds;
    guarded.counters["ns_per_lookup"] = 1e9 * seconds / queries;
    guarded.counters["batch_us"] = 1e6 * seconds;
    guarded.counters["lookups_per_second"] = lookups / seconds;
    guarded.counters["lookups_per_query"] = lookups / queries;
    guarded.counters["hit_rate"] = run.hit_rate();
    guarded.counters["GB_per_s"] = 1e-9 * bytes / seconds;
    guarded.counters["bytes_per_key"] = static_cast<double>(run.index_bytes()) /
                                        static_cast<double>(subject.spec.size);
  });
}

}  // namespace kindex::perf

#endif
