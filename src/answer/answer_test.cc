// SPDX-License-Identifier: Apache-2.0
#include "answer/answer.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/columns.h"
#include "answer/fake_machine.h"
#include "answer/intake.h"
#include "answer/kept_rows.h"
#include "query/parse.h"

namespace clew::answer {
namespace {

using aggregate::Row;
using aggregate::Value;
using testing::ElementsAre;
using testing::IsEmpty;

plan::Plan plan_of_text(const std::string& text) {
  return plan::plain(query::parse({.name = "query", .text = text}, {}).value());
}

class Answers : public testing::Test {
 protected:
  void ask(const std::string& text) { plan_ = plan_of_text(text); }
  // Rows of one value each.
  static void give(Answer& answer, const std::vector<int64_t>& values) {
    RowBatch rows(1);
    for (const int64_t value : values)
      rows.add()[0] = value;
    answer.take(rows);
  }
  aggregate::Table counts(const std::vector<std::pair<int64_t, uint64_t>>& groups) const {
    aggregate::Table table(schema_of(plan_.query));
    for (const auto& [key, count] : groups)
      table.add({Value(key)}, std::vector<uint64_t>{count});
    return table;
  }

  plan::Plan plan_;
  KeptRows kept_;
};

TEST_F(Answers, TakeTheFirstRowsOfSingleEvents) {
  ask("from e in entry(\"a!f\") select e.arg0 take 3");
  Answer answer(plan_, 0, kept_);
  give(answer, {1, 2});
  EXPECT_FALSE(answer.is_full());
  give(answer, {3, 4});
  EXPECT_TRUE(answer.is_full());
  give(answer, {5});
  EXPECT_THAT(kept_.rows, ElementsAre(Row{int64_t{1}}, Row{int64_t{2}}, Row{int64_t{3}}));
}

TEST_F(Answers, TakeNoMoreThanTheEventsThatAreAskedFor) {
  ask("from e in entry(\"a!f\") select e.arg0 take 3 for 2 events");
  Answer answer(plan_, 0, kept_);
  give(answer, {1, 2, 3});
  EXPECT_TRUE(answer.is_full());
  EXPECT_THAT(kept_.rows, ElementsAre(Row{int64_t{1}}, Row{int64_t{2}}));
}

TEST_F(Answers, AreOfTheTimeOfDay) {
  ask("from e in entry(\"a!f\") select e.time");
  Answer answer(plan_, 1000, kept_);
  give(answer, {5});
  EXPECT_THAT(kept_.rows, ElementsAre(Row{int64_t{1005}}));
}

TEST_F(Answers, OrderAllGroupsThatTheyKeepAndTakeTheFirst) {
  ask("from e in entry(\"a!f\") groupby e.arg0 as k select k, count() as c where c > 1 "
      "orderby c descending, k take 2");
  Answer answer(plan_, 0, kept_);
  answer.take(counts({{1, 2}, {2, 1}, {3, 7}, {4, 2}}));
  EXPECT_THAT(kept_.rows, ElementsAre(Row{int64_t{3}, uint64_t{7}}, Row{int64_t{1}, uint64_t{2}}));
  kept_.rows.clear();
  answer.take(counts({{9, 3}}));  // The next interval.
  EXPECT_THAT(kept_.rows, ElementsAre(Row{int64_t{9}, uint64_t{3}}));
  EXPECT_EQ(kept_.answers, 2U);
}

TEST_F(Answers, HaveARowOfNothingWhereAllIsCountedInOneGroup) {
  ask("from e in entry(\"a!f\") select count()");
  Answer answer(plan_, 0, kept_);
  answer.take(aggregate::Table(schema_of(plan_.query)));
  EXPECT_THAT(kept_.rows, ElementsAre(Row{uint64_t{0}}));
}

TEST_F(Answers, HaveNoRowOfNothingWhereGroupsAreCounted) {
  ask("from e in entry(\"a!f\") groupby e.arg0 as k select k, count()");
  Answer answer(plan_, 0, kept_);
  answer.take(aggregate::Table(schema_of(plan_.query)));
  EXPECT_THAT(kept_.rows, IsEmpty());
}

// Names are those of the process as its member numbers it, whatever the member's own number is.
TEST(Columns, AddUpWhereTheyCountOrSumUp) {
  const plan::Plan plan = plan_of_text(
      "from e in entry(\"a!f\") groupby e.tid select e.tid, count(), sum(e.arg0), max(e.arg0), "
      "avg(e.arg0), sum(e.arg0) / 8, sum(e.arg0) - 2 * count(), sum(e.arg0) / count(), "
      "-count(), count() + 1");
  std::vector<bool> add_up;
  for (const aggregate::Column& column : columns_of(plan.query))
    add_up.push_back(column.adds_up);
  EXPECT_THAT(add_up, ElementsAre(true, true, true, false, false, true, true, false, true, false));
}

TEST(Columns, SayWhichStackIsTheKernels) {
  const auto of_kernel = [](const std::string& text) {
    std::vector<bool> result;
    const plan::Plan plan = plan_of_text(text);
    for (const aggregate::Column& column : columns_of(plan.query))
      result.push_back(column.of_kernel);
    return result;
  };
  EXPECT_THAT(
      of_kernel("from e in syscall(\"read\") groupby e.kstack as k, e.ustack as u, e.stack as s "
                "select k, u, s, count()"),
      ElementsAre(true, false, true, false));
  EXPECT_THAT(of_kernel("from e in entry(\"a!f\") select e.stack"), ElementsAre(false));
}

TEST(Intakes, AskForNamesByTheProcessOfTheMember) {
  const plan::Plan plan = plan_of_text("from e in entry(\"a!f\") select e.comm");
  const plan::Lowered lowered = plan::lower(plan, {}).value();
  ASSERT_EQ(lowered.form, plan::StateForm::Events);
  FakeNames names;
  const plan::Grouping grouping;
  const auto intake = Intake::make(plan, lowered, grouping, names);
  ASSERT_TRUE(intake.has_value());
  const std::vector<uint64_t> words{7};
  collect::EventBatch events;
  events.push({.process = (3U << collect::kMemberShift) + 1, .words = words});
  RowBatch rows(1);
  (*intake)->take(events, {.begin = 0, .end = 1}, rows);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.at(0)[0], Value("app1/7"));
}

TEST(RowBatches, UseTheirMemoryAgain) {
  RowBatch rows(1);
  const std::string text(100, 'x');
  rows.add()[0] = text;
  const char* const memory = std::get<std::string>(rows.at(0)[0]).data();
  rows.clear();
  rows.add()[0] = text;
  EXPECT_EQ(std::get<std::string>(rows.at(0)[0]).data(), memory);
}

}  // namespace
}  // namespace clew::answer
