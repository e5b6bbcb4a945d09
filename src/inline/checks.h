// SPDX-License-Identifier: Apache-2.0
// May, and can, this process be instrumented? Every no has a name in brackets and a reason in the
// user's words; nothing has been changed when it is given.
#pragma once

#include <chrono>
#include <optional>

#include <sys/types.h>

#include "base/error.h"
#include "inline/arena.h"
#include "inline/stopped_target.h"

namespace clew::inline_ {

// What can be said without stopping it.
Expected<void> check_process(pid_t pid);
// Nobody traces it, or not for longer than `patience`: another session, or a doctor, stops it for
// some milliseconds.
Expected<void> check_tracer(pid_t pid, std::chrono::milliseconds patience);

// What its threads' registers say. `arena` is the one that is there already, or null.
Expected<TargetTraits> check_threads(StoppedTarget& target, const Arena* arena);

// Does the thread pointer point to itself, as a C library's does?
bool keeps_self_pointer(const StoppedTarget& target, uint64_t fs_base);

// The thread's id as it knows it itself, in its pid namespace; none when it is gone.
std::optional<uint32_t> inner_tid(pid_t tid);

// Another process on the same memory (CLONE_VM without CLONE_THREAD) may run a thread pointer of
// the target's own threads, by which slots are told apart. Such threads take no slot: their hits
// are counted as missed. Their tids; the registers change when the target goes on.
std::vector<pid_t> bar_sharers(StoppedTarget& target);

// Where the C library keeps a thread's tid, from the thread pointer: true of the threads that are
// there. abi::kTidFromNobody when no place is known.
uint64_t find_tid_offset(StoppedTarget& target);

// False for a command that is stopped before its first instruction of its own (Launched).
bool has_run(StoppedTarget& target);

}  // namespace clew::inline_
