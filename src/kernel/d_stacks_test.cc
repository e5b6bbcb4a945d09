// SPDX-License-Identifier: Apache-2.0
// Stacks begin where the probe fired, not in what runs the program.
#include <ctime>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

using abi::MachineAccessor;
using abi::MachineBuiltin;
using isa::Jump;
using isa::Register;

constexpr uint32_t kFrames = 4;
constexpr uint64_t kKernelStack = 0;

// arg0, caller, stack(kFrames), when the kernel was interrupted.
isa::Program record_stack() {
  Clause c;
  const isa::Label user = c.code().label();
  c.argument(0);
  c.code().jump_if(Jump::Equal, Register::R0, 0, user);
  c.record(0).builtin(MachineBuiltin::Caller).record(1);
  c.call(MachineAccessor::Stack, {Clause::word_offset(2), kFrames, kKernelStack})
      .commit(3 + kFrames);
  c.code().bind(user);
  return c.finish();
}

class StackTest : public SessionTest {};

TEST_F(StackTest, TheStackOfAClockBeginsWithTheInstructionThatItInterrupted) {
  Probe p;
  p.id = 50;
  p.provider = "profile";
  p.name = "profile-4000";
  p.kind = AttachKind::Profile;
  p.period_ns = 250'000;
  load(programs_of({record_stack()}), {{p, {0}}});
  const Expected<void> attached = session_->attach();
  ASSERT_TRUE(attached) << attached.error().message;
  ASSERT_TRUE(session_->begin());
  const time_t end = time(nullptr) + 10;
  while (records_.size() < 50 && time(nullptr) < end) {
    for (int i = 0; i < 1000; ++i)
      syscall(SYS_getppid);
    read();
  }
  ASSERT_GE(records_.size(), 50U);
  for (const Record& record : records_) {
    EXPECT_EQ(record.word(2), record.word(0));
    EXPECT_EQ(record.word(3), record.word(1));
  }
}

}  // namespace
}  // namespace clew::kernel
