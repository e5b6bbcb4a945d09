// SPDX-License-Identifier: Apache-2.0
// Puts copies of whole functions (copy/module_copy.h) into a command that has not begun: maps them
// within reach of their module, and makes the originals' entries lead there.
//
// An entry is a window as any probe's (code/windows.h), but that its jump leads to the copy of the
// instruction behind what stays in front of it. Where a function has no window, only copies of its
// callers get to its copy, and pointers to it and other modules get to the original.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "copy/check.h"
#include "copy/facts.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

struct InstalledCopy {
  uint64_t address = 0;  // Load time, of the first byte.
  uint64_t size_bytes = 0;
  uint32_t functions = 0;
  uint32_t entries = 0;  // Of these, how many lead to their copy.
};

// `copy` is moved to where it will be. No thread of the process has run code of the module, and no
// other session is there. Errors: Refused when no memory within reach is free; Io; Limit.
Expected<InstalledCopy> install_copy(StoppedTarget& target, const target::ProcessModule& module,
                                     const copy::Facts& facts, copy::CheckedCopy& copy);

}  // namespace clew::inline_
