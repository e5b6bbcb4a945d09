// SPDX-License-Identifier: Apache-2.0
#include "stream/open_rows.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "stream/value_pool.h"

namespace clew::stream {
namespace {

using aggregate::Value;

std::vector<Value> key(uint64_t number) {
  return {number};
}

std::vector<Value> row(int64_t number) {
  return {number};
}

class OpenRowsOfOne : public testing::Test {
 protected:
  void begin(uint64_t at, int64_t time, int64_t value = 0) {
    rows_.begin(key(at), time, row(value));
  }
  void end(uint64_t at, int64_t time) { rows_.end(key(at), time); }
  std::vector<int64_t> open(int64_t until = INT64_MAX) {
    std::vector<int64_t> values;
    for (const uint32_t place : rows_.begun_until(until)) {
      std::vector<Value> read(1);
      rows_.read(place, read);
      values.push_back(std::get<int64_t>(read[0]));
    }
    return values;
  }

  OpenRows rows_{{.keys = 1, .width = 1}, {}};
};

TEST_F(OpenRowsOfOne, WhatIsNotEndedIsThereFromTheOldestOneOn) {
  begin(1, 30, 100);
  begin(2, 10, 200);
  begin(3, 20, 300);
  end(3, 40);
  EXPECT_EQ(open(), (std::vector<int64_t>{200, 100}));
  EXPECT_EQ(open(29), (std::vector<int64_t>{200}));
  EXPECT_EQ(rows_.size(), 2U);
}

TEST_F(OpenRowsOfOne, AnEndThatIsReadBeforeItsBeginEndsItAllTheSame) {
  end(1, 20);
  begin(1, 10);
  rows_.pass(INT64_MAX);
  EXPECT_TRUE(open().empty());
  EXPECT_EQ(rows_.counts().ended_unseen, 0U);
}

// Of a thread whose events are read late: it has begun and ended 1, and begun it again, which
// another thread has ended.
TEST_F(OpenRowsOfOne, AnEarlierEndThatIsReadLateLeavesNothingOpen) {
  begin(1, 10);
  end(1, 40);
  end(1, 20);
  begin(1, 30);
  rows_.pass(INT64_MAX);
  EXPECT_TRUE(open().empty());
}

TEST_F(OpenRowsOfOne, AnEarlierEndDoesNotEndWhatBeganBehindIt) {
  begin(1, 30, 7);
  end(1, 20);
  EXPECT_EQ(open(), (std::vector<int64_t>{7}));
}

TEST_F(OpenRowsOfOne, AnEndWithoutABeginIsCountedOnceNothingEarlierCanCome) {
  end(1, 20);
  end(1, 30);
  end(2, 30);
  EXPECT_EQ(rows_.counts().ended_unseen, 1U);  // The first of 1: another one has followed.
  rows_.pass(25);
  EXPECT_EQ(rows_.counts().ended_unseen, 1U);
  rows_.pass(31);
  EXPECT_EQ(rows_.counts().ended_unseen, 3U);
}

TEST_F(OpenRowsOfOne, AKeyThatBeginsAgainHasEndedUnseen) {
  begin(1, 10, 100);
  begin(1, 20, 200);
  begin(1, 15, 150);
  EXPECT_EQ(open(), (std::vector<int64_t>{200}));
  EXPECT_EQ(rows_.counts().again, 2U);
}

TEST_F(OpenRowsOfOne, WhatHasEndedTakesNoRoomOnceItIsPassed) {
  for (uint64_t i = 0; i < 100'000; ++i) {
    begin(i, static_cast<int64_t>(i));
    end(i, static_cast<int64_t>(i));
    rows_.pass(static_cast<int64_t>(i));
  }
  EXPECT_LT(rows_.bytes(), 500'000U);
}

TEST(OpenRows, WhatFindsNoRoomIsCounted) {
  OpenRows rows({.keys = 1, .width = 1}, {.rows = 2});
  for (uint64_t i = 0; i < 5; ++i)
    rows.begin(key(i), 1, row(0));
  EXPECT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.counts().no_room, 3U);
}

TEST(OpenRows, EndsThatAreTooManyAreForgottenFromTheFirstOneOn) {
  OpenRows rows({.keys = 1, .width = 1}, {.ended = 3});
  for (uint64_t i = 0; i < 5; ++i)
    rows.end(key(i), static_cast<int64_t>(i));
  EXPECT_EQ(rows.counts().ended_unseen, 2U);
}

TEST(OpenRows, TextIsHeldOnceAndIsAKey) {
  OpenRows rows({.keys = 1, .width = 1}, {});
  const std::vector<Value> name = {std::string("a name of more than eight bytes")};
  const std::vector<Value> other = {std::string("b")};
  rows.begin(name, 1, other);
  rows.begin(other, 2, name);
  rows.begin(std::vector<Value>{std::string("c")}, 3, name);
  rows.end(other, 4);
  const std::vector<uint32_t> places = rows.begun_until(INT64_MAX);
  ASSERT_EQ(places.size(), 2U);
  std::vector<Value> read(1);
  rows.read(places[1], read);
  EXPECT_EQ(read, name);
}

TEST(OpenRows, EndsWithLongKeysAreForgottenWhereThereIsNoRoomForTheirText) {
  OpenRows rows({.keys = 1, .width = 1}, {.value_bytes = 100'000});
  for (uint64_t i = 0; i < 1'000; ++i)
    rows.end(std::vector<Value>{std::to_string(i) + std::string(4'000, 'k')}, 1);
  EXPECT_GT(rows.counts().ended_unseen, 900U);
  EXPECT_LT(rows.bytes(), 1'000'000U);
}

TEST(OpenRows, AnEndAtTheEndOfTimeIsForgottenToo) {
  OpenRows rows({.keys = 1, .width = 1}, {.ended = 3});
  for (uint64_t i = 0; i < 5; ++i)
    rows.end(key(i), INT64_MAX);
  EXPECT_EQ(rows.counts().ended_unseen, 2U);
  rows.drain();
  EXPECT_EQ(rows.counts().ended_unseen, 5U);
}

TEST(ValuePool, TakesNothingOnceNobodyUsesIt) {
  ValuePool pool(1);
  std::string text = "a text with room";
  text.reserve(10'000);
  aggregate::Stack stack;
  stack.frames.push_back({.symbol = "main", .module = "app"});
  const std::vector<uint32_t> numbers = {pool.use(text), pool.use(stack), pool.use(text)};
  EXPECT_EQ(numbers[0], numbers[2]);
  EXPECT_LT(pool.bytes(), 2'000U);
  for (const uint32_t number : numbers)
    pool.leave(number);
  EXPECT_EQ(pool.bytes(), 0U);
}

TEST(OpenRows, AKeyThatIsNoNumberAndNoTextIsNone) {
  OpenRows rows({.keys = 1, .width = 1}, {});
  rows.begin(std::vector<Value>{std::monostate{}}, 1, row(0));
  EXPECT_EQ(rows.size(), 0U);
}

// As a plain map has it, when all come in the order of their times.
using Happening = std::pair<int64_t, uint64_t>;  // Its time; its key, odd ones of it are ends.

std::vector<int64_t> plain(std::vector<Happening> events) {
  std::sort(events.begin(), events.end());
  std::map<uint64_t, int64_t> open;
  for (const auto& [time, what] : events) {
    if (what % 2 == 0) open[what / 2] = time;
    if (what % 2 == 1) open.erase(what / 2);
  }
  std::vector<int64_t> times;
  for (const auto& [at, time] : open)
    times.push_back(time);
  std::sort(times.begin(), times.end());
  return times;
}

TEST(OpenRows, TheOrderOfComingMakesNoRow) {
  constexpr int64_t kSlack = 50;
  const size_t seeds = wanted_steps(200);
  for (size_t seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<int64_t, Happening>> coming;  // By when it comes.
    for (int64_t time = 0; time < 2'000; ++time)
      coming.push_back({time + static_cast<int64_t>(random() % kSlack), {time, random() % 200}});
    std::sort(coming.begin(), coming.end());
    OpenRows rows({.keys = 1, .width = 1}, {});
    std::vector<Happening> all;
    int64_t latest = 0;
    for (const auto& [when, event] : coming) {
      const auto& [time, what] = event;
      if (what % 2 == 0) rows.begin(key(what / 2), time, row(time));
      if (what % 2 == 1) rows.end(key(what / 2), time);
      latest = std::max(latest, time);
      rows.pass(latest - kSlack);
      all.push_back(event);
    }
    std::vector<int64_t> times;
    for (const uint32_t place : rows.begun_until(INT64_MAX))
      times.push_back(rows.time_of(place));
    ASSERT_EQ(times, plain(all)) << "seed " << seed;
  }
}

TEST(OpenRows, AMillionRowsOfFewNumbersTakeSixtyBytesEach) {
  OpenRows rows({.keys = 2, .width = 2}, {});
  for (uint64_t i = 0; i < 1'000'000; ++i)
    rows.begin(std::vector<Value>{uint64_t{1}, i * 16}, 1, std::vector<Value>{int64_t{1}, i});
  EXPECT_EQ(rows.size(), 1'000'000U);
  EXPECT_LT(rows.bytes(), 70'000'000U);
}

}  // namespace
}  // namespace clew::stream
