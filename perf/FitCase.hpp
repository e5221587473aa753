// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_FIT_CASE_HPP
#define KINDEX_PERF_FIT_CASE_HPP

/// \file
/// How long the piecewise-linear fit of a learned index takes, by itself.

#include "Subject.hpp"
#include "Timing.hpp"

#include <kindex/build/Entries.hpp>
#include <kindex/build/LinearFit.hpp>
#include <kindex/build/SegmentLevels.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace kindex::perf {

/// The index whose fit it is.
inline constexpr std::string_view fitted_index = "learned_index";

template <class S>
std::string fit_name(const S& subject, std::uint64_t epsilon) {
  return subject.key_name("fit", std::string(fitted_index)) +
         "/epsilon:" + std::to_string(epsilon);
}

/// The fit of sorted keys, as LearnedIndex calls it.
template <class Key, class Exec>
build::LinearSegments<query::CodeBits<Key>, typename Exec::memory_space>
fit_keys(const Exec& space,
         const Kokkos::View<const Key*, typename Exec::memory_space>& keys,
         std::uint64_t epsilon, std::uint64_t chunks = 0) {
  // The type of LearnedIndex, so that its kernels are not compiled twice.
  using Entries = build::EntriesRef<Key, std::uint32_t, SoA>;
  const Entries entries{const_cast<Key*>(keys.data()), nullptr, keys.extent(0)};
  return build::fit_segments<query::CodeBits<Key>>(
      space, "kindex_bench::fit", build::CoordinateOfEntry<Entries>{entries},
      keys.extent(0), epsilon, chunks);
}

/// Throws unless segments come in ascending order from the first key, and each
/// predicts the ranks of its keys: a rank is the position of the first key of
/// equal coordinate, and may be missed by `epsilon`, and 1 for rounding.
template <class Key, class Starts, class Models>
void check_fit(const HostArray<const Key>& sorted, const Starts& starts,
               const Models& models, std::uint64_t epsilon) {
  using X = query::CodeBits<Key>;
  const std::uint64_t n = sorted.extent(0);
  const std::uint64_t segments = starts.extent(0);
  const X* const begin = starts.data();
  if (segments == 0 || begin[0] != query::code_bits(sorted(0)))
    throw Error("wrong result: the fit has no segment at the first key");
  const std::uint64_t disordered = host_parallel_find_first(
      segments - 1, [&](std::uint64_t s) { return begin[s + 1] <= begin[s]; });
  if (disordered + 1 < segments)
    throw Error("wrong result: segment " + std::to_string(disordered + 1) +
                " of the fit does not begin behind the one before");

  // One search for each block of keys; from there on, segment by segment.
  constexpr std::uint64_t block = 4096;
  const auto first_wrong = [&](std::uint64_t b) {
    const std::uint64_t end = std::min(n, (b + 1) * block);
    const X first = query::code_bits(sorted(b * block));
    auto segment = static_cast<std::uint64_t>(
        std::upper_bound(begin, begin + segments, first) - begin - 1);
    for (std::uint64_t i = b * block; i < end; ++i) {
      const X x = query::code_bits(sorted(i));
      if (i > 0 && query::code_bits(sorted(i - 1)) == x) continue;
      while (segment + 1 < segments && begin[segment + 1] <= x) ++segment;
      const std::uint64_t rank =
          models(segment).predict(static_cast<X>(x - begin[segment]));
      if ((rank < i ? i - rank : rank - i) > epsilon + 1) return i;
    }
    return n;
  };
  const std::uint64_t blocks = (n + block - 1) / block;
  const std::uint64_t wrong = host_parallel_find_first(
      blocks, [&](std::uint64_t b) { return first_wrong(b) < n; });
  if (wrong == blocks) return;
  const std::uint64_t rank = first_wrong(wrong);
  throw Error("wrong result: the fit misses the rank " + std::to_string(rank) +
              " of key " + printed(sorted(rank)) + " by more than " +
              std::to_string(epsilon));
}

/// The fewest segments there can be: those of one chunk, fitted on the host.
/// Nothing for so many keys that one thread takes long.
template <class Key, class Exec>
std::optional<std::uint64_t> fewest_segments(
    const Subject<Key, std::uint32_t, Exec>& subject, std::uint64_t epsilon) {
  const DataSet<Key>& data = subject.data();
  if (data.size() > std::uint64_t{1} << 28) return std::nullopt;
  auto& known = subject.session.fewest_segments;
  const std::string key =
      subject.data_key() + "/epsilon:" + std::to_string(epsilon);
  if (const auto found = known.find(key); found != known.end())
    return found->second;
  const Progress progress("fitting with one thread, for the fewest segments");
  return known[key] = fit_keys<Key>(HostExec(), data.sorted, epsilon, 1).count;
}

template <class Key, class Exec>
void measure_fit(const Subject<Key, std::uint32_t, Exec>& subject,
                 std::uint64_t epsilon, benchmark::State& state) {
  const std::string name = fit_name(subject, epsilon);
  run_guarded(subject.session, name, state, [&](benchmark::State& guarded) {
    const Exec space;
    const auto keys = subject.input().keys;
    verify_once(subject.session, name, [&] {
      const auto fitted = fit_keys<Key>(space, keys, epsilon);
      space.fence("kindex_bench: fitted");
      const auto starts = Kokkos::create_mirror_view_and_copy(
          Kokkos::HostSpace{}, fitted.starts);
      const auto models = Kokkos::create_mirror_view_and_copy(
          Kokkos::HostSpace{}, fitted.models);
      check_fit<Key>(subject.data().sorted, starts, models, epsilon);
    });
    const auto fewest = fewest_segments(subject, epsilon);

    std::uint64_t segments = 0;
    const double seconds = time_batches(guarded, [&](std::uint64_t) {
      segments = fit_keys<Key>(space, keys, epsilon).count;
      space.fence("kindex_bench: fitted");
    });
    const auto n = static_cast<double>(subject.spec.size);
    guarded.counters["items_per_second"] = n / seconds;
    guarded.counters["fit_ms"] = 1e3 * seconds;
    guarded.counters["segments"] = static_cast<double>(segments);
    if (fewest)
      guarded.counters["segments_optimal"] = static_cast<double>(*fewest);
    guarded.counters["GB_per_s"] =
        1e-9 * n * static_cast<double>(sizeof(Key)) / seconds;
  });
}

}  // namespace kindex::perf

#endif
