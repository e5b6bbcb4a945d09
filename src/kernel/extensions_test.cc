// SPDX-License-Identifier: Apache-2.0
// Functions of extensions in the kernel, written by hand: what they compute, where their variables
// are, and that none of them does harm.
#include "kernel/extensions.h"

#include <thread>

#include <gmock/gmock.h>
#include <sys/syscall.h>

#include "abi/machine/extension.h"
#include "isa/opcode.h"
#include "kernel/extension_to_bpf.h"
#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

using isa::Alu;
using isa::Builder;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;
using testing::HasSubstr;

constexpr uint32_t kBegin = 0x400;  // Where LDDWs of these tests think that the variables are.

MachineExtensionFunction function(const std::string& name, uint32_t parameters, Builder& b) {
  MachineExtensionFunction made{.name = name, .parameters = parameters, .code = {}};
  made.code = b.exit().finish(name)->code;
  return made;
}

// The first variable += r1; gives it.
MachineExtensionFunction sum() {
  Builder b;
  b.load_window(Register::R2, kBegin)
      .load(Size::Double, Register::R0, Register::R2, 0)
      .alu(Alu::Add, Register::R0, Register::R1)
      .store(Size::Double, Register::R2, 0, Register::R0);
  return function("sum", 1, b);
}

// The numbers below r1, added up in the frame; all registers have a value that is wanted later.
MachineExtensionFunction triangle() {
  Builder b;
  const Label head = b.label();
  const Label end = b.label();
  b.store(Size::Double, Register::R10, -8, 0)
      .move(Register::R2, 2)
      .move(Register::R3, 3)
      .move(Register::R4, 4)
      .move(Register::R5, 5)
      .move(Register::R6, 0)
      .move(Register::R7, 7)
      .move(Register::R8, 8)
      .move(Register::R9, Register::R10)
      .alu(Alu::Add, Register::R9, -16)
      .bind(head)
      .jump_if(Jump::GreaterOrEqual, Register::R6, Register::R1, end)
      .load(Size::Double, Register::R0, Register::R9, 8)
      .alu(Alu::Add, Register::R0, Register::R6)
      .store(Size::Double, Register::R9, 8, Register::R0)
      .alu(Alu::Add, Register::R6, 1)
      .jump(head)
      .bind(end)
      .load(Size::Double, Register::R0, Register::R10, -8);
  for (const Register reg :
       {Register::R2, Register::R3, Register::R4, Register::R5, Register::R7, Register::R8})
    b.alu(Alu::Add, Register::R0, reg);
  return function("triangle", 1, b);
}

MachineExtensionFunction endless() {
  Builder b;
  const Label head = b.label();
  b.bind(head).alu(Alu::Add, Register::R1, 1).jump(head);
  return function("endless", 1, b);
}

// Writes its second parameter to its first, wherever that is, and reads it there.
MachineExtensionFunction wild() {
  Builder b;
  b.store(Size::Double, Register::R1, 0, Register::R2)
      .store(Size::Byte, Register::R1, 32767, 1)
      .load(Size::Double, Register::R0, Register::R1, 0);
  return function("wild", 2, b);
}

class KernelExtensions : public SessionTest {
 protected:
  static constexpr int32_t kLine = 7;

  // A clause that records what the function gives for these.
  void call(Clause& clause, const std::string& name, const std::vector<uint64_t>& arguments,
            uint32_t word) {
    auto to = static_cast<unsigned>(Register::R1);
    for (const uint64_t value : arguments)
      clause.code().load_constant(static_cast<Register>(to++), value);
    const Label behind = clause.code().label();
    calls_.push_back({clause.code().size(), name, kLine});
    clause.code().call_local(behind).bind(behind).load_context(Register::R6);
    clause.check_fault().record(word);
  }

  MachinePrograms with(Clause& clause, std::vector<MachineExtensionFunction> functions) {
    MachinePrograms programs = programs_of({clause.finish()});
    programs.extensions = {.functions = std::move(functions),
                           .calls = {calls_},
                           .begin = kBegin,
                           .variables_bytes = 256,
                           .initial_words = {{kBegin, 40}},
                           .fuel = 100'000};
    return programs;
  }

  std::vector<MachineExtensionCall> calls_;
};

TEST_F(KernelExtensions, KeepVariablesFromCallToCall) {
  Clause clause;
  call(clause, "sum", {1}, 0);
  call(clause, "sum", {1}, 1);
  clause.commit(2);
  run(with(clause, {sum()}));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), 41U);  // They begin as the file says.
  EXPECT_EQ(records_[0].word(1), 42U);
}

TEST_F(KernelExtensions, EachThreadHasItsOwn) {
  Clause clause;
  const Label other = clause.code().label();
  clause.only_ours(other);
  call(clause, "sum", {1}, 0);
  clause.commit(1);
  clause.code().bind(other);
  load(with(clause, {sum()}), {{syscall_probe(SYS_getppid), {0}}});
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  const auto calls = [](int times) {
    for (int i = 0; i < times; ++i)
      (void)syscall(SYS_getppid);
  };
  calls(3);
  std::thread(calls, 2).join();
  std::thread(calls, 1).join();
  ASSERT_TRUE(session_->end());
  read();
  std::vector<uint64_t> sums;
  for (const Record& record : records_)
    sums.push_back(record.word(0));
  EXPECT_THAT(sums, testing::ElementsAre(41, 42, 43, 41, 42, 41));
}

TEST_F(KernelExtensions, LoopWithAllRegisters) {
  Clause clause;
  call(clause, "triangle", {1000}, 0);
  clause.commit(1);
  run(with(clause, {triangle()}));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), 499'500U + 2 + 3 + 4 + 5 + 7 + 8);
}

TEST_F(KernelExtensions, WithoutFuelTheFiringEndsAndIsCounted) {
  Clause clause;
  call(clause, "triangle", {1'000'000}, 0);
  clause.commit(1);
  Clause second;
  second.commit(0);
  MachinePrograms programs = with(clause, {triangle()});
  programs.clauses.push_back(second.finish());
  programs.scratch_begin.push_back(0x8000);
  run(std::move(programs));
  EXPECT_EQ(records_.size(), 0U);  // Nor does a clause behind it run.
  EXPECT_EQ(session_->shared().losses.fuel, 1U);
}

TEST_F(KernelExtensions, EndlessLoopEnds) {
  Clause clause;
  const Label other = clause.code().label();
  clause.only_ours(other);
  call(clause, "endless", {0}, 0);
  clause.commit(1);
  clause.code().bind(other);
  load(with(clause, {endless()}), {{syscall_probe(SYS_getppid), {0}}});
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i)
    EXPECT_EQ(syscall(SYS_getppid), getppid());
  ASSERT_TRUE(session_->end());
  read();
  EXPECT_EQ(records_.size(), 0U);
  // Ours are more: EXPECT_EQ's own getppid() are system calls, too.
  EXPECT_EQ(session_->shared().losses.fuel, 2 * kCalls);
}

TEST_F(KernelExtensions, WildAddressesStayInTheThreadsArea) {
  constexpr uint64_t kAddresses[] = {0, 8, ~uint64_t{0}, 0xFFFF'8000'0000'0000, 1U << 15, 0x7FFF};
  Clause clause;
  uint32_t word = 0;
  for (const uint64_t address : kAddresses)
    call(clause, "wild", {address, 0x1234}, word++);
  clause.commit(word);
  run(with(clause, {wild()}));
  ASSERT_EQ(records_.size(), 1U);
  for (uint32_t i = 0; i < word; ++i)
    EXPECT_EQ(records_[0].word(i) & 0xFFFF, 0x1234U) << i;
  EXPECT_EQ(session_->shared().losses.nested, 0U);
}

// The kernel's verifier believes that 32 bits of r0 stay as they were: what is compared then must
// not be left out.
TEST_F(KernelExtensions, CompareExchangeOf32Bits) {
  Builder b;
  b.load_window(Register::R2, kBegin)
      .move(Register::R0, 5)
      .alu(Alu::ShiftLeft, Register::R0, 32)
      .move(Register::R3, 9)
      .atomic(isa::Atomic::CompareExchange, Size::Word, Register::R2, 0, Register::R3);
  const MachineExtensionFunction exchange = function("exchange", 0, b);
  Clause clause;
  call(clause, "exchange", {}, 0);
  clause.commit(1);
  MachinePrograms programs = with(clause, {exchange});
  const auto made = extension_to_bpf(exchange, programs.extensions, true);
  ASSERT_TRUE(made) << made.error().message;
  const auto atomic = std::find_if(made->code.begin(), made->code.end(),
                                   [](const auto& one) { return one.opcode == 0xC3; });
  ASSERT_NE(atomic, made->code.end());
  EXPECT_EQ(*(atomic + 1), (isa::Instruction{0xBC, 0, 0, 0}));
  run(std::move(programs));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), 40U);  // What memory had, zero-extended.
}

TEST_F(KernelExtensions, ReadsAreOfThisProcess) {
  static const uint64_t kValue = 0xABCD'EF01'2345;
  Builder b;
  const Label bad = b.label();
  b.move(Register::R6, 0)
      .move(Register::R3, Register::R1)
      .move(Register::R1, Register::R10)
      .alu(Alu::Add, Register::R1, -8)
      .move(Register::R2, 8)
      .call(abi::Accessor::TryRead)
      .jump_if(Jump::Equal, Register::R0, 0, bad)
      .load(Size::Double, Register::R6, Register::R10, -8)
      .bind(bad)
      .move(Register::R0, Register::R6);
  Clause clause;
  call(clause, "peek", {reinterpret_cast<uint64_t>(&kValue)}, 0);
  call(clause, "peek", {1}, 1);
  clause.commit(2);
  run(with(clause, {function("peek", 1, b)}));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), kValue);
  EXPECT_EQ(records_[0].word(1), 0U);
}

TEST_F(KernelExtensions, RefusalsSayWhichAndWhy) {
  const auto with_loop = extension_to_bpf(endless(), {}, false);
  ASSERT_FALSE(with_loop);
  EXPECT_THAT(with_loop.error().message, HasSubstr("endless() cannot run in the kernel: it has "
                                                   "loops"));
  MachineExtensions large;
  large.variables_bytes = 40'000;
  const auto too_large = extension_to_bpf(sum(), large, true);
  ASSERT_FALSE(too_large);
  EXPECT_THAT(too_large.error().message, HasSubstr("40000 bytes"));
  // What the verifier itself refuses: a register that nothing was written to.
  Builder b;
  b.move(Register::R0, Register::R5);
  Clause clause;
  call(clause, "empty", {}, 0);
  clause.commit(1);
  const auto session =
      MachineSession::load(with(clause, {function("empty", 0, b)}), {{begin_probe(), {0}}}, &log_);
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message, HasSubstr("line 7: empty()"));
  EXPECT_THAT(session.error().message, HasSubstr("R5 !read_ok"));
}

}  // namespace
}  // namespace clew::kernel
