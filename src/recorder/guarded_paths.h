// SPDX-License-Identifier: Apache-2.0
// Paths between the records of guards (guards.h). There are no bits: which blocks ran between one
// guard and the next is what the machine code leaves. All ways are looked through that meet no
// other guard; those that lead to what comes next are kept, and where several are, blocks are left
// out, and that is said. A loop without a guard is shown once: it may have gone round before.
//
// A call of what does not record may come back without a trace, or call back; a path goes on behind
// it where what comes next is found there. So who asks says which ends it believes.
#pragma once

#include <cstdint>

#include "recorder/paths.h"

namespace clew::recorder {

enum class Ends : uint8_t {
  Next,  // Those that what is known behind the path names: a guard, a call, where control stopped.
  Return,  // To whoever called.
  Out,     // Calls and jumps to what may call back, and traps.
  Any,
};

struct GuardedStart {
  uint32_t block = 0;
  bool is_recorded = false;  // It is a head, and its guard has recorded.
};

// Misfit, without blocks, when there is no such end. Where several paths lead to one end, it is the
// path's, which is ambiguous, and `blocks` is what they begin with; else the end is Open.
Path guarded_path(const Paths& paths, const GuardedStart& start, const Behind& behind, Ends ends);

}  // namespace clew::recorder
