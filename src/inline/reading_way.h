// SPDX-License-Identifier: Apache-2.0
// How the probes of a process read its memory: by the load of its vDSO (vdso_load.h), as long as
// the process has nothing that must not be read so; else by the kernel.
#pragma once

#include <sys/types.h>

#include "inline/arena.h"
#include "inline/stopped_target.h"
#include "inline/vdso_load.h"

namespace clew::inline_ {

// Of a new arena, with all threads stopped. Where the load cannot be written the kernel stays.
void begin_loads(StoppedTarget& target, const Arena& arena, const abi::LoadRecord& record);

// The kernel reads from now on, in all processes of the arena. The load stays where it is until the
// arena goes.
void stop_loads(const Arena& arena);

// The process may have mapped something: if it is odd (target/odd_mappings.h), the kernel reads.
void look_for_odd_mappings(pid_t pid, const Arena& arena);

}  // namespace clew::inline_
