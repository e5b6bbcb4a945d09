// SPDX-License-Identifier: Apache-2.0
#include "target/pattern.h"

#include <gtest/gtest.h>

namespace clew::target {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  const auto compiled = Pattern::compile(pattern);
  EXPECT_TRUE(compiled) << pattern;
  return compiled && compiled->matches(name);
}

TEST(PatternTest, StarsMarksAndSetsMatchAsInTheShell) {
  EXPECT_TRUE(matches("lookupKey*", "lookupKeyRead"));
  EXPECT_TRUE(matches("lookupKey*", "lookupKey"));
  EXPECT_FALSE(matches("lookupKey*", "xlookupKey"));
  EXPECT_TRUE(matches("*Key*Read*", "lookupKeyReadWithFlags"));
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_FALSE(matches("a?c", "ac"));
  EXPECT_TRUE(matches("[a-c]x[!0-9]", "bxy"));
  EXPECT_FALSE(matches("[a-c]x[!0-9]", "bx7"));
  EXPECT_TRUE(matches("[]]", "]"));
  EXPECT_TRUE(matches("a[*]b", "a*b"));
  EXPECT_FALSE(matches("a[*]b", "axb"));
  EXPECT_TRUE(matches("**", ""));
  EXPECT_FALSE(matches("", "x"));
}

TEST(PatternTest, ASetThatIsNotClosedIsAnErrorThatShowsThePattern) {
  const auto broken = Pattern::compile("lookup[Kk");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::InvalidQuery);
  EXPECT_NE(broken.error().message.find("'lookup[Kk'"), std::string::npos);
}

// Naive backtracking would take longer than the universe has.
TEST(PatternTest, ManyStarsDoNotExplode) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) {
    pattern += "a*";
  }
  EXPECT_FALSE(matches(pattern + "b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace clew::target
