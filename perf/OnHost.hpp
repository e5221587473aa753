// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_ON_HOST_HPP
#define KINDEX_PERF_ON_HOST_HPP

/// \file
/// Indexes whose entries are in host memory, where kindex_bench has keys on the
/// device.

#include "Spaces.hpp"

#include <kindex/Types.hpp>
#include <kindex/query/HostBatches.hpp>

#include <cstdint>
#include <string>

namespace kindex::perf {

/// `Index`, built from copies of keys and values in host memory; asked for
/// batches there only.
template <class Index>
class OnHost {
 public:
  /// It has no verbs for Views in the device's memory.
  static constexpr bool takes_host_batches = true;

  template <class Exec, class Keys>
  OnHost(const Exec& space, SortedTag, const Keys& keys)
      : index_(space, sorted, copy(space, keys)) {}

  template <class Exec, class Keys, class Values>
  OnHost(const Exec& space, const Keys& keys, const Values& values)
      : index_(space, copy(space, keys), copy(space, values)) {}

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

  std::uint64_t memory_bytes() const { return index_.memory_bytes(); }

 private:
  template <class Exec, class View>
  static auto copy(const Exec& space, const View& view) {
    // Allocated by the host: an instance of a GPU cannot.
    const Kokkos::View<typename View::non_const_value_type*, Kokkos::HostSpace>
        on_host(Kokkos::view_alloc(Kokkos::WithoutInitializing, view.label()),
                view.extent(0));
    Kokkos::deep_copy(space, on_host, view);
    space.fence("kindex_bench: keys are in host memory");
    return on_host;
  }

  Index index_;
};

}  // namespace kindex::perf

#endif
