// SPDX-License-Identifier: Apache-2.0
#include "cmd/step_commands.h"

#include <gtest/gtest.h>

namespace clew::cmd {
namespace {

TEST(StepCommands, HaveShortFormsAndBeginnings) {
  EXPECT_EQ(find_step_command("rn"), StepCommand::ReverseNext);
  EXPECT_EQ(find_step_command("s"), StepCommand::Step);
  EXPECT_EQ(find_step_command("back"), StepCommand::Backtrace);
  EXPECT_EQ(find_step_command("reverse-f"), StepCommand::ReverseFinish);
  EXPECT_EQ(find_step_command("fini"), StepCommand::Finish);
  EXPECT_EQ(find_step_command("h"), StepCommand::Help);
}

TEST(StepCommands, UnknownOnesHaveTheNearestName) {
  const auto unknown = find_step_command("finnish");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "no command 'finnish'; did you mean 'finish'?");
  const auto several = find_step_command("re");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().message,
            "'re' may be reverse-step, reverse-next, reverse-finish, reverse-continue");
}

TEST(StepCommands, NoNameIsGivenTwice) {
  for (const StepCommandRow& row : step_commands()) {
    const auto found = find_step_command(row.names.substr(0, row.names.find(' ')));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, row.command);
  }
}

}  // namespace
}  // namespace clew::cmd
