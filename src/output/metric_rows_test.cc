// SPDX-License-Identifier: Apache-2.0
// Rows as metrics: what adds up is told once, whatever comes again.
#include "output/metric_rows.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/metric_buckets.h"

namespace clew::output {
namespace {

using aggregate::Bucket;
using aggregate::BucketEdge;
using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Histogram;
using aggregate::HistogramKind;
using aggregate::Value;
using testing::ElementsAre;

std::vector<Column> counted() {
  return {{.name = "who", .type = ColumnType::String, .role = ColumnRole::Key},
          {.name = "calls", .role = ColumnRole::Aggregate},
          {.name = "worst", .role = ColumnRole::Aggregate, .adds_up = false}};
}

class Rows : public testing::Test {
 protected:
  void begin(const std::vector<Column>& columns) { rows_.begin(columns); }
  void row(const std::vector<Value>& values) { rows_.row(values); }
  // "who calls worst begin", one for each row.
  std::vector<std::string> end(uint64_t number) {
    const auto begin = static_cast<int64_t>(number) * 10;
    return texts(rows_.end_interval({.number = number, .begin_ns = begin, .end_ns = begin + 10}));
  }
  std::vector<std::string> finish() { return texts(rows_.finish()); }
  static std::vector<std::string> texts(const std::vector<MetricRow>& rows) {
    std::vector<std::string> texts;
    for (const MetricRow& row : rows) {
      std::string text;
      for (const Value& value : row.values)
        text += metric_text(value) + " ";
      texts.push_back(text + std::to_string(row.begin_ns));
    }
    return texts;
  }
  MetricRows rows_;
};

TEST_F(Rows, AreToldAsTheyCome) {
  begin(counted());
  row({std::string("a"), int64_t{3}, int64_t{9}});
  row({std::string("b"), int64_t{1}, int64_t{2}});
  EXPECT_THAT(end(1), ElementsAre("a 3 9 10", "b 1 2 10"));
  row({std::string("a"), int64_t{5}, int64_t{1}});
  EXPECT_THAT(end(2), ElementsAre("a 5 1 20"));
  EXPECT_THAT(finish(), ElementsAre());
}

TEST_F(Rows, ThatComeAgainGoWithTheNextIntervalAsTheDifference) {
  begin(counted());
  row({std::string("a"), int64_t{3}, int64_t{9}});
  (void)end(1);
  row({std::string("a"), int64_t{7}, int64_t{11}});
  row({std::string("late"), int64_t{2}, int64_t{4}});
  EXPECT_THAT(end(1), ElementsAre()) << "of a time that was told already";
  row({std::string("a"), int64_t{7}, int64_t{11}});
  row({std::string("late"), int64_t{3}, int64_t{4}});
  EXPECT_THAT(end(1), ElementsAre());
  row({std::string("a"), int64_t{1}, int64_t{5}});
  EXPECT_THAT(end(2), ElementsAre("a 5 5 20", "late 3  20")) << "7 - 3 + 1, and 3";
  EXPECT_EQ(rows_.uncorrected(), 2U) << "the worst of a, and of late, which is not told at all";
}

TEST_F(Rows, ThatComeLateWithoutAWorstHaveNoneToCorrect) {
  begin(counted());
  row({std::string("a"), int64_t{3}, int64_t{9}});
  (void)end(1);
  row({std::string("a"), int64_t{3}, int64_t{9}});
  row({std::string("late"), int64_t{2}, Value{}});
  (void)end(1);
  EXPECT_EQ(rows_.uncorrected(), 0U);
  EXPECT_THAT(finish(), ElementsAre("a 0  20", "late 2  20"));
}

// A node that was alone with them comes back behind others that have begun later.
TEST_F(Rows, OfIntervalsBeforeTheFirstThatWereNeverToldGoWithTheNext) {
  begin(counted());
  row({std::string("a"), int64_t{1}, int64_t{9}});
  EXPECT_THAT(end(5), ElementsAre("a 1 9 50"));
  row({std::string("b"), int64_t{4}, int64_t{7}});
  EXPECT_THAT(end(3), ElementsAre());
  row({std::string("b"), int64_t{8}, int64_t{7}});
  EXPECT_THAT(end(4), ElementsAre());
  row({std::string("b"), int64_t{5}, int64_t{7}});
  EXPECT_THAT(end(3), ElementsAre()) << "one more hit of an interval that is known by now";
  row({std::string("a"), int64_t{1}, int64_t{9}});
  EXPECT_THAT(end(6), ElementsAre("a 1 9 60", "b 13  60"));
  EXPECT_EQ(rows_.uncorrected(), 2U) << "the worst of 3 and of 4";
}

TEST_F(Rows, ThatNoIntervalFollowsAreToldAtTheEnd) {
  begin(counted());
  row({std::string("a"), int64_t{3}, int64_t{9}});
  (void)end(1);
  row({std::string("a"), int64_t{4}, int64_t{9}});
  (void)end(1);
  EXPECT_THAT(finish(), ElementsAre("a 1  20")) << "behind what was told";
}

TEST_F(Rows, OfAnIntervalThatIsKnownNoMoreAreCounted) {
  begin(counted());
  for (uint64_t number = 1; number <= 3; ++number) {
    for (uint64_t i = 0; i < MetricRows::kKeptMax / 4; ++i)
      row({std::to_string(i), int64_t{1}, int64_t{1}});
    EXPECT_EQ(end(number).size(), MetricRows::kKeptMax / 4);
  }
  row({std::string("0"), int64_t{8}, int64_t{1}});
  EXPECT_THAT(end(1), ElementsAre());
  EXPECT_EQ(rows_.uncorrected(), 2U);
  row({std::string("0"), int64_t{8}, int64_t{1}});
  (void)end(3);
  EXPECT_THAT(end(4), ElementsAre("0 7  40")) << "this one is known";
}

TEST_F(Rows, OfManyEmptyIntervalsAreKnownNoMoreEither) {
  begin(counted());
  constexpr uint64_t kAll = MetricRows::kIntervalsKept + 10;
  for (uint64_t number = 1; number <= kAll; ++number)
    EXPECT_THAT(end(number), ElementsAre());
  row({std::string("a"), int64_t{8}, int64_t{1}});
  (void)end(10);
  EXPECT_EQ(rows_.uncorrected(), 2U) << "the count and the worst";
  EXPECT_THAT(finish(), ElementsAre());
  row({std::string("a"), int64_t{8}, int64_t{1}});
  (void)end(11);
  EXPECT_EQ(rows_.uncorrected(), 3U) << "the worst alone";
  EXPECT_EQ(finish().size(), 1U);
}

TEST_F(Rows, OfHistogramsAreAsManyValuesAsTheyHaveBuckets) {
  begin({{.name = "took", .type = ColumnType::Histogram, .role = ColumnRole::Aggregate}});
  const Value half = Histogram{.kind = HistogramKind::Lquantize,
                               .buckets = std::vector<Bucket>(MetricRows::kKeptMax / 2)};
  for (uint64_t number = 1; number <= 3; ++number) {
    row({half});
    EXPECT_EQ(end(number).size(), 1U);
  }
  row({half});
  (void)end(1);
  EXPECT_EQ(rows_.uncorrected(), 1U) << "it is known no more";
  row({half});
  (void)end(2);
  EXPECT_EQ(rows_.uncorrected(), 1U);
}

TEST_F(Rows, OfOneGroupAreOneWhateverTheirTimes) {
  begin({{.name = "at", .type = ColumnType::Time, .role = ColumnRole::Key},
         {.name = "calls", .role = ColumnRole::Aggregate}});
  row({int64_t{17}, int64_t{1}});
  row({int64_t{18}, int64_t{2}});
  EXPECT_THAT(end(1), ElementsAre("17 3 10"));
}

TEST_F(Rows, OfWindowsAreAllOfThemAndNotAddedUp) {
  begin({{.name = "w", .type = ColumnType::Time, .role = ColumnRole::Key},
         {.name = "calls", .role = ColumnRole::Aggregate},
         {.name = "version", .adds_up = false}});
  row({int64_t{10}, int64_t{3}, int64_t{1}});
  EXPECT_THAT(end(1), ElementsAre("10 3 1 10"));
  row({int64_t{10}, int64_t{4}, int64_t{2}});
  row({int64_t{20}, int64_t{1}, int64_t{1}});
  EXPECT_THAT(end(2), ElementsAre("10 4 2 10", "20 1 1 20")) << "each has its own time";
  EXPECT_EQ(rows_.uncorrected(), 0U);
}

TEST(MetricShape, WithoutNumbersThatAreCountedIsRefused) {
  const std::vector<Column> events = {{.name = "pid"}, {.name = "took"}};
  const auto refused = check_metrics("--otlp", events);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "--otlp needs a column with numbers that are counted, as count(), sum(), max() and "
            "quantize() do (no histograms of windows); the answer has pid (integer, of each "
            "event), took (integer, of each event)");
  EXPECT_TRUE(check_metrics("--otlp", counted()));
}

// --- buckets -------------------------------------------------------------------------------------

// By hand, from how D counts: 0 alone, 1 alone, [2, 3], [4, 7], …; below zero the same mirrored.
TEST(MetricBuckets, OfPowersOfTwoEndBeforeTheNextPower) {
  const Histogram powers{.kind = HistogramKind::Quantize,
                         .buckets = {{.low = -4, .count = 1},
                                     {.low = -2, .count = 2},
                                     {.low = -1, .count = 0},
                                     {.low = 0, .count = 3},
                                     {.low = 1, .count = 4},
                                     {.low = 2, .count = 5},
                                     {.low = 4, .count = 6}}};
  EXPECT_TRUE(has_negative(powers));
  const MetricBuckets all = buckets_of(powers, true);
  EXPECT_THAT(all.bounds, ElementsAre(-4, -2, -1, 0, 1, 3));
  EXPECT_THAT(all.counts, ElementsAre(1U, 2U, 0U, 3U, 4U, 5U, 6U));
  EXPECT_EQ(all.count(), 21U);
}

TEST(MetricBuckets, LeaveOutWhatIsBelowZeroWhereNothingIs) {
  const Histogram powers{.kind = HistogramKind::Quantize,
                         .buckets = {{.low = -1}, {.low = 0, .count = 3}, {.low = 1}}};
  EXPECT_FALSE(has_negative(powers));
  EXPECT_THAT(buckets_of(powers, false).bounds, ElementsAre(0));
  EXPECT_THAT(buckets_of(powers, false).counts, ElementsAre(3U, 0U));
}

TEST(MetricBuckets, OfTheLargestPowersHaveNoOverflow) {
  const Histogram powers{
      .kind = HistogramKind::Quantize,
      .buckets = {{.low = int64_t{1} << 62},
                  {.low = INT64_MIN, .edge = BucketEdge::FromUnsigned, .count = 1}}};
  EXPECT_THAT(buckets_of(powers, true).bounds, ElementsAre(INT64_MAX));
}

TEST(MetricBuckets, OfSteps) {
  const Histogram steps{.kind = HistogramKind::Lquantize,
                        .buckets = {{.low = -10, .edge = BucketEdge::Below, .count = 1},
                                    {.low = -10, .count = 2},
                                    {.low = 0, .count = 3},
                                    {.low = 10, .edge = BucketEdge::AtLeast, .count = 4}}};
  EXPECT_THAT(buckets_of(steps, false).bounds, ElementsAre(-11, -1, 9));
  EXPECT_THAT(buckets_of(steps, false).counts, ElementsAre(1U, 2U, 3U, 4U));
}

}  // namespace
}  // namespace clew::output
