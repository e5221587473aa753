// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cost model of a batch that goes to a device and back: its arithmetic in
// powers of two, which doubles hold exactly, and calibration, of which only
// that its numbers are numbers is tested.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <kindex/SortedArray.hpp>
#include <kindex/TransferModel.hpp>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "support/Devices.hpp"
#include "support/Errors.hpp"

namespace kindex_test {
namespace {

using kindex::CostSample;
using kindex::LinearCost;
using kindex::PipelineOptions;
using kindex::size_type;
using kindex::TransferModel;
using kindex::TransferParameters;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Queries of 8 bytes at 2^13 bytes per second, results of 4 at 2^14, lookups
/// at 2^11 per second: 2^-10, 2^-12 and 2^-11 seconds each; 1/4 + 1/8 + 1/2
/// seconds beside.
TransferParameters powers_of_two() {
  TransferParameters p;
  p.in = {0.25, 8192};
  p.execute = {0.125, 2048};
  p.out = {0.5, 16384};
  return p;
}

TEST(TransferModel, AddsUpTheSteps) {
  const TransferModel model(powers_of_two());
  EXPECT_EQ(model.seconds_in(1024), 0.25 + 1);
  EXPECT_EQ(model.seconds_execute(1024), 0.125 + 0.5);
  EXPECT_EQ(model.seconds_out(1024), 0.5 + 0.25);
  EXPECT_EQ(model.seconds(1024), 0.875 + 1.75);
  EXPECT_EQ(model.parameters().in.per_second, 8192);
  EXPECT_EQ(model.parameters().query_bytes, 8U);
  EXPECT_EQ(model.parameters().result_bytes, 4U);
}

TEST(TransferModel, AnEmptyBatchCostsNothing) {
  const TransferModel model(powers_of_two());
  EXPECT_EQ(model.seconds_in(0), 0);
  EXPECT_EQ(model.seconds(0), 0);
  EXPECT_EQ(model.overlapped_seconds(0), 0);
}

TEST(TransferModel, WithoutNumbersNothingCosts) {
  const TransferModel model{TransferParameters{}};
  EXPECT_EQ(model.seconds(std::numeric_limits<size_type>::max()), 0);
  EXPECT_EQ(model.break_even(1e9), 1U);
}

TEST(TransferModel, OneBucketIsOneStepAfterTheOther) {
  TransferParameters p = powers_of_two();
  const auto one = PipelineOptions().set_bucket_size(1024);
  EXPECT_EQ(TransferModel(p).overlapped_seconds(1024, one), 2.625);
  // The host fills page-locked memory, and empties it: 1/16 s each time.
  p.staging = {0.0625, infinity};
  EXPECT_EQ(TransferModel(p).overlapped_seconds(1024, one), 2.625 + 0.125);
  // By default, small batches are not cut.
  EXPECT_EQ(TransferModel(p).overlapped_seconds(1024), 2.75);
}

TEST(TransferModel, MoreBucketsTakeTheSlowestStepEach) {
  TransferParameters p = powers_of_two();
  const auto options = PipelineOptions().set_bucket_size(1024);
  // in 1.25, execute 0.625, out 0.75: in is the slowest, a third of all less.
  EXPECT_EQ(TransferModel(p).overlapped_seconds(4096, options),
            2.625 + 3 * 1.25);
  // A batch that is no multiple is cut evenly: 3 buckets of 512.
  EXPECT_EQ(TransferModel(p).overlapped_seconds(
                1536, PipelineOptions().set_bucket_size(600)),
            0.875 + 0.875 + 2 * 0.75);
  // Filling and emptying, 0.75 s each, are one step of the host.
  p.staging = {0.75, infinity};
  EXPECT_EQ(TransferModel(p).overlapped_seconds(4096, options),
            2.625 + 1.5 + 3 * 1.5);
  // With one buffer, nothing overlaps; with two, half of all steps does.
  p.staging = {};
  EXPECT_EQ(TransferModel(p).overlapped_seconds(
                4096, PipelineOptions(options).set_buffers(1)),
            4 * 2.625);
  EXPECT_EQ(TransferModel(p).overlapped_seconds(
                4096, PipelineOptions(options).set_buffers(2)),
            2.625 + 3 * 1.3125);
}

TEST(TransferModel, BreaksEvenInBetween) {
  // 7/8 s and 7 * 2^-12 s per query; a host of 2^-9 s gains 2^-12 s with each.
  const TransferModel model(powers_of_two());
  const std::optional<size_type> batch = model.break_even(512);
  ASSERT_EQ(batch, 3585U);
  EXPECT_EQ(model.seconds(3584), 3584.0 / 512);  // a draw
  EXPECT_LT(model.seconds(3585), 3585.0 / 512);
  // What the host needs to start, the device need not make up for.
  EXPECT_EQ(model.break_even({0.375, 512}), 2049U);
}

TEST(TransferModel, BreaksEvenAtOne) {
  const TransferModel model(powers_of_two());
  EXPECT_EQ(model.break_even({1, 512}), 1U);
  // As fast per query, but later.
  TransferParameters p = powers_of_two();
  p.query_bytes = 0;
  p.result_bytes = 0;
  EXPECT_EQ(TransferModel(p).break_even({1, 2048}), 1U);
  EXPECT_EQ(TransferModel(p).break_even({0.5, 1}), 1U);
}

TEST(TransferModel, BreaksEvenNever) {
  const TransferModel model(powers_of_two());
  EXPECT_EQ(model.break_even(1024), std::nullopt);
  EXPECT_EQ(model.break_even(infinity), std::nullopt);
  // As fast per query, but later.
  TransferParameters lookups = powers_of_two();
  lookups.query_bytes = 0;
  lookups.result_bytes = 0;
  EXPECT_EQ(TransferModel(lookups).break_even(2048), std::nullopt);
  // Ahead in small batches only.
  EXPECT_EQ(model.break_even({1, 1024}), std::nullopt);
  // Beyond what can be counted.
  TransferParameters p = powers_of_two();
  p.in.fixed_seconds = 1e300;
  EXPECT_EQ(TransferModel(p).break_even(512), std::nullopt);
}

TEST(TransferModel, RefusesWhatIsNoCost) {
  const auto with = [](LinearCost TransferParameters::*member,
                       const LinearCost& cost) {
    return message_of([&] {
      TransferParameters p;
      p.*member = cost;
      TransferModel model(p);
    });
  };
  EXPECT_EQ(with(&TransferParameters::in, {-1, 1}),
            "kindex::TransferModel: parameters.in.fixed_seconds is -1, not a "
            "time");
  EXPECT_EQ(with(&TransferParameters::execute, {0, 0}),
            "kindex::TransferModel: parameters.execute.per_second is 0, not "
            "above 0");
  EXPECT_NE(with(&TransferParameters::out, {infinity, 1}).find("is inf"),
            std::string::npos);
  EXPECT_NE(with(&TransferParameters::staging, {nan, 1}).find("staging"),
            std::string::npos);
  EXPECT_NE(with(&TransferParameters::in, {0, nan}).find("per_second is"),
            std::string::npos);
  const TransferModel model(powers_of_two());
  EXPECT_EQ(message_of([&] { model.break_even(-2); }),
            "kindex::TransferModel::break_even: host_lookups_per_second is -2, "
            "not above 0");
  EXPECT_EQ(message_of([&] {
              model.break_even({nan, 1});
            }).find("kindex::TransferModel::break_even: host.fixed_seconds"),
            0U);
}

TEST(TransferModel, FitsWhatAFunctionGives) {
  for (const LinearCost truth :
       {LinearCost{1e-5, 2e10}, LinearCost{3, 0.5}, LinearCost{1e-9, 1e12}}) {
    std::vector<CostSample> samples;
    for (double amount = 4096; amount < 1e8; amount *= 4)
      samples.push_back({amount, truth.seconds(amount)});
    const LinearCost fitted = LinearCost::fit(samples);
    EXPECT_NEAR(fitted.fixed_seconds / truth.fixed_seconds, 1, 1e-6);
    EXPECT_NEAR(fitted.per_second / truth.per_second, 1, 1e-6);
  }
}

TEST(TransferModel, FitsRelativeErrors) {
  // The largest batch is 10 % late. By absolute errors, that alone would decide
  // what the smallest costs.
  const LinearCost truth{1e-5, 1e10};
  std::vector<CostSample> samples;
  for (double amount = 4096; amount < 1e8; amount *= 4)
    samples.push_back({amount, truth.seconds(amount)});
  samples.back().seconds *= 1.1;
  const LinearCost fitted = LinearCost::fit(samples);
  EXPECT_NEAR(fitted.fixed_seconds / truth.fixed_seconds, 1, 0.1);
  EXPECT_NEAR(fitted.per_second / truth.per_second, 1, 0.1);
}

TEST(TransferModel, FitsNothingNegative) {
  // Less than in proportion below zero; and faster, the more there is.
  for (const std::vector<CostSample>& samples :
       {std::vector<CostSample>{{1, 1}, {2, 4}},
        std::vector<CostSample>{{1, 4}, {2, 1}}}) {
    const LinearCost fitted = LinearCost::fit(samples);
    EXPECT_EQ(fitted.fixed_seconds, 0);
    EXPECT_GT(fitted.per_second, 0);
    EXPECT_TRUE(std::isfinite(fitted.per_second));
  }
}

TEST(TransferModel, RefusesToFitNothing) {
  const auto refusal = [](const std::vector<CostSample>& samples) {
    return message_of([&] { LinearCost::fit(samples); });
  };
  EXPECT_EQ(refusal({{1, 1}, {0, 1}}),
            "kindex::LinearCost::fit: samples[1].amount is 0, not positive and "
            "finite");
  EXPECT_EQ(refusal({{1, -1}}),
            "kindex::LinearCost::fit: samples[0].seconds is -1, not positive "
            "and finite");
  EXPECT_NE(refusal({{nan, 1}}).find("amount"), std::string::npos);
  EXPECT_EQ(refusal({}),
            "kindex::LinearCost::fit: samples has 0 measurements, but not of "
            "two different amounts");
  EXPECT_NE(refusal({{1, 1}, {1, 2}}).find("samples has 2"), std::string::npos);
}

void expect_finite(const LinearCost& cost) {
  EXPECT_TRUE(std::isfinite(cost.fixed_seconds)) << cost.fixed_seconds;
  EXPECT_GE(cost.fixed_seconds, 0);
  EXPECT_TRUE(std::isfinite(cost.per_second)) << cost.per_second;
  EXPECT_GT(cost.per_second, 0);
}

template <class Exec>
class Calibrations : public ::testing::Test {};
TYPED_TEST_SUITE(Calibrations, Devices, DeviceName);

TYPED_TEST(Calibrations, OfTheLink) {
  const auto model = TransferModel::calibrate(TypeParam());
  expect_finite(model.parameters().in);
  expect_finite(model.parameters().out);
  expect_finite(model.parameters().staging);
  EXPECT_EQ(model.seconds_execute(1000), 0);
  EXPECT_GT(model.seconds(1000), 0);
  EXPECT_GT(model.overlapped_seconds(1 << 22), 0);
}

TYPED_TEST(Calibrations, OfAnIndex) {
  using Memory = typename TypeParam::memory_space;
  std::vector<std::uint32_t> keys;
  for (std::uint32_t i = 0; i < 5000; ++i) keys.push_back(3 * i);
  const auto on_device = to_device<TypeParam>(keys);
  const kindex::SortedArray<std::uint32_t, std::uint64_t, Memory> index(
      TypeParam(), kindex::sorted, on_device);
  const auto model = TransferModel::calibrate(TypeParam(), index, on_device);
  EXPECT_EQ(model.parameters().query_bytes, 4U);
  EXPECT_EQ(model.parameters().result_bytes, 8U);
  expect_finite(model.parameters().execute);
  EXPECT_GT(model.seconds(1 << 20), 0);
  const auto host = TransferModel::lookup_cost(
      TypeParam(), index,
      Kokkos::subview(on_device, Kokkos::pair<size_type, size_type>(0, 4)));
  expect_finite(host);
  EXPECT_GE(model.break_even(host).value_or(1), 1U);
  EXPECT_EQ(message_of([&] {
              TransferModel::lookup_cost(
                  TypeParam(), index,
                  Kokkos::subview(on_device,
                                  Kokkos::pair<size_type, size_type>(0, 3)));
            }),
            "kindex::TransferModel::lookup_cost: sample has 3 queries, less "
            "than 4");
}

}  // namespace
}  // namespace kindex_test
