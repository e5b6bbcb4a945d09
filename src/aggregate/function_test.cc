// SPDX-License-Identifier: Apache-2.0
#include "aggregate/function.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/buckets.h"
#include "aggregate/hash.h"

namespace clew::aggregate {
namespace {

using Words = std::vector<uint64_t>;
using testing::HasSubstr;

std::vector<AggregateSpec> all_specs() {
  std::vector<AggregateSpec> specs;
  for (const bool is_signed : {true, false}) {
    for (const auto function :
         {AggregateFunction::Count, AggregateFunction::Sum, AggregateFunction::Min,
          AggregateFunction::Max, AggregateFunction::Average, AggregateFunction::StandardDeviation,
          AggregateFunction::Quantize, AggregateFunction::Distinct, AggregateFunction::TopK,
          AggregateFunction::Quantile, AggregateFunction::Variance}) {
      specs.push_back({.function = function, .is_signed = is_signed});
    }
  }
  specs.push_back({.function = AggregateFunction::Lquantize, .low = -50, .high = 100, .step = 7});
  specs.push_back(
      {.function = AggregateFunction::Llquantize, .low = 1, .high = 6, .factor = 10, .steps = 20});
  return specs;
}

// Values of every magnitude and both signs, with repetitions.
Words random_values(std::mt19937_64& random, size_t count) {
  Words values;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = random() >> (random() % 64);
    values.push_back(random() % 4 == 0 ? 0 - value : value);
    if (random() % 8 == 0) values.push_back(values[random() % values.size()]);
  }
  for (const uint64_t edge : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{1} << 63}) {
    values.push_back(edge);
  }
  return values;
}

Words cell_of(const AggregateSpec& spec, std::span<const uint64_t> values) {
  Words cell(cell_words(spec));
  for (const uint64_t value : values)
    add(spec, cell, value);
  return cell;
}

Words merged(const AggregateSpec& spec, Words a, const Words& b) {
  merge(spec, a, b);
  return a;
}

std::vector<Words> cells_of_parts(const AggregateSpec& spec, const Words& values, size_t parts,
                                  std::mt19937_64& random) {
  std::vector<Words> split(parts);
  for (const uint64_t value : values)
    split[random() % parts].push_back(value);
  std::vector<Words> cells;
  for (const Words& part : split)
    cells.push_back(cell_of(spec, part));
  return cells;
}

TEST(AggregateLaws, MergeOfThePartsIsTheCellOfTheWholeInAnyOrderAndGrouping) {
  std::mt19937_64 random(1);
  for (const AggregateSpec& spec : all_specs()) {
    for (int round = 0; round < 20; ++round) {
      const Words values = random_values(random, 200);
      std::vector<Words> cells = cells_of_parts(spec, values, 1 + random() % 6, random);
      while (cells.size() > 1) {  // Merge two at random until one is left.
        std::shuffle(cells.begin(), cells.end(), random);
        const Words last = cells.back();
        cells.pop_back();
        merge(spec, cells.back(), last);
      }
      ASSERT_EQ(cells[0], cell_of(spec, values)) << name_of(spec.function);
    }
  }
}

TEST(AggregateLaws, MergeIsCommutativeAndAssociativeAndZeroIsItsIdentity) {
  std::mt19937_64 random(2);
  for (const AggregateSpec& spec : all_specs()) {
    for (int round = 0; round < 20; ++round) {
      const Words a = cell_of(spec, random_values(random, 30));
      const Words b = cell_of(spec, random_values(random, 30));
      const Words c = cell_of(spec, random_values(random, 30));
      const Words zero(cell_words(spec));
      ASSERT_EQ(merged(spec, a, b), merged(spec, b, a)) << name_of(spec.function);
      ASSERT_EQ(merged(spec, merged(spec, a, b), c), merged(spec, a, merged(spec, b, c)))
          << name_of(spec.function);
      ASSERT_EQ(merged(spec, a, zero), a) << name_of(spec.function);
      ASSERT_EQ(merged(spec, zero, a), a) << name_of(spec.function);
    }
  }
}

// --- floating point ------------------------------------------------------------------------------

double real_result(AggregateFunction function, const std::vector<Words>& cells) {
  const AggregateSpec spec{.function = function, .is_real = true};
  Words whole(cell_words(spec));
  for (const Words& cell : cells)
    merge(spec, whole, cell);
  return std::get<double>(finish(spec, whole));
}

TEST(RealAggregates, OfPartsAreThoseOfTheWhole) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> near_a_million(1e6, 1e6 + 1);
  std::vector<double> values(1000);
  for (double& value : values)
    value = near_a_million(random);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double mean = sum / 1000;
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  Words bits;
  for (const double value : values)
    bits.push_back(std::bit_cast<uint64_t>(value));
  const auto result = [&](AggregateFunction function) {
    const AggregateSpec spec{.function = function, .is_real = true};
    return real_result(function, cells_of_parts(spec, bits, 5, random));
  };
  EXPECT_NEAR(result(AggregateFunction::Sum), sum, 1e-5);
  EXPECT_NEAR(result(AggregateFunction::Average), mean, 1e-8);
  EXPECT_NEAR(result(AggregateFunction::StandardDeviation), std::sqrt(squares / 1000), 1e-8);
  EXPECT_NEAR(result(AggregateFunction::Variance), squares / 1000, 1e-6);
  EXPECT_EQ(result(AggregateFunction::Min), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(result(AggregateFunction::Max), *std::max_element(values.begin(), values.end()));
}

TEST(RealAggregates, OfNothingAreNoneAndNoNumberIsNoExtreme) {
  const uint64_t nan = std::bit_cast<uint64_t>(std::nan(""));
  for (const auto function : {AggregateFunction::Min, AggregateFunction::Max}) {
    const AggregateSpec spec{.function = function, .is_real = true};
    EXPECT_EQ(finish(spec, cell_of(spec, Words{})), Value());
    EXPECT_EQ(finish(spec, cell_of(spec, Words{nan})), Value());
    const Words values = {nan, std::bit_cast<uint64_t>(-2.5), nan};
    EXPECT_EQ(finish(spec, cell_of(spec, values)), Value(-2.5));
    EXPECT_FALSE(subtractable(spec));
  }
  const AggregateSpec mean{.function = AggregateFunction::Average, .is_real = true};
  EXPECT_EQ(finish(mean, cell_of(mean, Words{})), Value());
}

TEST(AggregateLaws, ADifferenceOfTwoReadsIsTheIntervalBetweenThem) {
  std::mt19937_64 random(3);
  for (const AggregateSpec& spec : all_specs()) {
    if (!subtractable(spec)) continue;
    const Words before = random_values(random, 100);
    const Words interval = random_values(random, 100);
    Words all = merged(spec, cell_of(spec, before), cell_of(spec, interval));
    subtract(spec, all, cell_of(spec, before));
    EXPECT_EQ(all, cell_of(spec, interval)) << name_of(spec.function);
  }
}

TEST(Aggregate, OnlyMinMaxAndDistinctCannotBeSubtracted) {
  for (const AggregateSpec& spec : all_specs()) {
    const bool expected = spec.function != AggregateFunction::Min &&
                          spec.function != AggregateFunction::Max &&
                          spec.function != AggregateFunction::Distinct;
    EXPECT_EQ(subtractable(spec), expected) << name_of(spec.function);
  }
}

TEST(Aggregate, NothingCountedGivesNullWhereThereIsNoAnswer) {
  for (const auto function :
       {AggregateFunction::Min, AggregateFunction::Max, AggregateFunction::Average,
        AggregateFunction::StandardDeviation, AggregateFunction::Quantile}) {
    const AggregateSpec spec{.function = function};
    EXPECT_EQ(finish(spec, Words(cell_words(spec))), Value()) << name_of(function);
  }
  const AggregateSpec count{};
  EXPECT_EQ(finish(count, Words(1)), Value(uint64_t{0}));
}

TEST(Aggregate, MinAndMaxReadTheSignOfTheirValue) {
  const Words values = {5, 0 - uint64_t{3}, 7};
  const auto answer = [&](AggregateFunction function, bool is_signed) {
    const AggregateSpec spec{.function = function, .is_signed = is_signed};
    return finish(spec, cell_of(spec, values));
  };
  EXPECT_EQ(answer(AggregateFunction::Min, true), Value(int64_t{-3}));
  EXPECT_EQ(answer(AggregateFunction::Max, true), Value(int64_t{7}));
  EXPECT_EQ(answer(AggregateFunction::Min, false), Value(uint64_t{5}));
  EXPECT_EQ(answer(AggregateFunction::Max, false), Value(UINT64_MAX - 2));
}

TEST(Aggregate, AScaleTurnsTicksIntoNanoseconds) {
  const Words ticks = {1000, 3000};
  const auto answer = [&](AggregateFunction function) {
    const AggregateSpec spec{.function = function, .is_signed = false, .scale = 0.4};
    return finish(spec, cell_of(spec, ticks));
  };
  EXPECT_EQ(answer(AggregateFunction::Sum), Value(uint64_t{1600}));
  EXPECT_EQ(answer(AggregateFunction::Min), Value(uint64_t{400}));
  EXPECT_EQ(answer(AggregateFunction::Average), Value(800.0));
  EXPECT_EQ(answer(AggregateFunction::StandardDeviation), Value(400.0));
  EXPECT_EQ(answer(AggregateFunction::Variance), Value(160'000.0));
}

TEST(StandardDeviation, SumsSquaresOfLargeValuesWithoutOverflow) {
  const AggregateSpec spec{.function = AggregateFunction::StandardDeviation};
  Words values;
  for (int i = 0; i < 32; ++i) {  // The sum of squares is 2^127.
    values.push_back(static_cast<uint64_t>(i % 2 == 0 ? INT64_MIN / 4 : INT64_MAX / 4));
  }
  EXPECT_NEAR(std::get<double>(finish(spec, cell_of(spec, values))), 0x1p61, 0x1p61 * 1e-9);
}

TEST(StandardDeviation, EqualsTheTextbookFormula) {
  const AggregateSpec spec{.function = AggregateFunction::StandardDeviation};
  const Words values = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(std::get<double>(finish(spec, cell_of(spec, values))), 2.0);
}

TEST(Variance, OfLargeValuesThatLieCloseTogetherIsExact) {
  for (const bool is_signed : {true, false}) {
    const AggregateSpec spec{.function = AggregateFunction::Variance, .is_signed = is_signed};
    const uint64_t large = 1'000'000'000'000'000;
    const Words values = {large, large + 1000, large + 2000};
    const double variance = std::get<double>(finish(spec, cell_of(spec, values)));
    EXPECT_DOUBLE_EQ(variance, 2'000'000.0 / 3);
  }
  const AggregateSpec spec{.function = AggregateFunction::Variance};
  const Words negative = {static_cast<uint64_t>(-4'000'000'000'000'001),
                          static_cast<uint64_t>(-4'000'000'000'000'004)};
  EXPECT_DOUBLE_EQ(std::get<double>(finish(spec, cell_of(spec, negative))), 2.25);
}

TEST(Variance, IsTheSquareOfTheDeviation) {
  const AggregateSpec spec{.function = AggregateFunction::Variance};
  const Words values = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(std::get<double>(finish(spec, cell_of(spec, values))), 4.0);
  EXPECT_EQ(finish(spec, Words(cell_words(spec))), Value());
}

// The bucket by definition: the largest one whose bound is not beyond the value.
uint32_t quantize_by_search(int64_t value) {
  const AggregateSpec spec{.function = AggregateFunction::Quantize};
  const auto histogram = std::get<Histogram>(finish(spec, Words(abi::kQuantizeBuckets)));
  uint32_t found = 0;
  for (uint32_t i = 0; i < abi::kQuantizeBuckets - 1; ++i) {
    const int64_t bound = histogram.buckets[i].low;
    if (value >= 0 && bound >= 0 && bound <= value) found = i;
    if (value < 0 && bound < 0 && value <= bound) return i;
  }
  return found;
}

TEST(Quantize, CountsEachValueInTheBucketOfItsPowerOfTwo) {
  for (int shift = 0; shift < 63; ++shift) {
    const int64_t power = int64_t{1} << shift;
    for (const int64_t value : {power - 1, power, power + 1, -power, 1 - power, -power - 1}) {
      EXPECT_EQ(abi::quantize_bucket(static_cast<uint64_t>(value), true), quantize_by_search(value))
          << value;
    }
  }
  EXPECT_EQ(abi::quantize_bucket(0, true), abi::kQuantizeZero);
  EXPECT_EQ(abi::quantize_bucket(static_cast<uint64_t>(INT64_MIN), true), 0U);
  EXPECT_EQ(abi::quantize_bucket(UINT64_MAX, false), 127U);
}

TEST(Lquantize, PutsValuesOutsideTheRangeIntoTheOuterBuckets) {
  const abi::LinearBuckets buckets{.low = -10, .high = 10, .step = 5};
  EXPECT_EQ(abi::linear_bucket(buckets, -11), 0U);
  EXPECT_EQ(abi::linear_bucket(buckets, -10), 1U);
  EXPECT_EQ(abi::linear_bucket(buckets, -6), 1U);
  EXPECT_EQ(abi::linear_bucket(buckets, -5), 2U);
  EXPECT_EQ(abi::linear_bucket(buckets, 9), 4U);
  EXPECT_EQ(abi::linear_bucket(buckets, 10), 5U);
  EXPECT_EQ(abi::linear_bucket(buckets, INT64_MAX), 5U);
  EXPECT_EQ(abi::linear_bucket(buckets, INT64_MIN), 0U);
}

TEST(Llquantize, BucketsAgreeWithTheirPrintedBounds) {
  const AggregateSpec spec{
      .function = AggregateFunction::Llquantize, .low = 0, .high = 5, .factor = 10, .steps = 20};
  ASSERT_TRUE(check(spec));
  const auto histogram = std::get<Histogram>(finish(spec, Words(cell_words(spec))));
  const abi::LogLinearBuckets buckets{.factor = 10, .low = 0, .high = 5, .steps = 20};
  for (int64_t value = -5; value < 1'200'000; value += 1 + value / 50) {
    size_t expected = 0;  // The last bucket that starts at or below the value.
    for (size_t i = 1; i < histogram.buckets.size(); ++i) {
      if (histogram.buckets[i].low <= value) expected = i;
    }
    ASSERT_EQ(abi::one_sided_bucket(buckets, value), expected) << value;
  }
}

TEST(Quantile, IsExactForSmallValuesAndWithinTheBoundForAll) {
  std::mt19937_64 random(4);
  for (const double quantile : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const AggregateSpec spec{
        .function = AggregateFunction::Quantile, .is_signed = false, .quantile = quantile};
    for (const uint64_t range : {uint64_t{30}, uint64_t{5000}, uint64_t{1} << 40, UINT64_MAX}) {
      Words values;
      for (int i = 0; i < 2000; ++i)
        values.push_back(random() % range);
      const Value answer = finish(spec, cell_of(spec, values));
      std::sort(values.begin(), values.end());
      const auto rank = static_cast<size_t>(std::ceil(quantile * 2000.0));
      const auto exact = static_cast<double>(values[std::max<size_t>(rank, 1) - 1]);
      const double bound = range <= 32 ? 0 : exact * 0.03125;
      EXPECT_NEAR(static_cast<double>(std::get<uint64_t>(answer)), exact, bound)
          << quantile << " of values below " << range;
    }
  }
}

TEST(Quantile, TakesTheRankThatPeopleMeanByADecimalFraction) {
  Words values(100);
  std::iota(values.begin(), values.end(), 1);
  for (const uint64_t percent : {1U, 7U, 14U, 28U, 29U}) {  // 0.07 * 100 > 7 in binary.
    const AggregateSpec spec{.function = AggregateFunction::Quantile,
                             .quantile = static_cast<double>(percent) / 100};
    EXPECT_EQ(finish(spec, cell_of(spec, values)), Value(static_cast<int64_t>(percent)));
  }
}

TEST(Quantile, CountsNegativeValuesAsZero) {
  const AggregateSpec spec{.function = AggregateFunction::Quantile, .quantile = 1.0};
  EXPECT_EQ(finish(spec, cell_of(spec, Words{0 - uint64_t{5}})), Value(int64_t{0}));
}

// The standard error is 3.25 %: 13 % are four of them.
TEST(Distinct, EstimatesFromOneToAMillionWithinFourStandardErrors) {
  const AggregateSpec spec{.function = AggregateFunction::Distinct};
  Words cell(cell_words(spec));
  uint64_t added = 0;
  for (const uint64_t count : {1U, 2U, 10U, 100U, 1000U, 5000U, 30'000U, 200'000U, 1'000'000U}) {
    for (; added < count; ++added) {
      add(spec, cell, added);
      add(spec, cell, added / 2);  // Seen before.
    }
    const auto estimate = static_cast<double>(std::get<uint64_t>(finish(spec, cell)));
    EXPECT_NEAR(estimate, static_cast<double>(count), 0.13 * static_cast<double>(count));
  }
}

TEST(Distinct, OfAWordEqualsDistinctOfItsHash) {
  const AggregateSpec spec{.function = AggregateFunction::Distinct};
  Words hashed(cell_words(spec));
  const Words word = {42};
  add_distinct(hashed, hash_words(word));
  EXPECT_EQ(hashed, cell_of(spec, word));
}

TEST(Distinct, SurvivesRegistersThatNoHashCanSet) {
  const AggregateSpec spec{.function = AggregateFunction::Distinct};
  EXPECT_GT(std::get<uint64_t>(finish(spec, Words(abi::kDistinctWords, UINT64_MAX))), 0U);
}

struct WrongSpec {
  AggregateSpec spec;
  const char* message;
};

TEST(AggregateCheck, NamesWhatIsWrongWithAParameter) {
  using enum AggregateFunction;
  const WrongSpec wrong[] = {
      {{.function = Lquantize, .low = 0, .high = 10, .step = 0}, "the step is 0"},
      {{.function = Lquantize, .low = 10, .high = 0, .step = 1}, "must be less than"},
      {{.function = Lquantize, .low = 0, .high = 10, .step = 11}, "larger than the range"},
      {{.function = Lquantize, .low = INT64_MIN, .high = INT64_MAX, .step = 1}, "too many"},
      {{.function = Llquantize, .low = 0, .high = 3, .factor = 1}, "at least 2"},
      {{.function = Llquantize, .low = 3, .high = 2}, "not an ascending range"},
      {{.function = Llquantize, .low = -1, .high = 2}, "not an ascending range"},
      {{.function = Llquantize, .low = 0, .high = 19}, "does not fit 64 bits"},
      {{.function = Llquantize, .low = 0, .high = INT64_MAX}, "does not fit 64 bits"},
      {{.function = Llquantize, .low = 0, .high = 3, .steps = 5}, "must be 10 to"},
      {{.function = Llquantize, .low = 0, .high = 3, .steps = 30}, "do not divide"},
      {{.function = Quantile, .quantile = 1.5}, "not between 0 and 1"},
      {{.function = Quantile, .quantile = std::nan("")}, "not between 0 and 1"},
      {{.function = TopK, .count_max = 0}, "at least 1"},
      {{.function = Sum, .scale = 0}, "not positive"},
  };
  for (const WrongSpec& each : wrong) {
    const auto result = check(each.spec);
    ASSERT_FALSE(result) << each.message;
    EXPECT_THAT(result.error().message, HasSubstr(each.message));
  }
}

TEST(AggregateCheck, AcceptsWhatAllFunctionsUse) {
  for (const AggregateSpec& spec : all_specs()) {
    EXPECT_TRUE(check(spec)) << name_of(spec.function);
    EXPECT_LE(cell_words(spec), kCellWordsMax);
  }
}

}  // namespace
}  // namespace clew::aggregate
