// SPDX-License-Identifier: Apache-2.0
// What becomes of the system call that a stop has interrupted: the program is not to notice.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

namespace clew::inline_ {

// Lets a wait that only our stop has ended begin again, so that the program never sees the EINTR.
// A wait with a time-out starts with its whole time-out again. `registers` are the thread's,
// `signal` is what it is about to get (0 = none). It gets its registers at once: it may run on
// without us.
void restart_interrupted_wait(pid_t tid, int signal, user_regs_struct& registers);

}  // namespace clew::inline_
