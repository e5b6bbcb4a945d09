// SPDX-License-Identifier: Apache-2.0
#include "kernel/probe_to_bpf.h"

#include <gtest/gtest.h>

#include "abi/query_window.h"
#include "isa/builder.h"
#include "isa/opcode.h"

namespace clew::kernel {
namespace {

using isa::Builder;
using isa::Instruction;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;

Expected<Function> translate(Builder& builder) {
  builder.move(Register::R0, 0).exit();
  return probe_to_bpf(*builder.finish("probe"), 3);
}

TEST(ProbeToBpf, FindsArgumentsAndFrameInTheWindow) {
  Builder b;
  b.move(Register::R6, Register::R1)
      .load(Size::Double, Register::R2, Register::R6, offsetof(abi::Context, arguments) + 16)
      .load(Size::Double, Register::R3, Register::R6, offsetof(abi::Context, return_value))
      .load(Size::Double, Register::R4, Register::R6, offsetof(abi::Context, tid))
      .load(Size::Double, Register::R5, Register::R6, offsetof(abi::Context, frame))
      .store(Size::Double, Register::R10, -8, Register::R2)
      .move(Register::R1, Register::R10);
  const Expected<Function> function = translate(b);
  ASSERT_TRUE(function.has_value()) << function.error().message;
  EXPECT_EQ(function->name, "dt_clause_3");
  const std::vector<Instruction>& code = function->code;
  const auto first = static_cast<int16_t>(offsetof(abi::MachineWindowHeader, arguments));
  const int32_t frame = abi::kQueryRegionOffset + abi::kFrameEnd;
  EXPECT_EQ(code[1].offset, first + 16);
  EXPECT_EQ(code[2].offset, first + 8);
  EXPECT_EQ(code[3].offset, abi::kQueryContextOffset + offsetof(abi::Context, tid));
  EXPECT_EQ(code[4].offset,
            static_cast<int16_t>(offsetof(abi::MachineWindowHeader, frame_address)));
  EXPECT_EQ(code[5].destination(), 6);
  EXPECT_EQ(code[5].offset, frame - 8);
  EXPECT_EQ(code[6].source(), 6);
  EXPECT_EQ(code[7].immediate, frame);
}

TEST(ProbeToBpf, TellsTheRegionFromTheMachinesOwnMemory) {
  Builder b;
  b.load_window(Register::R2, 16).load_window(Register::R3, abi::kQueryMachine + 0x1400);
  const Expected<Function> function = translate(b);
  ASSERT_TRUE(function.has_value()) << function.error().message;
  EXPECT_EQ(function->code[1].immediate, static_cast<int32_t>(abi::kQueryRegionOffset + 16));
  EXPECT_EQ(function->code[3].immediate, 0x1400);
}

// Instructions in between become longer: a call takes its window, a site constant one load.
TEST(ProbeToBpf, KeepsBranchesAtTheirTargets) {
  Builder b;
  const Label end = b.label();
  const Label again = b.label();
  b.bind(again)
      .move(Register::R1, 1)
      .call(abi::Accessor::BitLength)
      .jump_if(Jump::Equal, Register::R0, 7, end)
      .load_site_constant(Register::R2, 0)
      .jump_if(Jump::Equal, Register::R2, 8, again)
      .call(abi::Accessor::Time)
      .bind(end);
  const Expected<Function> function = translate(b);
  ASSERT_TRUE(function.has_value()) << function.error().message;
  const std::vector<Instruction>& code = function->code;
  // mov; mov, mov, call; jeq end; ldx; jeq again; mov, call; end: mov, exit
  ASSERT_EQ(code.size(), 11U);
  EXPECT_EQ(code[4].offset, 9 - 5);
  EXPECT_EQ(code[5].offset, static_cast<int16_t>(offsetof(abi::MachineWindowHeader, enabling)));
  EXPECT_EQ(code[6].offset, 0 - 7);
  ASSERT_EQ(function->references.size(), 2U);
  EXPECT_EQ(function->references[0].symbol, "d_query_bit_length");
  EXPECT_EQ(function->references[0].instruction, 3U);
  EXPECT_EQ(function->references[1].symbol, "d_query_time");
  EXPECT_EQ(function->references[1].instruction, 8U);
}

// What is behind the call is a load of the program's own, which the kernel has to allow.
TEST(ProbeToBpf, AsksTheKernelForAPointerToItsMemory) {
  Builder b;
  b.move(Register::R1, 1)
      .call(static_cast<abi::Accessor>(abi::QueryAccessor::KernelMemory))
      .load(Size::Word, Register::R0, Register::R0, 0);
  const Expected<Function> function = translate(b);
  ASSERT_TRUE(function.has_value()) << function.error().message;
  ASSERT_EQ(function->references.size(), 2U);
  EXPECT_EQ(function->references[0].symbol, kUntrustedType);
  EXPECT_EQ(function->code[function->references[0].instruction].destination(), 2);
  EXPECT_EQ(function->references[1].symbol, kUntrustedPointer);
  EXPECT_FALSE(function->references[1].is_call);  // Of none of ours.
  const uint32_t call = function->references[1].instruction;
  EXPECT_EQ(function->code[call].opcode, isa::kCallOpcode);
  EXPECT_EQ(function->code[call + 1].source(), 0);
  EXPECT_EQ(function->code[call + 1].offset, 0);
}

TEST(ProbeToBpf, RefusesWhatNoEventOfTheKernelHas) {
  Builder vector;
  vector.move(Register::R6, Register::R1)
      .load(Size::Double, Register::R2, Register::R6, offsetof(abi::Context, vectors));
  EXPECT_FALSE(translate(vector).has_value());
  Builder global;
  global.load_global(Register::R2, 0);
  EXPECT_FALSE(translate(global).has_value());
  Builder table;
  table.move(Register::R1, 0).call(abi::Accessor::TableFind);
  EXPECT_FALSE(translate(table).has_value());
}

}  // namespace
}  // namespace clew::kernel
