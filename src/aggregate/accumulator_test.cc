// SPDX-License-Identifier: Apache-2.0
#include "aggregate/accumulator.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::aggregate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Words = std::vector<uint64_t>;

// Two groups of (count, max), then three plain counts; a table of counts by one word.
StateShape shape(bool by_process) {
  const AggregateSpec count{};
  const AggregateSpec max{.function = AggregateFunction::Max};
  return {.dense = {{.first_word = 0, .groups = 2, .group = {{count, max}}},
                    {.first_word = 6, .groups = 3, .group = {{count}}}},
          .tables = {{.key_words = 1, .group = {{count}}}},
          .by_process = by_process};
}

const Words kFirst = {1, 10, 1, 0, 0, 0, 5, 0, 7};
const Words kSecond = {2, 30, 1, 1, 4, 1, 1, 1, 1};

TEST(Accumulator, MergesTheSlotsOfAProcess) {
  Accumulator sum(shape(false));
  sum.dense({.slot = 0}, kFirst);
  sum.dense({.slot = 1, .process = 3}, kSecond);
  EXPECT_THAT(sum.processes(), ElementsAre(0));
  EXPECT_THAT(sum.group(0, 0, 0), ElementsAre(3, 30, 1));
  EXPECT_THAT(sum.group(0, 0, 1), ElementsAre(1, 4, 1));
  EXPECT_THAT(sum.group(0, 1, 2), ElementsAre(8));
}

TEST(Accumulator, KeepsProcessesApartWhenAsked) {
  Accumulator sum(shape(true));
  sum.dense({.slot = 0}, kFirst);
  sum.dense({.slot = 1, .process = 3}, kSecond);
  EXPECT_THAT(sum.processes(), ElementsAre(0, 3));
  EXPECT_THAT(sum.group(0, 1, 0), ElementsAre(5));
  EXPECT_THAT(sum.group(3, 1, 0), ElementsAre(1));
  EXPECT_THAT(sum.group(4, 1, 0), IsEmpty());
}

TEST(Accumulator, MergesTableEntriesByKey) {
  Accumulator sum(shape(false));
  sum.entry({.slot = 0}, 0, Words{7}, Words{1});
  sum.entry({.slot = 1}, 0, Words{7}, Words{2});
  sum.entry({.slot = 1}, 0, Words{8}, Words{5});
  EXPECT_EQ(sum.table(0, 0).at({7}), Words{3});
  EXPECT_EQ(sum.table(0, 0).at({8}), Words{5});
  EXPECT_TRUE(sum.table(9, 0).empty());
}

// Counts by group and by key.
TEST(Accumulator, WhatWasThereEarlierCanBeTakenAway) {
  const StateShape counts = {
      .dense = {{.first_word = 0, .groups = 2, .group = {{AggregateSpec{}}}}},
      .tables = {{.key_words = 1, .group = {{AggregateSpec{}}}}},
      .by_process = true};
  Accumulator before(counts);
  before.dense({.slot = 0}, Words{3, 4});
  before.entry({.slot = 0}, 0, Words{7}, Words{1});
  before.entry({.slot = 0}, 0, Words{8}, Words{2});
  Accumulator now(counts);
  now.dense({.slot = 0}, Words{3, 9});
  now.dense({.slot = 1, .process = 2}, Words{1, 1});
  now.entry({.slot = 0}, 0, Words{7}, Words{1});
  now.entry({.slot = 0}, 0, Words{8}, Words{5});
  now.entry({.slot = 0}, 0, Words{9}, Words{6});
  now.subtract(before);
  EXPECT_THAT(now.group(0, 0, 0), ElementsAre(0));
  EXPECT_THAT(now.group(0, 0, 1), ElementsAre(5));
  EXPECT_THAT(now.group(2, 0, 1), ElementsAre(1));
  EXPECT_FALSE(now.table(0, 0).contains({7})) << "nothing has come since";
  EXPECT_EQ(now.table(0, 0).at({8}), Words{3});
  EXPECT_EQ(now.table(0, 0).at({9}), Words{6});
}

TEST(Accumulator, MergeOfTwoIsOneThatSawBoth) {
  Accumulator first(shape(true));
  Accumulator second(shape(true));
  Accumulator both(shape(true));
  for (Accumulator* sum : {&first, &both}) {
    sum->dense({.slot = 0}, kFirst);
    sum->entry({.slot = 0}, 0, Words{7}, Words{1});
  }
  for (Accumulator* sum : {&second, &both}) {
    sum->dense({.slot = 0}, kSecond);
    sum->dense({.slot = 1, .process = 2}, kSecond);
    sum->entry({.slot = 1, .process = 2}, 0, Words{7}, Words{2});
  }
  first.merge(second);
  EXPECT_EQ(first.processes(), both.processes());
  for (const uint32_t process : both.processes()) {
    EXPECT_EQ(first.table(process, 0), both.table(process, 0));
    for (uint32_t group = 0; group < 2; ++group) {
      EXPECT_TRUE(
          std::ranges::equal(first.group(process, 0, group), both.group(process, 0, group)));
    }
  }
}

}  // namespace
}  // namespace clew::aggregate
