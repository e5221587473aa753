// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies, deduced types, sizes, refs.
#include <gtest/gtest.h>

#include <cstdint>
#include <kindex/SortedArray.hpp>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/Queries.hpp"
#include "support/Recorder.hpp"
#include "support/Values.hpp"

namespace kindex_test {
namespace {

template <class Exec>
class Semantics : public ::testing::Test {};
TYPED_TEST_SUITE(Semantics, Devices, DeviceName);

TYPED_TEST(Semantics, CopiesAreShallowAndCounted) {
  using Exec = TypeParam;
  using Index =
      kindex::SortedArray<int, std::uint32_t, typename Exec::memory_space>;
  static_assert(std::is_nothrow_destructible_v<Index> &&
                std::is_copy_constructible_v<Index> &&
                std::is_copy_assignable_v<Index> &&
                std::is_default_constructible_v<Index>);
  auto first = std::make_unique<Index>(
      Exec{}, to_device<Exec>(std::vector<int>{3, 1, 2}));
  Index copy, moved;
  {
    Recorder recorder;
    copy = *first;
    Index other = copy;
    moved = std::move(other);
    first.reset();
    const auto events = recorder.stop();
    EXPECT_EQ(events.size(), 0u)
        << (events.empty() ? "" : events.front().text());
  }
  EXPECT_EQ(lower_bounds<Exec>(copy, std::vector<int>{1, 2, 3, 4}),
            (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(finds<Exec>(moved, std::vector<int>{1, 2, 3}),
            (std::vector<std::uint32_t>{1, 2, 0}));
  moved = Index();
  EXPECT_EQ(copy.size(), 3u);
  Recorder recorder;
  copy = Index();
  EXPECT_GE(number_of(recorder.stop(), Event::deallocation), 1u)
      << "the last copy did not free the index";
}

TYPED_TEST(Semantics, InputMayChangeAfterTheBuild) {
  using Exec = TypeParam;
  const auto keys = to_device<Exec>(std::vector<int>{1, 2, 3}),
             values = to_device<Exec>(std::vector<int>{7, 8, 9});
  const kindex::SortedArray sorted(Exec{}, kindex::sorted, keys),
      unsorted(Exec{}, keys);
  const kindex::SortedArray with_values(Exec{}, kindex::sorted, keys, values);
  Exec{}.fence("test::build");
  Kokkos::deep_copy(keys, 100);
  Kokkos::deep_copy(values, 100);
  EXPECT_EQ(lower_bounds<Exec>(sorted, std::vector<int>{2, 4}), (Ranks{1, 3}));
  EXPECT_EQ(lower_bounds<Exec>(unsorted, std::vector<int>{2, 4}),
            (Ranks{1, 3}));
  EXPECT_EQ(finds<Exec>(with_values, std::vector<int>{2, 3}),
            (std::vector<int>{8, 9}));
}

TYPED_TEST(Semantics, TypesAreDeduced) {
  using Exec = TypeParam;
  using Memory = typename Exec::memory_space;
  const Exec space{};
  const auto keys = to_device<Exec>(std::vector<double>{1, 2});
  const auto values = to_device<Exec>(std::vector<std::int64_t>{1, 2});
  const DeviceView<const double, Exec> const_keys(keys);
  const Kokkos::View<const std::int64_t*, Kokkos::LayoutStride, Memory>
      const_values(values);

  using Rows = kindex::SortedArray<double, std::uint32_t, Memory, kindex::SoA>;
  using Values = kindex::SortedArray<double, std::int64_t, Memory, kindex::SoA>;
  static_assert(
      std::is_same_v<decltype(kindex::SortedArray(space, keys)), Rows>);
  static_assert(
      std::is_same_v<decltype(kindex::SortedArray(space, const_keys)), Rows>);
  static_assert(
      std::is_same_v<decltype(kindex::SortedArray(space, keys, values)),
                     Values>);
  static_assert(std::is_same_v<decltype(kindex::SortedArray(space, const_keys,
                                                            const_values)),
                               Values>);
  static_assert(
      std::is_same_v<decltype(kindex::SortedArray(space, kindex::sorted, keys)),
                     Rows>);
  static_assert(
      std::is_same_v<decltype(kindex::SortedArray(space, kindex::sorted, keys,
                                                  kindex::Check::off)),
                     Rows>);
  static_assert(std::is_same_v<decltype(kindex::SortedArray(
                                   space, kindex::sorted, keys, values)),
                               Values>);
  static_assert(std::is_same_v<decltype(kindex::SortedArray(
                                   space, kindex::sorted, keys, const_values,
                                   kindex::Check::off)),
                               Values>);
  static_assert(std::is_same_v<typename Rows::key_type, double> &&
                std::is_same_v<typename Rows::value_type, std::uint32_t>);
  if constexpr (std::is_same_v<Memory,
                               Kokkos::DefaultExecutionSpace::memory_space>)
    static_assert(std::is_same_v<kindex::SortedArray<double>, Rows>);

  const kindex::SortedArray index(space, kindex::sorted, const_keys,
                                  const_values);
  EXPECT_EQ(finds<Exec>(index, std::vector<double>{1, 2}),
            (std::vector<std::int64_t>{1, 2}));
}

TYPED_TEST(Semantics, RefsAreTriviallyCopyable) {
  using Memory = typename TypeParam::memory_space;
  using Plain =
      kindex::SortedArray<kindex::Key128, Triple, Memory, kindex::AoS>;
  using Rows = kindex::SortedArray<double, std::uint32_t, Memory>;
  static_assert(std::is_trivially_copyable_v<
                decltype(std::declval<const Plain&>().ref())>);
  static_assert(std::is_trivially_copyable_v<
                decltype(std::declval<const Rows&>().ref())>);
  static_assert(std::is_same_v<decltype(std::declval<const Rows&>().size()),
                               kindex::size_type>);
  static_assert(sizeof(kindex::size_type) == 8);
}

TYPED_TEST(Semantics, MemoryBytes) {
  using Exec = TypeParam;
  using Memory = typename Exec::memory_space;
  constexpr size_type n = 1000;
  const Exec space{};
  const auto keys = to_device<Exec>(std::vector<std::uint64_t>(n, 5));
  const auto values = to_device<Exec>(std::vector<std::uint16_t>(n, 5));
  const auto triples = to_device<Exec>(std::vector<Triple>(n));
  EXPECT_EQ(kindex::SortedArray(space, keys).memory_bytes(), n * (8 + 4));
  EXPECT_EQ(kindex::SortedArray(space, keys, values).memory_bytes(),
            n * (8 + 2));
  EXPECT_EQ(kindex::SortedArray(space, keys, triples).memory_bytes(),
            n * (8 + 12));
  EXPECT_EQ(kindex::SortedArray(space, kindex::sorted, keys).memory_bytes(),
            n * 8)
      << "row ids are implicit";
  EXPECT_EQ(
      kindex::SortedArray(space, kindex::sorted, keys, values).memory_bytes(),
      n * (8 + 2));
  using Pairs =
      kindex::SortedArray<std::uint64_t, std::uint32_t, Memory, kindex::AoS>;
  EXPECT_EQ(Pairs(space, keys).memory_bytes(), n * 16);
  EXPECT_EQ(Pairs(space, kindex::sorted, keys).memory_bytes(), n * 16);
  const Pairs none;
  EXPECT_EQ(none.memory_bytes(), 0u);
  EXPECT_EQ(none.size(), 0u);
}

}  // namespace
}  // namespace kindex_test
