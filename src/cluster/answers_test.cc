// SPDX-License-Identifier: Apache-2.0
// Answers that are read later, part by part, are those that were given.
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/columns.h"
#include "cluster/results.h"
#include "cluster/store_answers.h"
#include "cluster/world_testing.h"
#include "query/parse.h"

namespace clew::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a sink was told of intervals.
class Intervals final : public output::RowSink {
 public:
  void begin(std::span<const aggregate::Column>, output::RowMode) override {}
  void row(std::span<const aggregate::Value> row) override {
    const uint64_t count = std::get<uint64_t>(row[1]);
    if (counts.empty() || counts.back() != count) counts.push_back(count);
  }
  void end_interval(const output::Interval& interval) override {
    numbers.push_back(interval.number);
  }
  void finish(const collect::Losses&) override { is_finished = true; }

  std::vector<uint64_t> counts;
  std::vector<uint64_t> numbers;
  bool is_finished = false;
};

constexpr Pane kFirst = 1'000;

class AnswersInAStore : public testing::Test {
 protected:
  // Each table has 300 kB, so a part has few of them; pane number 4 is missing, and the
  // last one was not given.
  AnswersInAStore() {
    store_->put(StoredQuery{.want = {.query = "q1", .text = kFakeText, .width_ns = kSecond},
                            .phase = Phase::Running,
                            .answered = kFakeText,
                            .given = kFirst + 19});
    const auto query = query::parse_any({.name = "q1", .text = kFakeText}, {}).value();
    for (Pane pane = kFirst; pane <= kFirst + 20; ++pane) {
      if (pane == kFirst + 3) continue;
      aggregate::Table table(answer::schema_of(query));
      const auto number = static_cast<uint64_t>(pane - kFirst + 1);
      for (int i = 0; i < 300; ++i) {
        table.add({aggregate::Value(std::to_string(i) + std::string(1'000, 'n'))},
                  std::vector<uint64_t>{number});
      }
      store_->put("q1", StoredPane{.pane = pane, .table = aggregate::to_bytes(table)});
    }
    EXPECT_TRUE(store_->commit());
  }
  // Their numbers.
  std::vector<uint64_t> show(uint64_t first, uint64_t last) {
    Intervals seen;
    const auto accept = [](output::Columns) { return Expected<void>{}; };
    const auto shown = show_results(
        answers_, {.query = "q1", .first = first, .last = last, .accept = accept}, seen);
    EXPECT_TRUE(shown) << shown.error().message;
    EXPECT_EQ(seen.counts, seen.numbers);
    EXPECT_TRUE(seen.is_finished);
    return seen.numbers;
  }

  TestFolder folder_;
  std::unique_ptr<Store> store_ = Store::open(folder_.path()).value();
  StoreAnswers answers_{*store_};
};

TEST_F(AnswersInAStore, AreReadInParts) {
  const AnswerPart first = answers_.read("q1", 1, 100).value();
  EXPECT_FALSE(first.is_last);
  EXPECT_LT(first.panes.size(), 6U);
  std::vector<uint64_t> expected;
  for (uint64_t number = 1; number <= 20; ++number) {
    if (number != 4) expected.push_back(number);
  }
  EXPECT_EQ(show(1, std::numeric_limits<uint64_t>::max()), expected);
}

TEST_F(AnswersInAStore, AreThoseThatAreWanted) {
  EXPECT_THAT(show(3, 5), ElementsAre(3, 5));
  EXPECT_THAT(show(4, 4), ElementsAre());
  EXPECT_THAT(show(20, 400), ElementsAre(20));
}

// The nearest one is named.
TEST_F(AnswersInAStore, AreRefusedWhereTheyAreNotThere) {
  for (const uint64_t number : {uint64_t{21}, std::numeric_limits<uint64_t>::max()}) {
    Intervals seen;
    const auto accept = [](output::Columns) { return Expected<void>{}; };
    const auto shown = show_results(
        answers_, {.query = "q1", .first = number, .last = number, .accept = accept}, seen);
    ASSERT_FALSE(shown);
    EXPECT_EQ(
        shown.error().message,
        fmt::format("interval {} of 'q1' is not there: 1 to 20 are; the nearest is 20", number));
    EXPECT_TRUE(seen.numbers.empty());
  }
}

TEST_F(AnswersInAStore, HaveNames) {
  const auto listed = answers_.list().value();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].query, "q1");
  EXPECT_EQ(listed[0].intervals, 19);
  Intervals seen;
  const auto shown = show_results(answers_, {.query = "q2", .accept = {}}, seen);
  ASSERT_FALSE(shown);
  EXPECT_THAT(shown.error().message, HasSubstr("did you mean 'q1'?"));
}

}  // namespace
}  // namespace clew::cluster
