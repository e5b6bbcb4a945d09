// SPDX-License-Identifier: Apache-2.0
// Joins by time against a plain evaluator: for each left row, all right ones are looked at.
#include "stream/temporal_join.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"

namespace clew::stream {
namespace {

using aggregate::Value;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Timed {
  bool is_left = false;
  int64_t time = 0;
  std::vector<Value> key;
};

using Pair = std::pair<int64_t, int64_t>;  // Numbers of events; the right one is -1: none.

// Rows are an event's number, in text, too, which is long for some.
class Pairs final : public JoinedRows {
 public:
  void joined(std::span<const Value> row, std::span<const Moment> moments) override {
    ASSERT_EQ(row.size(), 4);
    const auto left = std::get<int64_t>(row[0]);
    EXPECT_EQ(std::get<std::string>(row[1]), text_of(left));
    EXPECT_EQ(moments[0].number, static_cast<uint64_t>(left));
    if (std::holds_alternative<std::monostate>(row[2])) {
      EXPECT_TRUE(std::holds_alternative<std::monostate>(row[3]));
      EXPECT_TRUE(moments[1].is_never());
      pairs.emplace_back(left, -1);
      return;
    }
    const auto right = std::get<int64_t>(row[2]);
    EXPECT_EQ(std::get<std::string>(row[3]), text_of(right));
    EXPECT_EQ(moments[1].number, static_cast<uint64_t>(right));
    pairs.emplace_back(left, right);
  }
  static std::string text_of(int64_t number) {
    return number % 3 == 0 ? fmt::format("the event with number {}", number)
                           : fmt::format("{}", number);
  }

  std::vector<Pair> pairs;
};

// Gives events to a join as the tracer does: all of times before the last one's, but for so much,
// have come.
class Joining {
 public:
  explicit Joining(TemporalShape shape, int64_t slack = 0, TemporalLimits limits = {})
      : slack_(slack), join_(with_widths(shape), limits, pairs_) {}

  void take(const Timed& event, int64_t number, Budget budget = {}) {
    const std::vector<Value> row{Value{number}, Value{Pairs::text_of(number)}};
    const Moment moment{.time_ns = event.time, .number = static_cast<uint64_t>(number)};
    if (event.is_left) {
      join_.take_left(row, {&moment, 1}, event.key, budget);
    } else {
      join_.take_right(row, moment, event.key, budget);
    }
    cut_ += budget.is_cut ? 1 : 0;
    if (event.time > latest_) latest_ = event.time;
    pass(latest_ - slack_);
  }
  void take_all(const std::vector<Timed>& events) {
    for (size_t i = 0; i < events.size(); ++i) {
      take(events[i], static_cast<int64_t>(i));
      most_held_ = std::max(most_held_, join_.held());
    }
    size_t most = SIZE_MAX;
    EXPECT_TRUE(join_.drain(most));
    EXPECT_EQ(join_.held(), 0);
  }
  void pass(int64_t until) {
    size_t most = SIZE_MAX;
    EXPECT_TRUE(join_.pass(until, until, most));
  }
  std::vector<Pair> sorted() {
    std::sort(pairs_.pairs.begin(), pairs_.pairs.end());
    return pairs_.pairs;
  }
  TemporalJoin& join() { return join_; }
  [[nodiscard]] size_t most_held() const { return most_held_; }
  [[nodiscard]] uint64_t cut() const { return cut_; }

 private:
  static TemporalShape with_widths(TemporalShape shape) {
    shape.left_width = 2;
    shape.right_width = 2;
    return shape;
  }

  int64_t slack_;
  Pairs pairs_;
  TemporalJoin join_;
  int64_t latest_ = INT64_MIN / 2;
  size_t most_held_ = 0;
  uint64_t cut_ = 0;
};

// What the words of the language say, and nothing else.
bool belong_together(const Timed& a, const Timed& b, const TemporalShape& shape) {
  const auto within = static_cast<int64_t>(shape.within_ns);
  if (b.time > a.time + within || b.time < a.time - within) return false;
  if (shape.side == Side::Before && b.time > a.time) return false;
  if (shape.side == Side::After && b.time < a.time) return false;
  return a.key == b.key;
}

// Of the times and numbers of partners.
void keep_chosen(std::vector<Pair>& found, const TemporalShape& shape) {
  if (shape.choice == Choice::All || found.size() <= shape.count) return;
  const auto count = static_cast<ptrdiff_t>(shape.count);
  std::sort(found.begin(), found.end());
  if (shape.choice == Choice::Last) found.erase(found.begin(), found.end() - count);
  found.resize(shape.count);
}

// Of events in the order of their times but for `disorder`, which bounds how many there are to look
// at.
std::vector<Pair> plainly_joined(const std::vector<Timed>& events, const TemporalShape& shape,
                                 int64_t disorder) {
  const int64_t reach = static_cast<int64_t>(shape.within_ns) + 2 * disorder;
  std::vector<Pair> pairs;
  size_t begin = 0;
  for (size_t a = 0; a < events.size(); ++a) {
    if (!events[a].is_left) continue;
    while (events[begin].time < events[a].time - reach)
      ++begin;
    std::vector<Pair> found;  // Times and numbers.
    for (size_t b = begin; b < events.size() && events[b].time <= events[a].time + reach; ++b) {
      if (events[b].is_left || !belong_together(events[a], events[b], shape)) continue;
      found.emplace_back(events[b].time, b);
    }
    keep_chosen(found, shape);
    if (found.empty() && shape.is_outer) pairs.emplace_back(a, -1);
    for (const Pair& one : found)
      pairs.emplace_back(a, one.second);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

struct Recipe {
  size_t count = 100'000;
  int64_t keys = 20;
  int64_t disorder = 0;  // How much an event may be earlier than one that came before it.
  bool is_text = false;
  size_t parts = 1;
};

std::vector<Timed> random_events(const Recipe& recipe, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t end) {
    return std::uniform_int_distribution<int64_t>(0, end - 1)(random);
  };
  std::vector<Timed> events;
  int64_t time = 1'000'000;
  for (size_t i = 0; i < recipe.count; ++i) {
    time += below(3);  // Some at once.
    Timed event{.is_left = below(2) == 0, .time = time - below(recipe.disorder + 1), .key = {}};
    for (size_t part = 0; part < recipe.parts; ++part) {
      const int64_t key = below(recipe.keys);
      const bool is_text = recipe.is_text && part % 2 == 0;
      event.key.push_back(is_text ? Value{fmt::format("{:0>{}}", key, 1 + key % 20)}
                                  : Value{static_cast<uint64_t>(key)});
    }
    events.push_back(std::move(event));
  }
  return events;
}

void expect_as_plainly(Recipe recipe, TemporalShape shape, uint32_t seed) {
  recipe.count = wanted_steps(recipe.count);
  shape.keys = recipe.parts;
  const std::vector<Timed> events = random_events(recipe, seed);
  Joining run(shape, recipe.disorder);
  run.take_all(events);
  const std::vector<Pair> wanted = plainly_joined(events, shape, recipe.disorder);
  EXPECT_GT(wanted.size(), recipe.count / 4);
  EXPECT_EQ(run.sorted().size(), wanted.size());
  EXPECT_TRUE(run.sorted() == wanted);
  EXPECT_EQ(run.join().forgotten(), 0);
  EXPECT_EQ(run.cut(), 0);
  // A unit of time has an event: what is held is what the time says.
  EXPECT_LE(run.most_held(), 2 * shape.within_ns + 4 * static_cast<size_t>(recipe.disorder) + 100);
}

TEST(TemporalJoin, IsWhatAPlainEvaluatorSaysOfAMillionEvents) {
  expect_as_plainly({.count = 1'000'000, .keys = 30, .disorder = 20}, {.within_ns = 40}, 1);
}

TEST(TemporalJoin, IsWhatAPlainEvaluatorSaysWhereSomeAreChosen) {
  uint32_t seed = 100;
  for (const Choice choice : {Choice::First, Choice::Last}) {
    for (const Side side : {Side::Either, Side::Before, Side::After}) {
      for (const bool is_outer : {false, true}) {
        for (const int64_t disorder : {0, 50}) {
          for (const size_t count : {size_t{1}, size_t{3}}) {
            expect_as_plainly({.count = 20'000, .keys = 20, .disorder = disorder, .is_text = true},
                              {.within_ns = 30,
                               .side = side,
                               .is_outer = is_outer,
                               .choice = choice,
                               .count = count},
                              ++seed);
          }
        }
      }
    }
  }
}

TEST(TemporalJoin, IsWhatAPlainEvaluatorSaysOnEachSide) {
  for (const Side side : {Side::Either, Side::Before, Side::After}) {
    for (const bool is_outer : {false, true}) {
      for (const int64_t disorder : {0, 50}) {
        SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(side), is_outer, disorder));
        const Recipe recipe{.count = 170'000, .keys = 40, .disorder = disorder};
        expect_as_plainly(recipe, {.within_ns = 60, .side = side, .is_outer = is_outer}, 2);
      }
    }
  }
}

TEST(TemporalJoin, IsWhatAPlainEvaluatorSaysOfTextAndOfSeveralKeys) {
  expect_as_plainly({.keys = 30, .is_text = true}, {.within_ns = 50}, 3);
  expect_as_plainly({.keys = 6, .disorder = 9, .is_text = true, .parts = 2},
                    {.within_ns = 70, .is_outer = true}, 4);
  expect_as_plainly({.keys = 3, .parts = 3}, {.within_ns = 70, .side = Side::After}, 5);
}

Timed left(int64_t time, Value key = uint64_t{7}) {
  return {.is_left = true, .time = time, .key = {std::move(key)}};
}

Timed right(int64_t time, Value key = uint64_t{7}) {
  return {.is_left = false, .time = time, .key = {std::move(key)}};
}

std::vector<Pair> joined(TemporalShape shape, const std::vector<Timed>& events) {
  Joining run(shape);
  run.take_all(events);
  return run.sorted();
}

TEST(TemporalJoin, HasItsBoundsInIt) {
  const std::vector<Timed> events{right(89),  right(90),  right(100), left(100),
                                  right(100), right(110), right(111)};
  EXPECT_THAT(joined({.within_ns = 10}, events),
              ElementsAre(Pair(3, 1), Pair(3, 2), Pair(3, 4), Pair(3, 5)));
  EXPECT_THAT(joined({.within_ns = 10, .side = Side::Before}, events),
              ElementsAre(Pair(3, 1), Pair(3, 2), Pair(3, 4)));
  EXPECT_THAT(joined({.within_ns = 10, .side = Side::After}, events),
              ElementsAre(Pair(3, 2), Pair(3, 4), Pair(3, 5)));
}

TEST(TemporalJoin, TellsTextFromNumbersAndHasNoEqualOfNull) {
  const std::vector<Timed> events{left(100, std::string("7")), left(100, Value{}),
                                  left(100, std::string("")),  right(100),
                                  right(100, Value{}),         right(100, std::string(""))};
  EXPECT_THAT(joined({.within_ns = 10}, events), ElementsAre(Pair(2, 5)));
  EXPECT_THAT(joined({.within_ns = 10, .is_outer = true}, events),
              ElementsAre(Pair(0, -1), Pair(1, -1), Pair(2, 5)));
}

// Of a hit that is an event of both streams.
TEST(TemporalJoin, DoesNotJoinAnEventWithItself) {
  Joining run({.within_ns = 10});
  run.take(left(100), 1);
  run.take(right(100), 1);
  run.take(left(103), 2);
  run.take(right(103), 2);
  EXPECT_THAT(run.sorted(), UnorderedElementsAre(Pair(1, 2), Pair(2, 1)));
}

TEST(TemporalJoin, GivesARowWithoutAPartnerWhenItsTimeIsOver) {
  Joining run({.within_ns = 10, .is_outer = true}, 5);
  run.take(left(100), 1);
  run.take(right(115, uint64_t{8}), 2);
  EXPECT_THAT(run.sorted(), IsEmpty());
  run.take(right(110), 3);  // Late, but not too late.
  EXPECT_THAT(run.sorted(), ElementsAre(Pair(1, 3)));
  run.take(left(121), 4);
  run.pass(131);
  EXPECT_THAT(run.sorted(), ElementsAre(Pair(1, 3)));
  run.pass(132);
  EXPECT_THAT(run.sorted(), ElementsAre(Pair(1, 3), Pair(4, -1)));
}

TEST(TemporalJoin, GivesNoMoreRowsAtOnceThanItIsTold) {
  Joining run({.within_ns = 10, .is_outer = true}, 1'000);
  for (int64_t i = 0; i < 5; ++i)
    run.take(left(100 + i), i);
  size_t most = 3;
  EXPECT_FALSE(run.join().pass(500, 500, most));
  EXPECT_EQ(run.sorted().size(), 3);
  most = 3;
  EXPECT_TRUE(run.join().pass(500, 500, most));
  EXPECT_EQ(most, 1);
  EXPECT_EQ(run.sorted().size(), 5);
}

TEST(TemporalJoin, ForgetsTheFirstOfTooManyAndCountsThem) {
  Joining run({.within_ns = 1'000, .is_outer = true}, 0, {.held = 100});
  for (int64_t i = 0; i < 250; ++i)
    run.take(left(i, static_cast<uint64_t>(i)), i);
  EXPECT_EQ(run.join().held(), 100);
  EXPECT_EQ(run.join().forgotten(), 150);
  run.take(right(250, uint64_t{149}), 1'000);  // Is forgotten.
  run.take(right(250, uint64_t{150}), 1'001);
  EXPECT_THAT(run.sorted(), ElementsAre(Pair(150, 1'001)));
}

// Equal keys at one time: the work for one is bounded, and the last ones are taken.
TEST(TemporalJoin, BoundsTheWorkForManyEqualEvents) {
  const auto each = static_cast<int64_t>(wanted_steps(100'000));
  Joining run({.within_ns = 10});
  for (int64_t i = 0; i < each; ++i)
    run.take(left(100), i, {.rows = 20});
  for (int64_t i = 0; i < each; ++i)
    run.take(right(100), each + i, {.rows = 20});
  EXPECT_EQ(run.cut(), each);
  EXPECT_EQ(run.sorted().size(), 20 * each);
  EXPECT_EQ(run.sorted().front().first, each - 20);
}

// The key has many rows, of which few are near.
TEST(TemporalJoin, LooksAtNoMoreThanTheNearOnes) {
  Joining run({.within_ns = 10}, 1'000'000);
  for (int64_t i = 0; i < 10'000; ++i)
    run.take(i % 2 == 0 ? left(20 * i) : right(20 * i + 15), i, {.looks = 3});
  EXPECT_EQ(run.cut(), 0);
  EXPECT_EQ(run.sorted().size(), 4'999);
  EXPECT_EQ(run.join().held(), 10'000);
}

// Each is earlier than all before: which are near is known all the same.
TEST(TemporalJoin, TakesTimesThatGoBackwards) {
  Joining run({.within_ns = 10}, 1'000'000);
  for (int64_t i = 0; i < 3'000; ++i)
    run.take(i % 2 == 0 ? left(-20 * i) : right(-20 * i + 15), i);
  EXPECT_EQ(run.cut(), 0);
  EXPECT_EQ(run.sorted().size(), 1'500);
}

// Of how many there are to choose from is not known which is the first: no row is better than a
// wrong one.
TEST(TemporalJoin, DoesNotChooseFromWhatItCannotLookAt) {
  for (const bool is_outer : {false, true}) {
    Joining run({.within_ns = 1'000, .is_outer = is_outer, .choice = Choice::First}, 0,
                {.looks = 10});
    for (int64_t i = 0; i < 11; ++i)
      run.take(right(100), i);
    run.take(left(100), 11);
    run.take(left(2'000), 12);
    run.pass(10'000);
    EXPECT_EQ(run.join().unchosen(), 1);
    EXPECT_EQ(run.sorted().size(), is_outer ? 1 : 0);
  }
}

// Which was the first is not known where one is forgotten that may have been it.
TEST(TemporalJoin, IsNotGivenAnotherFirstOne) {
  Joining run({.within_ns = 1'000, .choice = Choice::First}, 0, {.held = 2});
  for (int64_t i = 0; i < 3; ++i)
    run.take(right(100 + i), i);
  run.take(left(200), 3);
  run.take(left(1'150), 4);  // Not before 150, when all that was forgotten is over.
  run.pass(10'000);
  EXPECT_EQ(run.join().unchosen(), 1);
  EXPECT_EQ(run.join().forgotten(), 1);
  EXPECT_THAT(run.sorted(), ElementsAre());
}

// The last one is found at once, however many there are.
TEST(TemporalJoin, TheLastOneTakesOneLook) {
  Joining run({.within_ns = 1'000, .side = Side::Before, .choice = Choice::Last}, 0, {.looks = 1});
  for (int64_t i = 0; i < 100; ++i)
    run.take(right(i), i);
  run.take(left(100), 100);
  run.pass(10'000);
  EXPECT_EQ(run.join().unchosen(), 0);
  EXPECT_THAT(run.sorted(), ElementsAre(Pair(100, 99)));
}

// A recording can say any time.
TEST(TemporalJoin, TakesTimesThatGoAnywhere) {
  std::mt19937_64 random(6);
  std::vector<Timed> events;
  const std::vector<int64_t> times{INT64_MIN, INT64_MIN + 1, -5, 0, 5, INT64_MAX - 1, INT64_MAX};
  for (size_t i = 0; i < 3'000; ++i) {
    const int64_t time = times[random() % times.size()];
    events.push_back(random() % 2 == 0 ? left(time) : right(time));
  }
  for (const Side side : {Side::Either, Side::Before, Side::After}) {
    Joining run({.within_ns = 10, .side = side, .is_outer = true}, 0, {.held = 50});
    for (size_t i = 0; i < events.size(); ++i) {
      run.take(events[i], static_cast<int64_t>(i));
      ASSERT_LE(run.join().held(), 100);
    }
    for (const auto& [a, b] : run.sorted()) {
      if (b < 0) continue;
      const int64_t one = events[static_cast<size_t>(a)].time;
      const int64_t other = events[static_cast<size_t>(b)].time;
      const auto [low, high] = std::minmax(one, other);
      EXPECT_LE(static_cast<uint64_t>(high) - static_cast<uint64_t>(low), 10);
    }
  }
}

// The second event of a left row is the one that is compared.
TEST(TemporalJoin, ComparesTheEventOfARowThatItIsTold) {
  class Rows final : public JoinedRows {
   public:
    void joined(std::span<const Value> row, std::span<const Moment> moments) override {
      numbers.push_back(std::get<uint64_t>(row[1]));
      EXPECT_EQ(moments.size(), 3);
    }
    std::vector<uint64_t> numbers;
  } rows;
  TemporalJoin join(
      {.left_width = 1, .right_width = 1, .left_moments = 2, .left_of = 1, .within_ns = 10}, {},
      rows);
  Budget budget;
  const std::vector<Value> key{Value{uint64_t{1}}};
  const std::vector<Moment> far{{.time_ns = 0, .number = 1}, {.time_ns = 500, .number = 2}};
  const std::vector<Moment> never{{.time_ns = 500, .number = 3}, {}};
  join.take_left(key, far, key, budget);
  join.take_left(key, never, key, budget);
  join.take_right({{Value{uint64_t{8}}}}, {.time_ns = 5, .number = 4}, key, budget);
  join.take_right({{Value{uint64_t{9}}}}, {.time_ns = 505, .number = 5}, key, budget);
  EXPECT_THAT(rows.numbers, ElementsAre(9));
}

}  // namespace
}  // namespace clew::stream
