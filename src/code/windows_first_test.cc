// SPDX-License-Identifier: Apache-2.0
// Windows behind a first instruction that is done once, and what is refused when no jump may lie
// over one.
#include <gtest/gtest.h>

#include "code/planned_testing.h"

namespace clew::code {
namespace {

using abi::Register;

struct Asked {
  RequestKind kind = RequestKind::Entry;
  ProbeReads reads = kReadsNothing;
  LateUprobeDanger danger = LateUprobeDanger::Refused;
  bool may_serve_both = true;
};

Planned planned(const uint8_t* begin, const uint8_t* end, const Asked& asked) {
  return planned(begin, end,
                 {.kind = asked.kind, .reads = asked.reads, .may_serve_both = asked.may_serve_both},
                 asked.danger);
}
#define CLEW_PLANNED(name, ...) planned(name, name##_end, Asked{__VA_ARGS__})

CLEW_TEXT_CASE(first_argument_case, "mov (%rdi), %rdi\n mov %rdi, %rax\n inc %rax\n ret");

TEST(FirstInstruction, IsDoneOnceForProbesThatDoNotReadWhatItChanges) {
  const auto behind = CLEW_PLANNED(first_argument_case, .reads = reads_of(Register::Rsi));
  ASSERT_EQ(refusals(behind.plan), "");
  EXPECT_EQ(behind.plan.windows[0].address, at(first_argument_case) + 3);
  EXPECT_EQ(behind.plan.windows[0].kept_bytes, 0U);
  EXPECT_EQ(behind.plan.points[0].address, at(first_argument_case));
  EXPECT_FALSE(behind.plan.points[0].keeps_flags);
  EXPECT_EQ(behind.fate, LaterUprobe::Safe);
}

TEST(FirstInstruction, IsCoveredForProbesThatReadWhatItChangesOnlyWhereThatIsAllowed) {
  const auto refused =
      CLEW_PLANNED(first_argument_case, .reads = reads_of(Register::Rdi), .may_serve_both = false);
  EXPECT_EQ(refusals(refused.plan), "later-uprobe");
  const auto allowed = CLEW_PLANNED(first_argument_case, .reads = reads_of(Register::Rdi),
                                    .danger = LateUprobeDanger::Allowed);
  ASSERT_EQ(refusals(allowed.plan), "");
  EXPECT_EQ(allowed.plan.windows[0].address, at(first_argument_case));
  EXPECT_EQ(allowed.fate, LaterUprobe::Dangerous);
}

CLEW_TEXT_CASE(first_thunk_case, "sub $16, %rdi\n .byte 0xe9, 0, 0, 0, 0\n mov (%rdi), %rax\n ret");

TEST(FirstInstruction, IsTakenBackForAllProbesWhenItAddsAConstant) {
  const auto kept = CLEW_PLANNED(first_thunk_case, .reads = kReadsEverything);
  ASSERT_EQ(refusals(kept.plan), "");
  EXPECT_EQ(kept.plan.windows[0].kept_bytes, 4U);
  EXPECT_EQ(kept.fate, LaterUprobe::Safe);
}

CLEW_TEXT_CASE(first_loop_case,
               "movl $7, 4(%rdi)\n 1: add $1, %rsi\n cmp %rsi, %rdi\n jne 1b\n ret");

TEST(FirstInstruction, IsNotDoneOnceWhereALoopComesBackBehindIt) {
  EXPECT_EQ(refusals(CLEW_PLANNED(first_loop_case).plan), "later-uprobe");
}

CLEW_TEXT_CASE(first_whole_loop_case,
               "add $1, %esi\n mov %rdi, %rax\n cmp %esi, %eax\n jne first_whole_loop_case\n ret");

TEST(FirstInstruction, IsNoEntryWhereALoopComesBackToIt) {
  EXPECT_EQ(refusals(CLEW_PLANNED(first_whole_loop_case).plan), "entry-is-loop-head");
}

CLEW_TEXT_CASE(first_switch_case,
               "mov (%rsi), %esi\n mov %rdi, %rax\n mov %rsp, %rcx\n and $-16, %rsp\n "
               "jmp *%rdx\n mov %rcx, %rsp\n ret");

TEST(FirstInstruction, IsNotDoneOnceWhereAnUnknownJumpMayComeBackBehindIt) {
  EXPECT_EQ(refusals(CLEW_PLANNED(first_switch_case).plan), "later-uprobe");
}

CLEW_TEXT_CASE(first_flags_case, "sub $1, %edi\n mov %esi, %eax\n je 1f\n mov %edx, %eax\n 1: ret");

TEST(FirstInstruction, LeavesFlagsThatAreKept) {
  const auto behind = CLEW_PLANNED(first_flags_case);
  ASSERT_EQ(refusals(behind.plan), "");
  EXPECT_EQ(behind.plan.windows[0].address, at(first_flags_case) + 3);
  EXPECT_TRUE(behind.plan.points[0].keeps_flags);
}

// Five bytes, so that a jump would fit: but the file's first byte comes back in front of its rest.
CLEW_TEXT_CASE(first_long_case, "mov $7, %edi\n mov %rdi, %rax\n mov %rdi, %rcx\n ret");

TEST(FirstInstruction, StaysAlsoWhereItIsAsLongAsAJump) {
  const auto behind = CLEW_PLANNED(first_long_case);
  ASSERT_EQ(refusals(behind.plan), "");
  EXPECT_EQ(behind.plan.windows[0].address, at(first_long_case) + 5);
  const auto refused = CLEW_PLANNED(first_long_case, .reads = reads_of(Register::Rdi));
  EXPECT_EQ(refusals(refused.plan), "later-uprobe");
}

CLEW_TEXT_CASE(first_padded_case, "lea 1(%rdi), %rax\n ret");

TEST(FirstInstruction, OfFourBytesLeavesTheReturnAndPaddingToTheJump) {
  for (const RequestKind kind : {RequestKind::Entry, RequestKind::Exits}) {
    const auto behind = CLEW_PLANNED(first_padded_case, .kind = kind);
    ASSERT_EQ(refusals(behind.plan), "");
    EXPECT_EQ(behind.plan.windows[0].address, at(first_padded_case) + 4);
    EXPECT_EQ(behind.fate, LaterUprobe::Safe);
  }
}

CLEW_TEXT_CASE(first_shared_case, "lea 42(%rdi,%rdi,2), %rax\n nop\n ret");

// The exit is placed first, in the only room that the entry has, too.
TEST(FirstInstruction, LeavesRoomForTheEntryAndTheExitTogether) {
  TextCase text(first_shared_case, first_shared_case_end + kPaddingBytes);
  text.function(first_shared_case, first_shared_case_end);
  const ModuleCode code = analyse(text.text);
  const std::vector<Request> both = {{RequestKind::Entry, at(first_shared_case), kReadsNothing},
                                     exits(first_shared_case)};
  const Plan plan = plan_windows(code, both, {}, LateUprobeDanger::Refused);
  EXPECT_EQ(refusals(plan), "");
  EXPECT_EQ(broken_plan(code, plan), "");
  ASSERT_EQ(plan.windows.size(), 1U);
  EXPECT_EQ(plan.windows[0].address, at(first_shared_case) + 5);
  // Where the exit's window is another session's, it stays as it is.
  const Plan exit = plan_windows(code, {&both[1], 1}, {}, LateUprobeDanger::Refused);
  EXPECT_EQ(refusals(plan_windows(code, both, exit.windows, LateUprobeDanger::Refused)),
            "later-uprobe");
}

CLEW_TEXT_CASE(first_hop_case, "mov %rdi, %rax\n 1: inc %rax\n cmp $9, %rax\n jb 1b\n ret");

TEST(FirstInstruction, IsNotUnderAShortJumpEither) {
  EXPECT_EQ(refusals(CLEW_PLANNED(first_hop_case).plan), "later-uprobe");
  const auto allowed = CLEW_PLANNED(first_hop_case, .danger = LateUprobeDanger::Allowed);
  ASSERT_EQ(refusals(allowed.plan), "");
  EXPECT_EQ(allowed.plan.windows[0].window_class, WindowClass::ShortJump);
}

CLEW_LABEL(first_crowded_next);
CLEW_TEXT_CASE(first_crowded_case,
               "lea 1(%rdi), %rax\n ret\n first_crowded_next: mov %rdi, %rax\n mov %rsi, %rax\n "
               "mov %rdx, %rax\n jmp first_crowded_next");

TEST(FirstInstruction, IsNotUnderTheJumpOfAnExit) {
  TextCase text(first_crowded_case, first_crowded_case_end);
  text.function(first_crowded_case, first_crowded_next);
  text.function(first_crowded_next, first_crowded_case_end);
  const ModuleCode code = analyse(text.text);
  const Request request = exits(first_crowded_case);
  EXPECT_EQ(refusals(plan_windows(code, {&request, 1})), "");
  EXPECT_EQ(refusals(plan_windows(code, {&request, 1}, {}, LateUprobeDanger::Refused)),
            "later-uprobe");
}

CLEW_TEXT_CASE(first_return_case, "ret");
CLEW_TEXT_CASE(first_jump_case, ".byte 0xe9, 0, 0, 0, 0\n mov %rdi, %rax\n ret");
CLEW_TEXT_CASE(first_short_jump_case, "jmp 1f\n nop\n nop\n nop\n nop\n 1: mov %rdi, %rax\n ret");
CLEW_TEXT_CASE(first_far_jump_case, "jmp *0x1000(%rip)\n nop\n nop");

TEST(FirstInstruction, MayBeCoveredWhereItLeadsAwayAndItsFirstByteDoesNoHarm) {
  for (const auto& taken : {CLEW_PLANNED(first_return_case), CLEW_PLANNED(first_jump_case)}) {
    EXPECT_EQ(refusals(taken.plan), "");
    EXPECT_EQ(taken.fate, LaterUprobe::HidesProbe);
  }
  const auto hopping = CLEW_PLANNED(first_short_jump_case);
  ASSERT_EQ(refusals(hopping.plan), "");
  EXPECT_EQ(hopping.plan.windows[0].window_class, WindowClass::ShortJump);
  EXPECT_EQ(hopping.fate, LaterUprobe::HidesProbe);
  EXPECT_EQ(refusals(CLEW_PLANNED(first_far_jump_case).plan), "later-uprobe");
}

// One wants the argument, the other does not.
TEST(FirstInstruction, IsForEachProbeOfASessionAsThatReads) {
  TextCase text(first_argument_case, first_argument_case_end);
  text.function(first_argument_case, first_argument_case_end);
  const ModuleCode code = analyse(text.text);
  const std::vector<Request> both = {
      {RequestKind::Entry, at(first_argument_case), kReadsNothing},
      {RequestKind::Entry, at(first_argument_case), reads_of(Register::Rdi), false}};
  const Plan refused = plan_windows(code, both, {}, LateUprobeDanger::Refused);
  EXPECT_EQ(refusals(refused), "later-uprobe");
  EXPECT_EQ(refused.refusals[0].request, 1U);
  EXPECT_EQ(refused.points.size(), 1U);
  const Plan allowed = plan_windows(code, both, {}, LateUprobeDanger::Allowed);
  EXPECT_EQ(refusals(allowed), "");
  ASSERT_EQ(allowed.windows.size(), 1U);
  EXPECT_EQ(allowed.points[0].instruction, 0U);
  EXPECT_EQ(allowed.points[1].instruction, 1U);
  EXPECT_EQ(broken_plan(code, allowed), "");
  // Another session finds the window behind the first instruction.
  const Plan again = plan_windows(code, {both.data(), 1}, refused.windows);
  ASSERT_EQ(again.windows.size(), 1U);
  EXPECT_EQ(again.windows[0].address, refused.windows[0].address);
}

CLEW_TEXT_CASE(first_before_probe_case,
               "mov %edi, %eax\n nop\n inc %eax\n inc %eax\n inc %eax\n inc %eax\n ret");

// A trap there would be in the middle of the jump.
TEST(FirstInstruction, HasNoJumpBehindItWhereAStaticProbeIs) {
  const uint8_t* const begin = first_before_probe_case;
  const uint8_t* const end = first_before_probe_case_end;
  const TextCase text = TextCase(begin, end + kPaddingBytes).function(begin, end);
  ModuleCode code = analyse(text.text);
  const Request request = {
      .kind = RequestKind::Entry, .address = at(begin), .reads = kReadsNothing};
  const auto plan = [&](LateUprobeDanger danger) {
    return plan_windows(code, {&request, 1}, {}, danger);
  };
  EXPECT_EQ(refusals(plan(LateUprobeDanger::Refused)), "");
  EXPECT_EQ(plan(LateUprobeDanger::Refused).windows.at(0).jump_address(), at(begin) + 2);
  code.set_probe_places({at(begin) + 2});
  EXPECT_EQ(refusals(plan(LateUprobeDanger::Refused)), "later-uprobe");
  EXPECT_EQ(refusals(plan(LateUprobeDanger::Allowed)), "");
  code.set_probe_places({at(begin) + 7});  // Behind the jump.
  EXPECT_EQ(refusals(plan(LateUprobeDanger::Refused)), "");
}

}  // namespace
}  // namespace clew::code
