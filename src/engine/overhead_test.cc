// SPDX-License-Identifier: Apache-2.0
#include "engine/overhead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kBound = 0.03;

TEST(Overhead, TwoSamplesDecideNothing) {
  EXPECT_FALSE(exceeds({.probes = 0, .all = 0}, 0));
  EXPECT_FALSE(exceeds({.probes = 2, .all = 2}, kBound));
  EXPECT_FALSE(exceeds({.probes = 4, .all = 4}, kBound));
}

TEST(Overhead, AHotSessionIsKnownInAFractionOfASecond) {
  // 30 % of 40 samples: 0.2 s of one CPU at 199 a second.
  EXPECT_TRUE(exceeds({.probes = 12, .all = 40}, kBound));
}

TEST(Overhead, ASlightlyHotOneNeedsSeconds) {
  EXPECT_FALSE(exceeds({.probes = 20, .all = 400}, kBound));
  EXPECT_TRUE(exceeds({.probes = 100, .all = 2000}, kBound));
}

TEST(Overhead, WhatHoldsTheBoundStays) {
  EXPECT_FALSE(exceeds({.probes = 28, .all = 1000}, kBound));
  EXPECT_FALSE(exceeds({.probes = 33, .all = 1000}, kBound));
  EXPECT_FALSE(exceeds({.probes = 0, .all = 5000}, 0));
}

TEST(Overhead, TheHottestGoUntilTheRestHolds) {
  const std::vector<uint64_t> by_function = {2, 40, 0, 10, 3};
  EXPECT_THAT(to_take_out(by_function, {.probes = 55, .all = 200}, kBound), ElementsAre(1, 3));
  EXPECT_THAT(to_take_out(by_function, {.probes = 55, .all = 200}, 0.10), ElementsAre(1));
  EXPECT_THAT(to_take_out(by_function, {.probes = 55, .all = 200}, 0), ElementsAre(1, 3, 4, 0));
}

TEST(Overhead, WhatBelongsToNoFunctionTakesNoneOut) {
  const std::vector<uint64_t> by_function = {0, 0};
  EXPECT_THAT(to_take_out(by_function, {.probes = 55, .all = 200}, kBound), IsEmpty());
}

}  // namespace
}  // namespace clew::engine
