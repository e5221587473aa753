// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_OPTIONS_HPP
#define KINDEX_PERF_OPTIONS_HPP

/// \file
/// What the command line asks for.

#include "KeySpec.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kindex::perf {

enum class Op {
  build,
  build_sorted,
  fit,
  update,
  find,
  ref_find,
  parent_chain,
  lower_bound,
  count,
  range,
  for_each_in_range,
  divide
};
inline constexpr std::string_view op_names[] = {"build",
                                                "build_sorted",
                                                "fit",
                                                "update",
                                                "find",
                                                "ref_find",
                                                "parent_chain",
                                                "lower_bound",
                                                "count",
                                                "range",
                                                "for_each_in_range",
                                                "divide"};
constexpr std::string_view name_of(Op op) {
  return op_names[static_cast<std::size_t>(op)];
}

/// What an index stores beside its keys.
enum class ValueMode {
  none,  ///< nothing: keys come sorted, and the position is the answer
  u32,   ///< 4 bytes per key; keys come in any order
  u64    ///< 8 bytes per key; keys come in any order
};
inline constexpr std::string_view value_mode_names[] = {"none", "u32", "u64"};
constexpr std::string_view name_of(ValueMode mode) {
  return value_mode_names[static_cast<std::size_t>(mode)];
}
constexpr std::size_t value_bytes(ValueMode mode) {
  return mode == ValueMode::none ? 0 : mode == ValueMode::u32 ? 4 : 8;
}

/// In which order a batch asks, and which keys how often.
struct QueryOrder {
  enum class Kind { random, sorted, normal, gamma, zipf };
  Kind kind = Kind::random;
  double theta = 0;  ///< skew of zipf
  std::string name = "random";
};

/// Where the queries of a batch are, and the results go.
enum class Transfers {
  out,         ///< in the device's memory
  in,          ///< in page-locked memory of the host: copy, search, copy back
  overlapped,  ///< in any memory of the host: the index's own pipeline
  direct       ///< the same in page-locked memory: on GPUs of NVIDIA, no
               ///< copies in between
};
inline constexpr std::string_view transfers_names[] = {"out", "in",
                                                       "overlapped", "direct"};
constexpr std::string_view name_of(Transfers transfers) {
  return transfers_names[static_cast<std::size_t>(transfers)];
}
/// Whether they go through a pipeline, in buckets.
constexpr bool is_in_buckets(Transfers transfers) {
  return transfers == Transfers::overlapped || transfers == Transfers::direct;
}

/// Which batches of find are measured in many sizes, too.
enum class Sweep {
  none,
  resident,   ///< on devices, batches in their memory
  transfers,  ///< on devices, batches in host memory
  both
};
inline constexpr std::string_view sweep_names[] = {"none", "resident",
                                                   "transfers", "both"};

/// The name that stands for all ablations.
inline constexpr std::string_view ablations_name = "ablations";

struct Options {
  std::vector<KeySpec> keys;
  std::vector<std::string> indexes;  ///< empty: all but ablations
  bool ablations = false;            ///< all ablations, too
  std::vector<std::string> spaces;   ///< empty: all
  std::vector<Op> ops;
  std::vector<ValueMode> values;
  std::uint64_t queries = 0;       ///< per batch; 0: chosen by device
  std::uint64_t host_queries = 0;  ///< the same on hosts; 0: as `queries`
  double hit_rate = 1;
  QueryOrder order;
  std::vector<std::uint64_t> range_hits;  ///< hits per range query
  std::uint64_t range_queries = 0;  ///< ranges per batch; 0: chosen by device
  std::vector<std::uint64_t> epsilons;  ///< error bounds of fits
  std::vector<Transfers> transfers;     ///< on devices, in turn
  /// Of transfers in buckets; 0: the library's choice.
  std::vector<std::uint64_t> bucket_sizes;
  std::vector<std::uint64_t> buffers;  ///< buckets in flight; 0: the same
  Sweep sweep = Sweep::none;           ///< also over batch sizes
  std::uint64_t seed = default_seed;
  std::string json;
  std::string report;
  bool list = false;

  /// Whether some batches on devices come from the host and go back.
  bool has_transfers() const {
    for (Transfers one : transfers)
      if (one != Transfers::out) return true;
    return sweeps(Transfers::in);
  }

  /// Whether batches of all sizes are measured on devices with transfers, or
  /// without.
  bool sweeps(Transfers how) const {
    return sweep == Sweep::both ||
           sweep ==
               (how == Transfers::out ? Sweep::resident : Sweep::transfers);
  }

  /// The transfers with which batch sizes are swept on a device: with those
  /// from and to the host that `transfers` names, but direct ones, or one step
  /// after the other.
  std::vector<Transfers> swept() const {
    std::vector<Transfers> all;
    if (sweeps(Transfers::out)) all.push_back(Transfers::out);
    if (!sweeps(Transfers::in)) return all;
    const std::size_t before = all.size();
    for (Transfers one : transfers)
      if (one != Transfers::out && one != Transfers::direct) all.push_back(one);
    if (all.size() == before) all.push_back(Transfers::in);
    return all;
  }

  /// The most lookups per batch in a sweep: 2^24, or 2^26 where they are in
  /// the memory of a device; not more than the user asks for.
  std::uint64_t largest_swept(bool on_host, Transfers how) const {
    const bool is_resident = !on_host && how == Transfers::out;
    const std::uint64_t most = std::uint64_t{1} << (is_resident ? 26 : 24);
    return is_resident && queries == 0 ? most : std::min(batch(on_host), most);
  }

  /// Lookups per batch on a host, or on a device with its own memory.
  std::uint64_t batch(bool on_host) const {
    if (on_host && host_queries > 0) return host_queries;
    if (queries > 0) return queries;
    return on_host ? std::uint64_t{1} << 21 : std::uint64_t{1} << 25;
  }
};

/// The command line, divided among those who read it.
struct CommandLine {
  Options options;
  std::vector<std::string> kokkos;     ///< `--kokkos-*`
  std::vector<std::string> benchmark;  ///< `--benchmark_*` and `--v=`
};

/// Reads the command line. Prints help, or what is wrong, and exits where that
/// is all there is to do.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace kindex::perf

#endif
