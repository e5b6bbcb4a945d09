// SPDX-License-Identifier: Apache-2.0
#include "cluster/subject.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/bus.h"

namespace clew::cluster {
namespace {

TEST(Subject, IsWordsWithDots) {
  for (const char* good : {"a", "clew.t.part.q1.7.node-3", "A_b.c"})
    EXPECT_TRUE(check_subject(good)) << good;
  for (const char* bad :
       {"", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "a\r\nb", "é", "$JS.API"})
    EXPECT_FALSE(check_subject(bad)) << bad;
  EXPECT_TRUE(check_subject(std::string(kSubjectMax, 'a')));
  EXPECT_FALSE(check_subject(std::string(kSubjectMax + 1, 'a')));
}

TEST(Subject, OfAPatternMayHaveWildcards) {
  for (const char* good : {"a", "*", ">", "a.*.c", "a.>", "*.*"})
    EXPECT_TRUE(check_pattern(good)) << good;
  for (const char* bad : {"", "a*", "a.>.b", "a.>>", "**"})
    EXPECT_FALSE(check_pattern(bad)) << bad;
}

TEST(Subject, IsShownInOneShortLine) {
  const auto refused = check_subject("a\n\033[2J" + std::string(1000, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(refused.error().message.find('\033'), std::string::npos);
  EXPECT_LT(refused.error().message.size(), 200U);
}

TEST(Subject, MatchesByWords) {
  EXPECT_TRUE(is_match("a.b", "a.b"));
  EXPECT_TRUE(is_match("a.*", "a.b"));
  EXPECT_TRUE(is_match("*.b", "a.b"));
  EXPECT_TRUE(is_match("a.>", "a.b"));
  EXPECT_TRUE(is_match("a.>", "a.b.c"));
  EXPECT_TRUE(is_match(">", "a"));
  EXPECT_FALSE(is_match("a.>", "a"));
  EXPECT_FALSE(is_match("a.*", "a"));
  EXPECT_FALSE(is_match("a.*", "a.b.c"));
  EXPECT_FALSE(is_match("a.b", "a.bc"));
  EXPECT_FALSE(is_match("a", "b"));
}

TEST(Subject, OfAPatternAreMatchedOnlyIfAllAre) {
  EXPECT_TRUE(is_match("a.*", "a.*"));
  EXPECT_TRUE(is_match("a.>", "a.*"));
  EXPECT_TRUE(is_match(">", "a.>"));
  EXPECT_FALSE(is_match("a.*", "a.>"));
  EXPECT_FALSE(is_match("a.b", "a.*"));
}

TEST(Subject, OverlapsWhereOneMatchesBoth) {
  EXPECT_TRUE(do_overlap("a.*", "*.b"));
  EXPECT_TRUE(do_overlap("a.>", "a.b.c"));
  EXPECT_TRUE(do_overlap("*", ">"));
  EXPECT_FALSE(do_overlap("a.>", "a"));
  EXPECT_FALSE(do_overlap("a.*", "b.*"));
  EXPECT_FALSE(do_overlap("a.*", "a.*.*"));
}

TEST(Subject, OfALogIsOneWord) {
  EXPECT_TRUE(check_name("part-7"));
  EXPECT_FALSE(check_name("part.7"));
  EXPECT_FALSE(check_name(""));
  EXPECT_FALSE(check_name("a/b"));
}

}  // namespace
}  // namespace clew::cluster
