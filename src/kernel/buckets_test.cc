// SPDX-License-Identifier: Apache-2.0
#include "abi/buckets.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace clew::abi {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(Quantize, PutsAValueInTheLargestPowerOfTwoThatIsNotAboveIt) {
  EXPECT_EQ(quantize_bucket(0), kQuantizeZero);
  for (const int64_t value : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{1000},
                              int64_t{1} << 40, kHighest}) {
    const int64_t label = quantize_value(quantize_bucket(value));
    EXPECT_LE(label, value);
    EXPECT_GT(static_cast<uint64_t>(label) * 2, static_cast<uint64_t>(value)) << value;
    EXPECT_EQ(quantize_value(quantize_bucket(-value)), -label);
  }
}

TEST(Quantize, HasRoomForTheExtremes) {
  EXPECT_EQ(quantize_bucket(kHighest), kMachineQuantizeBuckets - 1);
  EXPECT_EQ(quantize_bucket(kLowest), 0U);
  EXPECT_EQ(quantize_bucket(-kHighest), 0U);
}

TEST(LinearQuantize, HasABucketBelowAndOneAbove) {
  constexpr LinearBuckets kShape{.low = -10, .high = 100, .step = 10};
  EXPECT_EQ(linear_buckets(kShape), 13U);
  EXPECT_EQ(linear_bucket(kShape, -11), 0U);
  EXPECT_EQ(linear_bucket(kShape, -10), 1U);
  EXPECT_EQ(linear_bucket(kShape, -1), 1U);
  EXPECT_EQ(linear_bucket(kShape, 0), 2U);
  EXPECT_EQ(linear_bucket(kShape, 99), 11U);
  EXPECT_EQ(linear_bucket(kShape, 100), 12U);
  EXPECT_EQ(linear_bucket(kShape, kHighest), 12U);
  EXPECT_EQ(linear_bucket(kShape, kLowest), 0U);
  EXPECT_EQ(linear_value(kShape, 1), -10);
  EXPECT_EQ(linear_value(kShape, 12), 100);
}

// Orders [1, 10), [10, 100) and [100, 1000): steps of 1, 10 and 100.
constexpr LogLinearBuckets kTens{.factor = 10, .low = 0, .high = 2, .steps = 10};

uint64_t bucket_in(const LogLinearBuckets& l, int64_t value) {
  return log_linear_bucket(l, 0, log_linear_steps(l), value);
}

TEST(LogLinearQuantize, CutsEachOrderInEqualSteps) {
  EXPECT_EQ(log_linear_steps(kTens), 27U);
  EXPECT_EQ(log_linear_buckets(kTens), 57U);
  EXPECT_EQ(bucket_in(kTens, 0), 28U);
  EXPECT_EQ(bucket_in(kTens, 1), 29U);
  EXPECT_EQ(bucket_in(kTens, 9), 37U);
  EXPECT_EQ(bucket_in(kTens, 10), 38U);
  EXPECT_EQ(bucket_in(kTens, 19), 38U);
  EXPECT_EQ(bucket_in(kTens, 999), 55U);
  EXPECT_EQ(bucket_in(kTens, 1000), 56U);
  EXPECT_EQ(bucket_in(kTens, kHighest), 56U);
  EXPECT_EQ(bucket_in(kTens, kLowest), 0U);
}

TEST(LogLinearQuantize, LabelsABucketByItsFirstValue) {
  for (const LogLinearBuckets& l :
       {kTens, LogLinearBuckets{.factor = 2, .low = 0, .high = 3, .steps = 2},
        LogLinearBuckets{.factor = 10, .low = 1, .high = 3, .steps = 20}}) {
    const uint64_t p = log_linear_steps(l);
    EXPECT_EQ(log_linear_value(l, p + 1), 0);
    for (uint64_t bucket = p + 2; bucket < log_linear_buckets(l); ++bucket) {
      const int64_t first = log_linear_value(l, bucket);
      EXPECT_EQ(bucket_in(l, first), bucket) << first;
      EXPECT_EQ(bucket_in(l, first - 1), bucket - 1) << first;
      EXPECT_EQ(log_linear_value(l, 2 * (p + 1) - bucket), -first);
    }
  }
}

}  // namespace
}  // namespace clew::abi
