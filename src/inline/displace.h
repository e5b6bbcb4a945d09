// SPDX-License-Identifier: Apache-2.0
// Which instructions can run from a copy, and what relocation must know of each.
#pragma once

#include <cstdint>

#include <tl/expected.hpp>

#include "inline/module_code.h"
#include "inline/window.h"

namespace clew::inline_ {

// `instruction` as part of a window that begins at `window_address`. Refused: system calls, traps,
// far branches, endbr64 (it must stay where it is), int3, calls through the stack pointer, and
// forms whose meaning depends on rarely seen prefixes.
tl::expected<Displaced, RefusalReason> displace(const ModuleCode& code,
                                                const Instruction& instruction,
                                                uint64_t window_address);

}  // namespace clew::inline_
