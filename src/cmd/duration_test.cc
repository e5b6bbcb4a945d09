// SPDX-License-Identifier: Apache-2.0
#include "cmd/duration.h"

#include <gtest/gtest.h>

#include "cmd/request.h"

namespace clew::cmd {
namespace {

TEST(Duration, TakesAllUnits) {
  EXPECT_EQ(*parse_duration("250ns"), 250U);
  EXPECT_EQ(*parse_duration("1.5ms"), 1'500'000U);
  EXPECT_EQ(*parse_duration("2m"), 120'000'000'000U);
  EXPECT_EQ(*parse_duration("7d"), uint64_t{7} * 24 * 3600 * 1'000'000'000);
}

TEST(Duration, RefusesWhatIsNotOne) {
  for (const char* text : {"", "10", "s", "10 s", "-1s", "0s", "1e99h", "10sx"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Command, IsSplitLikeAShellDoes) {
  const auto words = split_command(R"(a 'b c' "d \"e\"" f\ g)");
  ASSERT_TRUE(words);
  EXPECT_EQ(*words, (std::vector<std::string>{"a", "b c", "d \"e\"", "f g"}));
}

TEST(Command, AnOpenQuoteIsAnError) {
  EXPECT_FALSE(split_command("a 'b"));
}

}  // namespace
}  // namespace clew::cmd
