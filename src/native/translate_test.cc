// SPDX-License-Identifier: Apache-2.0
// Program text in, machine code out: the forms that make small probes cheap, and what is refused.
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/assembler.h"
#include "native/code.h"
#include "native/print.h"

namespace clew::native {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Environment kEntry = {.point = PointKind::Entry,
                                .window_address = 0x1000'1000,
                                .window_size_log2 = 14,
                                .slot_address = 0x1000'0000,
                                .generation_address = 0x1000'0F00};

Environment at(PointKind point) {
  Environment environment = kEntry;
  environment.point = point;
  return environment;
}

Expected<Code> translated(std::string_view text, const Environment& environment = kEntry,
                          std::span<const uint64_t> constants = {}) {
  const auto program = isa::assemble(text);
  EXPECT_TRUE(program.has_value()) << program.error().message;
  return translate(*program, environment, constants);
}

// The instructions without their offsets, gs addresses as window or slot offsets, one per line.
std::string code_of(std::string_view text, const Environment& environment = kEntry) {
  const auto code = translated(text, environment);
  if (!code) return "error: " + code.error().message;
  std::string out = print(*code);
  out = std::regex_replace(out, std::regex("^ *[0-9a-f]+  ", std::regex::multiline), "");
  out = std::regex_replace(out, std::regex("0x0*([0-9A-F])"), "0x$1");
  out = std::regex_replace(out, std::regex("0x10001([0-9A-F]{3})"), "W+$1");
  return std::regex_replace(out, std::regex("0x10000([0-9A-F]{3})"), "S+$1");
}

std::string error_of(std::string_view text, const Environment& environment = kEntry) {
  const auto code = translated(text, environment);
  return code ? "" : code.error().message;
}

TEST(Translate, ACountIsOneInstruction) {
  EXPECT_EQ(code_of(R"(
    lddw window %r1, 0x400
    ldxdw %r2, [%r1]
    add %r2, 1
    stxdw [%r1], %r2
    mov %r0, 0
    exit)"),
            "add qword ptr gs:[W+400], 0x1\n");
}

TEST(Translate, ASumOfAnArgumentReadsTheLiveRegister) {
  EXPECT_EQ(code_of(R"(
    mov %r6, %r1
    ldxdw %r3, [%r6+8]
    lddw window %r1, 0x400
    ldxdw %r2, [%r1+16]
    add %r2, %r3
    stxdw [%r1+16], %r2
    mov %r0, 0
    exit)"),
            "add gs:[W+410], rsi\n");
}

TEST(Translate, AFilterOnAnArgumentIsACompareAndAJump) {
  EXPECT_EQ(code_of(R"(
    ldxdw %r2, [%r1]
    jle %r2, 100, done
    lddw window %r1, 0x400
    ldxdw %r2, [%r1]
    add %r2, 1
    stxdw [%r1], %r2
    done:
    mov %r0, 0
    exit)"),
            "cmp rdi, 0x64\njbe 0x10\nadd qword ptr gs:[W+400], 0x1\n");
}

TEST(Translate, ABoundedIndexNeedsNoMask) {
  EXPECT_EQ(code_of(R"(
    ldxdw %r2, [%r1]
    and %r2, 63
    lsh %r2, 3
    lddw window %r3, 0x400
    add %r3, %r2
    ldxdw %r4, [%r3]
    add %r4, 1
    stxdw [%r3], %r4
    mov %r0, 0
    exit)"),
            "mov rax, rdi\nand eax, 0x3F\nshl rax, 0x3\nlea r11, [rax+0x400]\n"
            "add qword ptr gs:[r11+W+000], 0x1\n");
}

TEST(Translate, AnUnknownPointerIsMaskedOnce) {
  EXPECT_EQ(code_of(R"(
    lddw window %r3, 0x400
    ldxdw %r2, [%r3]
    stdw [%r2], 1
    stdw [%r2+8], 2
    mov %r0, 0
    exit)"),
            "mov rax, gs:[W+400]\nand eax, 0x3FFF\nmov qword ptr gs:[rax+W+000], 0x1\n"
            "mov qword ptr gs:[rax+W+008], 0x2\n");
}

TEST(Translate, AnUnknownPointerPlusAnOffsetIsMaskedInTheScratchRegister) {
  EXPECT_EQ(code_of(R"(
    ldxdw %r2, [%r1]
    stw [%r2+4], 1
    sth [%r2+12], 2
    mov %r0, 0
    exit)"),
            "lea r10, [rdi+0x4]\nand r10d, 0x3FFF\nmov dword ptr gs:[r10+W+000], 0x1\n"
            "mov word ptr gs:[r10+W+008], 0x2\n");
}

TEST(Translate, ARotateIsOneInstruction) {
  EXPECT_THAT(code_of(R"(
    lddw window %r5, 0x400
    ldxdw %r1, [%r5]
    mov %r2, %r1
    lsh32 %r1, 7
    rsh32 %r2, 25
    or32 %r1, %r2
    stxdw [%r5], %r1
    mov %r0, 0
    exit)"),
              HasSubstr("mov rax, gs:[W+400]\nrol eax, 0x7\nmov gs:[W+400], rax\n"));
}

TEST(Translate, TheGenerationIsAnAbsoluteLoad) {
  EXPECT_EQ(code_of(R"(
    ldxdw %r2, [%r1+96]
    and %r2, 1
    mul %r2, 48
    lddw window %r3, 0x400
    add %r3, %r2
    ldxdw %r4, [%r3]
    add %r4, 1
    stxdw [%r3], %r4
    mov %r0, 0
    exit)"),
            "mov eax, [S+F00]\nand eax, 0x1\nimul rax, rax, 0x30\nlea r11, [rax+0x400]\n"
            "add qword ptr gs:[r11+W+000], 0x1\n");
}

TEST(Translate, AnArgumentWhoseRegisterIsTakenComesFromItsSavedCopy) {
  // rdtsc takes rdx, the third argument: pushed are r10, rax, rdx, r11.
  EXPECT_EQ(code_of(R"(
    mov %r6, %r1
    call time
    ldxdw %r1, [%r6+16]
    sub %r0, %r1
    lddw window %r2, 0x400
    stxdw [%r2], %r0
    mov %r0, 0
    exit)"),
            "rdtsc\nshl rdx, 0x20\nor rax, rdx\nmov rdx, [rsp]\nsub rax, rdx\n"
            "mov gs:[W+400], rax\n");
}

TEST(Translate, TheReturnValueIsRaxAndTheFrameIsAboveTheSavedWords) {
  EXPECT_EQ(code_of(R"(
    ldxdw %r2, [%r1+48]
    ldxdw %r3, [%r1+64]
    lddw window %r4, 0x400
    stxdw [%r4], %r2
    stxdw [%r4+8], %r3
    mov %r0, 0
    exit)",
                    at(PointKind::Exit)),
            "lea r11, [rsp+0x10]\nmov gs:[W+400], rax\nmov gs:[W+408], r11\n");
}

TEST(Translate, SlowPathsBehindTheExitAreNoLoops) {
  EXPECT_THAT(code_of(R"(
      ldxdw %r6, [%r1]
      jne %r6, 0, slow
    back:
      lddw window %r1, 0x400
      stdw [%r1], 1
      mov %r0, 0
      exit
    slow:
      mov %r1, 5
      call record_take
      ja back)"),
              Not(HasSubstr("r13")));
}

TEST(Translate, ABranchToTheNextBlockIsInverted) {
  EXPECT_EQ(code_of(R"(
      ldxdw %r6, [%r1]
      lddw window %r5, 0x400
      ldxdw %r3, [%r5]
      jne %r3, 0, slow
    take:
      stxdw [%r5], %r6
      mov %r0, 0
      exit
    slow:
      jeq %r3, %r6, take
      mov %r0, 0
      exit)"),
            "mov rax, gs:[W+400]\ntest rax, rax\njz 0x15\ncmp rax, rdi\njz 0x15\n"
            "jmp 0x1E\nmov gs:[W+400], rdi\n");
}

TEST(Translate, ABranchToTheNextInstructionIsNothing) {
  EXPECT_EQ(code_of(R"(
      ldxdw %r6, [%r1]
      jne %r6, 0, +0
      lddw window %r5, 0x400
      stxdw [%r5], %r6
      mov %r0, 0
      exit)"),
            "mov gs:[W+400], rdi\n");
}

TEST(Translate, AStoredKeyIsNotLoadedAgain) {
  EXPECT_EQ(code_of(R"(
      ldxdw %r2, [%r1]
      stxdw [%r10-8], %r2
      lddw window %r5, 0x400
      ldxdw %r3, [%r10-8]
      ldxdw %r4, [%r5]
      jne %r4, %r3, done
      stdw [%r5], 0
    done:
      mov %r0, 0
      exit)"),
            "mov gs:[W+2F8], rdi\ncmp gs:[W+400], rdi\njnz 0x21\n"
            "mov qword ptr gs:[W+400], 0x0\n");
}

TEST(Translate, AWordThatMayHaveChangedIsLoadedAgain) {
  const char* const changes[] = {"stb [%r10-1], 7", "ldxdw %r4, [%r1+8]\nstxdw [%r4], %r2",
                                 "mov %r1, 5\ncall record_take", "lock add [%r10-8], %r2"};
  for (const char* change : changes) {
    const std::string text = std::string("ldxdw %r2, [%r1]\nstxdw [%r10-8], %r2\n") + change +
                             "\nldxdw %r3, [%r10-8]\nstxdw [%r10-16], %r3\nmov %r0, 0\nexit";
    EXPECT_THAT(code_of(text), HasSubstr(", gs:[W+2F8]\n")) << change;
  }
}

TEST(Translate, LoopsChargeFuelAndCountItsEnd) {
  EXPECT_EQ(code_of(R"(
      mov %r2, 0
    again:
      lddw window %r3, 0x400
      ldxdw %r2, [%r3]
      jne %r2, 0, again
      mov %r0, 0
      exit)"),
            "mov r13d, 0x186A0\nsub r13d, 0x6\njs 0x29\ncmp qword ptr gs:[W+400], 0x0\njz 0x27\n"
            "cmp qword ptr gs:[W+400], 0x0\njnz 0x6\njmp 0x33\n"
            "add qword ptr gs:[W+030], 0x1\n");
}

TEST(Translate, OnlyWrittenRegistersAreClobbered) {
  const auto count = translated(
      "lddw window %r1, 1024\nldxdw %r2, [%r1]\nadd %r2, 1\n"
      "stxdw [%r1], %r2\nmov %r0, 0\nexit");
  ASSERT_TRUE(count.has_value());
  EXPECT_EQ(abi::saved_count(count->clobbers), 1U);  // r10 only.
  EXPECT_FALSE(count->guarded);
}

// r8 is dead when r9 is written; r7 is needed as long as either; r6 is the context.
TEST(Translate, RegistersThatAreNotNeededTogetherShareOne) {
  const std::string text = R"(
      mov %r6, %r1
      ldxdw %r7, [%r6+64]
      ldxb %r8, [%r6+64]
      add %r7, %r8
      ldxh %r9, [%r6+64]
      add %r7, %r9
      lddw window %r2, 0x400
      stxdw [%r2], %r7
      mov %r0, 0
      exit)";
  const auto code = translated(text);
  ASSERT_TRUE(code.has_value());
  EXPECT_EQ(abi::saved_count(code->clobbers), 3U) << code_of(text);
}

// What is needed behind a call is in none of the registers that it takes and changes.
// What holds something across the call is in a register that C code keeps.
TEST(Translate, AWalkWithinAFunctionHasAllSavedButRbp) {
  const auto code = translated(R"(
    mov %r6, %r1
    ldxdw %r8, [%r6+8]
    ldxdw %r9, [%r6+16]
    add %r9, %r8
    lddw window %r1, 0x400
    mov %r2, 8
    mov %r3, 0x1000
    ldxdw %r4, [%r6+248]
    call walk_within
    lddw window %r1, 0x400
    stxdw [%r1], %r8
    stxdw [%r1+8], %r9
    mov %r0, 0
    exit)",
                               at(PointKind::Offset));
  ASSERT_TRUE(code.has_value()) << code.error().message;
  EXPECT_EQ(code->clobbers.bits() & ~(1U << 10), abi::kAllSaved.bits());
  EXPECT_THAT(print(*code), HasSubstr("mov r14, rbp"));
}

TEST(Translate, RegistersThatCallsChangeHoldNothingAcrossThem) {
  const auto code = code_of(R"(
      mov %r6, %r1
      ldxb %r7, [%r6+64]
      mov %r1, 5
      call record_take
      add %r0, %r7
      lddw window %r2, 0x400
      stxdw [%r2], %r0
      mov %r0, 0
      exit)");
  EXPECT_EQ(code,
            "lea rbx, [rsp+0x20]\nmovzx ebx, bl\nmov r11d, 0x5\ncall record_take\n"
            "add rax, rbx\nmov gs:[W+400], rax\n");
}

TEST(Translate, StoresAndCallsAreGuarded) {
  const auto store = translated("lddw window %r1, 1024\nstdw [%r1], 1\nmov %r0, 0\nexit");
  ASSERT_TRUE(store.has_value());
  EXPECT_TRUE(store->guarded);
  const auto call = translated("mov %r1, 5\ncall record_take\nmov %r0, 0\nexit");
  ASSERT_TRUE(call.has_value());
  EXPECT_TRUE(call->guarded);
  EXPECT_EQ(call->calls.size(), 1U);
}

TEST(Translate, SiteConstantsAreFolded) {
  const uint64_t constants[] = {0x440};
  const auto code = translated(
      "lddw site %r1, 0\nldxdw %r2, [%r1]\nadd %r2, 1\n"
      "stxdw [%r1], %r2\nmov %r0, 0\nexit",
      kEntry, constants);
  ASSERT_TRUE(code.has_value());
  EXPECT_THAT(print(*code), HasSubstr("gs:[0x0000000010001440], 0x01"));
}

TEST(Translate, FieldsThatThePointLacksAreRefused) {
  EXPECT_EQ(error_of("ldxdw %r2, [%r1+48]\nmov %r0, 0\nexit"),
            "instruction 0: a context field that this point does not have");
  EXPECT_NE(error_of("ldxdw %r2, [%r1]\nmov %r0, 0\nexit", at(PointKind::Exit)), "");
  EXPECT_NE(error_of("ldxdw %r2, [%r1+64]\nmov %r0, 0\nexit", at(PointKind::Offset)), "");
  EXPECT_EQ(error_of("ldxdw %r2, [%r1]\nmov %r0, 0\nexit", at(PointKind::Offset)), "");
}

TEST(Translate, MisuseOfTheContextIsRefused) {
  EXPECT_NE(error_of("add %r1, 8\nldxdw %r2, [%r1]\nmov %r0, 0\nexit"), "");
  EXPECT_NE(error_of("stxdw [%r10-8], %r1\nmov %r0, 0\nexit"), "");
  EXPECT_NE(error_of("stdw [%r1], 1\nmov %r0, 0\nexit"), "");
  EXPECT_NE(error_of("call record_take\nmov %r0, 0\nexit"), "");
  EXPECT_NE(error_of("ldxdw %r2, [%r1+4]\nmov %r0, 0\nexit"), "");
}

TEST(Translate, SiteConstantsMustBeGiven) {
  EXPECT_EQ(error_of("lddw site %r1, 0\nmov %r0, 0\nexit"),
            "instruction 0: a site constant that is not given");
}

TEST(Translate, AnEnvironmentOutOfRangeIsRefused) {
  Environment high = kEntry;
  high.window_address = 0x7FFF'F000;
  EXPECT_NE(error_of("mov %r0, 0\nexit", high), "");
  Environment small = kEntry;
  small.window_size_log2 = 5;
  EXPECT_NE(error_of("mov %r0, 0\nexit", small), "");
  Environment odd = kEntry;
  odd.window_address += 4;
  EXPECT_NE(error_of("mov %r0, 0\nexit", odd), "");
}

TEST(Translate, HostileInstructionsGiveErrors) {
  const std::vector<std::vector<isa::Instruction>> programs = {
      {},
      {{.opcode = 0x18}},                 // Half an LDDW.
      {{.opcode = 0x05, .offset = 100}},  // Jump out of the program.
      {{.opcode = 0x05, .offset = -2}},   // Before it.
      {{.opcode = 0xB7}},                 // Falls off its end.
      {{.opcode = 0xFF}, {.opcode = 0x95}},
      {{.opcode = 0x20}, {.opcode = 0x95}},                     // Legacy packet access.
      {{.opcode = 0xB7, .registers = 0x0A}, {.opcode = 0x95}},  // Write of r10.
      {{.opcode = 0xBF, .registers = 0xC0}, {.opcode = 0x95}},  // r12.
      {{.opcode = 0x85, .immediate = 99}, {.opcode = 0x95}},
      {{.opcode = 0x8D, .registers = 0x02}, {.opcode = 0x95}},  // callx
      {{.opcode = 0x05, .offset = 1}, {.opcode = 0x18}, {}, {.opcode = 0x95}},
  };
  for (const auto& code : programs) {
    const isa::Program program = {.name = "hostile", .code = code, .site_constant_count = 0};
    EXPECT_FALSE(translate(program, kEntry, {}).has_value());
  }
}

TEST(Translate, CallsAreRelocatedWithinReach) {
  const auto code = translated("mov %r1, 5\ncall record_take\nmov %r0, 0\nexit");
  ASSERT_TRUE(code.has_value());
  std::vector<uint64_t> entries(abi::kAccessorCount, 0x5555'0000'1000);
  std::vector<uint8_t> bytes = code->bytes;
  EXPECT_TRUE(relocate(*code, 0x5555'0000'0000, entries, bytes));
  EXPECT_FALSE(relocate(*code, 0x7555'0000'0000, entries, bytes));
  entries.resize(3);
  EXPECT_FALSE(relocate(*code, 0x5555'0000'0000, entries, bytes));
}

}  // namespace
}  // namespace clew::native
