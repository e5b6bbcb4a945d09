// SPDX-License-Identifier: Apache-2.0
// Which windows are taken, where they lie, and why others are refused.
#include "code/windows.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "code/text_cases.h"
#include "code/window_checks.h"
#include "code/windows_testing.h"

namespace clew::code {
namespace {

CLEW_TEXT_CASE(plain_case, R"(
  push %rbp
  mov %rsp, %rbp
  mov %rdi, %rax
  pop %rbp
  ret
)");

TEST(Windows, APlainFunctionTakesItsEntryInItsOwnBytes) {
  const Plan plan =
      plan_of(TextCase(plain_case, plain_case_end).function(plain_case, plain_case_end),
              {entry(plain_case)});
  ASSERT_EQ(refusals(plan), "");
  ASSERT_EQ(plan.windows.size(), 1U);
  const Window& window = plan.windows[0];
  EXPECT_EQ(window.address, at(plain_case));
  EXPECT_EQ(window.size_bytes, 7);  // push, mov, mov: instructions are whole.
  EXPECT_EQ(window.window_class, WindowClass::OwnBytes);
  EXPECT_TRUE(window.falls_through);
  EXPECT_TRUE(std::equal(plain_case, plain_case + 7, window.original.begin()));
}

TEST(Windows, AnExitThatOverlapsTheEntryIsMergedIntoItsWindow) {
  const Plan plan =
      plan_of(TextCase(plain_case, plain_case_end).function(plain_case, plain_case_end),
              {exits(plain_case), entry(plain_case)});
  ASSERT_EQ(refusals(plan), "");
  ASSERT_EQ(plan.windows.size(), 1U);
  EXPECT_EQ(plan.windows[0].size_bytes, 9);
  EXPECT_FALSE(plan.windows[0].falls_through);
  ASSERT_EQ(plan.points.size(), 2U);
  EXPECT_EQ(plan.points[0].kind, PointKind::Entry);
  EXPECT_EQ(plan.points[0].instruction, 0);
  EXPECT_EQ(plan.points[0].request, 1U);
  EXPECT_EQ(plan.points[1].kind, PointKind::Exit);
  EXPECT_EQ(plan.points[1].instruction, 4);
}

CLEW_TEXT_CASE(marked_case, R"(
  endbr64
  mov %rdi, %rax
  add $1, %rax
  ret
)");

TEST(Windows, TheEntryIsBehindEndbr64) {
  const Plan plan =
      plan_of(TextCase(marked_case, marked_case_end).function(marked_case, marked_case_end),
              {entry(marked_case), offset(marked_case)});
  ASSERT_EQ(refusals(plan), "");
  EXPECT_EQ(plan.windows[0].address, at(marked_case) + 4);
  EXPECT_EQ(plan.points.size(), 2U);  // A line's first address may be the endbr64.
}

// Research note, section 3, test 1: tiny functions without padding between them.
CLEW_TEXT_CASE(packed_case, R"(
  packed_ret: ret
  packed_xor: xor %eax, %eax
  ret
  packed_load: mov (%rdi), %eax
  ret
)");
CLEW_LABEL(packed_ret);
CLEW_LABEL(packed_xor);
CLEW_LABEL(packed_load);

TextCase packed(const uint8_t* end) {
  return TextCase(packed_case, end)
      .function(packed_ret, packed_xor)
      .function(packed_xor, packed_load)
      .function(packed_load, packed_case_end);
}

const std::vector<Request>& packed_requests() {
  static const std::vector<Request> requests = {entry(packed_ret),  exits(packed_ret),
                                                entry(packed_xor),  exits(packed_xor),
                                                entry(packed_load), exits(packed_load)};
  return requests;
}

TEST(Windows, TinyFunctionsWithoutAnyPaddingAreRefused) {
  const Plan plan = plan_of(packed(packed_case_end), packed_requests());
  EXPECT_EQ(refusals(plan),
            "too-short no-room-for-exit too-short no-room-for-exit too-short no-room-for-exit");
  EXPECT_TRUE(plan.windows.empty());
}

TEST(Windows, PaddingBehindATinyFunctionIsUsed) {
  const Plan plan = plan_of(packed(packed_case_end + 2), packed_requests());
  ASSERT_EQ(plan.windows.size(), 1U);
  EXPECT_EQ(plan.windows[0].address, at(packed_load));
  EXPECT_EQ(plan.windows[0].window_class, WindowClass::OwnBytesAndPadding);
  EXPECT_EQ(plan.windows[0].size_bytes, 3);
  EXPECT_EQ(plan.points.size(), 2U);  // Its entry and its exit.
}

TEST(Windows, AShortJumpUsesPaddingNearbyAndEachPlaceOnce) {
  // 2 bytes complete packed_load's own window, 5 more take one hop: for packed_xor.
  const Plan plan = plan_of(packed(packed_case_end + 7), packed_requests());
  ASSERT_EQ(plan.windows.size(), 2U);
  EXPECT_EQ(plan.windows[0].address, at(packed_xor));
  EXPECT_EQ(plan.windows[0].window_class, WindowClass::ShortJump);
  EXPECT_EQ(plan.windows[0].hop_address, at(packed_case_end) + 2);
  EXPECT_EQ(plan.windows[0].size_bytes, 3);
  EXPECT_EQ(refusals(plan), "too-short no-room-for-exit");  // packed_ret has one byte.
}

TEST(Windows, AShortJumpNeedsFiveDeadBytes) {
  const Plan near = plan_of(packed(packed_case_end + 7), {entry(packed_xor), entry(packed_load)});
  EXPECT_EQ(refusals(near), "");
  const Plan without =
      plan_of(packed(packed_case_end + 6), {entry(packed_xor), entry(packed_load)});
  EXPECT_EQ(refusals(without), "too-short");
}

// The window may itself lie in what is padding behind a return.
CLEW_TEXT_CASE(nops_case, "ret\n nop\n nop\n nop\n nops_behind: .fill 6,1,0x90\n");
CLEW_LABEL(nops_behind);

TEST(Windows, AShortJumpDoesNotLeadIntoItsOwnWindow) {
  const Plan plan = plan_of(TextCase(nops_case, nops_case_end).function(nops_case, nops_behind),
                            {offset(nops_case + 2)});
  EXPECT_EQ(refusals(plan), "crosses-function");
}

// A return that is a branch target, with one byte of padding and another function behind it.
CLEW_TEXT_CASE(one_pad_case, R"(
  one_pad_first: test %rdi, %rdi
  je 1f
  mov %rdi, %rax
  1: ret
  nop
  one_pad_second: mov %rdi, %rax
  imul %rdi, %rax
  ret
  one_pad_dead: .fill 5, 1, 0xcc
  one_pad_dead_end:
)");
CLEW_LABEL(one_pad_second);
CLEW_LABEL(one_pad_dead);
CLEW_LABEL(one_pad_dead_end);

TEST(Windows, AShortJumpMayCoverPaddingBehindAReturn) {
  const auto plan_until = [](const uint8_t* end) {
    return plan_of(TextCase(one_pad_case, end)
                       .function(one_pad_case, one_pad_second)
                       .function(one_pad_second, one_pad_dead),
                   {exits(one_pad_case)});
  };
  const Plan plan = plan_until(one_pad_dead_end);
  ASSERT_EQ(refusals(plan), "");
  ASSERT_EQ(plan.windows.size(), 1U);
  EXPECT_EQ(plan.windows[0].window_class, WindowClass::ShortJump);
  EXPECT_EQ(plan.windows[0].address, at(one_pad_second) - 2);
  EXPECT_EQ(plan.windows[0].size_bytes, 1);
  EXPECT_EQ(plan.windows[0].original[1], 0x90);
  EXPECT_EQ(plan.windows[0].hop_address, at(one_pad_dead));
  // Without the dead bytes, on the ways to it.
  EXPECT_EQ(refusals(plan_until(one_pad_dead)), "");
  EXPECT_EQ(plan_until(one_pad_dead).points.size(), 2U);
}

// Test 3: loops to entry + 1 .. + 4, and to + 0 and + 5.
#define CLEW_LOOP_CASE(name, before) \
  CLEW_TEXT_CASE(                    \
      name,                          \
      before "77: .fill 9,1,0x90\n dec %edi\n jnz 77b\n mov %rdi,%rax\n mov %rdi,%rcx\n ret\n")
CLEW_LOOP_CASE(loop_0_case, "");
CLEW_LOOP_CASE(loop_1_case, ".byte 0x57\n");
CLEW_LOOP_CASE(loop_2_case, ".byte 0x89,0xf8\n");
CLEW_LOOP_CASE(loop_3_case, ".byte 0x48,0x89,0xf8\n");
CLEW_LOOP_CASE(loop_4_case, ".byte 0x48,0x83,0xec,0x08\n");
CLEW_LOOP_CASE(loop_5_case, ".byte 0xb8,0,0,0,0\n");

TEST(Windows, ALoopIntoTheWindowIsRefusedAndOneBehindItIsNot) {
  const auto refusal = [](const uint8_t* begin, const uint8_t* end) {
    return refusals(plan_of(TextCase(begin, end).function(begin, end), {entry(begin)}));
  };
  EXPECT_EQ(refusal(loop_0_case, loop_0_case_end), "entry-is-loop-head");
  EXPECT_EQ(refusal(loop_1_case, loop_1_case_end), "branch-into-window");
  EXPECT_EQ(refusal(loop_2_case, loop_2_case_end), "branch-into-window");
  EXPECT_EQ(refusal(loop_3_case, loop_3_case_end), "branch-into-window");
  EXPECT_EQ(refusal(loop_4_case, loop_4_case_end), "branch-into-window");
  EXPECT_EQ(refusal(loop_5_case, loop_5_case_end), "");
}

// Test 4.
CLEW_TEXT_CASE(foreign_case, R"(
  foreign_victim: mov %rdi, %rax
  foreign_inside: add $1, %rax
  ret
  foreign_jumper: mov %rsi, %rax
  jmp foreign_inside
)");
CLEW_LABEL(foreign_victim);
CLEW_LABEL(foreign_inside);
CLEW_LABEL(foreign_jumper);

// As Go's compiler begins its functions; the second one has a loop to its entry as well.
#define CLEW_GO_CASE(name, before)                                             \
  CLEW_TEXT_CASE(name,                                                         \
                 "77: lea -0x88(%rsp),%r12\n cmp 0x10(%r14),%r12\n jbe 78f\n"  \
                 " sub $0x108,%rsp\n mov %rax,%rcx\n add $0x108,%rsp\n" before \
                 " ret\n"                                                      \
                 "78: mov %rax,0x8(%rsp)\n call . + 64\n mov 0x8(%rsp),%rax\n jmp 77b\n")
CLEW_GO_CASE(growing_case, "");
CLEW_GO_CASE(looping_case, "dec %rcx\n jnz 77b\n");

TEST(Windows, AnEntryThatIsComeBackToForALargerStackIsTakenBehindTheCheck) {
  const Plan plan =
      plan_of(TextCase(growing_case, growing_case_end).function(growing_case, growing_case_end),
              {entry(growing_case)});
  ASSERT_EQ(refusals(plan), "");
  EXPECT_EQ(plan.windows[0].address, at(growing_case) + 8 + 4 + 2);
  EXPECT_EQ(plan.points[0].kind, PointKind::Entry);
  EXPECT_EQ(plan.points[0].instruction, 0);
  EXPECT_EQ(refusals(plan_of(
                TextCase(looping_case, looping_case_end).function(looping_case, looping_case_end),
                {entry(looping_case)})),
            "entry-is-loop-head");
}

CLEW_TEXT_CASE(bottom_case, "nop\n call . + 64\n nop\n");

TEST(Windows, TheBottomOfAGoroutinesStackIsReturnedToBehindItsFirstByte) {
  const Plan plan =
      plan_of(TextCase(bottom_case, bottom_case_end).function(bottom_case, bottom_case_end),
              {entry(bottom_case)});
  EXPECT_EQ(refusals(plan), "branch-into-window");
}

TEST(Windows, AJumpFromAnotherFunctionIntoTheWindowIsRefused) {
  const Plan plan = plan_of(TextCase(foreign_case, foreign_case_end)
                                .function(foreign_victim, foreign_jumper)
                                .function(foreign_jumper, foreign_case_end),
                            {entry(foreign_victim), entry(foreign_jumper)});
  EXPECT_EQ(refusals(plan), "branch-into-window");
  ASSERT_EQ(plan.windows.size(), 1U);
  EXPECT_EQ(plan.windows[0].address, at(foreign_jumper));
}

TEST(Windows, LandingPadsAndCodePointersAreBranchTargets) {
  TextCase text(plain_case, plain_case_end);
  text.function(plain_case, plain_case_end);
  text.text.landing_pads = {at(plain_case) + 4};
  EXPECT_EQ(refusals(plan_of(text, {entry(plain_case)})), "branch-into-window");
  text.text.landing_pads.clear();
  text.text.code_pointers = {at(plain_case) + 1};
  EXPECT_EQ(refusals(plan_of(text, {entry(plain_case)})), "branch-into-window");
}

TEST(Windows, ARestartableSequenceIsNotTouched) {
  TextCase text(plain_case, plain_case_end);
  text.function(plain_case, plain_case_end);
  text.text.rseq = {{at(plain_case) + 6, at(plain_case) + 20}};
  EXPECT_EQ(refusals(plan_of(text, {entry(plain_case)})), "rseq");
}

// Test 9: a switch whose table leads to entry + 2, and one whose table leads to entry + 5.
#define CLEW_SWITCH_CASE(name, before)                                                     \
  CLEW_TEXT_CASE(name, before #name                                                        \
                 "_target: lea " #name                                                     \
                 "_table(%rip), %rdx\n"                                                    \
                 "movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n notrack jmp *%rax\n" #name \
                 "_other: mov %rsi, %rax\n add $4, %rax\n ret\n"                           \
                 ".pushsection .rodata\n.balign 4\n" #name "_table:\n.long " #name         \
                 "_target - " #name "_table, " #name "_other - " #name "_table\n" #name    \
                 "_table_end:\n.popsection\n");                                            \
  CLEW_LABEL(name##_table);                                                                \
  CLEW_LABEL(name##_table_end);                                                            \
  CLEW_LABEL(name##_other)
CLEW_SWITCH_CASE(switch_2_case, ".byte 0x89,0xf8\n");
CLEW_SWITCH_CASE(switch_5_case, ".byte 0xb8,0,0,0,0\n");

TEST(Windows, TargetsOfSwitchTablesAreBranchTargets) {
  const TextCase into = TextCase(switch_2_case, switch_2_case_end)
                            .function(switch_2_case, switch_2_case_end)
                            .data(switch_2_case_table, switch_2_case_table_end);
  EXPECT_EQ(refusals(plan_of(into, {entry(switch_2_case), exits(switch_2_case)})),
            "branch-into-window");
  const TextCase behind = TextCase(switch_5_case, switch_5_case_end)
                              .function(switch_5_case, switch_5_case_end)
                              .data(switch_5_case_table, switch_5_case_table_end);
  const Plan plan = plan_of(behind, {entry(switch_5_case), exits(switch_5_case)});
  EXPECT_EQ(refusals(plan), "");
  // The exit's window begins at the switch's target, not before.
  ASSERT_EQ(plan.windows.size(), 2U);
  EXPECT_GE(plan.windows[1].address, at(switch_5_case_other));
}

TEST(Windows, ASwitchWithAnUnknownTableRefusesTheExits) {
  const TextCase text =
      TextCase(switch_5_case, switch_5_case_end).function(switch_5_case, switch_5_case_end);
  EXPECT_EQ(refusals(plan_of(text, {exits(switch_5_case)})), "indirect-jump");
}

// Test 7, and what else cannot be displaced.
CLEW_TEXT_CASE(getpc_case, R"(
  call 1f
  1: pop %rax
  ret
)");
CLEW_TEXT_CASE(early_call_case, R"(
  call *%rax
  mov %rdi, %rdx
  ret
)");
CLEW_TEXT_CASE(syscall_case, R"(
  mov %edi, %eax
  syscall
  cmp $-4095, %rax
  ret
)");
CLEW_TEXT_CASE(signal_return_case, R"(
  mov $15, %rax
  syscall
)");
CLEW_TEXT_CASE(bad_case, R"(
  mov $1, %eax
  .byte 0x06
  mov %rax, %rdx
  add $8, %rdx
  ret
)");

std::string entry_refusal(const uint8_t* begin, const uint8_t* end) {
  return refusals(plan_of(TextCase(begin, end).function(begin, end), {entry(begin)}));
}

TEST(Windows, ACallMayEndAWindowButNotStandInIt) {
  EXPECT_EQ(entry_refusal(getpc_case, getpc_case_end), "");
  EXPECT_EQ(entry_refusal(early_call_case, early_call_case_end), "branch-into-window");
}

TEST(Windows, SystemCallsAndUnknownInstructionsStayWhereTheyAre) {
  EXPECT_EQ(entry_refusal(syscall_case, syscall_case_end), "syscall-in-window");
  // Signal frames are known by these bytes.
  EXPECT_EQ(entry_refusal(signal_return_case, signal_return_case_end), "syscall-in-window");
  EXPECT_EQ(entry_refusal(bad_case, bad_case_end), "undecodable");
}

CLEW_TEXT_CASE(data_case, R"(
  movzbl data_case+3(%rip), %eax
  mov %rdi, %rdx
  ret
)");

TEST(Windows, BytesThatTheProgramReadsAreNotOverwritten) {
  EXPECT_EQ(entry_refusal(data_case, data_case_end), "data-in-text");
}

CLEW_TEXT_CASE(offsets_case, R"(
  push %rbx
  push %rcx
  push %rdx
  offsets_mid: mov %rdi, %rbx
  mov %rsi, %rcx
  pop %rdx
  pop %rcx
  pop %rbx
  ret
)");
CLEW_LABEL(offsets_mid);

TEST(Windows, OffsetsMergeWithWhatIsAroundThemInAnyOrder) {
  const TextCase text =
      TextCase(offsets_case, offsets_case_end).function(offsets_case, offsets_case_end);
  std::vector<Request> requests = {entry(offsets_case), offset(offsets_mid),
                                   offset(offsets_case + 1), exits(offsets_case),
                                   offset(offsets_mid + 6)};
  const Plan first = plan_of(text, requests);
  EXPECT_EQ(refusals(first), "");
  EXPECT_EQ(first.points.size(), 5U);
  std::mt19937 random(3);
  for (unsigned round = 0; round < 10; ++round) {
    std::shuffle(requests.begin(), requests.end(), random);
    const Plan again = plan_of(text, requests);
    ASSERT_EQ(again.windows.size(), first.windows.size());
    for (size_t i = 0; i < again.windows.size(); ++i) {
      EXPECT_EQ(again.windows[i].address, first.windows[i].address);
      EXPECT_EQ(again.windows[i].size_bytes, first.windows[i].size_bytes);
    }
  }
}

TEST(Windows, AnAddressInsideAnInstructionIsRefused) {
  const TextCase text =
      TextCase(offsets_case, offsets_case_end).function(offsets_case, offsets_case_end);
  const Plan plan = plan_of(text, {offset(offsets_mid + 1), offset(nullptr), entry(offsets_mid)});
  EXPECT_EQ(refusals(plan), "not-an-instruction not-code not-a-function");
}

TEST(Windows, InstalledWindowsAreReusedAndNeverOverlapped) {
  const TextCase text =
      TextCase(offsets_case, offsets_case_end).function(offsets_case, offsets_case_end);
  const ModuleCode code = analyse(text.text);
  const std::vector<Request> first = {entry(offsets_case)};
  const Plan installed = plan_windows(code, first);
  ASSERT_EQ(installed.windows.size(), 1U);  // 0 .. 6
  const std::vector<Request> second = {offset(offsets_mid), offset(offsets_mid + 3)};
  const Plan plan = plan_windows(code, second, installed.windows);
  EXPECT_EQ(refusals(plan), "");
  ASSERT_EQ(plan.windows.size(), 2U);
  EXPECT_EQ(plan.windows[0].address, installed.windows[0].address);
  EXPECT_EQ(plan.windows[0].size_bytes, installed.windows[0].size_bytes);
  EXPECT_EQ(plan.points[0].instruction, 3);
  EXPECT_GE(plan.windows[1].address, at(offsets_case) + installed.windows[0].size_bytes);
}

}  // namespace
}  // namespace clew::code
