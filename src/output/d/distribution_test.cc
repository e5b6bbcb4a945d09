// SPDX-License-Identifier: Apache-2.0
#include "output/d/distribution.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "abi/buckets.h"

namespace clew::output::d {
namespace {

using abi::AggregateFunction;
using aggregate::merge_cells;
using aggregate::sort_value_of;

constexpr std::string_view kDistributionHeading =
    "\n           value  ------------- Distribution ------------- count    \n";

struct Count {
  uint64_t bucket;
  int64_t count;
};

std::string draw(AggregateFunction kind, const std::vector<int64_t>& parameters,
                 const std::vector<Count>& counts, int64_t divisor = 1, bool zooms = false) {
  std::vector<uint64_t> cells(abi::machine_cell_words(kind, parameters.data()));
  for (const Count& each : counts)
    cells[each.bucket] += static_cast<uint64_t>(each.count);
  std::string out;
  append_distribution({kind, cells, parameters, divisor}, zooms, out);
  EXPECT_TRUE(out.starts_with(kDistributionHeading)) << out;
  return out.substr(std::min(out.size(), kDistributionHeading.size()));
}

std::string quantize(const std::vector<std::pair<int64_t, int64_t>>& values, int64_t divisor = 1,
                     bool zooms = false) {
  std::vector<Count> counts;
  for (const auto& [value, weight] : values)
    counts.push_back({abi::quantize_bucket(value), weight});
  return draw(AggregateFunction::Quantize, {}, counts, divisor, zooms);
}

TEST(DQuantize, ShowsOneEmptyBucketOnEachSide) {
  EXPECT_EQ(quantize({{0, 1}, {1, 1}, {2, 1}, {3, 1}}),
            "              -1 |                                         0        \n"
            "               0 |@@@@@@@@@@                               1        \n"
            "               1 |@@@@@@@@@@                               1        \n"
            "               2 |@@@@@@@@@@@@@@@@@@@@                     2        \n"
            "               4 |                                         0        \n");
}

TEST(DQuantize, EmptyBucketsInBetweenAreShown) {
  EXPECT_EQ(quantize({{1024, 3}, {4096, 1}}),
            "             512 |                                         0        \n"
            "            1024 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n"
            "            2048 |                                         0        \n"
            "            4096 |@@@@@@@@@@                               1        \n"
            "            8192 |                                         0        \n");
}

TEST(DQuantize, TheOutermostBucketsHaveNoNeighbour) {
  EXPECT_EQ(quantize({{INT64_MAX, 1}}),
            "2305843009213693952 |                                         0        \n"
            "4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n");
  EXPECT_EQ(quantize({{INT64_MIN, 1}}),
            "-4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
            "-2305843009213693952 |                                         0        \n");
}

TEST(DQuantize, NegativeValuesFallInNegativePowers) {
  EXPECT_EQ(quantize({{-1, 1}, {-2, 1}, {-3, 1}, {-4, 1}}),
            "              -8 |                                         0        \n"
            "              -4 |@@@@@@@@@@                               1        \n"
            "              -2 |@@@@@@@@@@@@@@@@@@@@                     2        \n"
            "              -1 |@@@@@@@@@@                               1        \n"
            "               0 |                                         0        \n");
}

TEST(DQuantize, WithoutDataTheBucketsAroundZeroAreShown) {
  EXPECT_EQ(quantize({}),
            "              -1 |                                         0        \n"
            "               0 |                                         0        \n"
            "               1 |                                         0        \n");
}

TEST(DQuantize, BarsAreRoundedHalfUp) {
  // 40 / 80 = 0.5 -> 1; 40 * 1 / 81 -> 0.
  EXPECT_EQ(quantize({{1, 1}, {2, 79}}),
            "               0 |                                         0        \n"
            "               1 |@                                        1        \n"
            "               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 79       \n"
            "               4 |                                         0        \n");
  EXPECT_EQ(quantize({{1, 1}, {2, 80}}),
            "               0 |                                         0        \n"
            "               1 |                                         1        \n"
            "               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 80       \n"
            "               4 |                                         0        \n");
}

TEST(DQuantize, NegativeWeightsDrawToTheLeft) {
  EXPECT_EQ(quantize({{1, -1}, {2, -3}}),
            "               0                                         | 0        \n"
            "               1                               @@@@@@@@@@| -1       \n"
            "               2           @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -3       \n"
            "               4                                         | 0        \n");
}

TEST(DQuantize, MixedWeightsHaveTheirLineInTheMiddle) {
  EXPECT_EQ(quantize({{1, -1}, {2, 3}}),
            "               0                     |                     0        \n"
            "               1                @@@@@|                     -1       \n"
            "               2                     |@@@@@@@@@@@@@@@      3        \n"
            "               4                     |                     0        \n");
}

TEST(DQuantize, NormalizationDividesCountsAndLeavesBars) {
  EXPECT_EQ(quantize({{1, 30}, {2, 10}}, 10),
            "               0 |                                         0        \n"
            "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n"
            "               2 |@@@@@@@@@@                               1        \n"
            "               4 |                                         0        \n");
}

TEST(DQuantize, TheSmallestCountCanBeNormalizedByMinusOne) {
  EXPECT_EQ(quantize({{0, INT64_MIN}}, -1),
            "              -1                                         | 0        \n"
            "               0 @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -9223372036854775808\n"
            "               1                                         | 0        \n");
}

TEST(DQuantize, ZoomScalesToTheLongestBar) {
  EXPECT_EQ(quantize({{1, 1}, {2, 1}}, 1, true),
            "               0 |                                         0        \n"
            "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   1        \n"
            "               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   1        \n"
            "               4 |                                         0        \n");
}

TEST(DQuantize, LargeCountsWidenTheirColumn) {
  EXPECT_EQ(quantize({{1, 12345678901}}),
            "               0 |                                         0        \n"
            "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 12345678901\n"
            "               2 |                                         0        \n");
}

TEST(DLinearQuantize, LabelsItsEnds) {
  const std::vector<int64_t> spec = {0, 30, 10};
  EXPECT_EQ(draw(AggregateFunction::Lquantize, spec, {{0, 1}, {1, 1}, {4, 2}}),
            "             < 0 |@@@@@@@@@@                               1        \n"
            "               0 |@@@@@@@@@@                               1        \n"
            "              10 |                                         0        \n"
            "              20 |                                         0        \n"
            "           >= 30 |@@@@@@@@@@@@@@@@@@@@                     2        \n");
  EXPECT_EQ(draw(AggregateFunction::Lquantize, spec, {{2, 1}}),
            "               0 |                                         0        \n"
            "              10 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
            "              20 |                                         0        \n");
}

TEST(DLinearQuantize, MayBeginBelowZero) {
  EXPECT_EQ(draw(AggregateFunction::Lquantize, {-100, 100, 100}, {{1, 1}}),
            "          < -100 |                                         0        \n"
            "            -100 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        \n"
            "               0 |                                         0        \n");
}

TEST(DLinearQuantize, WithoutDataTheFirstThreeRowsAreShown) {
  EXPECT_EQ(draw(AggregateFunction::Lquantize, {0, 100, 1}, {}),
            "             < 0 |                                         0        \n"
            "               0 |                                         0        \n"
            "               1 |                                         0        \n");
}

// --- llquantize: what falls below the lowest order is in the middle, for both signs
// ----------------

std::string log_linear(const std::vector<int64_t>& spec, const std::vector<int64_t>& values) {
  const abi::LogLinearBuckets l = {static_cast<uint64_t>(spec[0]), static_cast<uint64_t>(spec[1]),
                                   static_cast<uint64_t>(spec[2]), static_cast<uint64_t>(spec[3])};
  std::vector<Count> counts;
  for (const int64_t value : values)
    counts.push_back({abi::log_linear_bucket(l, 0, abi::log_linear_steps(l), value), 1});
  return draw(AggregateFunction::Llquantize, spec, counts);
}

TEST(DLogLinearQuantize, CutsEachOrderInSteps) {
  EXPECT_EQ(log_linear({10, 3, 4, 10}, {5, 1000, 1999, 2000, 10000, 15000}),
            "           -1000 |                                         0        \n"
            "    abs() < 1000 |@@@@@@@                                  1        \n"
            "            1000 |@@@@@@@@@@@@@                            2        \n"
            "            2000 |@@@@@@@                                  1        \n"
            "            3000 |                                         0        \n"
            "            4000 |                                         0        \n"
            "            5000 |                                         0        \n"
            "            6000 |                                         0        \n"
            "            7000 |                                         0        \n"
            "            8000 |                                         0        \n"
            "            9000 |                                         0        \n"
            "           10000 |@@@@@@@@@@@@@                            2        \n"
            "           20000 |                                         0        \n");
}

TEST(DLogLinearQuantize, MirrorsNegativeValuesAndLabelsItsEnds) {
  EXPECT_EQ(log_linear({2, 0, 3, 2}, {-100, -8, -1, 0, 1, 15, 16}),
            "          <= -16 |@@@@@@                                   1        \n"
            "              -8 |@@@@@@                                   1        \n"
            "              -4 |                                         0        \n"
            "              -2 |                                         0        \n"
            "              -1 |@@@@@@                                   1        \n"
            "               0 |@@@@@@                                   1        \n"
            "               1 |@@@@@@                                   1        \n"
            "               2 |                                         0        \n"
            "               4 |                                         0        \n"
            "               8 |@@@@@@                                   1        \n"
            "           >= 16 |@@@@@@                                   1        \n");
}

TEST(DLogLinearQuantize, WithoutDataTheMiddleIsShown) {
  EXPECT_EQ(log_linear({10, 0, 2, 10}, {}),
            "              -1 |                                         0        \n"
            "               0 |                                         0        \n"
            "               1 |                                         0        \n");
}

// --- what values are worth when rows are sorted --------------------------------------------------

TEST(DAggregateValue, IsSortedByItsMeaning) {
  const auto worth = [](AggregateFunction kind, const std::vector<uint64_t>& cells) {
    return sort_value_of({kind, cells, {}});
  };
  const auto minus = [](int64_t value) { return static_cast<uint64_t>(-value); };
  EXPECT_LT(worth(AggregateFunction::Sum, {minus(1)}), worth(AggregateFunction::Sum, {0}));
  EXPECT_LT(worth(AggregateFunction::Count, {INT64_MAX - 1}),
            worth(AggregateFunction::Count, {INT64_MAX}));
  // 5 / 2 < 8 / 3, though both are 2 when they are printed.
  EXPECT_LT(worth(AggregateFunction::Average, {2, 5}), worth(AggregateFunction::Average, {3, 8}));
  EXPECT_LT(worth(AggregateFunction::StandardDeviation, {2, 2, 4, 0}),
            worth(AggregateFunction::StandardDeviation, {2, 10, 100, 0}));
}

TEST(DAggregateValue, DistributionsAreSortedByTheirWeightedSum) {
  const auto worth = [](const std::vector<int64_t>& values) {
    std::vector<uint64_t> cells(abi::kMachineQuantizeBuckets);
    for (const int64_t value : values)
      ++cells[abi::quantize_bucket(value)];
    return sort_value_of({AggregateFunction::Quantize, cells, {}});
  };
  EXPECT_LT(worth({1, 1, 1}), worth({4}));
  EXPECT_LT(worth({-8, 4}), worth({1}));
  EXPECT_LT(worth({1, 0}), worth({1, 0, 0}));
  EXPECT_EQ(worth({2}), worth({1, 1}));
}

TEST(DAggregateValue, LaterCountsAreAdded) {
  const auto merged = [](AggregateFunction kind, std::vector<uint64_t> cells,
                         const std::vector<uint64_t>& newer) {
    merge_cells(kind, newer, cells);
    return cells;
  };
  const auto minus_5 = static_cast<uint64_t>(-5);
  using Words = std::vector<uint64_t>;
  EXPECT_EQ(merged(AggregateFunction::Count, {3}, {4}), Words{7});
  EXPECT_EQ(merged(AggregateFunction::Min, {3}, {minus_5}), Words{minus_5});
  EXPECT_EQ(merged(AggregateFunction::Max, {3}, {minus_5}), Words{3});
  EXPECT_EQ(merged(AggregateFunction::Average, {1, 3}, {2, 10}), (Words{3, 13}));
  EXPECT_EQ(merged(AggregateFunction::StandardDeviation, {1, 1, UINT64_MAX, 0}, {1, 1, 2, 1}),
            (Words{2, 2, 1, 2}));
}

}  // namespace
}  // namespace clew::output::d
