// SPDX-License-Identifier: Apache-2.0
// The contract is in interrupted_call.h.
#include "inline/interrupted_call.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

namespace clew::inline_ {
namespace {

// System calls that the kernel ends with EINTR when a tracer stops the thread, and does not restart
// by itself as it does futex, poll or nanosleep (signal(7), "Interruption of system calls … by stop
// signals"; seen with Linux 6.18). Socket calls and connect are among them when the socket has
// SO_RCVTIMEO or SO_SNDTIMEO, reads when they are of inotify; without a time-out the kernel begins
// the same calls again itself (net/sock.h, sock_intr_errno), so that is right for connect too.
constexpr std::array<uint64_t, 22> kEndedByStops = {
    SYS_epoll_wait,    SYS_epoll_pwait,     SYS_epoll_pwait2, SYS_io_uring_enter, SYS_io_getevents,
    SYS_io_pgetevents, SYS_rt_sigtimedwait, SYS_semop,        SYS_semtimedop,     SYS_recvfrom,
    SYS_recvmsg,       SYS_recvmmsg,        SYS_accept,       SYS_accept4,        SYS_connect,
    SYS_sendto,        SYS_sendmsg,         SYS_sendmmsg,     SYS_read,           SYS_write,
    SYS_readv,         SYS_writev};

// True when `delivered` (0 = none), or a signal that waits, does something to the thread: EINTR is
// then the program's due. A traced thread also gets the signals that it ignores.
bool has_deliverable_signal(pid_t tid, int delivered) {
  const auto bit = [](int signal) { return uint64_t{1} << (signal - 1); };
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/status", tid));
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

}  // namespace

void restart_interrupted_wait(pid_t tid, int signal, user_regs_struct& registers) {
  constexpr uint64_t kSyscallSizeBytes = 2;
  const bool ended_by_stop = registers.rax == static_cast<uint64_t>(-EINTR) &&
                             std::find(kEndedByStops.begin(), kEndedByStops.end(),
                                       registers.orig_rax) != kEndedByStops.end();
  if (!ended_by_stop || has_deliverable_signal(tid, signal)) return;
  registers.rax = registers.orig_rax;
  registers.orig_rax = static_cast<uint64_t>(-1);
  registers.rip -= kSyscallSizeBytes;
  (void)ptrace(PTRACE_SETREGS, tid, nullptr, &registers);
}

}  // namespace clew::inline_
