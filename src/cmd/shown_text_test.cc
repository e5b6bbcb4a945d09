// SPDX-License-Identifier: Apache-2.0
#include "cmd/shown_text.h"

#include <array>

#include <gtest/gtest.h>

namespace clew::cmd {
namespace {

using recorder::SpanNs;

TEST(TimeText, HasThreeDigitsWhereNothingIsClose) {
  EXPECT_EQ(time_text(-204'600, std::nullopt), "-204.600 µs");
  EXPECT_EQ(time_text(-10'204'600, 1000), "-10.205 ms");
  EXPECT_EQ(time_text(3'010'204'600, 1'000'000), "+3.010 s");
  EXPECT_EQ(time_text(0, 90), "+0.000 µs");
}

TEST(TimeText, HasMoreWhereMomentsAreClose) {
  EXPECT_EQ(time_text(-204'600, 15), "-204.600 µs");
  EXPECT_EQ(time_text(-10'204'613, 999), "-10.2046 ms");
  EXPECT_EQ(time_text(-10'204'613, 15), "-10.20461 ms");
  EXPECT_EQ(time_text(-10'204'613, 1), "-10.204613 ms");
  EXPECT_EQ(time_text(-3'010'204'613, 15), "-3.01020461 s");
}

TEST(TimeText, TellsBothEndsOfTheGapApart) {
  for (const int64_t gap : {1, 9, 10, 11, 99, 100, 999, 1000, 54'321}) {
    for (int64_t ns = -1'002'000'100; ns < -1'002'000'000; ++ns)
      EXPECT_NE(time_text(ns, gap), time_text(ns + gap, gap)) << ns << " " << gap;
  }
}

TEST(LeastGap, IsWithinASpanOrBetweenTwoInAKnownOrder) {
  EXPECT_EQ(least_gap({}), std::nullopt);
  EXPECT_EQ(least_gap(std::array{SpanNs{{}, -500}, SpanNs{-500, {}}}), std::nullopt);
  EXPECT_EQ(least_gap(std::array{SpanNs{-900, -500}, SpanNs{-500, -485}, SpanNs{-485, {}}}), 15);
  EXPECT_EQ(least_gap(std::array{SpanNs{-900, -500}, SpanNs{-200, 400}}), 300);
  // Of two threads, too close to say which was first.
  EXPECT_EQ(least_gap(std::array{SpanNs{-900, -500}, SpanNs{-497, 100}}), 400);
  EXPECT_EQ(least_gap(std::array{SpanNs{-500, -500}}), std::nullopt);
}

}  // namespace
}  // namespace clew::cmd
