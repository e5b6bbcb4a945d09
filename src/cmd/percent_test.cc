// SPDX-License-Identifier: Apache-2.0
#include "cmd/percent.h"

#include <gtest/gtest.h>

namespace clew::cmd {
namespace {

TEST(Percent, TakesWholeNumbersAndParts) {
  EXPECT_DOUBLE_EQ(*parse_percent("3%"), 0.03);
  EXPECT_DOUBLE_EQ(*parse_percent("3"), 0.03);
  EXPECT_DOUBLE_EQ(*parse_percent("0.5%"), 0.005);
  EXPECT_DOUBLE_EQ(*parse_percent("100%"), 1);
}

TEST(Percent, RefusesWhatIsNotOne) {
  for (const char* text : {"", "%", "0", "-3%", "101%", "3 %", "3%%", "nan", "inf", "1e1", "x"})
    EXPECT_FALSE(parse_percent(text)) << text;
}

TEST(Percent, SaysWhatWasExpected) {
  EXPECT_EQ(parse_percent("lots").error().message,
            "'lots' is no percentage; expected a number above 0 and up to 100, like 3% or 0.5%");
}

}  // namespace
}  // namespace clew::cmd
