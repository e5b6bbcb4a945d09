// SPDX-License-Identifier: Apache-2.0
// How interrupted calls go on under filters. What threads then do is tested live (sleepers_test).
#include "inline/interrupted_call.h"

#include <vector>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include "inline/seccomp_testing.h"

namespace clew::inline_ {
namespace {

user_regs_struct interrupted(uint64_t call, int64_t result) {
  user_regs_struct registers = {};
  registers.orig_rax = call;
  registers.rax = static_cast<uint64_t>(result);
  registers.rip = 0x401002;
  registers.rdi = 100;
  return registers;
}

// `answer` when that word of the call's description is `value`, else that it is allowed.
SeccompFilter when(uint32_t offset, uint32_t value, uint32_t answer) {
  return {step(BPF_LD | BPF_W | BPF_ABS, offset), step(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
          step(BPF_RET | BPF_K, answer), step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

SeccompFilter kills(uint32_t number) {
  return when(offsetof(seccomp_data, nr), number, SECCOMP_RET_KILL_PROCESS);
}

GoingOn under(const std::vector<SeccompFilter>& filters, const user_regs_struct& registers) {
  return going_on(filters, registers);
}

TEST(InterruptedCalls, AreLeftToTheKernelWhenFiltersAllowWhatItMakes) {
  const user_regs_struct sleep = interrupted(SYS_nanosleep, kRestartBlock);
  EXPECT_EQ(under({}, sleep), GoingOn::ByKernel);
  EXPECT_EQ(under({kills(SYS_nanosleep)}, sleep), GoingOn::ByKernel);
  EXPECT_EQ(under({kills(SYS_restart_syscall)}, interrupted(SYS_pause, kRestartNoHand)),
            GoingOn::ByKernel);
}

TEST(InterruptedCalls, BeginAgainWhenAFilterForbidsTheRestart) {
  const user_regs_struct sleep = interrupted(SYS_nanosleep, kRestartBlock);
  EXPECT_EQ(under({kills(SYS_restart_syscall)}, sleep), GoingOn::FromItsBegin);
  EXPECT_EQ(under({kills(SYS_getpid), kills(SYS_restart_syscall)}, sleep), GoingOn::FromItsBegin);
  // Anything but a pass ends the wait early.
  for (const uint32_t answer : {SECCOMP_RET_ERRNO, SECCOMP_RET_TRAP, SECCOMP_RET_TRACE}) {
    const SeccompFilter filter = when(offsetof(seccomp_data, nr), SYS_restart_syscall, answer);
    EXPECT_EQ(under({filter}, sleep), GoingOn::FromItsBegin) << answer;
  }
}

TEST(InterruptedCalls, ThatASupervisorDecidesAreAskedForAgain) {
  const SeccompFilter asks = {step(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
  EXPECT_EQ(under({asks}, interrupted(SYS_poll, kRestartBlock)), GoingOn::FromItsBegin);
  EXPECT_EQ(under({asks}, interrupted(SYS_read, kRestartSys)), GoingOn::ByKernel);
}

TEST(InterruptedCalls, EndWhenNoWayOnIsAllowed) {
  const user_regs_struct sleep = interrupted(SYS_nanosleep, kRestartBlock);
  EXPECT_EQ(under({kills(SYS_nanosleep), kills(SYS_restart_syscall)}, sleep), GoingOn::NotAtAll);
  EXPECT_EQ(under({kills(SYS_pause)}, interrupted(SYS_pause, kRestartNoHand)), GoingOn::NotAtAll);
  // Restarted before, under other filters: what it was is not known any more.
  EXPECT_EQ(under({kills(SYS_restart_syscall)}, interrupted(SYS_restart_syscall, kRestartBlock)),
            GoingOn::NotAtAll);
}

TEST(InterruptedCalls, AreShownToFiltersAsTheKernelShowsThem) {
  const user_regs_struct sleep = interrupted(SYS_nanosleep, kRestartBlock);
  const auto seen = [&](uint32_t offset, uint32_t value) {
    return under({when(offset, value, SECCOMP_RET_KILL_PROCESS)}, sleep) != GoingOn::ByKernel;
  };
  EXPECT_TRUE(seen(offsetof(seccomp_data, arch), AUDIT_ARCH_X86_64));
  EXPECT_TRUE(seen(offsetof(seccomp_data, instruction_pointer), 0x401002));
  EXPECT_TRUE(seen(offsetof(seccomp_data, args), 100));
}

}  // namespace
}  // namespace clew::inline_
