// SPDX-License-Identifier: Apache-2.0
// Where flags are arguments or results.
#include "code/flag_use.h"

#include <string>

#include <gtest/gtest.h>

#include "code/exits.h"
#include "code/text_cases.h"
#include "code/windows.h"

namespace clew::code {
namespace {

// "entry, exit +3" for the points that keep flags.
std::string kept_by(const ModuleCode& code, const uint8_t* function) {
  FlagValues flags(code);
  const uint32_t index = *code.function_starting_at(at(function));
  std::string text;
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (flags.live_at_entry(at(function), index)) add("entry");
  const auto exits = find_exits(code, index);
  EXPECT_TRUE(exits.has_value());
  for (const Exit& exit : *exits) {
    if (flags.live_at_exit(exit, index))
      add("exit +" + std::to_string(exit.address - at(function)));
  }
  return text;
}

CLEW_TEXT_CASE(values_case, R"(
  values_result: add %rsi, %rdi
  mov %rdi, %rax
  ret
  values_jumps: add %rsi, %rdi
  jmp values_passes
  values_passes: lea (%rdi, %rsi), %rax
  ret
  values_argument: setb %al
  ret
  values_gives: cmp %rdi, %rsi
  jmp values_argument
  values_nobody: mov %rdi, %rax
  cmp %rdi, %rsi
  ret
  values_callers: call values_result
  mov %rax, %rdx
  setc %cl
  call values_jumps
  adc $0, %rax
  call values_compiled
  test %eax, %eax
  jne 1f
  call values_ends
  1: ja 2f
  xor %eax, %eax
  2: ret
  values_compiled: push %rbx
  cmp %rsi, %rdi
  jb 3f
  inc %rdi
  jnz 3f
  sub %rdi, %rax
  3: pop %rbx
  ret
  values_ends: mov %edi, %eax
  ud2
)");
CLEW_LABEL(values_result);
CLEW_LABEL(values_jumps);
CLEW_LABEL(values_passes);
CLEW_LABEL(values_argument);
CLEW_LABEL(values_gives);
CLEW_LABEL(values_nobody);
CLEW_LABEL(values_callers);
CLEW_LABEL(values_compiled);
CLEW_LABEL(values_ends);

ModuleText values_text() {
  return TextCase(values_case, values_case_end)
      .function(values_result, values_jumps)
      .function(values_jumps, values_passes)
      .function(values_passes, values_argument)
      .function(values_argument, values_gives)
      .function(values_gives, values_nobody)
      .function(values_nobody, values_callers)
      .function(values_callers, values_compiled)
      .function(values_compiled, values_ends)
      .function(values_ends, values_case_end)
      .text;
}

TEST(FlagValues, AreResultsWhereACallerReadsThem) {
  const ModuleCode code = analyse(values_text());
  EXPECT_EQ(kept_by(code, values_result), "exit +6");
}

TEST(FlagValues, PassThroughTailCalls) {
  const ModuleCode code = analyse(values_text());
  EXPECT_EQ(kept_by(code, values_jumps), "exit +3");
  EXPECT_EQ(kept_by(code, values_passes), "entry, exit +4");
}

TEST(FlagValues, AreArgumentsOfWhoReadsThemFirst) {
  const ModuleCode code = analyse(values_text());
  EXPECT_EQ(kept_by(code, values_argument), "entry");
  EXPECT_EQ(kept_by(code, values_gives), "exit +3");
}

TEST(FlagValues, OfAComparisonThatNothingReadsAreKept) {
  const ModuleCode code = analyse(values_text());
  EXPECT_EQ(kept_by(code, values_nobody), "exit +6");
}

// The jump behind the call of values_ends reads flags; it is reached from elsewhere.
TEST(FlagValues, AreDeadInCompiledCode) {
  const ModuleCode code = analyse(values_text());
  EXPECT_EQ(kept_by(code, values_compiled), "");
  EXPECT_EQ(kept_by(code, values_callers), "");
}

CLEW_TEXT_CASE(anybody_case, R"(
  anybody: sub %rsi, %rdi
  ret
  anybody_calls: call *%rax
  setc %al
  ret
)");
CLEW_LABEL(anybody);
CLEW_LABEL(anybody_calls);

TEST(FlagValues, AreResultsOfAllWhereAnybodyMayBeCalled) {
  const ModuleCode code = analyse(TextCase(anybody_case, anybody_case_end)
                                      .function(anybody, anybody_calls)
                                      .function(anybody_calls, anybody_case_end)
                                      .text);
  EXPECT_EQ(kept_by(code, anybody), "exit +3");
}

TEST(FlagValues, AreKnownOfEachPointOfAPlan) {
  const ModuleCode code = analyse(values_text());
  const std::vector<Request> requests = {{RequestKind::Exits, at(values_jumps)},
                                         {RequestKind::Exits, at(values_compiled)}};
  const Plan plan = plan_windows(code, requests);
  ASSERT_FALSE(plan.points.empty());
  EXPECT_EQ(plan.points.front().request, 0U);
  for (const Point& point : plan.points)
    EXPECT_EQ(point.keeps_flags, point.request == 0) << point.address;
}

}  // namespace
}  // namespace clew::code
