// SPDX-License-Identifier: Apache-2.0
#include "isa/context_reads.h"

#include <gtest/gtest.h>

#include "abi/context.h"
#include "abi/machine/process.h"
#include "isa/builder.h"

namespace clew::isa {
namespace {

constexpr int32_t kArgument1 = 8;
constexpr int32_t kFrame = offsetof(abi::Context, frame);
constexpr uint32_t kFrameBit = 1U << (kFrame / 8);

ContextReads reads_of(Builder& builder) {
  builder.move(Register::R0, 0).exit();
  const auto program = builder.finish("program");
  return program ? context_reads(*program) : ContextReads{.words = 0xdead};
}

// try_read of `size` bytes at r3.
void read_bytes(Builder& b, int32_t size) {
  b.load_window(Register::R1, 64).move(Register::R2, size).call(abi::Accessor::TryRead);
}

TEST(ContextReads, OfACountAreNone) {
  Builder b;
  b.load_window(Register::R1, 64).load(Size::Double, Register::R2, Register::R1, 0);
  b.call(abi::Accessor::Time).store(Size::Double, Register::R10, -8, Register::R0);
  EXPECT_EQ(reads_of(b), ContextReads{});
}

TEST(ContextReads, AreTheWordsThatAreLoadedOfTheContext) {
  Builder b;
  b.move(Register::R6, Register::R1).call(abi::Accessor::Time);
  b.load(Size::Word, Register::R2, Register::R6, kArgument1 + 4);
  b.load_context(Register::R7).load(Size::Double, Register::R3, Register::R7, 0);
  EXPECT_EQ(reads_of(b), ContextReads{.words = 3});
}

TEST(ContextReads, AreThoseOfAllPaths) {
  Builder b;
  const Label other = b.label();
  b.load(Size::Double, Register::R2, Register::R1, 0);
  b.jump_if(Jump::Equal, Register::R2, 0, other);
  b.load(Size::Double, Register::R2, Register::R1, 16).bind(other);
  EXPECT_EQ(reads_of(b), ContextReads{.words = 5});
}

TEST(ContextReads, OfMemoryAtAnArgumentMayBeAnywhere) {
  Builder b;
  b.load(Size::Double, Register::R3, Register::R1, 0);
  read_bytes(b, 8);
  EXPECT_EQ(reads_of(b), (ContextReads{.words = 1, .memory = true}));
}

TEST(ContextReads, OfMemoryAboveTheFrameAreArguments) {
  Builder b;
  b.load(Size::Double, Register::R3, Register::R1, kFrame).alu(Alu::Add, Register::R3, 16);
  read_bytes(b, 8);
  EXPECT_EQ(reads_of(b), (ContextReads{.words = kFrameBit, .arguments = true}));
}

TEST(ContextReads, BehindTheArgumentsMayBeAnywhere) {
  for (const int32_t size : {64, 4096}) {
    Builder b;
    b.load(Size::Double, Register::R3, Register::R1, kFrame).alu(Alu::Add, Register::R3, 40);
    read_bytes(b, size);
    EXPECT_EQ(reads_of(b), (ContextReads{.words = kFrameBit, .memory = true}));
  }
}

TEST(ContextReads, OfAnAddressThatIsTheFrameOnSomePathsMayBeAnywhere) {
  Builder b;
  const Label other = b.label();
  b.load(Size::Double, Register::R3, Register::R1, kFrame);
  b.jump_if(Jump::Equal, Register::R3, 0, other);
  b.load(Size::Double, Register::R3, Register::R1, 0).bind(other);
  read_bytes(b, 8);
  EXPECT_EQ(reads_of(b), (ContextReads{.words = kFrameBit | 1, .memory = true}));
}

TEST(ContextReads, BelowTheFrameMayBeAnywhere) {
  Builder b;
  b.load(Size::Double, Register::R3, Register::R1, kFrame).alu(Alu::Add, Register::R3, -8);
  read_bytes(b, 8);
  EXPECT_EQ(reads_of(b), (ContextReads{.words = kFrameBit, .memory = true}));
}

template <typename Accessor>
ContextReads of_call(Accessor accessor) {
  Builder b;
  b.call(static_cast<abi::Accessor>(accessor));
  return reads_of(b);
}

TEST(ContextReads, OfDAreThoseOfItsAccessors) {
  using abi::MachineAccessor;
  using abi::MachineProcessAccessor;
  EXPECT_EQ(of_call(MachineAccessor::Aggregate), ContextReads{});
  EXPECT_EQ(of_call(MachineAccessor::Commit), ContextReads{});
  EXPECT_EQ(of_call(MachineProcessAccessor::Begin), ContextReads{});
  EXPECT_EQ(of_call(MachineAccessor::ReadString), ContextReads{.memory = true});
  EXPECT_EQ(of_call(MachineAccessor::Stack), ContextReads{.unwinds = true});
  EXPECT_EQ(of_call(MachineProcessAccessor::StackArguments), ContextReads{.arguments = true});
  EXPECT_TRUE(of_call(MachineAccessor::UserRegister).registers);
  const auto builtin = [](abi::MachineBuiltin which) {
    const auto first = static_cast<uint64_t>(MachineProcessAccessor::Builtin);
    return of_call(first + static_cast<uint64_t>(which));
  };
  EXPECT_EQ(builtin(abi::MachineBuiltin::Timestamp), ContextReads{});
  EXPECT_TRUE(builtin(abi::MachineBuiltin::Ucaller).unwinds);
}

}  // namespace
}  // namespace clew::isa
