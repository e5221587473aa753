// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_PERF_BASELINES_KOKKOS_UNORDERED_MAP_HPP
#define KINDEX_PERF_BASELINES_KOKKOS_UNORDERED_MAP_HPP

#include <kindex/Error.hpp>
#include <kindex/Types.hpp>

#include <Kokkos_UnorderedMap.hpp>

#include <cstdint>

namespace kindex::perf {

namespace unordered_map {

/// The key, with -0.0 taken for +0.0, which are equal but hash differently.
template <class Key>
KOKKOS_FUNCTION Key canonical(const Key& key) {
  if constexpr (std::is_floating_point_v<Key>)
    return key + Key(0);
  else
    return key;
}

/// Enters every key, with one of its rows.
template <class Map, class Keys>
struct Insert {
  Map map;
  Keys keys;
  KOKKOS_FUNCTION void operator()(std::uint64_t row) const {
    map.insert(canonical(keys(row)), static_cast<std::uint32_t>(row));
  }
};

/// Lets the first row of equal keys win.
template <class Map, class Keys>
struct KeepFirstRow {
  Map map;
  Keys keys;
  KOKKOS_FUNCTION void operator()(std::uint64_t row) const {
    Kokkos::atomic_min(&map.value_at(map.find(canonical(keys(row)))),
                       static_cast<std::uint32_t>(row));
  }
};

template <class Map, class Values, class Queries, class Out>
struct Find {
  Map map;
  Values values;
  Queries queries;
  Out out;
  KOKKOS_FUNCTION void operator()(std::uint64_t i) const {
    using Value = typename Out::value_type;
    const auto at = map.find(canonical(queries(i)));
    if (!map.valid_at(at)) {
      out(i) = default_missing<Value>();
      return;
    }
    const std::uint32_t row = map.value_at(at);
    out(i) = values.extent(0) > 0 ? values(row) : static_cast<Value>(row);
  }
};

}  // namespace unordered_map

/// Kokkos' hash map from keys to row ids: point queries only. It keeps unique
/// keys; that the first of equal ones wins takes a second pass.
template <class Key, class Value, class MemorySpace>
class KokkosUnorderedMap {
  using Map = Kokkos::UnorderedMap<
      Key, std::uint32_t,
      Kokkos::Device<typename MemorySpace::execution_space, MemorySpace>>;
  using Keys = Kokkos::View<const Key*, MemorySpace>;
  using Values = Kokkos::View<const Value*, MemorySpace>;

 public:
  template <class Exec>
  KokkosUnorderedMap(const Exec& space, SortedTag, const Keys& keys) {
    fill(space, keys);
  }

  template <class Exec>
  KokkosUnorderedMap(const Exec& space, const Keys& keys,
                     const Values& values) {
    Kokkos::View<Value*, MemorySpace> copy(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                           "kindex_bench::unordered_map::values"),
        values.extent(0));
    Kokkos::deep_copy(space, copy, values);
    values_ = copy;
    fill(space, keys);
  }

  template <class Exec, class Out>
  void find(const Exec& space, const Keys& queries, const Out& out) const {
    using Kernel = unordered_map::Find<Map, Values, Keys, Out>;
    run(space, "find", queries.extent(0), Kernel{map_, values_, queries, out});
  }

  /// What the map's documented arrays take: key, row, next and head per slot.
  std::uint64_t memory_bytes() const {
    const std::uint64_t slots = map_.capacity();
    return slots * (sizeof(Key) + 3 * sizeof(std::uint32_t)) + slots / 8 +
           values_.extent(0) * sizeof(Value);
  }

 private:
  template <class Exec, class Kernel>
  static void run(const Exec& space, const char* what, std::uint64_t n,
                  const Kernel& kernel) {
    Kokkos::parallel_for(
        std::string("kindex_bench::unordered_map::") + what,
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::uint64_t>>(space, 0,
                                                                    n),
        kernel);
  }

  template <class Exec>
  void fill(const Exec& space, const Keys& keys) {
    const std::uint64_t n = keys.extent(0);
    for (std::uint64_t capacity = n; capacity < 4 * n + 1024; capacity *= 2) {
      map_ = Map(static_cast<std::uint32_t>(capacity));
      run(space, "insert", n, unordered_map::Insert<Map, Keys>{map_, keys});
      space.fence("kindex_bench::unordered_map: did all keys fit?");
      if (map_.failed_insert()) continue;
      run(space, "keep_first_row", n,
          unordered_map::KeepFirstRow<Map, Keys>{map_, keys});
      space.fence("kindex_bench::unordered_map: filled");
      return;
    }
    throw Error("Kokkos::UnorderedMap did not take the keys");
  }

  Map map_;
  Values values_;
};

}  // namespace kindex::perf

#endif
