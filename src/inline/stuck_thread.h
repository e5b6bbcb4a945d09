// SPDX-License-Identifier: Apache-2.0
// Threads that sleep in the kernel where no signal reaches them (state D): they wait for a disk or
// a server that does not answer, or in vfork(2) for their child. To ask such a thread to stop holds
// up all the others of its process until it has woken.
#pragma once

#include <chrono>
#include <optional>

#include <sys/types.h>

namespace clew::inline_ {

// A thread of the process that slept so for the whole time, without a break; none when each has
// woken once. Returns as soon as that is known. Stops nothing.
std::optional<pid_t> find_stuck_thread(pid_t pid, std::chrono::milliseconds time);

}  // namespace clew::inline_
