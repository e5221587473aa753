// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_LIMIT_CASE_HPP
#define KINDEX_PERF_LIMIT_CASE_HPP

/// \file
/// The one-sector limit at the size of a key set, and that of the link between
/// host and device.

#include "Subject.hpp"
#include "Timing.hpp"

namespace kindex::perf {

/// What a lookup on the subject would be if it took a single sector.
template <class Key, class Value, class Exec>
LookupShape lookup_shape(const Subject<Key, Value, Exec>& subject,
                         std::uint64_t result_bytes) {
  LookupShape shape;
  shape.array_bytes = static_cast<std::uint64_t>(
      static_cast<double>(subject.spec.size) *
      (subject.key_bytes() + static_cast<double>(value_bytes(subject.mode))));
  shape.query_bytes = sizeof(Key);
  shape.result_bytes = result_bytes;
  shape.queries = subject.session.options.batch(is_host<Exec>);
  return shape;
}

/// Seconds for a batch at that limit; measured now if it was not before.
template <class Key, class Value, class Exec>
double one_sector_seconds(const Subject<Key, Value, Exec>& subject,
                          std::uint64_t result_bytes) {
  const LookupShape shape = lookup_shape(subject, result_bytes);
  auto& known = subject.session.one_sector_seconds;
  const std::pair key(std::string(Exec::name()), shape);
  if (const auto found = known.find(key); found != known.end())
    return found->second;
  const Progress progress("measuring the one-sector limit");
  return known[key] = median_seconds(one_sector_probe<Exec>(shape));
}

template <class Key, class Value, class Exec>
std::string one_sector_name(const Subject<Key, Value, Exec>& subject) {
  return subject.name("one_sector", "limit") +
         "/q:" + std::to_string(subject.session.options.batch(is_host<Exec>));
}

template <class Key, class Value, class Exec>
void measure_one_sector(const Subject<Key, Value, Exec>& subject,
                        benchmark::State& state) {
  run_guarded(
      subject.session, one_sector_name(subject), state,
      [&](benchmark::State& guarded) {
        const LookupShape shape = lookup_shape(subject, sizeof(Value));
        const Probe probe = one_sector_probe<Exec>(shape);
        const double seconds = time_batches(guarded, [&](std::uint64_t) {
          probe.run();
          probe.fence();
        });
        subject.session.one_sector_seconds[{Exec::name(), shape}] = seconds;
        const auto queries = static_cast<double>(shape.queries);
        guarded.counters["items_per_second"] = queries / seconds;
        guarded.counters["ns_per_lookup"] = 1e9 * seconds / queries;
        guarded.counters["GB_per_s"] =
            1e-9 * queries * (sizeof(Key) + sizeof(Value) + 32) / seconds;
        guarded.SetLabel(probe.what);
      });
}

/// Seconds for a batch's queries and results on the link, both at once;
/// measured now if they were not before.
template <class Exec>
double link_seconds(Session& session, const LinkShape& shape) {
  const std::pair key(std::string(Exec::name()), shape);
  if (const auto found = session.link_seconds.find(key);
      found != session.link_seconds.end())
    return found->second;
  const Progress progress("measuring the link between host and device");
  return session.link_seconds[key] = median_seconds(link_probe<Exec>(shape));
}

template <class Key, class Value, class Exec>
std::string link_name(const Subject<Key, Value, Exec>& subject,
                      const LinkShape& shape) {
  return "link/limit/" + std::string(name_of(subject.spec.type)) + '/' +
         Exec::name() + "/n:" + std::to_string(shape.queries) +
         "/in:" + std::to_string(shape.query_bytes) +
         "/out:" + std::to_string(shape.result_bytes);
}

template <class Key, class Value, class Exec>
void measure_link(const Subject<Key, Value, Exec>& subject,
                  const LinkShape& shape, benchmark::State& state) {
  run_guarded(
      subject.session, link_name(subject, shape), state,
      [&](benchmark::State& guarded) {
        const Probe probe = link_probe<Exec>(shape);
        const double seconds = time_batches(guarded, [&](std::uint64_t) {
          probe.run();
          probe.fence();
        });
        subject.session.link_seconds[{Exec::name(), shape}] = seconds;
        const auto gigabytes = [&](std::uint64_t bytes) {
          return 1e-9 * static_cast<double>(shape.queries * bytes) / seconds;
        };
        guarded.counters["items_per_second"] =
            static_cast<double>(shape.queries) / seconds;
        guarded.counters["GB_per_s_in"] = gigabytes(shape.query_bytes);
        guarded.counters["GB_per_s_out"] = gigabytes(shape.result_bytes);
        guarded.counters["GB_per_s"] =
            gigabytes(shape.query_bytes + shape.result_bytes);
        guarded.SetLabel(probe.what);
      });
}

}  // namespace kindex::perf

#endif
