// SPDX-License-Identifier: Apache-2.0
// Which instructions can run from a copy, and what relocation must know of each.
#pragma once

#include <cstdint>

#include <tl/expected.hpp>

#include "code/module_code.h"
#include "code/window.h"

namespace clew::code {

// `instruction` as part of a window that begins at `window_address`. Refused: system calls, the end
// of a signal handler, traps, far branches, endbr64 (it must stay where it is), int3, calls through
// the stack pointer, and forms whose meaning depends on rarely seen prefixes.
tl::expected<Displaced, RefusalReason> displace(const ModuleCode& code,
                                                const Instruction& instruction,
                                                uint64_t window_address);

// The instructions of a window, from its bytes alone: for who kept it without them. False when they
// are not what displace() would have made.
bool find_displaced(Window& window);

// Do the instructions at `address` end a signal handler: rt_sigreturn(2)? Control does not come
// back from them, and they stay where they are: debuggers, unwinders and we (program_counters.h)
// know a signal frame by these bytes.
bool is_signal_return(const ModuleCode& code, uint64_t address);

}  // namespace clew::code
