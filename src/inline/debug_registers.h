// SPDX-License-Identifier: Apache-2.0
// A breakpoint of the processor in a process that the caller traces: it changes no text, so that a
// uprobe that stands there, or comes, keeps its trap.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace clew::inline_ {

// Before the instruction at `address`. False: others have taken all of them, or this machine has
// none that work: some hypervisors take the registers, and nothing ever stops there. The latter is
// tried once, by a child. CLEW_NO_DEBUG_REGISTERS=1 in the environment: as on such a machine.
bool set_breakpoint(pid_t pid, uint64_t address);
bool clear_breakpoint(pid_t pid);

}  // namespace clew::inline_
