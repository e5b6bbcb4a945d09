// SPDX-License-Identifier: Apache-2.0
#include "kernel/glob.h"

#include <gtest/gtest.h>

namespace clew::kernel {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  return Glob(pattern).matches(name);
}

TEST(Glob, AnEmptyPatternMatchesEverything) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("", "vfs_read"));
  EXPECT_TRUE(Glob("").is_any());
  EXPECT_TRUE(Glob("*").is_any());
}

TEST(Glob, ALiteralMatchesOnlyItself) {
  EXPECT_TRUE(matches("vfs_read", "vfs_read"));
  EXPECT_FALSE(matches("vfs_read", "vfs_readv"));
  EXPECT_FALSE(matches("vfs_read", "vfs_rea"));
  EXPECT_TRUE(Glob("vfs_read").is_literal());
}

TEST(Glob, AStarMatchesAnyRun) {
  EXPECT_TRUE(matches("vfs_*", "vfs_read"));
  EXPECT_TRUE(matches("vfs_*", "vfs_"));
  EXPECT_TRUE(matches("*_read", "vfs_read"));
  EXPECT_TRUE(matches("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(matches("*a*b*", "xxbxxaxx"));
  EXPECT_TRUE(matches("*ab", "aabab"));
  EXPECT_FALSE(matches("vfs_*", "xfs_read"));
}

TEST(Glob, AQuestionMarkMatchesOneByte) {
  EXPECT_TRUE(matches("re?d", "read"));
  EXPECT_FALSE(matches("re?d", "red"));
  EXPECT_FALSE(matches("?", ""));
}

TEST(Glob, ASetMatchesItsMembersAndRanges) {
  EXPECT_TRUE(matches("[rw]*", "read"));
  EXPECT_FALSE(matches("[rw]*", "open"));
  EXPECT_TRUE(matches("tick-[0-9]", "tick-7"));
  EXPECT_FALSE(matches("tick-[!0-9]", "tick-7"));
  EXPECT_TRUE(matches("[]x]", "]"));
  EXPECT_TRUE(matches("[a-]", "-"));
}

TEST(Glob, AnOpenSetIsAnOrdinaryByte) {
  EXPECT_TRUE(matches("a[b", "a[b"));
  EXPECT_FALSE(matches("a[b", "ab"));
}

TEST(Glob, ABackslashTakesTheMeaningAway) {
  EXPECT_TRUE(matches("a\\*", "a*"));
  EXPECT_FALSE(matches("a\\*", "ab"));
  EXPECT_TRUE(Glob("a\\*").is_literal());
  EXPECT_EQ(Glob("a\\*").literal(), "a*");
  EXPECT_TRUE(matches("*\\?", "what?"));
}

TEST(Glob, ManyStarsTakeNoLongTime) {
  const std::string name(20'000, 'a');
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*b", name));
}

}  // namespace
}  // namespace clew::kernel
