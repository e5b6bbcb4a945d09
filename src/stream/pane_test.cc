// SPDX-License-Identifier: Apache-2.0
#include "stream/pane.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace clew::stream {
namespace {

constexpr int64_t kFirstMoment = std::numeric_limits<int64_t>::min();
constexpr int64_t kLastMoment = std::numeric_limits<int64_t>::max();

TEST(Panes, AMomentBelongsToThePaneThatBeginsThere) {
  const Panes panes{.epoch_ns = 100, .width_ns = 10};
  EXPECT_EQ(panes.number_of(100), 0);
  EXPECT_EQ(panes.number_of(109), 0);
  EXPECT_EQ(panes.number_of(110), 1);
  EXPECT_EQ(panes.begin(1), 110);
  EXPECT_EQ(panes.end(1), 120);
}

TEST(Panes, BeforeTheEpochNumbersGoOnDownwards) {
  const Panes panes{.epoch_ns = 100, .width_ns = 10};
  EXPECT_EQ(panes.number_of(99), -1);
  EXPECT_EQ(panes.number_of(90), -1);
  EXPECT_EQ(panes.number_of(89), -2);
  EXPECT_EQ(panes.begin(-1), 90);
}

TEST(Panes, EachMomentLiesWithinItsPane) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const Panes panes{.epoch_ns = static_cast<int64_t>(random()) / 4,
                      .width_ns = static_cast<int64_t>(random() >> (1 + random() % 62)) + 1};
    const int64_t time = static_cast<int64_t>(random()) / 4;
    const int64_t number = panes.number_of(time);
    ASSERT_LE(panes.begin(number), time);
    ASSERT_GT(panes.end(number), time);
    ASSERT_EQ(panes.end(number), panes.begin(number + 1));
  }
}

TEST(Panes, WhatDoesNotFitIsTheFirstOrTheLastMoment) {
  const Panes panes{.epoch_ns = kLastMoment, .width_ns = kLastMoment};
  EXPECT_EQ(panes.begin(kLastMoment), kLastMoment);
  EXPECT_EQ(panes.end(kLastMoment), kLastMoment);
  EXPECT_EQ(panes.begin(kFirstMoment), kFirstMoment);
  EXPECT_EQ(panes.number_of(kFirstMoment), -3);
  EXPECT_EQ((Panes{.epoch_ns = kLastMoment, .width_ns = 1}).number_of(kFirstMoment), kFirstMoment);
}

}  // namespace
}  // namespace clew::stream
