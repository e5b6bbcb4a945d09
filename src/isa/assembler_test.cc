// SPDX-License-Identifier: Apache-2.0
// The assembler's own syntax beyond the conformance vectors, and where its errors point.
#include "isa/assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/opcode.h"
#include "isa/print.h"

namespace clew::isa {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  const Expected<Program> program = assemble(text);
  return program ? "no error" : program.error().message;
}

TEST(Assembler, PointsAtTheMistake) {
  EXPECT_EQ(error_of(""), "error: no instructions");
  EXPECT_EQ(error_of("exit\n  mvo %r0, 1"),
            "2:3: error: no instruction 'mvo'; did you mean 'mov'?");
  EXPECT_EQ(error_of("mov %r0, %r11"), "1:10: error: invalid register %r11; they are %r0 to %r10");
  EXPECT_EQ(error_of("mov %r0"),
            "1:1: error: invalid number of operands for mov: found 1, expected 2");
  EXPECT_EQ(error_of("exit 1"),
            "1:1: error: invalid number of operands for exit: found 1, expected 0");
  EXPECT_EQ(error_of("mov %r0, 1 2"), "1:12: error: found '2', expected the end of the line");
  EXPECT_EQ(error_of("mov %r0, 2147483648"), "1:10: error: an immediate of over 32 bits");
  EXPECT_EQ(error_of("mov %r0, 0x100000000"), "1:10: error: an immediate of over 32 bits");
  EXPECT_EQ(error_of("mov %r0, 12z"), "1:10: error: invalid number 12z");
  EXPECT_EQ(error_of("ldxb %r0, %r1"), "1:11: error: found '%r1', expected '['");
  EXPECT_EQ(error_of("ldxb %r0, [%r1+32768]"), "1:15: error: an offset of over 16 bits");
  EXPECT_EQ(error_of("stb [%r1, 1"), "1:9: error: found ',', expected ']'");
  EXPECT_EQ(error_of("ja done\nodne: exit"), "1:4: error: no label 'done'; did you mean 'odne'?");
  EXPECT_EQ(error_of("a: exit\na: exit"), "2:1: error: label 'a' is already defined");
  EXPECT_EQ(error_of("jeq %r0, 1, 2"),
            "1:13: error: found '2', expected a label or a signed distance");
  EXPECT_EQ(error_of("call tabel_find"),
            "1:6: error: no accessor 'tabel_find'; did you mean 'table_find'?");
  EXPECT_EQ(error_of("lddw window %r1, 0x100000000"),
            "1:18: error: a window offset of over 32 bits");
  EXPECT_EQ(error_of("lddw site %r1, 64"), "1:16: error: site constant 64, at most 64 exist");
  EXPECT_EQ(error_of("@"), "1:1: error: no instruction '@'");
}

TEST(Assembler, RefusesABranchThatIsTooFar) {
  std::string text = "jeq %r0, 0, end\n";
  for (int k = 0; k < 32768; ++k)
    text += "mov %r0, 0\n";
  EXPECT_EQ(error_of(text + "end: exit"),
            "1:13: error: a branch over 32768 instructions does not fit 16 bits");
}

TEST(Assembler, LimitsTheLength) {
  std::string text;
  for (uint32_t k = 0; k < kInstructionsMax; ++k)
    text += "exit\n";
  EXPECT_TRUE(assemble(text));
  EXPECT_EQ(error_of(text + "exit"), "65537:1: error: more than 65536 instructions");
}

TEST(Assembler, ReadsWindowPointersSiteConstantsAndAccessorsByName) {
  const Expected<Program> program = assemble(
      "lddw window %r2, 768\n"
      "lddw site %r3, 4\n"
      "call record_put\n"
      "exit");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->site_constant_count, 5U);
  EXPECT_THAT(program->code,
              testing::ElementsAre(Instruction{0x18, 0x12, 0, 768}, Instruction{},
                                   Instruction{0x18, 0x23, 0, 4}, Instruction{},
                                   Instruction{0x85, 0, 0, 10}, Instruction{0x95, 0, 0, 0}));
}

TEST(Print, ShowsLabelsNamesAndOffsets) {
  const char* text =
      "  lddw window %r2, 0x300\n"
      "  lock fetch add [%r2+8], %r1\n"
      "  jsle32 %r1, -5, L6\n"
      "  call table_find\n"
      "  ja32 L7\n"
      "L6:\n"
      "  mov %r0, 0\n"
      "L7:\n"
      "  exit\n";
  const Expected<Program> program = assemble(text);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(print(*program), text);
}

TEST(Print, EveryRowOfTheTableReadsBack) {
  for (const OpcodeRow& row : opcode_table()) {
    Instruction instruction{row.opcode, 0, 0, 0};
    const bool by_offset = row.form == Form::Binary || row.form == Form::MoveSigned;
    const bool by_immediate = row.form == Form::Swap || row.form == Form::Atomic;
    if (by_offset) instruction.offset = static_cast<int16_t>(row.selector);
    if (by_immediate) instruction.immediate = row.selector;
    if (!by_offset && !by_immediate) {
      instruction.registers = static_cast<uint8_t>(row.selector << 4);
    }
    Program program{"p", {instruction}, 0};
    if (row.form == Form::Load64) program.code.emplace_back();
    if (row.selector == static_cast<int32_t>(Load64::SiteConstant) && row.form == Form::Load64) {
      program.site_constant_count = 1;
    }
    const Expected<Program> again = assemble(print(program), "p");
    ASSERT_TRUE(again) << print(program) << again.error().message;
    EXPECT_EQ(*again, program) << row.mnemonic;
  }
}

TEST(Print, ShowsWhatIsNotAProgram) {
  const Program program{"p", {{0x8D, 0x02, 0, 0}, {0x05, 0, 100, 0}, {0x18, 0, 0, 1}}, 0};
  EXPECT_EQ(print(program),
            "  # not an instruction: 8d 02 0000 00000000\n"
            "  ja +100\n"
            "  # not an instruction: 18 00 0000 00000001\n");
}

}  // namespace
}  // namespace clew::isa
