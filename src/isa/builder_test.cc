// SPDX-License-Identifier: Apache-2.0
// The builder encodes what RFC 9669 says and reports misuse by the instruction.
#include "isa/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::isa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const Builder& builder) {
  const Expected<Program> program = builder.finish("p");
  return program ? "no error" : program.error().message;
}

TEST(Builder, ResolvesForwardAndBackwardLabels) {
  Builder b;
  const Label top = b.label();
  const Label done = b.label();
  b.bind(top).jump_if(Jump::Equal, Register::R1, 7, done).jump(top).bind(done).exit();
  const Expected<Program> program = b.finish("p");
  ASSERT_TRUE(program);
  EXPECT_THAT(program->code, ElementsAre(Instruction{0x15, 0x01, 1, 7}, Instruction{0x05, 0, -2, 0},
                                         Instruction{0x95, 0, 0, 0}));
}

TEST(Builder, ChoosesTheShortestConstant) {
  Builder b;
  b.load_constant(Register::R1, 0xFFFF'FFFF'FFFF'FFFF)
      .load_constant(Register::R2, 0xFFFF'FFFF)
      .load_constant(Register::R3, 0x1234'5678'9ABC'DEF0);
  const Expected<Program> program = b.finish("p");
  ASSERT_TRUE(program);
  EXPECT_THAT(program->code, ElementsAre(Instruction{0xB7, 1, 0, -1}, Instruction{0xB4, 2, 0, -1},
                                         Instruction{0x18, 3, 0, static_cast<int32_t>(0x9ABC'DEF0)},
                                         Instruction{0, 0, 0, 0x1234'5678}));
}

TEST(Builder, CountsSiteConstants) {
  Builder b;
  b.load_site_constant(Register::R1, 4).load_site_constant(Register::R1, 2);
  const Expected<Program> program = b.finish("p");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->site_constant_count, 5U);
}

TEST(Builder, UsesTheFarFormOfAJumpThatIsTooLong) {
  Builder b;
  const Label end = b.label();
  b.jump(end);
  for (int i = 0; i < 40'000; ++i)
    b.move(Register::R0, 0);
  b.bind(end).exit();
  const Expected<Program> program = b.finish("p");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->code[0], (Instruction{0x06, 0, 0, 40'000}));
}

TEST(Builder, RefusesAConditionalBranchThatIsTooLong) {
  Builder b;
  const Label end = b.label();
  b.jump_if(Jump::Less, Register::R1, Register::R2, end);
  for (int i = 0; i < 40'000; ++i)
    b.move(Register::R0, 0);
  b.bind(end).exit();
  EXPECT_THAT(error_of(b), HasSubstr("instruction 0: branch over 40000 instructions"));
}

TEST(Builder, NamesTheInstructionOfAMisuse) {
  Builder unbound;
  unbound.move(Register::R0, 0).jump(unbound.label());
  EXPECT_THAT(error_of(unbound), HasSubstr("instruction 1: branch to a label that is never bound"));

  Builder far;
  far.move(Register::R0, 0).load(Size::Byte, Register::R0, Register::R10, 40'000);
  EXPECT_THAT(error_of(far), HasSubstr("instruction 1: an offset over 16 bits"));

  Builder shape;
  shape.alu(Alu::Move, Register::R0, 0);
  EXPECT_THAT(error_of(shape), HasSubstr("instruction 0: not an operation of two operands"));

  Builder atomic;
  atomic.atomic(Atomic::Add, Size::Half, Register::R10, -8, Register::R1);
  EXPECT_THAT(error_of(atomic), HasSubstr("instruction 0: an atomic access of under 4 bytes"));
}

}  // namespace
}  // namespace clew::isa
