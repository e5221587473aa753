// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_ABSL_BTREE_HPP
#define KINDEX_PERF_BASELINES_ABSL_BTREE_HPP

#include "../HostSort.hpp"
#include "../Options.hpp"
#include "HostRanges.hpp"

#include <kindex/Types.hpp>

#include <absl/container/btree_map.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace kindex::perf {

/// The standard allocator, keeping count of the bytes in use.
template <class T>
struct CountingAllocator {
  using value_type = T;

  explicit CountingAllocator(std::uint64_t* in_use) : bytes(in_use) {}
  template <class Other>
  CountingAllocator(const CountingAllocator<Other>& other)
      : bytes(other.bytes) {}

  T* allocate(std::size_t n) {
    *bytes += n * sizeof(T);
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* pointer, std::size_t n) {
    *bytes -= n * sizeof(T);
    std::allocator<T>().deallocate(pointer, n);
  }
  friend bool operator==(const CountingAllocator& a,
                         const CountingAllocator& b) {
    return a.bytes == b.bytes;
  }
  friend bool operator!=(const CountingAllocator& a,
                         const CountingAllocator& b) {
    return !(a == b);
  }

  std::uint64_t* bytes;
};

/// Abseil's B-tree, searched in an OpenMP loop. It knows no ranks, so bounds
/// are measured where the stored value is the position. It is filled in
/// ascending order by one thread, its fastest way. Of strings, it keeps
/// std::string.
template <class Key, class Value>
class AbslBtree {
  using Keys = Kokkos::View<const Key*, Kokkos::HostSpace>;
  using Values = Kokkos::View<const Value*, Kokkos::HostSpace>;
  using Stored = std::conditional_t<is_string<Key>, std::string, Key>;
  using Map =
      absl::btree_multimap<Stored, Value, std::less<Stored>,
                           CountingAllocator<std::pair<const Stored, Value>>>;

 public:
  using hits_type = HostRanges<Value>;

  static bool supports(Op op, ValueMode mode) {
    return op != Op::lower_bound || mode == ValueMode::none;
  }

  template <class Exec>
  AbslBtree(const Exec&, SortedTag, const Keys& keys) {
    for (std::uint64_t i = 0; i < keys.extent(0); ++i)
      append(keys(i), static_cast<Value>(i));
  }

  template <class Exec>
  AbslBtree(const Exec&, const Keys& keys, const Values& values) {
    for_each_sorted<Key>(keys, values, [this](const Key& key, auto value) {
      append(key, value);
    });
  }

  template <class Exec, class Out>
  void find(const Exec&, const Keys& queries, const Out& out) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      const auto at = map_.lower_bound(sought(queries(i)));
      const bool hit = at != map_.end() && !(sought(queries(i)) < at->first);
      out(i) = hit ? at->second : default_missing<Value>();
    });
  }

  template <class Exec, class Ranks>
  void lower_bound(const Exec&, const Keys& queries, const Ranks& ranks) const {
    using Rank = typename Ranks::value_type;
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      const auto at = map_.lower_bound(sought(queries(i)));
      ranks(i) = static_cast<Rank>(at != map_.end() ? at->second : map_.size());
    });
  }

  template <class Exec, class Counts>
  void count(const Exec&, const Keys& queries, const Counts& counts) const {
    host_parallel_for(queries.extent(0), [&](std::uint64_t i) {
      counts(i) = static_cast<typename Counts::value_type>(
          map_.count(sought(queries(i))));
    });
  }

  template <class Exec>
  void range(const Exec&, const Keys& lo, const Keys& hi,
             hits_type& hits) const {
    host_ranges(
        hits, lo.extent(0),
        [&](std::uint64_t i) {
          std::uint64_t hits = 0;
          for (auto at = map_.lower_bound(sought(lo(i)));
               at != map_.end() && !(sought(hi(i)) < at->first); ++at)
            ++hits;
          return hits;
        },
        [&](std::uint64_t i, std::uint64_t size, Value* out) {
          auto at = map_.lower_bound(sought(lo(i)));
          for (std::uint64_t j = 0; j < size; ++j, ++at) out[j] = at->second;
        });
  }

  std::uint64_t memory_bytes() const { return *bytes_; }

 private:
  /// A key as the map compares it.
  static decltype(auto) sought(const Key& key) {
    if constexpr (is_string<Key>) {
      const std::string_view text = comparable(key);
      return absl::string_view(text.data(), text.size());
    } else {
      return (key);
    }
  }

  void append(const Key& key, Value value) {
    const auto at =
        map_.emplace_hint(map_.end(), Stored(comparable(key)), value);
    if constexpr (is_string<Key>)
      if (at->first.capacity() > std::string().capacity())
        *bytes_ += at->first.capacity() + 1;
  }

  std::unique_ptr<std::uint64_t> bytes_ = std::make_unique<std::uint64_t>(0);
  Map map_{typename Map::allocator_type(bytes_.get())};
};

}  // namespace kindex::perf

#endif
