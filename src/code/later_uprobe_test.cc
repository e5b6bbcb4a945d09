// SPDX-License-Identifier: Apache-2.0
#include "code/later_uprobe.h"

#include <gtest/gtest.h>

#include "code/text_cases.h"
#include "code/windows.h"

namespace clew::code {
namespace {

LaterUprobe fate_of(const uint8_t* begin, const uint8_t* end) {
  const ModuleCode code = analyse(TextCase(begin, end).function(begin, end).text);
  const Request request = {RequestKind::Entry, at(begin)};
  const Plan plan = plan_windows(code, {&request, 1});
  EXPECT_TRUE(plan.refusals.empty());
  return later_uprobe(code, plan.windows, at(begin));
}
#define CLEW_FATE(name) fate_of(name, name##_end)

CLEW_TEXT_CASE(fate_push_case, "push %rbp\n mov %rsp, %rbp\n mov %rdi, %rax\n pop %rbp\n ret");
CLEW_TEXT_CASE(fate_pad_case, "endbr64\n mov (%rdi), %rdi\n mov %rdi, %rax\n ret");

TEST(LaterUprobe, IsSafeWhereTheFirstInstructionStaysOrIsALandingPad) {
  EXPECT_EQ(CLEW_FATE(fate_push_case), LaterUprobe::Safe);
  EXPECT_EQ(CLEW_FATE(fate_pad_case), LaterUprobe::Safe);
}

CLEW_TEXT_CASE(fate_argument_case, "mov (%rdi), %rdi\n mov %rdi, %rax\n ret");
CLEW_TEXT_CASE(fate_store_case, "mov %esi, (%rdi)\n mov %rdi, %rax\n ret");
CLEW_TEXT_CASE(fate_no_room_case, "lea 1(%rdi), %rax\n ret");

TEST(LaterUprobe, IsDangerousWhereTheJumpHidesTheSecondInstruction) {
  EXPECT_EQ(CLEW_FATE(fate_argument_case), LaterUprobe::Dangerous);
  EXPECT_EQ(CLEW_FATE(fate_store_case), LaterUprobe::Dangerous);
  EXPECT_EQ(CLEW_FATE(fate_no_room_case), LaterUprobe::Dangerous);
}

CLEW_TEXT_CASE(fate_long_case, "movl $7, 4(%rdi)\n mov %rdi, %rax\n ret");
CLEW_TEXT_CASE(fate_jump_case, "jmp *%rdi\n nop\n nop\n nop\n nop");

// When the uprobe leaves, the file's first byte stands in front of the rest of our jump.
TEST(LaterUprobe, IsDangerousWhereItsFirstByteIsNotThatOfTheJump) {
  EXPECT_EQ(CLEW_FATE(fate_long_case), LaterUprobe::Dangerous);
  EXPECT_EQ(CLEW_FATE(fate_jump_case), LaterUprobe::Dangerous);
}

CLEW_TEXT_CASE(fate_return_case, "ret\n nop\n nop\n nop\n nop");
CLEW_TEXT_CASE(fate_same_case, ".byte 0xe9, 0, 0, 0, 0\n ret");

TEST(LaterUprobe, HidesTheProbeWhereTheInstructionLeadsAwayAndItsFirstByteDoesNoHarm) {
  EXPECT_EQ(CLEW_FATE(fate_return_case), LaterUprobe::HidesProbe);
  EXPECT_EQ(CLEW_FATE(fate_same_case), LaterUprobe::HidesProbe);
}

TEST(LaterUprobe, IsSafeWhereNoWindowIs) {
  const TextCase text = TextCase(fate_store_case, fate_store_case_end);
  EXPECT_EQ(later_uprobe(analyse(text.text), {}, at(fate_store_case)), LaterUprobe::Safe);
}

}  // namespace
}  // namespace clew::code
