// SPDX-License-Identifier: Apache-2.0
// Whether a thread is still in the system call that a recorder saw it enter. One that was killed
// there never returns, and its number is given to others; a signal's handler ends in a call of its
// own that never returns, either (rt_sigreturn).
#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace clew::engine {

// The thread's process; nothing when it is in no such call. `entry_ns`: of CLOCK_MONOTONIC. Of a
// thread that has a processor nothing is known but that it was there at the entry: that is enough.
std::optional<pid_t> process_in_call(pid_t tid, uint32_t number, uint64_t entry_ns);

}  // namespace clew::engine
