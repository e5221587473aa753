// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Preconditions that are checked on the host: what the message names, and that
// nothing has changed.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <kindex/SortedArray.hpp>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "support/Errors.hpp"
#include "support/Queries.hpp"

namespace kindex_test {
namespace {

/// The message of the kindex::Error that `call` must throw.
template <class Exec>
class Errors : public ::testing::Test {};
TYPED_TEST_SUITE(Errors, Devices, DeviceName);

template <class Exec, class Key>
void refuses_nan() {
  std::vector<Key> host(1000);
  std::iota(host.begin(), host.end(), Key(0));
  host[123] = std::numeric_limits<Key>::quiet_NaN();
  host[124] = -std::numeric_limits<Key>::quiet_NaN();
  host[999] = std::numeric_limits<Key>::quiet_NaN();
  const auto keys = to_device<Exec>(host);
  for (const auto& message :
       {message_of([&] { kindex::SortedArray index(Exec{}, keys); }),
        message_of([&] { kindex::SortedArray index(Exec{}, keys, keys); }),
        message_of([&] {
          kindex::SortedArray index(Exec{}, kindex::sorted, keys);
        })}) {
    expect_names(message, {"kindex::SortedArray", "123"});
    EXPECT_EQ(message.find("999"), std::string::npos) << message;
    EXPECT_TRUE(message.find("NaN") != std::string::npos ||
                message.find("nan") != std::string::npos)
        << message;
  }
  // At either end, and alone.
  for (const std::size_t n : {std::size_t{1}, std::size_t{3}})
    for (const std::size_t at : {std::size_t{0}, n - 1}) {
      std::vector<Key> few(n, Key(1));
      few[at] = std::numeric_limits<Key>::quiet_NaN();
      const auto few_keys = to_device<Exec>(few);
      EXPECT_THROW(kindex::SortedArray(Exec{}, few_keys), kindex::Error);
      EXPECT_THROW(kindex::SortedArray(Exec{}, kindex::sorted, few_keys),
                   kindex::Error);
    }
}

TYPED_TEST(Errors, NaNAmongKeys) {
  refuses_nan<TypeParam, float>();
  refuses_nan<TypeParam, double>();
}

TYPED_TEST(Errors, DisorderNamesPositionAndValue) {
  using Exec = TypeParam;
  const auto keys =
      to_device<Exec>(std::vector<std::int64_t>{-7, 11, 12, 4, 40, 3});
  expect_names(message_of([&] {
                 kindex::SortedArray index(Exec{}, kindex::sorted, keys);
               }),
               {"kindex::SortedArray", "3", "4", "12"});
  const auto last = to_device<Exec>(std::vector<std::int64_t>{1, 0});
  EXPECT_THROW(kindex::SortedArray(Exec{}, kindex::sorted, last),
               kindex::Error);
  EXPECT_NO_THROW(
      kindex::SortedArray(Exec{}, kindex::sorted, last, kindex::Check::off));
  const auto values = to_device<Exec>(std::vector<double>{1, 2});
  EXPECT_THROW(kindex::SortedArray(Exec{}, kindex::sorted, last, values),
               kindex::Error);
  const auto equal = to_device<Exec>(std::vector<std::int64_t>{1, 1, 1});
  EXPECT_NO_THROW(kindex::SortedArray(Exec{}, kindex::sorted, equal));
}

TYPED_TEST(Errors, KeysAndValuesOfDifferentNumber) {
  using Exec = TypeParam;
  const auto keys = to_device<Exec>(std::vector<int>(17, 1));
  const auto values = to_device<Exec>(std::vector<int>(19, 1));
  expect_names(
      message_of([&] { kindex::SortedArray index(Exec{}, keys, values); }),
      {"kindex::SortedArray", "17", "19"});
  expect_names(message_of([&] {
                 kindex::SortedArray index(Exec{}, kindex::sorted, keys,
                                           values);
               }),
               {"kindex::SortedArray", "17", "19"});
}

template <class Exec>
struct IgnoreHits {
  template <class Key, class Value>
  KOKKOS_FUNCTION void operator()(size_type, Key, Value) const {}
};

TYPED_TEST(Errors, OutputsOfAnotherSizeThanQueries) {
  using Exec = TypeParam;
  const Exec space{};
  const kindex::SortedArray index(space,
                                  to_device<Exec>(std::vector<int>{3, 1, 2}));
  const auto queries = to_device<Exec>(std::vector<int>(21, 1));
  const auto fewer = to_device<Exec>(std::vector<int>(20, 1));
  const auto right = filled<size_type, Exec>(21),
             wrong = filled<size_type, Exec>(23);
  const auto values = filled<std::uint32_t, Exec>(23);
  const auto flags = filled<bool, Exec>(23);
  expect_names(message_of([&] { index.find(space, queries, values); }),
               {"find", "21", "23"});
  expect_names(message_of([&] { index.contains(space, queries, flags); }),
               {"contains", "21", "23"});
  expect_names(message_of([&] { index.lower_bound(space, queries, wrong); }),
               {"lower_bound", "21", "23"});
  expect_names(message_of([&] { index.upper_bound(space, queries, wrong); }),
               {"upper_bound", "21", "23"});
  expect_names(
      message_of([&] { index.equal_range(space, queries, wrong, right); }),
      {"equal_range", "21", "23"});
  expect_names(
      message_of([&] { index.equal_range(space, queries, right, wrong); }),
      {"equal_range", "21", "23"});
  expect_names(message_of([&] { index.count(space, queries, wrong); }),
               {"count", "21", "23"});
  expect_names(
      message_of([&] { index.range_count(space, queries, queries, wrong); }),
      {"range_count", "21", "23"});
  expect_names(
      message_of([&] { index.range_count(space, queries, fewer, right); }),
      {"range_count", "21", "20"});
  expect_names(message_of([&] { index.range(space, queries, fewer); }),
               {"range", "21", "20"});
  expect_names(message_of([&] {
                 index.range(space, queries, fewer, kindex::with_keys);
               }),
               {"range", "21", "20"});
  expect_names(message_of([&] {
                 index.for_each_in_range(space, queries, fewer,
                                         IgnoreHits<Exec>{});
               }),
               {"for_each_in_range", "21", "20"});
  // Nothing was written, and the index answers as before.
  EXPECT_EQ(to_host(wrong), Ranks(23, 0xA5A5A5A5A5A5A5A5u));
  EXPECT_EQ(to_host(right), Ranks(21, 0xA5A5A5A5A5A5A5A5u));
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<int>{1, 2, 3, 4}),
            (Ranks{0, 1, 2, 3}));
}

TYPED_TEST(Errors, RanksThatDoNotFit) {
  using Exec = TypeParam;
  const Exec space{};
  const auto queries = to_device<Exec>(std::vector<int>{0, 500});
  const kindex::SortedArray index(space,
                                  to_device<Exec>(std::vector<int>(300, 7)));
  const auto narrow = filled<std::uint8_t, Exec>(2);
  const auto enough = filled<std::int16_t, Exec>(2);
  expect_names(message_of([&] { index.lower_bound(space, queries, narrow); }),
               {"lower_bound", "300"});
  expect_names(message_of([&] { index.upper_bound(space, queries, narrow); }),
               {"upper_bound", "300"});
  expect_names(
      message_of([&] { index.equal_range(space, queries, enough, narrow); }),
      {"equal_range", "300"});
  expect_names(message_of([&] { index.count(space, queries, narrow); }),
               {"count", "300"});
  expect_names(
      message_of([&] { index.range_count(space, queries, queries, narrow); }),
      {"range_count", "300"});
  EXPECT_EQ(to_host(narrow), (std::vector<std::uint8_t>{0xA5, 0xA5}));
  index.lower_bound(space, queries, enough);
  EXPECT_EQ(to_host(enough), (std::vector<std::int16_t>{0, 300}));

  // The limits themselves: size() may be a rank, so it must fit.
  const kindex::SortedArray at_limit(space,
                                     to_device<Exec>(std::vector<int>(255, 7)));
  at_limit.lower_bound(space, queries, narrow);
  EXPECT_EQ(to_host(narrow), (std::vector<std::uint8_t>{0, 255}));
  const auto signed_narrow = filled<std::int8_t, Exec>(2);
  EXPECT_THROW(at_limit.lower_bound(space, queries, signed_narrow),
               kindex::Error);
  const kindex::SortedArray at_signed_limit(
      space, to_device<Exec>(std::vector<int>(127, 7)));
  at_signed_limit.upper_bound(space, queries, signed_narrow);
  EXPECT_EQ(to_host(signed_narrow), (std::vector<std::int8_t>{0, 127}));
}

// 2^32 + 1 rows in one byte: every row is the same element. The check comes
// before any access.
TYPED_TEST(Errors, MoreRowsThanRowIds) {
  using Exec = TypeParam;
  const auto memory = to_device<Exec>(std::vector<std::uint8_t>{1});
  const Kokkos::View<const std::uint8_t*, Kokkos::LayoutStride,
                     typename Exec::memory_space,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      keys(memory.data(), Kokkos::LayoutStride((std::size_t{1} << 32) + 1, 0));
  ASSERT_EQ(keys.extent(0), 4294967297u);
  for (const auto& message :
       {message_of([&] { kindex::SortedArray index(Exec{}, keys); }),
        message_of(
            [&] { kindex::SortedArray index(Exec{}, kindex::sorted, keys); }),
        message_of([&] {
          kindex::SortedArray index(Exec{}, kindex::sorted, keys,
                                    kindex::Check::off);
        })})
    expect_names(message, {"kindex::SortedArray", "4294967297", "row id"});
  using Narrow =
      kindex::SortedArray<int, std::uint8_t, typename Exec::memory_space>;
  const auto many = to_device<Exec>(std::vector<int>(257, 3));
  EXPECT_THROW(Narrow(Exec{}, many), kindex::Error);
  const auto as_many = to_device<Exec>(std::vector<int>(256, 3));
  EXPECT_NO_THROW(Narrow(Exec{}, as_many));
}

TYPED_TEST(Errors, PolicyOutsideItsRange) {
  kindex::LookupPolicy policy;
  EXPECT_THROW(policy.set_team_size(-1), kindex::Error);
  EXPECT_THROW(policy.set_team_size(1025), kindex::Error);
  EXPECT_THROW(policy.set_lookups_per_thread(-1), kindex::Error);
  EXPECT_EQ(policy.team_size(), 0);
  EXPECT_EQ(policy.lookups_per_thread(), 0);
}

TYPED_TEST(Errors, IndexIsUnchangedByAFailedAssignment) {
  using Exec = TypeParam;
  kindex::SortedArray index(Exec{}, to_device<Exec>(std::vector<int>{5, 6}));
  const auto unordered = to_device<Exec>(std::vector<int>{2, 1, 0});
  EXPECT_THROW((index = kindex::SortedArray(Exec{}, kindex::sorted, unordered)),
               kindex::Error);
  EXPECT_EQ(index.size(), 2u);
  EXPECT_EQ(lower_bounds<Exec>(index, std::vector<int>{5, 6, 7}),
            (Ranks{0, 1, 2}));
}

TYPED_TEST(Errors, IsAnInvalidArgument) {
  static_assert(std::is_base_of_v<std::invalid_argument, kindex::Error>);
}

}  // namespace
}  // namespace kindex_test
