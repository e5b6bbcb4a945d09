// SPDX-License-Identifier: Apache-2.0
// Queries with joins by time against plain loops over all events.
#include "answer/time_joins.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/answer.h"
#include "answer/calls_testing.h"
#include "answer/kept_rows.h"
#include "plan/plan.h"
#include "query/fields.h"
#include "query/parse.h"

namespace clew::answer {
namespace {

using aggregate::Value;
using testing::ElementsAre;
using testing::IsEmpty;
using Strings = std::vector<std::string>;

class Asked {
 public:
  explicit Asked(const std::string& text, TimeJoinLimits limits = {.slack_ns = 0}) {
    const query::Text named{.name = "query", .text = text};
    const query::Query query = query::parse(named, {}).value();
    joined_ = plan::separate(query, {}, query::Reporter(named)).value();
    joins_ = std::make_unique<TimeJoins>(joined_, limits);
    plan_ = plan::plain(joined_.stages[0].rest);
    rows_.emplace(plan_.query.values.size());
  }
  void give(const Call& hit) {
    RowBatch events(joined_.events.values.size());
    add_events(joined_, hit, events);
    take(events);
  }
  void give_all(const std::vector<Call>& hits) {
    RowBatch events(joined_.events.values.size());
    for (const Call& each : hits)
      add_events(joined_, each, events);
    take(events);
  }
  void pass(int64_t until) {
    bool is_done = false;
    while (!is_done) {
      RowBatch some(rows_->width());
      is_done = joins_->pass(until, some);
      rows_->append(some);
    }
  }
  Strings lines() {
    KeptRows kept;
    Answer answer(plan_, 0, kept);
    if (plan_.query.shape == query::Shape::Groups) {
      answer.take(joins_->counted());
    } else {
      answer.take(*rows_);
    }
    Strings lines;
    for (const aggregate::Row& row : kept.rows)
      lines.push_back(line_of(row));
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  Strings all_lines() {
    bool is_done = false;
    while (!is_done) {
      RowBatch some(rows_->width());
      is_done = joins_->drain(some);
      rows_->append(some);
    }
    EXPECT_EQ(joins_->held(), 0);
    return lines();
  }
  TimeJoins& joins() { return *joins_; }
  [[nodiscard]] const plan::Joined& joined() const { return joined_; }

 private:
  void take(RowBatch& events) {
    size_t at = 0;
    while (at < events.size()) {
      RowBatch some(rows_->width());
      at = joins_->take(events, {.begin = at, .end = events.size()}, some);
      ++parts_;
      rows_->append(some);
    }
  }

  plan::Joined joined_;
  std::unique_ptr<TimeJoins> joins_;
  plan::Plan plan_;
  std::optional<RowBatch> rows_;
  size_t parts_ = 0;
};

// arg0 and arg1 are keys, arg2 tells it from all others.
std::vector<Call> random_calls(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t end) {
    return std::uniform_int_distribution<int64_t>(0, end - 1)(random);
  };
  std::vector<Call> hits;
  int64_t time = 1'000;
  for (size_t i = 0; i < count; ++i) {
    time += below(3);
    hits.push_back({.function = static_cast<char>('a' + below(3)),
                    .time = time,
                    .arguments = {below(6), below(6), static_cast<int64_t>(i)},
                    .tid = below(4)});
  }
  return hits;
}

bool is_within(const Call& one, const Call& other, int64_t within) {
  return std::abs(one.time - other.time) <= within;
}

std::vector<Call> of(const std::vector<Call>& hits, char function) {
  std::vector<Call> some;
  std::copy_if(hits.begin(), hits.end(), std::back_inserter(some),
               [function](const Call& hit) { return hit.function == function; });
  return some;
}

TEST(TimeJoins, OfThreeStreamsAreWhatPlainLoopsSay) {
  const std::vector<Call> hits = random_calls(3'000, 1);
  Asked asked(
      "from a in entry(\"app!a\") join b in entry(\"app!b\") on b.arg0 equals a.arg0 within 40ns "
      "left join c in entry(\"app!c\") on c.arg1 equals b.arg1 and c.comm equals b.comm "
      "within 30ns before where a.arg1 != 3 select a.arg2, b.arg2, c.arg2");
  asked.give_all(hits);
  Strings wanted;
  for (const Call& a : of(hits, 'a')) {
    for (const Call& b : of(hits, 'b')) {
      if (a.arguments[1] == 3 || a.arguments[0] != b.arguments[0] || !is_within(a, b, 40)) continue;
      bool is_alone = true;
      for (const Call& c : of(hits, 'c')) {
        const bool is_one = b.arguments[1] == c.arguments[1] && b.tid == c.tid &&
                            c.time <= b.time && is_within(b, c, 30);
        if (!is_one) continue;
        is_alone = false;
        wanted.push_back(fmt::format("{} {} {}", a.arguments[2], b.arguments[2], c.arguments[2]));
      }
      if (is_alone) wanted.push_back(fmt::format("{} {} null", a.arguments[2], b.arguments[2]));
    }
  }
  std::sort(wanted.begin(), wanted.end());
  EXPECT_GT(wanted.size(), 3'000);
  EXPECT_TRUE(asked.all_lines() == wanted);
}

// The latest b, in the order of coming, and what is near that one.
TEST(TimeJoins, OfChosenPartnersAreWhatPlainLoopsSay) {
  const std::vector<Call> hits = random_calls(3'000, 5);
  Asked asked(
      "from a in entry(\"app!a\") join b in MostRecent(entry(\"app!b\")) on b.arg0 equals a.arg0 "
      "within 40ns left join c in entry(\"app!c\") on c.arg1 equals b.arg1 within 10ns "
      "select a.arg2, b.arg2, c.arg2");
  asked.give_all(hits);
  Strings wanted;
  for (const Call& a : of(hits, 'a')) {
    const std::vector<Call> all_b = of(hits, 'b');
    const auto last = std::find_if(all_b.rbegin(), all_b.rend(), [&a](const Call& b) {
      return b.arguments[0] == a.arguments[0] && is_within(a, b, 40);
    });
    if (last == all_b.rend()) continue;
    bool is_alone = true;
    for (const Call& c : of(hits, 'c')) {
      if (c.arguments[1] != last->arguments[1] || !is_within(*last, c, 10)) continue;
      is_alone = false;
      wanted.push_back(fmt::format("{} {} {}", a.arguments[2], last->arguments[2], c.arguments[2]));
    }
    if (is_alone) wanted.push_back(fmt::format("{} {} null", a.arguments[2], last->arguments[2]));
  }
  std::sort(wanted.begin(), wanted.end());
  EXPECT_GT(wanted.size(), 1'000);
  EXPECT_TRUE(asked.all_lines() == wanted);
}

// The joined row happens when its b does.
TEST(TimeJoins, OfAQueryThatJoinsAreWhatPlainLoopsSay) {
  const std::vector<Call> hits = random_calls(3'000, 2);
  Asked asked(
      "var pairs = from b in entry(\"app!b\") left join c in entry(\"app!c\") on c.arg0 equals "
      "b.arg0 within 20ns after where c == null || c.arg1 < 4 select b.arg1, n = b.arg2, m = "
      "c.arg2;"
      "from a in entry(\"app!a\") left join p in pairs on p.arg1 equals a.arg1 within 25ns before "
      "select a.arg2, p.n, p.m");
  asked.give_all(hits);
  std::vector<std::pair<Call, std::string>> pairs;
  for (const Call& b : of(hits, 'b')) {
    bool is_alone = true;
    for (const Call& c : of(hits, 'c')) {
      if (b.arguments[0] != c.arguments[0] || c.time < b.time || !is_within(b, c, 20)) continue;
      is_alone = false;
      if (c.arguments[1] < 4)
        pairs.emplace_back(b, fmt::format("{} {}", b.arguments[2], c.arguments[2]));
    }
    if (is_alone) pairs.emplace_back(b, fmt::format("{} null", b.arguments[2]));
  }
  Strings wanted;
  for (const Call& a : of(hits, 'a')) {
    bool is_alone = true;
    for (const auto& [b, text] : pairs) {
      const bool is_one =
          a.arguments[1] == b.arguments[1] && b.time <= a.time && is_within(a, b, 25);
      if (!is_one) continue;
      is_alone = false;
      wanted.push_back(fmt::format("{} {}", a.arguments[2], text));
    }
    if (is_alone) wanted.push_back(fmt::format("{} null null", a.arguments[2]));
  }
  std::sort(wanted.begin(), wanted.end());
  EXPECT_GT(wanted.size(), 1'500);
  EXPECT_TRUE(asked.all_lines() == wanted);
}

// The call before this one.
TEST(TimeJoins, OfASourceWithItselfLeaveTheEventOut) {
  Asked asked(
      "from a in entry(\"app!a\") join before in entry(\"app!a\") on before.tid equals a.tid "
      "within 10ns before select a.arg0, before.arg0");
  asked.give_all({{'a', 100, {1}}, {'a', 105, {2}}, {'a', 107, {3}, 2}, {'a', 112, {4}}});
  EXPECT_THAT(asked.all_lines(), ElementsAre("2 1", "4 2"));
}

TEST(TimeJoins, AreCountedAndSelectedAsRowsAre) {
  const std::vector<Call> hits{{'a', 100, {1, 0}}, {'b', 101, {1, 5}}, {'b', 102, {1, 7}},
                               {'a', 103, {2, 0}}, {'b', 104, {1, 1}}, {'a', 120, {1, 0}}};
  const auto ask = [&hits](const std::string& join, const std::string& rest) {
    Asked asked("from a in entry(\"app!a\") " + join +
                " join b in entry(\"app!b\") on a.arg0 equals b.arg0 within 3ns " + rest);
    asked.give_all(hits);
    return asked.all_lines();
  };
  EXPECT_THAT(ask("", "select a.time, b.arg1"), ElementsAre("100 5", "100 7"));
  EXPECT_THAT(ask("left", "where b == null select a.time"), ElementsAre("103", "120"));
  EXPECT_THAT(ask("left", "groupby a.arg0 select a.arg0, count(), sum(b.arg1), min(b.arg1)"),
              ElementsAre("1 3 12 5", "2 1 0 null"));
  EXPECT_THAT(ask("", "where b.arg1 > 5 select a.time, b.time - a.time"), ElementsAre("100 2"));
  EXPECT_THAT(ask("", "groupby a.arg0 select count() as n where n > 2"), IsEmpty());
}

// They stand in the probe where the join has no other need of what does not pass.
TEST(TimeJoins, HaveConditionsOfOneSideInTheProbe) {
  const auto pushed = [](const std::string& join) {
    const Asked asked("from a in entry(\"app!a\") " + join +
                      " join b in entry(\"app!b\") on a.arg0 equals b.arg0 within 3ns "
                      "where a.arg1 > 2 where b.arg1 > 3 where a.arg1 < b.arg1 select a.time");
    return asked.joined().stages[0].pushed;
  };
  EXPECT_THAT(pushed(""), ElementsAre(0, 1));
  EXPECT_THAT(pushed("left"), ElementsAre(0));
}

// 0xffffffff is -1 as an int32_t, and is no int64_t that is less than 0.
TEST(TimeJoins, CompareKeysAsTheLanguageDoes) {
  const auto ask = [](const std::string& on) {
    Asked asked("from a in entry(\"app!a\") join b in entry(\"app!b\") on " + on +
                " within 3ns select a.time, b.time");
    asked.give_all({{'a', 1, {-1}}, {'b', 2, {0xffffffff}}});
    return asked.all_lines();
  };
  EXPECT_THAT(ask("b.arg0 equals a.arg0"), IsEmpty());
  EXPECT_THAT(ask("(int32_t)b.arg0 equals a.arg0"), ElementsAre("1 2"));
  EXPECT_THAT(ask("(uint32_t)b.arg0 equals (int32_t)a.arg0"), ElementsAre("1 2"));
  EXPECT_THAT(ask("b.arg0 >> 40 equals a.arg0 + 1"), ElementsAre("1 2"));
}

TEST(TimeJoins, GiveRowsOfWhatHasNoPartnerAsTimePasses) {
  Asked asked(
      "from a in entry(\"app!a\") left join b in entry(\"app!b\") on a.arg0 equals b.arg0 "
      "within 10ns left join c in entry(\"app!c\") on c.arg0 equals a.arg0 within 20ns "
      "select a.time, b.time, c.time",
      {.slack_ns = 5});
  asked.joins().set_now(105);
  asked.give({'a', 100, {1}});
  asked.give({'c', 119, {1}});
  asked.pass(115);
  EXPECT_THAT(asked.lines(), IsEmpty());
  asked.pass(116);  // The c that came is joined with the row that comes now.
  EXPECT_THAT(asked.lines(), ElementsAre("100 null 119"));
  asked.give({'a', 130, {2}});
  asked.pass(155);
  EXPECT_THAT(asked.lines(), ElementsAre("100 null 119"));
  asked.pass(156);
  EXPECT_THAT(asked.lines(), ElementsAre("100 null 119", "130 null null"));
  EXPECT_EQ(asked.joins().held(), 0);
}

// An event of the future ends no wait.
TEST(TimeJoins, BelieveTheClockWhereThereIsOne) {
  Asked asked(
      "from a in entry(\"app!a\") join b in entry(\"app!b\") on a.arg0 equals b.arg0 within 10ns "
      "select a.time, b.time");
  asked.joins().set_now(101);
  asked.give({'a', 100, {1}});
  asked.give({'b', 1'000'000, {1}});
  asked.give({'b', 104, {1}});
  EXPECT_THAT(asked.lines(), ElementsAre("100 104"));
  EXPECT_EQ(asked.joins().counts().late, 0);
}

TEST(TimeJoins, CountWhatTheyLeaveOut) {
  const std::string text =
      "from a in entry(\"app!a\") join b in entry(\"app!b\") on a.arg0 equals b.arg0 within 10ns "
      "select a.time, b.time";
  Asked asked(text, {.slack_ns = 5, .sides = {.held = 3}, .each = {.rows = 2}});
  for (const int64_t time : {100, 101, 102, 103, 104})
    asked.give({'a', time, {1}});
  EXPECT_EQ(asked.joins().counts().forgotten, 2);
  asked.give({'b', 105, {1}});
  EXPECT_THAT(asked.lines(), ElementsAre("103 105", "104 105"));
  EXPECT_EQ(asked.joins().counts().cut, 1);
  asked.give({'b', 200, {2}});
  asked.give({'a', 195, {2}});
  EXPECT_EQ(asked.joins().counts().late, 0);
  asked.give({'a', 194, {2}});  // It finds what is there.
  EXPECT_EQ(asked.joins().counts().late, 1);
  EXPECT_THAT(asked.lines(), ElementsAre("103 105", "104 105", "194 200", "195 200"));
}

TEST(TimeJoins, GiveRowsInParts) {
  Asked asked(
      "from a in entry(\"app!a\") left join b in entry(\"app!b\") on a.arg0 equals b.arg0 "
      "within 10ns select a.time",
      {.slack_ns = 0, .batch = 7});
  std::vector<Call> hits;
  for (int64_t i = 0; i < 100; ++i)
    hits.push_back({'a', 100, {i}});
  hits.push_back({'b', 1'000, {1}});
  hits.push_back({'b', 1'000, {2}});
  asked.give_all(hits);
  EXPECT_EQ(asked.lines().size(), 100);
}

// What a recording says need not be so.
TEST(TimeJoins, LeaveOutEventsOfNoSource) {
  Asked asked(
      "from a in entry(\"app!a\") join b in entry(\"app!b\") on a.arg0 equals b.arg0 within 10ns "
      "select a.time");
  RowBatch events(asked.joined().events.values.size());
  for (Value& value : events.add())
    value = int64_t{77};
  RowBatch rows(1);
  EXPECT_EQ(asked.joins().take(events, {.begin = 0, .end = 1}, rows), 1);
  EXPECT_TRUE(rows.empty());
}

}  // namespace
}  // namespace clew::answer
