// SPDX-License-Identifier: Apache-2.0
#include "kernel/to_bpf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/machine/accessor.h"
#include "abi/machine/window.h"
#include "isa/builder.h"

namespace clew::kernel {
namespace {

using abi::MachineAccessor;
using isa::Builder;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;

Expected<Function> converted(const Builder& b) {
  return to_bpf(*b.finish("clause"), 3);
}

std::vector<std::string> symbols_of(const Function& function) {
  std::vector<std::string> symbols;
  for (const Reference& one : function.references)
    symbols.push_back(one.symbol);
  return symbols;
}

Builder& call(Builder& b, MachineAccessor accessor) {
  return b.call(static_cast<abi::Accessor>(accessor));
}

TEST(ToBpf, WindowPointersBecomeSumsAndCallsBecomeFunctions) {
  Builder b;
  b.load_window(Register::R1, 0x40).load_global(Register::R2, 8);
  call(b, MachineAccessor::Commit).move(Register::R0, 0).exit();
  const Expected<Function> function = converted(b);
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_EQ(function->name, "dt_clause_3");
  ASSERT_EQ(function->code.size(), 8U);
  EXPECT_EQ(function->code[1], (isa::Instruction{0xBF, 0x61, 0, 0}));
  EXPECT_EQ(function->code[2], (isa::Instruction{0x07, 0x01, 0, 0x40}));
  EXPECT_THAT(symbols_of(*function), testing::ElementsAre("d_globals", "d_commit"));
  EXPECT_EQ(function->references[0].instruction, 3U);
  EXPECT_EQ(function->references[1].instruction, 5U);
}

TEST(ToBpf, ABuiltInVariableIsChosenByItsConstant) {
  Builder b;
  b.move(Register::R2, static_cast<int32_t>(abi::MachineBuiltin::Pid)).load_window(Register::R1, 0);
  call(b, MachineAccessor::BuiltinInteger).exit();
  const Expected<Function> function = converted(b);
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_THAT(symbols_of(*function), testing::ElementsAre("d_builtin_pid"));
}

TEST(ToBpf, ABuiltInVariableThatIsNoConstantIsRefused) {
  Builder b;
  b.move(Register::R2, Register::R7);
  call(b, MachineAccessor::BuiltinInteger).exit();
  const Expected<Function> function = converted(b);
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, ErrorCode::Refused);
}

TEST(ToBpf, SiteConstantsAndForeignAccessorsAreRefused) {
  Builder constant;
  constant.load_site_constant(Register::R0, 0).exit();
  EXPECT_FALSE(converted(constant));
  Builder foreign;
  foreign.call(abi::Accessor::TableFind).exit();
  EXPECT_FALSE(converted(foreign));
}

// The kernel refuses what no path reaches; branches over it still reach their targets.
TEST(ToBpf, UnreachableInstructionsAreRemoved) {
  Builder b;
  const Label end = b.label();
  const Label back = b.label();
  b.jump_if(Jump::Equal, Register::R1, 0, end)
      .jump(back)
      .load_constant(Register::R3, 0x1234567890)
      .move(Register::R3, 1)
      .bind(back)
      .move(Register::R0, 1)
      .bind(end)
      .exit();
  const Expected<Function> function = converted(b);
  ASSERT_TRUE(function);
  ASSERT_EQ(function->code.size(), 5U);  // r6, two jumps, move, exit
  EXPECT_EQ(function->code[1].offset, 2);
  EXPECT_EQ(function->code[2].offset, 0);
}

TEST(ToBpf, LoadsOfArgumentsAreSeen) {
  Builder reads;
  reads.load_window(Register::R1, 0)
      .load(Size::Double, Register::R0, Register::R1,
            offsetof(abi::MachineWindowHeader, arguments) + 16)
      .exit();
  EXPECT_EQ(arguments_read(*converted(reads)), 1U << 2);
  Builder does_not;
  does_not.load_window(Register::R1, 0)
      .load(Size::Double, Register::R0, Register::R1, offsetof(abi::MachineWindowHeader, timestamp))
      .exit();
  EXPECT_EQ(arguments_read(*converted(does_not)), 0U);
}

}  // namespace
}  // namespace clew::kernel
