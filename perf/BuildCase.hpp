// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BUILD_CASE_HPP
#define KINDEX_PERF_BUILD_CASE_HPP

/// \file
/// How long an index takes to build.

#include "BuildPhases.hpp"
#include "PointCase.hpp"

namespace kindex::perf {

template <class S>
std::string build_name(const S& subject, bool transfers) {
  const Op op = subject.sorted_pairs ? Op::build_sorted : Op::build;
  return subject.name(name_of(op), subject.entry.name) +
         transfers_suffix(transfers ? Transfers::in : Transfers::out);
}

/// The input on the host's side of the transfer.
template <class Key, class Value, class Exec>
struct StagedInput {
  Kokkos::View<Key*, StagingSpace<Exec>> keys;
  Kokkos::View<Value*, StagingSpace<Exec>> values;

  static StagedInput make(const Subject<Key, Value, Exec>& subject) {
    StagedInput staged;
    const auto keys = subject.host_keys();
    const auto values = subject.host_values();
    using Staging = StagingSpace<Exec>;
    staged.keys = array_in<Key, Staging>("staged_keys", keys.extent(0));
    staged.values = array_in<Value, Staging>("staged_values", values.extent(0));
    Kokkos::deep_copy(staged.keys, keys);
    Kokkos::deep_copy(staged.values, values);
    return staged;
  }

  /// Sends it; asynchronous.
  BuildInput<Key, Value, Exec> send(const Exec& space) const {
    using Memory = typename Exec::memory_space;
    Kokkos::View<Key*, Memory> k(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                           "kindex_bench::sent_keys"),
        keys.extent(0));
    Kokkos::View<Value*, Memory> v(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                           "kindex_bench::sent_values"),
        values.extent(0));
    Kokkos::deep_copy(space, k, keys);
    Kokkos::deep_copy(space, v, values);
    return {k, v, {}, {}};
  }
};

/// Verifies an index by some lookups, as find has cases of its own.
template <class Key, class Value, class Exec>
void verify_build(const Subject<Key, Value, Exec>& subject) {
  const std::uint64_t most = std::uint64_t{1} << 20;
  const std::uint64_t queries =
      std::min(subject.session.options.batch(is_host<Exec>), most);
  for (Op op : {Op::find, Op::lower_bound}) {
    if (!subject.entry.supports(op, subject.mode)) continue;
    const PointCase point{
        op, queries,
        subject.entry.takes_no_others ? Transfers::overlapped : Transfers::out};
    if (op == Op::find)
      PointRun<Key, Value, Value, Exec>(subject, point).verify();
    else
      PointRun<Key, Value, std::uint32_t, Exec>(subject, point).verify();
  }
}

template <class Key, class Value, class Exec>
void measure_build(const Subject<Key, Value, Exec>& subject, bool transfers,
                   benchmark::State& state) {
  const std::string name = build_name(subject, transfers);
  run_guarded(subject.session, name, state, [&](benchmark::State& guarded) {
    verify_once(subject.session, name, [&] { verify_build(subject); });
    const Exec space;
    const auto& input = subject.input();
    StagedInput<Key, Value, Exec> staged;
    if (transfers) staged = StagedInput<Key, Value, Exec>::make(subject);

    std::uint64_t bytes = 0;
    const double seconds = time_batches(guarded, [&](std::uint64_t) {
      const auto built =
          subject.build(space, transfers ? staged.send(space) : input);
      space.fence("kindex_bench: built");
      bytes = built->memory_bytes();
    });

    const auto keys = static_cast<double>(subject.spec.size);
    const double in = keys * (subject.key_bytes() +
                              static_cast<double>(value_bytes(subject.mode)));
    guarded.counters["items_per_second"] = keys / seconds;
    guarded.counters["build_ms"] = 1e3 * seconds;
    guarded.counters["bytes_per_key"] = static_cast<double>(bytes) / keys;
    if constexpr (is_string<Key>)
      guarded.counters["chars_per_key"] = subject.chars_per_key();
    guarded.counters["GB_per_s"] =
        1e-9 * (in + static_cast<double>(bytes)) / seconds;
    if (!transfers)
      if (const auto phases = build_phases([&] {
            const auto built = subject.build(space, input);
            space.fence("kindex_bench: built");
          })) {
        guarded.counters["sort_ms"] = 1e3 * phases->sort;
        guarded.counters["inner_ms"] = 1e3 * phases->inner;
        if (subject.entry.takes_no_others)
          guarded.counters["mirror_ms"] = 1e3 * phases->mirror;
      }
    // Of host memory, which is there when it is first written.
    if (subject.entry.takes_no_others) return;
    // What a build pays for its memory, in one piece: no faster kernel saves
    // it.
    guarded.counters["allocation_ms"] =
        1e3 * seconds_of([&] {
          const Kokkos::View<std::byte*, typename Exec::memory_space> memory(
              Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                 "kindex_bench::allocation"),
              bytes);
          space.fence("kindex_bench: allocated");
        });
  });
}

}  // namespace kindex::perf

#endif
