// SPDX-License-Identifier: Apache-2.0
// Where a thread's history meets the scripts that it was in at its end: those calls of the
// interpreter's loop that have not come back, and which calls of the script each of them runs.
#pragma once

#include <cstddef>
#include <vector>

#include "recorder/snap.h"
#include "recorder/snap_modules.h"
#include "recorder/walk.h"

namespace clew::recorder {

struct ScriptLoop {
  size_t step = 0;  // The newest one of the loop's activation, in Walk::steps: where it is.
  // Calls of the thread's script, the innermost first.
  size_t begin = 0;
  size_t end = 0;
};

// The only stack of scripts that the thread has; null: none, or several.
const ScriptStack* script_of(const Scripts& scripts, int32_t thread);

// The newest first, up to the first moment in front of which something may be missing. None where
// the thread has stopped as one of them begins or ends: memory may be ahead or behind.
std::vector<ScriptLoop> script_loops(SnapModules& modules, const Walk& walk, const Snap& snap,
                                     const SnapThread& thread);

}  // namespace clew::recorder
