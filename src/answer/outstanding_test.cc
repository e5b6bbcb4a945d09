// SPDX-License-Identifier: Apache-2.0
// What is outstanding, asked of events as a query has them.
#include "answer/outstanding.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/answer.h"
#include "answer/calls_testing.h"
#include "answer/kept_rows.h"
#include "plan/plan.h"
#include "query/fake_types.h"
#include "query/parse.h"

namespace clew::answer {
namespace {

using aggregate::Value;
using testing::ElementsAre;
using testing::IsEmpty;
using Strings = std::vector<std::string>;

class Kept {
 public:
  explicit Kept(const std::string& text) {
    const query::Text named{.name = "query", .text = text};
    const query::Query query = query::parse(named, {}).value();
    joined_ = plan::separate(query, {}, query::Reporter(named)).value();
    outstanding_ = std::make_unique<Outstanding>(joined_);
    plan_ = plan::plain(joined_.stages[0].rest);
  }
  void give(const Call& hit) {
    RowBatch events(joined_.events.values.size());
    add_events(joined_, hit, events);
    RowBatch none(plan_.query.values.size());
    EXPECT_EQ(outstanding_->take(events, {.begin = 0, .end = events.size()}, none), events.size());
  }
  Strings at(int64_t moment) {
    KeptRows kept;
    Answer answer(plan_, 0, kept);
    outstanding_->ask(moment);
    bool is_done = false;
    while (!is_done) {
      RowBatch rows(plan_.query.values.size());
      is_done = outstanding_->give(rows);
      answer.take(rows);
    }
    if (plan_.query.shape == query::Shape::Groups) {
      answer.take(outstanding_->counted());
      outstanding_->forget_counted();
    } else {
      answer.end_rows();
    }
    Strings lines;
    for (const aggregate::Row& row : kept.rows)
      lines.push_back(line_of(row));
    return lines;
  }
  Outstanding& outstanding() { return *outstanding_; }
  [[nodiscard]] const plan::Joined& joined() const { return joined_; }

 private:
  plan::Joined joined_;
  plan::Plan plan_;
  std::unique_ptr<Outstanding> outstanding_;
};

const char* const kPairs =
    "from e in outstanding(entry(\"app!a\") until entry(\"app!b\") on arg0) select e.arg0, e.age";

TEST(Outstanding, WhatIsNotEndedIsARowWithItsAge) {
  Kept kept(kPairs);
  kept.give({'a', 10, {7}});
  kept.give({'a', 20, {8}});
  kept.give({'a', 30, {9}});
  kept.give({'b', 40, {8}});
  EXPECT_THAT(kept.at(100), ElementsAre("7 90", "9 70"));
  EXPECT_THAT(kept.at(25), ElementsAre("7 15"));
}

TEST(Outstanding, AKeyIsOfOneProcess) {
  Kept kept(kPairs);
  kept.give({'a', 10, {7}, 1});
  kept.give({'b', 20, {7}, 2});
  EXPECT_THAT(kept.at(30), ElementsAre("7 20"));
}

TEST(Outstanding, AKeyCanBeOfAllProcesses) {
  Kept kept(
      "from e in outstanding(entry(\"app!a\") until entry(\"app!b\") on arg0 across processes) "
      "select e.arg0");
  kept.give({'a', 10, {7}, 1});
  kept.give({'b', 20, {7}, 2});
  EXPECT_THAT(kept.at(30), IsEmpty());
}

TEST(Outstanding, SidesCanCallTheirKeysAsTheyLike) {
  Kept kept(
      "from e in outstanding(entry(\"app!a\") { object = arg1 }, entry(\"app!c\") { object = arg0 "
      "} "
      "until entry(\"app!b\") on object equals arg2) select e.object");
  kept.give({'a', 10, {0, 7, 0}});
  kept.give({'c', 20, {8, 0, 0}});
  kept.give({'b', 30, {0, 0, 7}});
  EXPECT_THAT(kept.at(40), ElementsAre("8"));
}

TEST(Outstanding, WhatEndsSomethingCanBeginSomething) {
  Kept kept("from e in outstanding(entry(\"app!a\") until entry(\"app!a\") on tid) select e.arg0");
  kept.give({'a', 10, {7}});
  kept.give({'a', 20, {8}});
  EXPECT_THAT(kept.at(30), ElementsAre("8"));
  EXPECT_EQ(kept.outstanding().counts().again, 0U);
}

TEST(Outstanding, NoPointerAndNoErrorBeginsAnything) {
  Kept kept(
      "from e in outstanding(entry(\"app!a\") { address = (void*)arg0 } until entry(\"app!b\") "
      "{ address = (void*)arg0 } on address) select e.arg0");
  kept.give({'a', 10, {0}});
  kept.give({'a', 20, {-1}});
  kept.give({'a', 30, {16}});
  kept.give({'b', 40, {0}});
  EXPECT_THAT(kept.at(50), ElementsAre("16"));
  kept.outstanding().drain();
  EXPECT_EQ(kept.outstanding().counts().ended_unseen, 0U);
}

TEST(Outstanding, ADescriptorCanBeNothingBut0) {
  Kept kept(kPairs);
  kept.give({'a', 10, {0}});
  kept.give({'a', 20, {-2}});
  EXPECT_THAT(kept.at(50), ElementsAre("0 40"));
}

TEST(Outstanding, AConditionOnTheAgeIsAskedWhenTheRowIs) {
  Kept kept(
      "from e in outstanding(entry(\"app!a\") until entry(\"app!b\") on arg0) where e.age > 50 && "
      "e.arg1 > 1 select e.arg0");
  ASSERT_EQ(kept.joined().stages[0].behind.size(), 1U);
  EXPECT_EQ(kept.joined().stages[0].pushed.size(), 1U);
  kept.give({'a', 10, {7, 2}});
  kept.give({'a', 60, {8, 2}});
  kept.give({'a', 10, {9, 1}});
  EXPECT_THAT(kept.at(100), ElementsAre("7"));
  EXPECT_THAT(kept.at(200), ElementsAre("7", "8"));
}

TEST(Outstanding, GroupsAreCountedAnewAtEachMoment) {
  Kept kept(
      "from e in outstanding(entry(\"app!a\") until entry(\"app!b\") on arg0) groupby e.arg1 "
      "select e.arg1, count(), sum(e.arg2) as bytes, max(e.age) orderby bytes descending");
  kept.give({'a', 10, {1, 100, 5}});
  kept.give({'a', 20, {2, 100, 6}});
  kept.give({'a', 30, {3, 200, 90}});
  EXPECT_THAT(kept.at(40), ElementsAre("200 1 90 10", "100 2 11 30"));
  kept.give({'b', 50, {2, 0, 0}});
  kept.give({'b', 60, {3, 0, 0}});
  EXPECT_THAT(kept.at(110), ElementsAre("100 1 5 100"));
}

TEST(Outstanding, SingleRowsHaveAnOrderToo) {
  Kept kept(
      "from e in outstanding(entry(\"app!a\") until entry(\"app!b\") on arg0) select e.arg0, "
      "e.arg1 "
      "orderby e.arg1 descending take 2");
  kept.give({'a', 10, {1, 5}});
  kept.give({'a', 20, {2, 7}});
  kept.give({'a', 30, {3, 6}});
  EXPECT_THAT(kept.at(40), ElementsAre("2 7", "3 6"));
}

TEST(Outstanding, TheMomentThatIsAskedAboutHasAName) {
  Kept kept(
      "from e in outstanding(entry(\"app!a\") until entry(\"app!b\") on arg0) select e.time, "
      "asked.time as at");
  kept.give({'a', 10, {1}});
  EXPECT_THAT(kept.at(40), ElementsAre("10 40"));
}

Expected<plan::Joined> separated(const std::string& text) {
  const query::Text named{.name = "query", .text = text};
  query::FakeTypes types;
  const query::Query query = CLEW_TRY(query::parse(named, {.types = &types}));
  return plan::separate(query, {}, query::Reporter(named));
}

TEST(Outstanding, WhatLiesInMemoryIsShownAsItsType) {
  const Expected<plan::Joined> joined = separated(
      "from j in outstanding(entry(\"shopd!charge_card\") until return(\"shopd!charge_card\") "
      "on tid) select print(j.card->holder)");
  ASSERT_TRUE(joined) << joined.error().message;
  const plan::Plan plan = plan::plain(joined->stages[0].rest);
  KeptRows kept;
  Answer answer(plan, 0, kept);
  RowBatch rows(plan.query.values.size());
  const std::span<Value> row = rows.add();
  std::fill(row.begin(), row.end(), Value(std::string(24, '\0')));
  answer.take(rows);
  answer.end_rows();
  ASSERT_EQ(kept.rows.size(), 1U);
  EXPECT_EQ(std::get<std::string>(kept.rows[0][0]), R"({"name": "0x0", "age": 0, "next": "0x0"})");
}

TEST(Outstanding, WhatIsJoinedHasNoFormat) {
  const Expected<plan::Joined> joined = separated(
      "from b in entry(\"shopd!close_card\") join a in (from c in entry(\"shopd!charge_card\") "
      "select print(*c.card) as card) on a -> b select a.card");
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().message.find("'print'"), std::string::npos) << joined.error().message;
}

}  // namespace
}  // namespace clew::answer
