// SPDX-License-Identifier: Apache-2.0
// The blocks that a thread ran, from what guards have recorded: two words each (guards.h). From the
// stack pointer and the stack's depth at the guard (code/stack_depth.h) follows where the stack
// pointer was at the function's entry, and that tells activations apart:
//   - a guard whose activation's entry is lower is in one that was called meanwhile, and the first
//     guard of its function; where the entry is the same it is in the same activation, or, at a
//     first guard, in one behind it;
//   - one that is higher says that what is lower has ended, whichever way: by a return, an
//     exception, or longjmp.
// So all guards are in a tree of activations. Between two of an activation the machine code says
// the rest (guard_search.h), and that says how those that it called have ended, and so on down.
//
// What is shown has run. Where no way fits, or several do, what they have in common is shown, and a
// mark; of an activation that has not come back to where that would tell, only what runs up to the
// next call or decision. Words are hostile: no step is made twice, and all loops end with them.
#pragma once

#include <span>

#include "recorder/walk.h"

namespace clew::recorder {

// As walk(); all modules must be recorded by guards.
Walk walk_guards(std::span<const WalkedModule> modules, const ThreadRecords& records);

}  // namespace clew::recorder
