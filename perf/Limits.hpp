// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_LIMITS_HPP
#define KINDEX_PERF_LIMITS_HPP

/// \file
/// What the machine itself admits: how fast it copies, and how fast it gathers
/// one random sector per query.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kindex::perf {

/// Something to run over and over again; its buffers live as long as it does.
struct Probe {
  std::string what;
  std::function<void()> run;    ///< enqueues one batch
  std::function<void()> fence;  ///< waits for it
};

/// Copies `bytes` from one array to another.
template <class Exec>
Probe copy_probe(std::uint64_t bytes);

/// The shape of a batch of lookups, as far as the memory sees it.
struct LookupShape {
  std::uint64_t array_bytes = 0;   ///< what is searched
  std::uint64_t query_bytes = 0;   ///< 1, 2, 4, 8 or 16, per query
  std::uint64_t result_bytes = 0;  ///< 4 or 8, per query
  std::uint64_t queries = 0;       ///< per batch

  auto operator<=>(const LookupShape&) const = default;
};

/// Per query: reads the query, gathers one random 32-byte sector of an array,
/// writes one result. The arrays hold random bits. On CUDA the faster of two
/// forms: one thread reads the sector as 2 x 16 bytes, or two lanes 16 each.
template <class Exec>
Probe one_sector_probe(const LookupShape& shape);

/// What a batch of lookups sends to a device and gets back.
struct LinkShape {
  std::uint64_t query_bytes = 0;   ///< per query
  std::uint64_t result_bytes = 0;  ///< per query
  std::uint64_t queries = 0;       ///< per batch

  auto operator<=>(const LinkShape&) const = default;
};

/// Copies the queries of a batch from page-locked memory of the host to the
/// device and, at the same time, as many results as it has back.
template <class Exec>
Probe link_probe(const LinkShape& shape);

/// Seconds per batch: median of at least 5, after a warm-up.
double median_seconds(const Probe& probe);

}  // namespace kindex::perf

#endif
