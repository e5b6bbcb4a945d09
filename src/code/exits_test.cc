// SPDX-License-Identifier: Apache-2.0
// What counts as leaving a function.
#include "code/exits.h"

#include <string>

#include <gtest/gtest.h>

#include "code/text_cases.h"

namespace clew::code {
namespace {

// "+3 ret, +9 tail, +12 tail if" or the reason of the refusal.
std::string exits_of(const ModuleCode& code, const uint8_t* function) {
  const auto exits = find_exits(code, *code.function_starting_at(at(function)));
  if (!exits) return std::string(name(exits.error().reason));
  std::string text;
  for (const Exit& exit : *exits) {
    if (!text.empty()) text += ", ";
    text += '+' + std::to_string(exit.address - at(function));
    text += exit.tail_call ? " tail" : " ret";
    if (exit.side == Side::Taken) text += " if";
    if (exit.side == Side::Passed) text += " passed";
  }
  return text;
}

std::string exits_of(const TextCase& text, const uint8_t* function) {
  return exits_of(analyse(text.text), function);
}

CLEW_TEXT_CASE(tails_case, R"(
  test %edi, %edi
  je tails_other
  js 1f
  jmp tails_other
  1: rep ret
  tails_other: xor %eax, %eax
  ret $8
)");
CLEW_LABEL(tails_other);

TEST(Exits, AreReturnsAndJumpsToOtherFunctions) {
  const TextCase text = TextCase(tails_case, tails_case_end)
                            .function(tails_case, tails_other)
                            .function(tails_other, tails_case_end);
  EXPECT_EQ(exits_of(text, tails_case), "+2 tail if, +6 tail, +8 ret");
  EXPECT_EQ(exits_of(text, tails_other), "+2 ret");
}

CLEW_TEXT_CASE(shared_case, R"(
  mov %rdi, %rax
  shared_inside: add $5, %rax
  ret
  shared_jumps: lea (%rdi, %rdi), %rax
  jmp shared_inside
  shared_calls: call shared_local
  ret
  shared_local: xor %eax, %eax
  ret
  shared_ends: call shared_stop
  ud2
  shared_pops: call 1f
  1: pop %rax
  ret
  shared_stops: mov %edi, %eax
  ret
  shared_stop: ud2
)");
CLEW_LABEL(shared_jumps);
CLEW_LABEL(shared_calls);
CLEW_LABEL(shared_ends);
CLEW_LABEL(shared_pops);
CLEW_LABEL(shared_stops);

// Entries are returns: what gets into the middle has made no entry.
TEST(Exits, ThatCallsOfOtherFunctionsShareAreRefused) {
  const ModuleCode code = analyse(TextCase(shared_case, shared_case_end)
                                      .function(shared_case, shared_jumps)
                                      .function(shared_jumps, shared_calls)
                                      .function(shared_calls, shared_ends)
                                      .function(shared_ends, shared_pops)
                                      .function(shared_pops, shared_stops)
                                      .function(shared_stops, shared_case_end)
                                      .text);
  EXPECT_EQ(exits_of(code, shared_case), "shared-tail");
  EXPECT_EQ(exits_of(code, shared_jumps), "+4 tail");
  EXPECT_EQ(exits_of(code, shared_calls), "shared-tail");
  EXPECT_EQ(exits_of(code, shared_pops), "+6 ret");
  // From there it is never left.
  EXPECT_EQ(exits_of(code, shared_stops), "+2 ret");
}

CLEW_TEXT_CASE(unwinder_case, R"(
  push %rbp
  mov %rsp, %rbp
  test %eax, %eax
  je 1f
  mov 0(%rbp), %rbp
  unwinder_switch: mov %rcx, %rsp
  pop %rcx
  jmp *%rcx
  1: leave
  unwinder_return: ret
)");
CLEW_LABEL(unwinder_switch);
CLEW_LABEL(unwinder_return);

// It leaves its own frame and others; its own exit is the return.
TEST(Exits, OfTheUnwinderAreNotWhereItGoesOnInAnOuterFrame) {
  const TextCase text =
      TextCase(unwinder_case, unwinder_case_end).function(unwinder_case, unwinder_case_end);
  const ModuleCode code = analyse(text.text);
  const auto offset_of = [](const uint8_t* label) {
    return static_cast<size_t>(label - unwinder_case);
  };
  EXPECT_EQ(find_stack_switches(code, *code.function_starting_at(at(unwinder_case)),
                                StackSwitch::Unwinder),
            std::vector<uint64_t>{at(unwinder_switch)});
  const std::span<const uint8_t> bytes(unwinder_case, unwinder_case_end);
  EXPECT_EQ(find_stack_switches(bytes, StackSwitch::Unwinder),
            std::vector<size_t>{offset_of(unwinder_switch)});
  EXPECT_TRUE(
      find_stack_switches(bytes.first(offset_of(unwinder_switch) + 5), StackSwitch::Unwinder)
          .empty());
  EXPECT_EQ(exits_of(code, unwinder_case),
            '+' + std::to_string(offset_of(unwinder_return)) + " ret");
}

CLEW_TEXT_CASE(other_stack_case, R"(
  mov %rcx, %rsp
  pop %rdx
  jmp *%rdx
)");

TEST(Exits, ASwitchOfStacksThatIsNotTheUnwindersIsNotUnderstood) {
  const TextCase text = TextCase(other_stack_case, other_stack_case_end)
                            .function(other_stack_case, other_stack_case_end);
  const ModuleCode code = analyse(text.text);
  EXPECT_TRUE(find_stack_switches(code, *code.function_starting_at(at(other_stack_case)),
                                  StackSwitch::Unwinder)
                  .empty());
  EXPECT_EQ(exits_of(code, other_stack_case), "indirect-jump");
}

CLEW_TEXT_CASE(cold_case, R"(
  sub $8, %rsp
  test %edi, %edi
  je cold_part
  cold_back: add $8, %rsp
  ret
  .balign 16
  cold_part: mov %esi, %eax
  test %eax, %eax
  jne cold_back
  add $8, %rsp
  ret
  cold_stop: ud2
)");
CLEW_LABEL(cold_part);
CLEW_LABEL(cold_stop);

TEST(Exits, OfAColdPartBelongToItsFunction) {
  const TextCase text = TextCase(cold_case, cold_case_end)
                            .function(cold_case, cold_part)
                            .part(cold_part, cold_case_end, 0);
  EXPECT_EQ(exits_of(text, cold_case), "+12 ret, +26 ret");
}

TEST(Exits, OfUnnamedCodeThatIsEnteredInMidFrameBelongToTheOneThatJumpsThere) {
  TextCase text = TextCase(cold_case, cold_case_end)
                      .function(cold_case, cold_part)
                      .function(cold_part, cold_case_end);
  text.text.functions[1].unnamed = true;
  text.text.functions[1].mid_frame = true;
  const ModuleCode code = analyse(text.text);
  EXPECT_EQ(exits_of(code, cold_case), "+12 ret, +26 ret");
  EXPECT_FALSE(code.function_starting_at(at(cold_part)));
}

TEST(Exits, AJumpThatLeavesItsFrameBehindIsNotUnderstood) {
  const TextCase text = TextCase(cold_case, cold_case_end)
                            .function(cold_case, cold_part)
                            .function(cold_part, cold_case_end);
  EXPECT_EQ(exits_of(text, cold_case), "unbalanced-exit");
}

CLEW_TEXT_CASE(noreturn_case, R"(
  push %rbx
  call noreturn_case
  .balign 16
  noreturn_next: lea 1(%rdi), %rax
  ret
)");
CLEW_LABEL(noreturn_next);

TEST(Exits, AFunctionThatEndsWithACallNeverReturns) {
  const TextCase text = TextCase(noreturn_case, noreturn_case_end)
                            .function(noreturn_case, noreturn_next)
                            .function(noreturn_next, noreturn_case_end);
  EXPECT_EQ(exits_of(text, noreturn_case), "");
}

CLEW_TEXT_CASE(falling_case, R"(
  mov $1, %eax
  falling_pad: nopw 0(%rax)
  nop
  falling_next: add $1, %eax
  ret
)");
CLEW_LABEL(falling_pad);
CLEW_LABEL(falling_next);

TEST(Exits, AFunctionThatRunsIntoTheNextLeavesBehindItsLastInstruction) {
  const TextCase text = TextCase(falling_case, falling_case_end)
                            .function(falling_case, falling_next)
                            .function(falling_next, falling_case_end);
  EXPECT_EQ(exits_of(text, falling_case), "+0 tail passed");
  EXPECT_EQ(exits_of(text, falling_next), "+3 ret");
  const TextCase padded = TextCase(falling_case, falling_case_end)
                              .function(falling_case, falling_pad)
                              .function(falling_next, falling_case_end);
  EXPECT_EQ(exits_of(padded, falling_case), "+0 tail passed");
}

TEST(Exits, WhatRunsOnIntoNoFunctionIsRefused) {
  const TextCase alone =
      TextCase(falling_case, falling_case_end).function(falling_case, falling_pad);
  EXPECT_EQ(exits_of(alone, falling_case), "falls-through");
  const TextCase part = TextCase(falling_case, falling_case_end)
                            .function(falling_case, falling_pad)
                            .part(falling_next, falling_case_end, 0);
  EXPECT_EQ(exits_of(part, falling_case), "falls-through");
}

// What the next function does first, and whether it may be run on into.
#define CLEW_FLAGS_CASE(name, next)                                         \
  CLEW_TEXT_CASE(name, "cmp %rdi, %rsi\n" #name "_next: " next "\n ret\n"); \
  CLEW_LABEL(name##_next)
CLEW_FLAGS_CASE(flags_branch_case, "mov %rdi, %rax\n jb . + 16");
CLEW_FLAGS_CASE(flags_adc_case, "adc %rdi, %rax");
CLEW_FLAGS_CASE(flags_adc_constant_case, "adc $7, %rax");
CLEW_FLAGS_CASE(flags_cmov_case, "cmovb %rdi, %rax");
CLEW_FLAGS_CASE(flags_setcc_case, "setb %al");
CLEW_FLAGS_CASE(flags_rotate_case, "rcl %rax");
CLEW_FLAGS_CASE(flags_adcx_case, "adcx %rdi, %rax");
CLEW_FLAGS_CASE(flags_pushed_case, "pushf\n pop %rax");
CLEW_FLAGS_CASE(flags_kept_case, "inc %rax\n setb %al");
CLEW_FLAGS_CASE(flags_far_case, "jmp 1f\n 1: setb %al");
CLEW_FLAGS_CASE(flags_dead_case, "lea 1(%rdi), %rax\n shl $2, %rax\n sub $1, %rax\n setb %al");
CLEW_FLAGS_CASE(flags_test_case, "test %rdi, %rdi\n je . + 16");
CLEW_FLAGS_CASE(flags_return_case, "vmovd %edi, %xmm0\n mov %rdi, %rax");

TEST(Exits, WhatRunsOnWithFlagsThatAreReadIsRefused) {
  const auto exits_before = [](const uint8_t* begin, const uint8_t* next, const uint8_t* end) {
    return exits_of(TextCase(begin, end).function(begin, next).function(next, end), begin);
  };
#define CLEW_EXITS(name) exits_before(name, name##_next, name##_end)
  EXPECT_EQ(CLEW_EXITS(flags_branch_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_adc_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_adc_constant_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_cmov_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_setcc_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_rotate_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_adcx_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_pushed_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_kept_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_far_case), "falls-through");
  EXPECT_EQ(CLEW_EXITS(flags_dead_case), "+0 tail passed");
  EXPECT_EQ(CLEW_EXITS(flags_test_case), "+0 tail passed");
  EXPECT_EQ(CLEW_EXITS(flags_return_case), "+0 tail passed");
#undef CLEW_EXITS
}

// The stack is not as at the entry before, or behind the last instruction.
CLEW_TEXT_CASE(falling_frame_case, R"(
  falling_push: push %rbx
  falling_pop: push %rbx
  pop %rbx
  falling_system: mov $1, %eax
  syscall
  falling_trap: mov $1, %eax
  int3
  falling_last: ret
)");
CLEW_LABEL(falling_push);
CLEW_LABEL(falling_pop);
CLEW_LABEL(falling_system);
CLEW_LABEL(falling_trap);
CLEW_LABEL(falling_last);

TEST(Exits, WhatRunsOnWithItsFrameOrBehindASystemCallOrATrapIsRefused) {
  const TextCase text = TextCase(falling_frame_case, falling_frame_case_end)
                            .function(falling_push, falling_pop)
                            .function(falling_pop, falling_system)
                            .function(falling_system, falling_trap)
                            .function(falling_trap, falling_last - 1)
                            .function(falling_last, falling_frame_case_end);
  EXPECT_EQ(exits_of(text, falling_push), "falls-through");
  EXPECT_EQ(exits_of(text, falling_pop), "falls-through");
  EXPECT_EQ(exits_of(text, falling_system), "falls-through");
  EXPECT_EQ(exits_of(text, falling_trap), "falls-through");
}

CLEW_TEXT_CASE(handler_end_case, R"(
  mov $15, %rax
  syscall
  handler_end_short: mov $15, %eax
  syscall
  handler_end_next: ret
)");
CLEW_LABEL(handler_end_short);
CLEW_LABEL(handler_end_next);

TEST(Exits, TheEndOfASignalHandlerNeverReturns) {
  const TextCase text = TextCase(handler_end_case, handler_end_case_end)
                            .function(handler_end_case, handler_end_short)
                            .function(handler_end_short, handler_end_next)
                            .function(handler_end_next, handler_end_case_end);
  EXPECT_EQ(exits_of(text, handler_end_case), "");
  EXPECT_EQ(exits_of(text, handler_end_short), "");
}

CLEW_TEXT_CASE(virtual_case, R"(
  push %rbp
  mov %rsp, %rbp
  push %rbx
  sub $24, %rsp
  call *8(%rax)
  lea -8(%rbp), %rsp
  pop %rbx
  pop %rbp
  jmp *16(%rax)
)");
CLEW_TEXT_CASE(computed_case, R"(
  push %rbx
  jmp *%rax
  pop %rbx
  computed_inner: pop %rbx
  ret
)");
CLEW_LABEL(computed_inner);
CLEW_TEXT_CASE(sum_case, R"(
  mov (%rdi), %rax
  add %rsi, %rax
  jmp *%rax
  nop
  ret
)");
CLEW_TEXT_CASE(import_case, R"(
  jmp *4096(%rip)
)");
CLEW_TEXT_CASE(realigned_case, R"(
  lea 8(%rsp), %r10
  and $-32, %rsp
  push -8(%r10)
  push %rbp
  mov %rsp, %rbp
  push %r10
  sub $64, %rsp
  mov -8(%rbp), %r10
  leave
  lea -8(%r10), %rsp
  jmp *%rdx
)");
CLEW_TEXT_CASE(probed_case, R"(
  lea -65536(%rsp), %r11
  1: sub $4096, %rsp
  orq $0, (%rsp)
  cmp %r11, %rsp
  jne 1b
  sub $16, %rsp
  add $65552, %rsp
  jmp *%rdx
)");

std::string exits_of_whole(const uint8_t* begin, const uint8_t* end) {
  return exits_of(TextCase(begin, end).function(begin, end), begin);
}

TEST(Exits, AnIndirectJumpWithTheStackAsAtEntryIsATailCall) {
  EXPECT_EQ(exits_of_whole(virtual_case, virtual_case_end), "+18 tail");
  EXPECT_EQ(exits_of_whole(import_case, import_case_end), "+0 tail");
  EXPECT_EQ(exits_of_whole(realigned_case, realigned_case_end), "+32 tail");
  EXPECT_EQ(exits_of_whole(probed_case, probed_case_end), "+36 tail");
}

TEST(Exits, AnIndirectJumpWithAFrameGoesToLabelsThatPointersName) {
  TextCase text(computed_case, computed_case_end);
  text.function(computed_case, computed_case_end);
  EXPECT_EQ(exits_of(text, computed_case), "indirect-jump");
  text.text.code_pointers = {at(computed_inner)};
  EXPECT_EQ(exits_of(text, computed_case), "+5 ret");
}

TEST(Exits, AJumpToASumIsASwitchThatWasNotRecognised) {
  EXPECT_EQ(exits_of_whole(sum_case, sum_case_end), "indirect-jump");
}

CLEW_TEXT_CASE(pushed_case, R"(
  mov %rdi, %rax
  push %rax
  ret
)");
// As gcc writes a switch without optimisation, and glibc's printf its computed goto.
CLEW_TEXT_CASE(slow_switch_case, R"(
  lea 0(,%rdi,4), %rdx
  lea slow_table(%rip), %rax
  mov (%rdx,%rax,1), %eax
  cltq
  lea slow_table(%rip), %rdx
  add %rdx, %rax
  jmp *%rax
  slow_one: ret
  slow_two: mov $1, %eax
  ret
  .pushsection .rodata
  .balign 4
  slow_table: .long slow_one - slow_table, slow_two - slow_table
  slow_table_end:
  .popsection
)");
CLEW_LABEL(slow_table);
CLEW_LABEL(slow_table_end);
CLEW_TEXT_CASE(labels_case, R"(
  lea labels_table(%rip), %rsi
  movslq (%rsi,%rdi,4), %rax
  lea labels_1(%rip), %rcx
  movl $0, 8(%rdx)
  add %rcx, %rax
  jmp *%rax
  labels_1: ret
  labels_2: mov $1, %eax
  ret
  .pushsection .rodata
  .balign 4
  labels_table: .long 0, labels_2 - labels_1, labels_2 - labels_1, 0
  labels_table_end:
  .popsection
)");
CLEW_LABEL(labels_table);
CLEW_LABEL(labels_table_end);

TEST(Exits, TablesOfUnoptimisedSwitchesAndOfLabelDifferencesAreRead) {
  const TextCase slow = TextCase(slow_switch_case, slow_switch_case_end)
                            .function(slow_switch_case, slow_switch_case_end)
                            .data(slow_table, slow_table_end);
  EXPECT_EQ(exits_of(slow, slow_switch_case), "+32 ret, +38 ret");
  const TextCase labels = TextCase(labels_case, labels_case_end)
                              .function(labels_case, labels_case_end)
                              .data(labels_table, labels_table_end);
  EXPECT_EQ(exits_of(labels, labels_case), "+30 ret, +36 ret");
}

TEST(Exits, AReturnToAPushedAddressIsAJump) {
  EXPECT_EQ(exits_of_whole(pushed_case, pushed_case_end), "unbalanced-exit");
}

// A call that does not return, before a block that others reach with another depth.
CLEW_TEXT_CASE(depths_case, R"(
  test %edi, %edi
  je 2f
  push %rbx
  test %esi, %esi
  je 1f
  pop %rbx
  jmp *%rdx
  1: call depths_case
  2: jmp *%rdx
)");

TEST(Exits, TheDepthBehindACallIsThatOfTheBranchesThatLeadThere) {
  EXPECT_EQ(exits_of_whole(depths_case, depths_case_end), "+10 tail, +17 tail");
}

}  // namespace
}  // namespace clew::code
