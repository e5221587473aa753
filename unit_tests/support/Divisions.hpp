// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What holds of every hybrid tree whose searches can be divided.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_DIVISIONS_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_DIVISIONS_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <kindex/query/HostBatches.hpp>
#include <kindex/query/WorkDivision.hpp>
#include <limits>
#include <string>
#include <vector>

#include "support/Devices.hpp"
#include "support/Errors.hpp"
#include "support/HostViews.hpp"
#include "support/Recorder.hpp"

namespace kindex_test {

/// Sets divisions of all levels and some shares, and calls `check(batches,
/// how)` with buckets of some other size for each.
template <class Exec, class Index, class Check>
void for_each_division(Index& index, const Check& check) {
  EXPECT_EQ(index.division(), kindex::WorkDivision());
  for (int levels = 0; levels <= index.height(); ++levels)
    for (const double share : {0.0, 0.3, 1.0}) {
      if (share > 0 && levels == index.height()) continue;
      index.set_division({levels, share});
      EXPECT_EQ(index.division(), (kindex::WorkDivision{levels, share}));
      const kindex::HostBatches batches(
          Exec{}, kindex::PipelineOptions().set_bucket_size(100 + levels));
      check(batches, std::to_string(levels + share) + " levels");
    }
}

/// Parts of a bucket with a level more are kernels of their own, on either
/// side, as are all levels on the host.
///
/// \tparam Index with keys of 64 bits and values of 32.
template <class Index, class Exec>
void expect_kernels_of_divided_searches() {
  using Host = Kokkos::DefaultHostExecutionSpace;
  std::vector<std::uint64_t> keys(3000);
  for (std::uint64_t i = 0; i < 3000; ++i) keys[i] = i;
  Index index(Exec{}, kindex::sorted, to_device<Host>(keys));
  const auto queries = to_device<Host>(std::vector<std::uint64_t>{1, 2, 3, 4});
  const auto found = to_device<Host>(std::vector<std::uint32_t>(4));
  const auto kernels = [&](const kindex::WorkDivision& division,
                           const char* stage) {
    index.set_division(division);
    Recorder recorder;
    index.find(Exec{}, queries, found);
    const std::string label =
        std::string("kindex::") + Index::name() + "::find::" + stage;
    int number = 0;
    for (const auto& event : recorder.stop())
      number += event.kind == Event::kernel && event.label == label;
    return number;
  };
  EXPECT_EQ(kernels({0, 0}, "head"), 0);
  EXPECT_EQ(kernels({0, 0}, "route"), 1);
  EXPECT_EQ(kernels({1, 0}, "head"), 1);
  EXPECT_EQ(kernels({1, 0}, "route"), 1);
  EXPECT_EQ(kernels({0, 0.5}, "head"), 1);
  EXPECT_EQ(kernels({0, 0.5}, "route"), 2);
  EXPECT_EQ(kernels({1, 0.5}, "head"), 2);
  EXPECT_EQ(kernels({1, 0.5}, "route"), 2);
  EXPECT_EQ(kernels({1, 0.5}, "finish"), 1);
  EXPECT_EQ(kernels({index.height(), 0}, "head"), 1);
}

/// Divisions that are found are kept, those that there cannot be are refused.
///
/// \tparam Index as above.
template <class Index, class Exec>
void expect_divisions_are_found_and_checked() {
  using Host = Kokkos::DefaultHostExecutionSpace;
  using kindex::WorkDivision;
  std::vector<std::uint64_t> keys(3000);
  for (std::uint64_t i = 0; i < 3000; ++i) keys[i] = i * i;
  const auto sample = to_device<Host>(keys);
  Index index(Exec{}, kindex::sorted, sample);
  const int height = index.height();
  ASSERT_GE(height, 2);
  // Which is best here is the machine's business.
  const auto division = index.balance(Exec{}, sample);
  EXPECT_EQ(index.division(), division);
  EXPECT_LE(division.levels + division.share, height);
  index.set_division(division);
  EXPECT_EQ(Index().balance(Exec{}, sample), WorkDivision());
  index.set_division({height, 0});
  EXPECT_EQ(index.balance(Exec{}, HostView<std::uint64_t>()), WorkDivision());

  index.set_division({1, 0.5});
  const auto refuses = [&](const WorkDivision& bad,
                           std::vector<std::string> parts) {
    parts.push_back(std::string("kindex::") + Index::name() + "::set_division");
    expect_error([&] { index.set_division(bad); }, parts);
    EXPECT_EQ(index.division(), (WorkDivision{1, 0.5}));
  };
  const auto levels = [](int number) {
    return "division.levels is " + std::to_string(number);
  };
  refuses({height + 1, 0},
          {levels(height + 1), "0..." + std::to_string(height)});
  refuses({-1, 0}, {levels(-1)});
  refuses({0, 1.5}, {"division.share is 1.5"});
  refuses({0, -0.5}, {"division.share is -0.5"});
  refuses({0, std::numeric_limits<double>::quiet_NaN()}, {"division.share is"});
  refuses({height, 0.5}, {"division.share is 0.5", "no level below"});
  Index none;
  expect_error([&] { none.set_division({1, 0}); }, {levels(1), "0...0"});
}

/// What is above all keys is led to nodes that are there, too.
///
/// \tparam Index as above.
template <class Index, class Exec>
void expect_divided_searches_above_all_keys() {
  using Host = Kokkos::DefaultHostExecutionSpace;
  std::vector<std::uint64_t> keys(5000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = 7 * i;
  Index index(Exec{}, kindex::sorted, to_device<Host>(keys));
  const auto queries = to_device<Host>(std::vector<double>(300, 1e30));
  const auto ranks = to_device<Host>(std::vector<std::uint64_t>(300));
  for_each_division<Exec>(
      index, [&](const auto& batches, const std::string& how) {
        Kokkos::deep_copy(ranks, 0u);
        index.upper_bound(batches, queries, ranks);
        EXPECT_EQ(to_host(ranks), std::vector<std::uint64_t>(300, 5000)) << how;
      });
}

}  // namespace kindex_test

#endif
