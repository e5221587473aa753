// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes beyond 32-bit arithmetic. Skipped where memory does not suffice.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <kindex/HybridBPlusTree.hpp>
#include <kindex/SortedArray.hpp>
#include <string>
#include <vector>

#include "support/Queries.hpp"

namespace kindex_test {
namespace {

template <class Exec>
class Large : public ::testing::Test {};
TYPED_TEST_SUITE(Large, Devices, DeviceName);

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

/// Bytes that can be allocated now, or 0 where that cannot be told.
template <class Exec>
std::uint64_t available_bytes() {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) {
    std::size_t available = 0, total = 0;
    return cudaMemGetInfo(&available, &total) == cudaSuccess ? available : 0;
  }
#endif
  std::ifstream meminfo("/proc/meminfo");
  for (std::string word; meminfo >> word;)
    if (std::uint64_t kib = 0; word == "MemAvailable:" && meminfo >> kib)
      return kib * 1024;
  return 0;
}

template <class Exec>
std::string missing_memory(std::uint64_t needed) {
  const std::uint64_t available = available_bytes<Exec>();
  if (available >= needed) return "";
  return "needs " + std::to_string(needed / gib) + " GiB of free memory on " +
         Exec::name() + "; there are " + std::to_string(available >> 20) +
         " MiB";
}

template <class Exec>
struct LastEight {
  DeviceView<std::uint8_t, Exec> keys;
  KOKKOS_FUNCTION void operator()(size_type i) const {
    keys(i) = i + 8 >= keys.extent(0) ? 1 : 0;
  }
};

TYPED_TEST(Large, PositionsBeyondSignedIntegers) {
  using Exec = TypeParam;
  if (const auto why = missing_memory<Exec>(8 * gib); !why.empty())
    GTEST_SKIP() << why;
  constexpr size_type zeros = size_type{1} << 31, n = zeros + 8;
  const Exec space{};
  const DeviceView<std::uint8_t, Exec> keys(
      Kokkos::view_alloc(std::string("test::keys"),
                         Kokkos::WithoutInitializing),
      n);
  Kokkos::parallel_for(
      "test::LastEight",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0, n),
      LastEight<Exec>{keys});
  const kindex::SortedArray index(space, kindex::sorted, keys);
  EXPECT_EQ(index.size(), n);
  EXPECT_EQ(index.memory_bytes(), n);
  using Keys = std::vector<std::uint8_t>;
  EXPECT_EQ(lower_bounds<Exec>(index, Keys{0, 1, 2}), (Ranks{0, zeros, n}));
  EXPECT_EQ(upper_bounds<Exec>(index, Keys{0, 1, 2}), (Ranks{zeros, n, n}));
  EXPECT_EQ(range_counts<Exec>(index, Keys{0, 0, 1, 2}, Keys{0, 255, 1, 255}),
            (Ranks{zeros, n, 8, 0}));
  EXPECT_EQ(finds<Exec>(index, Keys{0, 1, 2}),
            (std::vector<std::uint32_t>{0, 1u << 31, 0xFFFFFFFFu}));
  const auto hits =
      range_values<Exec>(index, std::uint8_t{1}, std::uint8_t{200});
  ASSERT_EQ(hits.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(hits[i], (1u << 31) + i);
  const auto narrow = filled<std::int32_t, Exec>(1);
  EXPECT_THROW(index.lower_bound(space, to_device<Exec>(Keys{1}), narrow),
               kindex::Error);
}

KOKKOS_INLINE_FUNCTION std::uint8_t some_byte(size_type i) {
  return static_cast<std::uint8_t>((i * 0x9E3779B97F4A7C15u) >> 56);
}

template <class Exec>
struct SomeBytes {
  DeviceView<std::uint8_t, Exec> queries;
  KOKKOS_FUNCTION void operator()(size_type i) const {
    queries(i) = some_byte(i);
  }
};

template <class Exec>
struct CountWrong {
  DeviceView<std::uint8_t, Exec> expected, ranks;
  KOKKOS_FUNCTION void operator()(size_type i, size_type& wrong) const {
    wrong += ranks(i) != expected(some_byte(i));
  }
};

TYPED_TEST(Large, AsManyQueriesAsFit) {
  using Exec = TypeParam;
  if (const auto why = missing_memory<Exec>(4 * gib); !why.empty())
    GTEST_SKIP() << why;
  constexpr size_type m = size_type{1} << 30;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
  const Exec space{};
  std::vector<std::uint8_t> keys, expected(256);
  for (int i = 0; i < 100; ++i)
    keys.push_back(static_cast<std::uint8_t>(i * 5 / 2));
  for (std::size_t q = 0; q < 256; ++q)
    for (const auto k : keys) expected[q] += k < q;
  const kindex::SortedArray index(space, to_device<Exec>(keys));
  const DeviceView<std::uint8_t, Exec> queries(
      Kokkos::view_alloc(std::string("test::queries"),
                         Kokkos::WithoutInitializing),
      m);
  const DeviceView<std::uint8_t, Exec> ranks("test::ranks", m);
  Kokkos::parallel_for("test::SomeBytes", Policy(space, 0, m),
                       SomeBytes<Exec>{queries});
  index.lower_bound(space, queries, ranks);
  size_type wrong = m;
  Kokkos::parallel_reduce("test::CountWrong", Policy(space, 0, m),
                          CountWrong<Exec>{to_device<Exec>(expected), ranks},
                          wrong);
  EXPECT_EQ(wrong, 0u);
}

/// Entries in host memory for which a GPU has no room.
TYPED_TEST(Large, MoreEntriesThanTheDeviceHolds) {
  using Exec = TypeParam;
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Key = std::uint64_t;
  if constexpr (!kindex::query::DeviceTraits<Exec>::is_gpu) {
    GTEST_SKIP() << "a host has no memory but its own";
  } else {
    if (const auto why = missing_memory<Host>(6 * gib); !why.empty())
      GTEST_SKIP() << why;
    std::vector<DeviceView<std::byte, Exec>> taken;
    for (std::uint64_t free = 0; (free = available_bytes<Exec>()) > gib;)
      taken.emplace_back(Kokkos::view_alloc(std::string("test::taken"),
                                            Kokkos::WithoutInitializing),
                         free - gib + 1);
    constexpr size_type n = size_type{1} << 28, m = size_type{1} << 20;
    const Kokkos::View<Key*, Kokkos::HostSpace> keys("test::keys", n);
    Kokkos::parallel_for(
        "test::keys",
        Kokkos::RangePolicy<Host, Kokkos::IndexType<size_type>>(0, n),
        [=](size_type i) { keys(i) = 3 * i; });
    Kokkos::fence();
    const kindex::HybridBPlusTree<Key, std::uint32_t,
                                  typename Exec::memory_space>
        index(Exec{}, kindex::sorted, keys);
    EXPECT_GT(index.leaf_bytes(), 2 * gib - 1);
    EXPECT_GT(index.leaf_bytes(), available_bytes<Exec>());
    const Kokkos::View<Key*, Kokkos::HostSpace> queries("test::queries", m);
    const Kokkos::View<size_type*, Kokkos::HostSpace> ranks("test::ranks", m);
    for (size_type i = 0; i < m; ++i)
      queries(i) = i * 0x9E3779B97F4A7C15u % (3 * n);
    index.lower_bound(Exec{}, queries, ranks);
    size_type wrong = 0;
    for (size_type i = 0; i < m; ++i) wrong += ranks(i) != (queries(i) + 2) / 3;
    EXPECT_EQ(wrong, 0u);
  }
}

}  // namespace
}  // namespace kindex_test
