// SPDX-License-Identifier: Apache-2.0
// The contract is in interrupted_call.h.
#include "inline/interrupted_call.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

namespace clew::inline_ {
namespace {

// System calls that the kernel ends with EINTR when a tracer stops the thread, and does not restart
// by itself as it does futex, poll or nanosleep (signal(7), "Interruption of system calls … by stop
// signals"; seen with Linux 6.18). Socket calls and connect are among them when the socket has
// SO_RCVTIMEO or SO_SNDTIMEO (splice and sendfile: when nothing was moved), reads when they are of
// inotify; without a time-out the kernel begins the same calls again itself (net/sock.h,
// sock_intr_errno), so that is right for connect too.
constexpr std::array<uint64_t, 26> kEndedByStops = {
    SYS_epoll_wait,    SYS_epoll_pwait,     SYS_epoll_pwait2, SYS_io_uring_enter, SYS_io_getevents,
    SYS_io_pgetevents, SYS_rt_sigtimedwait, SYS_semop,        SYS_semtimedop,     SYS_recvfrom,
    SYS_recvmsg,       SYS_recvmmsg,        SYS_accept,       SYS_accept4,        SYS_connect,
    SYS_sendto,        SYS_sendmsg,         SYS_sendmmsg,     SYS_read,           SYS_write,
    SYS_readv,         SYS_writev,          SYS_preadv2,      SYS_pwritev2,       SYS_splice,
    SYS_sendfile};

std::ifstream status_of(pid_t tid) {
  return std::ifstream(fmt::format("/proc/{0}/task/{0}/status", tid));
}

// True when `delivered` (0 = none), or a signal that waits, does something to the thread: EINTR is
// then the program's due. A traced thread also gets the signals that it ignores.
bool has_deliverable_signal(pid_t tid, int delivered) {
  const auto bit = [](int signal) { return uint64_t{1} << (signal - 1); };
  std::ifstream file = status_of(tid);
  uint64_t pending = 0;
  uint64_t blocked = 0;
  uint64_t ignored = 0;
  uint64_t caught = 0;
  std::string line;
  while (std::getline(file, line)) {
    const uint64_t mask = line.size() < sizeof "SigPnd:"
                              ? 0
                              : std::strtoull(line.c_str() + sizeof "SigPnd:" - 1, nullptr, 16);
    if (line.starts_with("SigPnd:") || line.starts_with("ShdPnd:")) pending |= mask;
    if (line.starts_with("SigBlk:")) blocked = mask;
    if (line.starts_with("SigIgn:")) ignored = mask;
    if (line.starts_with("SigCgt:")) caught = mask;
  }
  // What these do when nobody asked for anything else (signal(7)).
  ignored |= (bit(SIGCHLD) | bit(SIGCONT) | bit(SIGURG) | bit(SIGWINCH)) & ~caught;
  const uint64_t arriving = (pending & ~blocked) | (delivered == 0 ? 0 : bit(delivered));
  return (arriving & ~ignored) != 0;
}

// Calls by the gate of 32-bit programs have other numbers, and their filters see those.
bool calls_as_x86_64(pid_t tid) {
  __ptrace_syscall_info info = {};
  return ptrace(PTRACE_GET_SYSCALL_INFO, tid, reinterpret_cast<void*>(sizeof info), &info) > 0 &&
         info.arch == AUDIT_ARCH_X86_64;
}

GoingOn going_on_of(pid_t tid, const user_regs_struct& registers) {
  const auto filters = filters_of(tid);
  if (filters && filters->empty()) return GoingOn::ByKernel;
  if (filters && calls_as_x86_64(tid)) return going_on(*filters, registers);
  // What we cannot read has let the call itself pass. Only its time may get longer; a call that was
  // restarted before may be so again.
  const bool by_restart_call = static_cast<int64_t>(registers.rax) == kRestartBlock &&
                               registers.orig_rax != SYS_restart_syscall;
  return by_restart_call && is_filtered(tid) ? GoingOn::FromItsBegin : GoingOn::ByKernel;
}

void write_registers(pid_t tid, const user_regs_struct& registers) {
  (void)ptrace(PTRACE_SETREGS, tid, nullptr, &registers);
}

// The kernel means to go on with the call.
void go_on_under_filters(pid_t tid, user_regs_struct& registers) {
  switch (going_on_of(tid, registers)) {
    case GoingOn::ByKernel:
      return;
    case GoingOn::FromItsBegin:  // A signal's handler ends the one as the other with EINTR.
      registers.rax = static_cast<uint64_t>(kRestartNoHand);
      break;
    case GoingOn::NotAtAll:
      registers.rax = static_cast<uint64_t>(-EINTR);
      break;
  }
  write_registers(tid, registers);
}

// Lets a wait that only our stop has ended begin again.
void restart_ended_wait(const InterruptedThread& thread, user_regs_struct& registers) {
  constexpr uint64_t kSyscallSizeBytes = 2;
  const bool ended_by_stop = std::find(kEndedByStops.begin(), kEndedByStops.end(),
                                       registers.orig_rax) != kEndedByStops.end();
  if (!ended_by_stop || has_deliverable_signal(thread.tid, thread.signal) ||
      going_on_of(thread.tid, registers) == GoingOn::NotAtAll) {
    return;
  }
  registers.rax = registers.orig_rax;
  registers.orig_rax = static_cast<uint64_t>(-1);
  registers.rip -= kSyscallSizeBytes;
  write_registers(thread.tid, registers);
}

}  // namespace

bool is_filtered(pid_t tid) {
  std::ifstream file = status_of(tid);
  if (!file) return true;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("Seccomp:")) return line != "Seccomp:\t0";
  }
  return false;  // The kernel has no filters.
}

std::optional<std::vector<SeccompFilter>> filters_of(pid_t tid) {
  constexpr uint64_t kFiltersMax = 256;
  std::vector<SeccompFilter> filters;
  SeccompFilter filter(BPF_MAXINSNS);
  for (uint64_t index = 0; index < kFiltersMax; ++index) {
    const int64_t size = ptrace(static_cast<__ptrace_request>(PTRACE_SECCOMP_GET_FILTER), tid,
                                reinterpret_cast<void*>(index), filter.data());
    // EINVAL: it has none at all; ENOENT: no more.
    if (size < 0 && (errno == EINVAL || errno == ENOENT)) return filters;
    if (size < 0) return std::nullopt;
    filters.emplace_back(filter.begin(), filter.begin() + size);
  }
  return std::nullopt;
}

GoingOn going_on(std::span<const SeccompFilter> filters, const user_regs_struct& registers) {
  const auto answer = [&](uint64_t number) {
    const seccomp_data call = {.nr = static_cast<int>(number),
                               .arch = AUDIT_ARCH_X86_64,
                               .instruction_pointer = registers.rip,
                               .args = {registers.rdi, registers.rsi, registers.rdx, registers.r10,
                                        registers.r8, registers.r9}};
    return answer_of(filters, call) & SECCOMP_RET_ACTION_FULL;
  };
  const auto passes = [](uint32_t action) {
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
  };
  const bool by_restart_call = static_cast<int64_t>(registers.rax) == kRestartBlock;
  if (by_restart_call && passes(answer(SYS_restart_syscall))) return GoingOn::ByKernel;
  const uint32_t again = answer(registers.orig_rax);
  // A supervisor has let it pass once already.
  if (!passes(again) && again != SECCOMP_RET_USER_NOTIF) return GoingOn::NotAtAll;
  return by_restart_call ? GoingOn::FromItsBegin : GoingOn::ByKernel;
}

bool is_to_restart(const user_regs_struct& registers) {
  const auto result = static_cast<int64_t>(registers.rax);
  return static_cast<int64_t>(registers.orig_rax) >= 0 &&
         (result == kRestartSys || result == kRestartNoIntr || result == kRestartNoHand ||
          result == kRestartBlock);
}

void mend_interrupted_call(const InterruptedThread& thread, user_regs_struct& registers) {
  const bool has_ended = static_cast<int64_t>(registers.orig_rax) >= 0 &&
                         static_cast<int64_t>(registers.rax) == -EINTR;
  if (is_to_restart(registers)) {
    go_on_under_filters(thread.tid, registers);
  } else if (has_ended && !thread.group_stopped) {
    restart_ended_wait(thread, registers);
  }
}

void mend_interrupted_call(const InterruptedThread& thread) {
  user_regs_struct registers = {};
  if (ptrace(PTRACE_GETREGS, thread.tid, nullptr, &registers) != 0) return;
  mend_interrupted_call(thread, registers);
}

}  // namespace clew::inline_
