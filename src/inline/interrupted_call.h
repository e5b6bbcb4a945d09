// SPDX-License-Identifier: Apache-2.0
// What becomes of the system call that a stop has interrupted. The kernel takes the thread out of
// it, and when the thread runs on either makes the call again or ends it with EINTR; the program
// is to notice neither. What must be mended for that:
//
//   -512, -513, -514   The call is made again (linux/errno.h, ERESTARTSYS and its like). Left, but
//                      for a filter (seccomp) that came meanwhile and forbids it: EINTR then.
//   -516               It is gone on with by restart_syscall(2), which knows how much of a time
//                      limit is left (ERESTART_RESTARTBLOCK). A filter that forbids that call
//                      would kill for it: then the call is made again, with its whole time.
//   -EINTR             The kernel does not restart it: we do, with its whole time, unless a signal
//                      is what has ended it.
//
// A thread gets its registers at once, as it may run on without us. Until then, from the moment
// of its stop on, what the kernel does by itself is what happens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

#include "inline/seccomp_filter.h"

namespace clew::inline_ {

// Answers of the kernel that say how it goes on with a call (linux/errno.h).
inline constexpr int64_t kRestartSys = -512;
inline constexpr int64_t kRestartNoIntr = -513;
inline constexpr int64_t kRestartNoHand = -514;
inline constexpr int64_t kRestartBlock = -516;

struct InterruptedThread {
  pid_t tid;
  int signal;          // That it is about to get, 0 = none.
  bool group_stopped;  // By somebody else (^Z): an EINTR is not ours.
};

// Whether the thread has filters of system calls; true also when that cannot be told.
bool is_filtered(pid_t tid);

// The filters of a stopped thread, the newest first. Nothing when we may not read them: that needs
// CAP_SYS_ADMIN, and that we have none ourselves.
std::optional<std::vector<SeccompFilter>> filters_of(pid_t tid);

// Does the kernel mean to go on with a call of a thread with these registers?
bool is_to_restart(const user_regs_struct& registers);

// `registers` are the thread's, and changed with it.
void mend_interrupted_call(const InterruptedThread& thread, user_regs_struct& registers);
// The same for a thread whose registers nobody has looked at.
void mend_interrupted_call(const InterruptedThread& thread);

// How an interrupted call that the kernel restarts may go on under filters.
enum class GoingOn : uint8_t { ByKernel, FromItsBegin, NotAtAll };
GoingOn going_on(std::span<const SeccompFilter> filters, const user_regs_struct& registers);

}  // namespace clew::inline_
