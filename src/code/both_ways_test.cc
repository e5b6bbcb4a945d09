// SPDX-License-Identifier: Apache-2.0
// Bytes that serve both ways, and where they may stand.
#include "code/both_ways.h"

#include <gtest/gtest.h>

#include "code/decode.h"
#include "code/planned_testing.h"

namespace clew::code {
namespace {

using abi::Register;

TEST(BothWays, AreOneInstructionFromTheFirstByteAndOneFromBehindTheFirstInstruction) {
  const std::array<uint8_t, 5> file = {0x48, 0x8b, 0x7f, 0x18, 0x90};
  for (uint8_t length = 2; length <= 4; ++length) {
    const auto mark = mark_over(file, length);
    const auto whole = decode_with_zydis(mark);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->length, 5U);
    EXPECT_EQ(whole->flow, Flow::Next);
    EXPECT_EQ(mark[0], 0xa9);  // test eax, imm32
    const auto behind = decode_with_zydis(std::span(mark).subspan(length));
    ASSERT_TRUE(behind);
    EXPECT_EQ(length + behind->length, 5U);
    EXPECT_EQ(mark[4], 0xf9);  // stc
    // When a uprobe has gone the first byte is the file's.
    EXPECT_TRUE(std::equal(mark.begin() + 1, mark.begin() + length, file.begin() + 1));
  }
}

struct AskedBothWays {
  ProbeReads reads = reads_of(Register::Rdi);
  RequestKind kind = RequestKind::Entry;
  LateUprobeDanger danger = LateUprobeDanger::Refused;
  bool may_serve_both = true;
};

Planned planned(const uint8_t* begin, const uint8_t* end, const AskedBothWays& asked) {
  return planned(begin, end,
                 {.kind = asked.kind, .reads = asked.reads, .may_serve_both = asked.may_serve_both},
                 asked.danger);
}
#define CLEW_BOTH_WAYS(name, ...) planned(name, name##_end, AskedBothWays{__VA_ARGS__})

CLEW_TEXT_CASE(both_two_case, "mov (%rdi), %edi\n mov %rdi, %rax\n lea 1(%rax,%rax), %rax\n ret");
CLEW_TEXT_CASE(both_three_case, "mov (%rdi), %rdi\n mov %rdi, %rax\n inc %rax\n nop\n ret");
CLEW_TEXT_CASE(both_four_case, "mov 8(%rdi), %rdi\n mov %rdi, %rax\n inc %rax\n ret");
CLEW_TEXT_CASE(both_padded_case, "mov 8(%rdi), %rdi\n mov %rdi, %rax\n ret");
CLEW_TEXT_CASE(
    both_tail_case,
    "mov 8(%rdi), %rdi\n .byte 0xe9, 3, 0, 0, 0\n nop\n nop\n nop\n mov %rdi, %rax\n ret");

TEST(BothWays, StandOverAFirstInstructionOfTwoToFourBytesThatAProbeMustNotMiss) {
  for (const auto& taken : {CLEW_BOTH_WAYS(both_two_case), CLEW_BOTH_WAYS(both_three_case),
                            CLEW_BOTH_WAYS(both_four_case), CLEW_BOTH_WAYS(both_padded_case),
                            CLEW_BOTH_WAYS(both_tail_case)}) {
    ASSERT_EQ(refusals(taken.plan), "");
    EXPECT_TRUE(taken.serves_both());
    EXPECT_EQ(taken.fate, LaterUprobe::HidesValues);
    EXPECT_FALSE(is_behind_first(taken.plan, taken.plan.points[0]));
  }
}

TEST(BothWays, AreOnlyWhereNothingElseIsAsGood) {
  const auto behind = CLEW_BOTH_WAYS(both_three_case, .reads = reads_of(Register::Rsi));
  EXPECT_FALSE(behind.serves_both());
  EXPECT_EQ(behind.fate, LaterUprobe::Safe);
  const auto allowed = CLEW_BOTH_WAYS(both_three_case, .danger = LateUprobeDanger::Allowed);
  EXPECT_FALSE(allowed.serves_both());
  EXPECT_EQ(allowed.fate, LaterUprobe::Dangerous);
  const auto not_asked = CLEW_BOTH_WAYS(both_three_case, .may_serve_both = false);
  EXPECT_EQ(refusals(not_asked.plan), "later-uprobe");
}

// An instruction at an offset is for who wants its flags.
TEST(BothWays, AreNotForOffsets) {
  const auto offset = CLEW_BOTH_WAYS(both_three_case, .kind = RequestKind::Offset);
  EXPECT_EQ(refusals(offset.plan), "later-uprobe");
  // Nor when another session's are there.
  const auto entry = CLEW_BOTH_WAYS(both_three_case);
  ASSERT_TRUE(entry.serves_both());
  const Request request = {RequestKind::Offset, at(both_three_case)};
  const Plan second =
      plan_windows(entry.code, {&request, 1}, entry.plan.windows, LateUprobeDanger::Refused);
  EXPECT_EQ(refusals(second), "window-in-use");
  const Request same = {RequestKind::Entry, at(both_three_case), reads_of(Register::Rdi)};
  const Plan third =
      plan_windows(entry.code, {&same, 1}, entry.plan.windows, LateUprobeDanger::Refused);
  EXPECT_EQ(refusals(third), "");
}

CLEW_TEXT_CASE(both_long_case, "mov $7, %edi\n mov %rdi, %rax\n mov %rdi, %rcx\n ret");
CLEW_TEXT_CASE(both_flags_case, "sub $1, %edi\n mov %esi, %eax\n je 1f\n mov %edx, %eax\n 1: ret");
CLEW_TEXT_CASE(both_loop_case,
               "mov (%rdi), %rdi\n 1: inc %rdi\n cmp %rsi, %rdi\n nop\n nop\n jne 1b\n ret");
CLEW_TEXT_CASE(both_late_loop_case,
               "mov (%rdi), %rdi\n nop\n nop\n nop\n nop\n 1: inc %rdi\n jne 1b\n ret");
CLEW_TEXT_CASE(both_stack_case, "mov (%rsp), %rsp\n mov %rdi, %rax\n inc %rax\n nop\n ret");
CLEW_TEXT_CASE(both_red_zone_case, "xchg %edi, -8(%rsp)\n mov %rdi, %rax\n inc %rax\n ret");
CLEW_TEXT_CASE(both_call_case, "mov (%rdi), %rdi\n .byte 0xe8, 0, 0, 0, 0\n nop\n nop\n ret");

TEST(BothWays, AreNowhereElse) {
  // Longer than four bytes; flags that somebody reads.
  EXPECT_EQ(refusals(CLEW_BOTH_WAYS(both_long_case).plan), "later-uprobe");
  EXPECT_EQ(refusals(CLEW_BOTH_WAYS(both_flags_case).plan), "later-uprobe");
  // Something else leads behind the first instruction, or into the jump.
  EXPECT_EQ(refusals(CLEW_BOTH_WAYS(both_loop_case).plan), "later-uprobe");
  EXPECT_EQ(refusals(CLEW_BOTH_WAYS(both_late_loop_case).plan), "later-uprobe");
  // What is not done twice, and not done by a probe that pushes.
  const auto stack = CLEW_BOTH_WAYS(both_stack_case, .reads = kReadsEverything);
  EXPECT_EQ(refusals(stack.plan), "later-uprobe");
  EXPECT_EQ(refusals(CLEW_BOTH_WAYS(both_red_zone_case).plan), "later-uprobe");
  // A call would come back into the jump.
  EXPECT_EQ(refusals(CLEW_BOTH_WAYS(both_call_case).plan), "later-uprobe");
}

// The count stands behind the first instruction, and misses nobody.
TEST(BothWays, AreSharedByProbesOfASession) {
  const TextCase text =
      TextCase(both_three_case, both_three_case_end).function(both_three_case, both_three_case_end);
  const ModuleCode code = analyse(text.text);
  const std::vector<Request> requests = {
      {RequestKind::Entry, at(both_three_case), kReadsNothing},
      {RequestKind::Entry, at(both_three_case), reads_of(Register::Rdi)},
      {RequestKind::Exits, at(both_three_case)}};
  const Plan plan = plan_windows(code, requests, {}, LateUprobeDanger::Refused);
  ASSERT_EQ(refusals(plan), "");
  EXPECT_EQ(broken_plan(code, plan), "");
  ASSERT_EQ(plan.windows.size(), 1U);
  EXPECT_EQ(plan.windows[0].window_class, WindowClass::BothWays);
  ASSERT_EQ(plan.points.size(), 3U);
  EXPECT_EQ(plan.points[0].request, 1U);
  EXPECT_EQ(plan.points[0].instruction, 0U);
  EXPECT_EQ(plan.points[1].request, 0U);
  EXPECT_EQ(plan.points[1].instruction, 1U);
}

}  // namespace
}  // namespace clew::code
