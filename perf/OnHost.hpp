// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_ON_HOST_HPP
#define KINDEX_PERF_ON_HOST_HPP

/// \file
/// Indexes whose entries are in host memory, as kindex_bench asks them.

#include "Spaces.hpp"

#include <kindex/Types.hpp>
#include <kindex/query/BulkQueries.hpp>
#include <kindex/query/WorkDivision.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace kindex::perf {

/// `Index`, built from keys and values in host memory; asked for batches there
/// only.
template <class Index>
class OnHost {
  using Key = typename Index::key_type;

 public:
  /// It has no verbs for Views in the device's memory.
  static constexpr bool takes_host_batches = true;
  using hits_type = typename Index::hits_type;

  template <class Exec, class Keys>
  OnHost(const Exec& space, SortedTag, const Keys& keys)
      : index_(space, sorted, keys) {}

  template <class Exec, class Keys, class Values>
  OnHost(const Exec& space, const Keys& keys, const Values& values)
      : index_(space, keys, values) {}

  template <class Exec, class Queries, class Out>
  void find(const HostBatches<Exec>& batches, const Queries& queries,
            const Out& out) const {
    index_.find(batches, queries, out);
  }
  template <class Exec, class Queries, class Ranks>
  void lower_bound(const HostBatches<Exec>& batches, const Queries& queries,
                   const Ranks& ranks) const {
    index_.lower_bound(batches, queries, ranks);
  }

  /// Ranges whose ends and hits are in host memory.
  template <class Exec, class Queries>
  void host_range(const HostBatches<Exec>& batches, const Queries& lo,
                  const Queries& hi, hits_type& hits) const {
    index_.range(batches, lo, hi, hits);
  }

  /// How searches are divided between host and device, where they can be.
  void set_division(const WorkDivision& division) requires
      requires(Index& index) {
    index.set_division(division);
  }
  { index_.set_division(division); }
  template <class Exec, class Queries>
  WorkDivision balance(const HostBatches<Exec>& batches,
                       const Queries& sample) {
    return index_.balance(batches, sample);
  }
  int height() const { return index_.height(); }

  /// Writes where the device expects the lower bounds of queries in its memory:
  /// its part of a lookup alone.
  template <class Exec, class Queries, class Guesses>
  void guess(const Exec& space, const Queries& queries,
             const Guesses& guesses) const {
    using Router = decltype(index_.router());
    const auto asked = query::as_input(query::strided<Exec>(queries));
    query::run_lookups(
        "kindex_bench::guess", space,
        query::RouterRef<Key, Router>{index_.router(), index_.size()},
        query::RouteVerb<Key, Key, query::Bounds::lower>{asked, asked,
                                                         guesses.data(), 0},
        asked.size, LookupPolicy());
  }

  /// Lower bounds from such guesses, all in host memory: its part alone.
  template <class Queries, class Guesses, class Ranks>
  void finish(const Queries& queries, const Guesses& guesses,
              const Ranks& ranks) const {
    using Host = Kokkos::DefaultHostExecutionSpace;
    using Ref = typename Index::Ref;
    using Rank = typename Ranks::non_const_value_type;
    using Verb = query::BoundVerb<Key, Key, Rank, false>;
    const auto asked = query::as_input(query::strided<Host>(queries));
    const auto out =
        query::strided_output<Host>("finish", "ranks", ranks, asked.size);
    const Host host;
    query::run_lookups(
        "kindex_bench::finish", host, query::GuidedRef<Ref>(index_.ref()),
        query::GuidedVerb<Verb>{Verb{{asked, out}}, 0, guesses.data(), 0},
        asked.size, LookupPolicy());
    host.fence("kindex_bench: finished");
  }

  std::uint64_t memory_bytes() const { return index_.memory_bytes(); }

 private:
  Index index_;
};

}  // namespace kindex::perf

#endif
