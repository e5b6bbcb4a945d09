// SPDX-License-Identifier: Apache-2.0
#include "answer/clusters.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/answer.h"
#include "answer/columns.h"
#include "answer/kept_rows.h"
#include "collect/losses.h"
#include "query/parse.h"

namespace clew::answer {
namespace {

using aggregate::ColumnRole;
using aggregate::Row;
using aggregate::Value;
using testing::ElementsAre;
using testing::IsEmpty;

struct SizedCall {
  int64_t pid = 0;
  int64_t size = 0;
  uint64_t times = 0;
};

constexpr const char* kCalls =
    "var calls = from e in entry(\"a!f\") groupby e.pid, e.arg0 as size "
    "select e.pid, size, count() as n;\n";

class ClusteredAnswers : public testing::Test {
 protected:
  void ask(const std::string& text) {
    plan_ = plan::plain(query::parse({.name = "query", .text = kCalls + text}, {}).value());
  }
  aggregate::Table table(const std::vector<SizedCall>& calls) const {
    aggregate::Table made(schema_of(plan_.query));
    for (const SizedCall& each : calls)
      made.add({Value(each.pid), Value(each.size)}, std::vector<uint64_t>{each.times});
    return made;
  }

  plan::Plan plan_;
  KeptRows kept_;
  collect::Losses losses_;
};

// 1 and 2 are of one kind, 3 of another one; the middle of the first two is (0.8, 0.2).
TEST_F(ClusteredAnswers, AreRowsOfVectorsAtTheEnd) {
  ask("from c in kmeans(2, calls, by pid, of size, value n)");
  Answer answer(plan_, 0, kept_);
  answer.take(table({{1, 10, 90}, {1, 20, 10}, {2, 10, 7}, {2, 20, 3}, {3, 30, 5}}));
  EXPECT_THAT(kept_.rows, IsEmpty());
  answer.end(losses_);
  ASSERT_EQ(kept_.rows.size(), 3U);
  EXPECT_EQ(kept_.rows[0][0], Value(int64_t{1}));
  EXPECT_EQ(kept_.rows[0][1], Value(int64_t{1}));
  EXPECT_NEAR(std::get<double>(kept_.rows[0][2]), std::sqrt(0.02), 1e-12);
  EXPECT_EQ(kept_.rows[0][3], Value("10 80%, 20 20%"));
  EXPECT_EQ(kept_.rows[0][4], Value("+10% 10, -10% 20"));
  EXPECT_EQ(kept_.rows[2],
            (Row{int64_t{3}, int64_t{2}, 0.0, std::string("30 100%"), std::string()}));
  EXPECT_TRUE(losses_.dropped.empty());
}

TEST_F(ClusteredAnswers, AddUpTablesOfSeveralWindows) {
  ask("from c in kmeans(1, calls, by pid, of size, value n)");
  Answer answer(plan_, 0, kept_);
  answer.take(table({{1, 10, 1}}));
  answer.take(table({{1, 20, 1}, {2, 10, 4}, {2, 20, 4}}));
  answer.end(losses_);
  ASSERT_EQ(kept_.rows.size(), 2U);
  EXPECT_EQ(kept_.rows[0][2], Value(0.0));
  EXPECT_EQ(kept_.rows[1][3], Value("10 50%, 20 50%"));
}

TEST_F(ClusteredAnswers, AreChosenOrderedAndTakenBehindIt) {
  ask("from c in kmeans(1, calls, by pid, of size, value n) where c.distance > 0 "
      "orderby c.distance descending, c.pid take 2 select c.pid, c.cluster * 100 as hundred");
  Answer answer(plan_, 0, kept_);
  answer.take(table({{1, 10, 1}, {2, 10, 1}, {3, 10, 1}, {4, 20, 1}, {5, 10, 1}}));
  answer.end(losses_);
  EXPECT_THAT(kept_.rows,
              ElementsAre(Row{int64_t{4}, int64_t{100}}, Row{int64_t{1}, int64_t{100}}));
}

TEST_F(ClusteredAnswers, AreOfRowsThatTheQueryKeeps) {
  ask("from c in kmeans(1, (from r in calls where r.n > 1), by pid, of size, value n)");
  Answer answer(plan_, 0, kept_);
  answer.take(table({{1, 10, 1}, {2, 10, 2}}));
  answer.end(losses_);
  ASSERT_EQ(kept_.rows.size(), 1U);
  EXPECT_EQ(kept_.rows[0][0], Value(int64_t{2}));
}

TEST_F(ClusteredAnswers, SayWhatTheirColumnsAre) {
  ask("from c in kmeans(1, calls, by pid, of size, value n)");
  std::vector<std::pair<std::string, ColumnRole>> columns;
  for (const aggregate::Column& column : columns_of(plan_.query))
    columns.emplace_back(column.name, column.role);
  EXPECT_THAT(columns, ElementsAre(std::pair("pid", ColumnRole::Key),
                                   std::pair("cluster", ColumnRole::Cluster),
                                   std::pair("distance", ColumnRole::Aggregate),
                                   std::pair("centre", ColumnRole::Centre),
                                   std::pair("difference", ColumnRole::Plain)));
}

TEST_F(ClusteredAnswers, CountWhatIsNoAmount) {
  plan_ = plan::plain(query::parse({.name = "query",
                                    .text = "from c in kmeans(1, (from e in entry(\"a!f\") groupby "
                                            "e.pid, e.arg0 as size select e.pid, size, -count() as "
                                            "n), by pid, of size, value n)"},
                                   {})
                          .value());
  Answer answer(plan_, 0, kept_);
  answer.take(table({{1, 10, 1}, {2, 10, 3}}));
  answer.end(losses_);
  EXPECT_THAT(kept_.rows, IsEmpty());
  EXPECT_EQ(losses_.dropped.at(std::string(collect::kDroppedAmounts)), 2U);
}

}  // namespace
}  // namespace clew::answer
