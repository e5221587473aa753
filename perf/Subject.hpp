// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_SUBJECT_HPP
#define KINDEX_PERF_SUBJECT_HPP

/// \file
/// An index on a key set, and what is at hand for measuring it: kept in the
/// session's cache between the benchmarks that share it.

#include "AnyIndex.hpp"
#include "DataSet.hpp"
#include "PackedStrings.hpp"
#include "Queries.hpp"
#include "Session.hpp"
#include "Spaces.hpp"

#include <cstdio>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>

namespace kindex::perf {

/// A view in the memory of `Exec` with the contents of `from`: the same view
/// where that memory is the host's.
template <class Exec, class T>
Kokkos::View<const T*, typename Exec::memory_space> on_device(
    const std::string& what, const HostArray<const T>& from) {
  if constexpr (std::is_same_v<typename Exec::memory_space,
                               Kokkos::HostSpace>) {
    return from;
  } else if constexpr (is_string<T>) {
    return packed<typename Exec::memory_space>(what, from);
  } else {
    const auto to =
        array_in<T, typename Exec::memory_space>(what, from.extent(0));
    Kokkos::deep_copy(to, from);
    return to;
  }
}

/// Which transfers count, in the name of a benchmark.
inline std::string transfers_suffix(Transfers transfers) {
  if (transfers == Transfers::out) return "";
  return "/transfers:" + std::string(name_of(transfers));
}

/// How batches that go through a pipeline are cut.
struct Buckets {
  std::uint64_t size = 0;  ///< queries of a bucket; 0: chosen
  int in_flight = 0;       ///< buckets; 0: chosen

  PipelineOptions options() const {
    return PipelineOptions().set_bucket_size(size).set_buffers(in_flight);
  }
  /// In the name of a benchmark: what is not the library's choice.
  std::string suffix() const {
    return (size > 0 ? "/bucket:" + std::to_string(size) : "") +
           (in_flight > 0 ? "/buffers:" + std::to_string(in_flight) : "");
  }
};

/// A key as a message shows it.
template <class Key>
std::string printed(const Key& key) {
  std::ostringstream out;
  out.precision(17);
  if constexpr (is_string<Key>) {
    // Results are written as UTF-8, which other bytes are not.
    out << '"' << std::hex;
    for (const unsigned char c : comparable(key))
      if (c >= 32 && c < 127)
        out << c;
      else
        out << "\\x" << std::setw(2) << std::setfill('0') << int{c};
    out << '"';
  } else if constexpr (sizeof(Key) == 1)
    out << static_cast<int>(key);
  else
    out << key;
  return out.str();
}

template <class Key, class Value, class Exec>
struct Subject {
  using Any = AnyIndex<Key, Value, Exec>;
  using Input = BuildInput<Key, Value, Exec>;

  Session& session;
  KeySpec spec;
  ValueMode mode;
  IndexEntry<Key, Value, Exec> entry;
  bool sorted_pairs = false;  ///< whether keys come sorted with their values

  /// `op/index/keytype/space/n:N/keys:SET`
  std::string key_name(std::string_view op, const std::string& index) const {
    return std::string(op) + '/' + index + '/' +
           std::string(name_of(spec.type)) + '/' + Exec::name() +
           "/n:" + std::to_string(spec.size) + "/keys:" + spec.set_name();
  }

  /// `op/index/keytype/space/n:N/keys:SET/values:MODE`
  std::string name(std::string_view op, const std::string& index) const {
    return key_name(op, index) + "/values:" + std::string(name_of(mode));
  }

  /// `/q:Q/order:ORDER`, and which transfers count.
  std::string batch_suffix(std::uint64_t queries, Transfers transfers) const {
    return "/q:" + std::to_string(queries) +
           "/order:" + session.options.order.name + transfers_suffix(transfers);
  }

  /// `/hit:RATE`, as asked for.
  std::string hit_suffix() const {
    char text[32];
    std::snprintf(text, sizeof text, "/hit:%g", session.options.hit_rate);
    return text;
  }

  std::string data_key() const {
    return spec.description() + spec.file.string();
  }

  const DataSet<Key>& data() const {
    Cache& cache = session.cache;
    if (!cache.holds("data", data_key())) cache.clear();
    return cache.get<DataSet<Key>>("data", data_key(), [&] {
      return DataSet<Key>::make(spec, session.options.seed);
    });
  }

  /// Of strings, on average.
  double chars_per_key() const {
    const auto& strings = data().keys;
    return static_cast<double>(offsets_of(strings)(strings.extent(0))) /
           static_cast<double>(strings.extent(0));
  }

  /// A key as it is stored and asked: of strings, characters and a reference
  /// to them.
  double key_bytes() const {
    if constexpr (is_string<Key>)
      return sizeof(Key) + chars_per_key();
    else
      return sizeof(Key);
  }

  /// What the answer is for the key at `rank`.
  Value value_at(const DataSet<Key>& set, std::uint64_t rank) const {
    return mode == ValueMode::none ? static_cast<Value>(rank)
                                   : value_of_row<Value>(set.rows(rank));
  }

  /// Keys (and values) as the index is built from.
  HostArray<const Key> host_keys() const {
    return mode == ValueMode::none || sorted_pairs ? data().sorted
                                                   : data().keys;
  }
  HostArray<const Value> host_values() const {
    const DataSet<Key>& set = data();
    auto values =
        host_array<Value>("values", mode == ValueMode::none ? 0 : set.size());
    host_parallel_for(values.extent(0), [&](std::uint64_t i) {
      values(i) = value_of_row<Value>(sorted_pairs ? set.rows(i) : i);
    });
    return values;
  }

  /// Tells apart what is built from the same keys.
  std::string input_key() const {
    return data_key() + Exec::name() + std::string(name_of(mode)) +
           (sorted_pairs ? "/sorted" : "") +
           (entry.takes_no_others ? "/on_host" : "");
  }

  const Input& input() const {
    data();
    return session.cache.template get<Input>("input", input_key(), [&] {
      if (entry.takes_no_others)
        return Input{{}, {}, host_keys(), host_values()};
      return Input{on_device<Exec>("keys", host_keys()),
                   on_device<Exec>("values", host_values()),
                   {},
                   {}};
    });
  }

  std::unique_ptr<Any> build(const Exec& space, const Input& from) const {
    if (mode == ValueMode::none) return entry.from_sorted(space, from);
    return sorted_pairs ? entry.from_sorted_pairs(space, from)
                        : entry.from_pairs(space, from);
  }

  /// The index, built.
  Any& index(const Exec& space) const {
    using Held = std::unique_ptr<Any>;
    const Input& from = input();
    return *session.cache.template get<Held>(
        "index", entry.name + input_key(), [&] {
          const Progress progress("building " + entry.name + " of " +
                                  spec.description() + " on " + Exec::name());
          Held built = build(space, from);
          space.fence("kindex_bench: built");
          return built;
        });
  }
};

/// How many batches of `queries` are asked in turn, so that what one brought
/// into the caches is gone when it comes again: 64 MiB of them, as far as they
/// are few enough.
inline std::uint64_t batches_in_turn(std::uint64_t queries,
                                     std::uint64_t bytes_per_query) {
  constexpr std::uint64_t enough = std::uint64_t{1} << 26;
  const std::uint64_t bytes = queries * bytes_per_query;
  return std::clamp<std::uint64_t>((enough + bytes - 1) / bytes, 1, 256);
}

}  // namespace kindex::perf

#endif
