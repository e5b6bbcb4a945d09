// SPDX-License-Identifier: Apache-2.0
#include "recorder/side_by_side.h"

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

ShownLine line(std::optional<int64_t> after, std::optional<int64_t> before) {
  ShownLine made;
  made.began = {after, before};
  return made;
}

ShownThread thread(int32_t number, std::vector<ShownLine> lines) {
  ShownThread made;
  made.thread = number;
  made.lines = std::move(lines);
  return made;
}

TEST(SideBySide, ThreadsTakeTurnsByTheTimesBetweenTheirLines) {
  Shown shown;
  shown.threads = {thread(1, {line(-9000, -8000), line(-9000, -8000), line(-3000, -2000)}),
                   thread(2, {line(-7000, -6000)})};
  const std::vector<Stretch> all = side_by_side(shown);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].thread, 0U);
  EXPECT_EQ(all[0].end, 2U);
  EXPECT_EQ(all[1].thread, 1U);
  EXPECT_EQ(all[2].begin, 2U);
  for (const Stretch& one : all)
    EXPECT_TRUE(one.concurrent.empty());
}

TEST(SideBySide, WhatOverlapsIsConcurrentBothWays) {
  Shown shown;
  shown.threads = {thread(1, {line(-9000, -5000), line(-5000, -1000)}),
                   thread(2, {line(-7000, -6000)}), thread(3, {line(-900, {})})};
  const std::vector<Stretch> all = side_by_side(shown);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].concurrent, std::vector<size_t>{1});
  EXPECT_EQ(all[1].concurrent, std::vector<size_t>{0});
  // Moments so close say nothing.
  EXPECT_EQ(all[2].concurrent, std::vector<size_t>{2});
  EXPECT_EQ(all[3].concurrent, std::vector<size_t>{0});
}

TEST(SideBySide, WithoutTimesThreadsAreConcurrentWithAll) {
  Shown shown;
  shown.threads = {thread(1, {line(-9000, -8000), line(-8000, {})}), thread(2, {line({}, {})})};
  const std::vector<Stretch> all = side_by_side(shown);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].thread, 1U);
  EXPECT_EQ(all[0].concurrent, std::vector<size_t>{0});
  EXPECT_EQ(all[1].concurrent, std::vector<size_t>{1});
  EXPECT_EQ(all[2].concurrent, std::vector<size_t>{1});
}

}  // namespace
}  // namespace clew::recorder
