// SPDX-License-Identifier: Apache-2.0
// By which ways a return is reached.
#include <string>

#include <gtest/gtest.h>

#include "code/exits.h"
#include "code/text_cases.h"

namespace clew::code {
namespace {

// "+3 taken, +8 passed", with " via 2" where 2 bytes in front of the ret are copied; "" when there
// may be other ways.
std::string ways_to(const TextCase& text, const uint8_t* function, const uint8_t* ret) {
  const ModuleCode code = analyse(text.text);
  const auto found = ways_to_return(code, *code.function_starting_at(at(function)), at(ret));
  std::string list;
  for (const Exit& way : found.value_or(ReturnWays{}).ways) {
    if (!list.empty()) list += ", ";
    list += '+' + std::to_string(way.address - at(function));
    if (way.side == Side::Taken) list += " taken";
    if (way.side == Side::Passed) list += " passed";
  }
  if (found && found->tail.size_bytes != 0)
    list += " via " + std::to_string(found->tail.ret_offset);
  return list;
}

CLEW_TEXT_CASE(ways_case, R"(
  test %rdi, %rdi
  je ways_ret
  mov %rsi, %rax
  jrcxz ways_ret
  ways_add: add $3, %rax
  ways_ret: ret
  mov %rdi, %rax
  jmp ways_ret
  ways_other: jmp ways_add
  ways_last: jmp ways_ret
)");
CLEW_LABEL(ways_add);
CLEW_LABEL(ways_ret);
CLEW_LABEL(ways_other);
CLEW_LABEL(ways_last);

TEST(ReturnWays, AreJumpsAndTheInstructionBeforeIt) {
  const TextCase text = TextCase(ways_case, ways_last).function(ways_case, ways_other);
  EXPECT_EQ(ways_to(text, ways_case, ways_ret), "+3 taken, +8 taken, +10 passed, +18");
}

TEST(ReturnWays, AreUnknownWhereOthersLeadToTheReturn) {
  const TextCase text = TextCase(ways_case, ways_last).function(ways_case, ways_other);
  EXPECT_EQ(ways_to(text, ways_case, ways_add), "");  // No return.
  const TextCase jumped = TextCase(ways_case, ways_case_end)
                              .function(ways_case, ways_other)
                              .function(ways_last, ways_case_end);
  EXPECT_EQ(ways_to(jumped, ways_case, ways_ret), "");
  TextCase landed = text;
  landed.text.landing_pads = {at(ways_ret)};
  EXPECT_EQ(ways_to(landed, ways_case, ways_ret), "");
  TextCase pointed = text;
  pointed.text.code_pointers = {at(ways_ret)};
  EXPECT_EQ(ways_to(pointed, ways_case, ways_ret), "");
  TextCase outer = TextCase(ways_case, ways_case_end)
                       .function(ways_case, ways_case_end)
                       .function(ways_add, ways_other);
  EXPECT_EQ(ways_to(outer, ways_case, ways_ret), "");
}

CLEW_TEXT_CASE(tail_case, R"(
  tail_short: test %rdi, %rdi
  je 1f
  jmp 1f
  1: xor %eax, %eax
  pop %rbx
  tail_short_ret: ret
  tail_long: test %rdi, %rdi
  je 1f
  mov %rsi, %rax
  1: xor %eax, %eax
  xor %ebx, %ebx
  tail_long_ret: ret
  tail_call: test %rdi, %rdi
  je 1f
  mov %rsi, %rax
  1: call *%rax
  tail_call_ret: ret
  tail_middle: test %rdi, %rdi
  je 1f
  js 1f + 1
  1: cltq
  tail_middle_ret: ret
)");
CLEW_LABEL(tail_short);
CLEW_LABEL(tail_short_ret);
CLEW_LABEL(tail_long);
CLEW_LABEL(tail_long_ret);
CLEW_LABEL(tail_call);
CLEW_LABEL(tail_call_ret);
CLEW_LABEL(tail_middle);
CLEW_LABEL(tail_middle_ret);

TEST(ReturnWays, MayLeadToFewBytesBeforeIt) {
  const TextCase text = TextCase(tail_case, tail_case_end)
                            .function(tail_short, tail_long)
                            .function(tail_long, tail_call)
                            .function(tail_call, tail_middle)
                            .function(tail_middle, tail_case_end);
  EXPECT_EQ(ways_to(text, tail_short, tail_short_ret), "+3 taken, +5 taken via 3");
  EXPECT_EQ(ways_to(text, tail_long, tail_long_ret), "");      // Room for a jump.
  EXPECT_EQ(ways_to(text, tail_call, tail_call_ret), "");      // Must run in its place.
  EXPECT_EQ(ways_to(text, tail_middle, tail_middle_ret), "");  // Two ways in.
}

CLEW_TEXT_CASE(hard_ways_case, R"(
  hard_call: test %rdi, %rdi
  je hard_call_ret
  call . + 64
  hard_call_ret: ret
  hard_push: test %rdi, %rdi
  je hard_push_ret
  push %rdi
  hard_push_ret: ret
  hard_prefix: js 1f + 1
  jmp 1f
  1: rep ret
  hard_jump: test %rdi, %rdi
  je hard_jump_ret
  jmp *%rax
  hard_jump_ret: ret
  hard_dead: test %rdi, %rdi
  je hard_dead_ret
  ud2
  nopw 0(%rax)
  hard_dead_ret: ret
)");
CLEW_LABEL(hard_call);
CLEW_LABEL(hard_call_ret);
CLEW_LABEL(hard_push);
CLEW_LABEL(hard_push_ret);
CLEW_LABEL(hard_prefix);
CLEW_LABEL(hard_jump);
CLEW_LABEL(hard_jump_ret);
CLEW_LABEL(hard_dead);
CLEW_LABEL(hard_dead_ret);

TEST(ReturnWays, AreUnknownWhereSomethingMayOrMayNotLeadThere) {
  TextCase text = TextCase(hard_ways_case, hard_ways_case_end)
                      .function(hard_call, hard_push)
                      .function(hard_push, hard_prefix)
                      .function(hard_prefix, hard_jump)
                      .function(hard_jump, hard_dead)
                      .function(hard_dead, hard_ways_case_end);
  text.text.code_pointers = {at(hard_jump) + 3};  // A table that nobody understands.
  EXPECT_EQ(ways_to(text, hard_call, hard_call_ret), "");
  EXPECT_EQ(ways_to(text, hard_push, hard_push_ret), "");
  EXPECT_EQ(ways_to(text, hard_prefix, hard_jump - 2), "");
  EXPECT_EQ(ways_to(text, hard_jump, hard_jump_ret), "");
  EXPECT_EQ(ways_to(text, hard_dead, hard_dead_ret), "+3 taken");
}

}  // namespace
}  // namespace clew::code
