// SPDX-License-Identifier: Apache-2.0
// Returns without room for a jump: they are taken on all ways to them.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "code/text_cases.h"
#include "code/window_checks.h"
#include "code/windows.h"
#include "code/windows_testing.h"

namespace clew::code {
namespace {

// A function whose return is a branch target and has no padding.
CLEW_TEXT_CASE(bare_ret_case, R"(
  test %rdi, %rdi
  bare_ret_branch: je bare_ret
  mov %rdi, %rax
  bare_ret_before: add $3, %rax
  bare_ret: ret
  mov (%rsi), %eax
  mov %eax, %edx
  bare_ret_jump: jmp bare_ret
)");
CLEW_LABEL(bare_ret);
CLEW_LABEL(bare_ret_branch);
CLEW_LABEL(bare_ret_before);
CLEW_LABEL(bare_ret_jump);

// "before", "taken" or "passed", by the instruction.
std::map<uint64_t, std::string> sides_of(const Plan& plan) {
  std::map<uint64_t, std::string> sides;
  for (const Point& point : plan.points) {
    const Window& window = plan.windows[point.window];
    std::string& text = sides[window.address + window.instructions[point.instruction].offset];
    if (!text.empty()) text += ' ';
    text += point.side == Side::Before ? "before" : point.side == Side::Taken ? "taken" : "passed";
  }
  return sides;
}

TEST(Windows, AReturnWithoutRoomIsTakenOnAllWaysToIt) {
  const TextCase text =
      TextCase(bare_ret_case, bare_ret_case_end).function(bare_ret_case, bare_ret_case_end);
  const Plan plan = plan_of(text, {exits(bare_ret_case)});
  ASSERT_EQ(refusals(plan), "");
  EXPECT_THAT(sides_of(plan), testing::ElementsAre(testing::Pair(at(bare_ret_branch), "taken"),
                                                   testing::Pair(at(bare_ret_before), "passed"),
                                                   testing::Pair(at(bare_ret_jump), "before")));
  for (const Point& point : plan.points) {
    EXPECT_EQ(point.address, at(bare_ret));
    EXPECT_FALSE(point.tail_call);
  }
  for (const Window& window : plan.windows) {
    const uint64_t end = std::max(overwritten_end(window), window.address + window.size_bytes);
    EXPECT_TRUE(at(bare_ret) < window.address || at(bare_ret) >= end);
  }
}

TEST(Windows, AProbeAtAReturnWithoutRoomIsNotMovedToTheWaysThere) {
  const TextCase text =
      TextCase(bare_ret_case, bare_ret_case_end).function(bare_ret_case, bare_ret_case_end);
  EXPECT_EQ(refusals(plan_of(text, {exits(bare_ret_case), offset(bare_ret)})), "too-short");
}

TEST(Windows, ExitsAreAllTakenOrAllRefused) {
  TextCase text =
      TextCase(bare_ret_case, bare_ret_case_end).function(bare_ret_case, bare_ret_case_end);
  text.text.landing_pads = {at(bare_ret)};
  const Plan plan = plan_of(text, {exits(bare_ret_case), entry(bare_ret_case)});
  EXPECT_EQ(refusals(plan), "no-room-for-exit");
  EXPECT_EQ(plan.points.size(), 1U);
}

// As in the function before, but two bytes run on to the return.
CLEW_TEXT_CASE(tail_branch_case, R"(
  test %rdi, %rdi
  tail_branch: je tail_begin
  mov %rdi, %rax
  add $3, %rax
  jmp tail_ret_other
  tail_begin: xor %eax, %eax
  tail_ret: ret
  tail_ret_other: mov (%rsi), %eax
  mov %eax, %edx
  tail_jump: jmp tail_begin
)");
CLEW_LABEL(tail_branch);
CLEW_LABEL(tail_begin);
CLEW_LABEL(tail_ret);
CLEW_LABEL(tail_jump);

TEST(Windows, WhatStandsBeforeAReturnWithoutRoomIsCopiedToTheWaysThere) {
  const TextCase text = TextCase(tail_branch_case, tail_branch_case_end)
                            .function(tail_branch_case, tail_branch_case_end);
  const Plan plan = plan_of(text, {exits(tail_branch_case)});
  ASSERT_EQ(refusals(plan), "");
  EXPECT_THAT(sides_of(plan), testing::ElementsAre(testing::Pair(at(tail_branch), "taken"),
                                                   testing::Pair(at(tail_jump), "taken")));
  for (const Point& point : plan.points) {
    EXPECT_EQ(point.address, at(tail_ret));
    EXPECT_EQ(point.tail_address(), at(tail_begin));
    EXPECT_EQ(point.tail.size_bytes, 3);
  }
}

// Calls that run the copy would pass by.
TEST(Windows, AProbeInWhatAnotherSessionCopiedIsRefused) {
  // Dead bytes nearby, which the first session does not see.
  const ModuleCode narrow = analyse(TextCase(tail_branch_case, tail_branch_case_end)
                                        .function(tail_branch_case, tail_branch_case_end)
                                        .text);
  const ModuleCode wide = analyse(TextCase(tail_branch_case, tail_branch_case_end + 16)
                                      .function(tail_branch_case, tail_branch_case_end)
                                      .text);
  const std::vector<Request> first = {exits(tail_branch_case)};
  const std::vector<Request> second = {offset(tail_begin), exits(tail_branch_case)};
  EXPECT_EQ(refusals(plan_windows(wide, second)), "");
  const Plan installed = plan_windows(narrow, first);
  const Plan plan = plan_windows(wide, second, installed.windows);
  EXPECT_EQ(refusals(plan), "window-in-use");
  EXPECT_EQ(plan.refusals[0].request, 0U);
  EXPECT_EQ(sides_of(plan), sides_of(installed));
}

// The other way round: who is there first keeps its calls.
TEST(Windows, WhatHasAProbeOfAnotherSessionIsNotCopied) {
  const ModuleCode narrow = analyse(TextCase(tail_branch_case, tail_branch_case_end)
                                        .function(tail_branch_case, tail_branch_case_end)
                                        .text);
  const ModuleCode wide = analyse(TextCase(tail_branch_case, tail_branch_case_end + 16)
                                      .function(tail_branch_case, tail_branch_case_end)
                                      .text);
  Plan installed = plan_windows(wide, std::vector<Request>{offset(tail_begin)});
  ASSERT_EQ(installed.windows.size(), 1U);
  ASSERT_EQ(installed.windows[0].size_bytes, 2);
  const std::vector<Request> second = {exits(tail_branch_case)};
  EXPECT_EQ(refusals(plan_windows(narrow, second, installed.windows)), "no-room-for-exit");
}

// A second session finds the windows of the first one.
TEST(Windows, WaysToAReturnAreFoundAgainInInstalledWindows) {
  const TextCase text =
      TextCase(bare_ret_case, bare_ret_case_end).function(bare_ret_case, bare_ret_case_end);
  const ModuleCode code = analyse(text.text);
  const std::vector<Request> requests = {exits(bare_ret_case)};
  const Plan first = plan_windows(code, requests);
  const Plan second = plan_windows(code, requests, first.windows);
  EXPECT_EQ(refusals(second), "");
  EXPECT_EQ(sides_of(second), sides_of(first));
}

}  // namespace
}  // namespace clew::code
