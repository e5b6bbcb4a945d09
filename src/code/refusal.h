// SPDX-License-Identifier: Apache-2.0
// Why a site is not taken. The names are stable: programs and users' scripts read them.
#pragma once

#include <cstdint>
#include <string_view>

namespace clew::code {

enum class RefusalReason : uint8_t {
  TooShort,                // too-short
  BranchIntoWindow,        // branch-into-window
  EntryIsLoopHead,         // entry-is-loop-head
  Undecodable,             // undecodable
  IndirectJump,            // indirect-jump
  Rseq,                    // rseq
  CrossesFunction,         // crosses-function
  DataInText,              // data-in-text
  NoRoomForExit,           // no-room-for-exit
  SyscallInWindow,         // syscall-in-window
  UnsupportedInstruction,  // unsupported-instruction
  FallsThrough,            // falls-through
  UnbalancedExit,          // unbalanced-exit
  SharedTail,              // shared-tail
  WindowInUse,             // window-in-use
  NotCode,                 // not-code
  NotAnInstruction,        // not-an-instruction
  NotAFunction,            // not-a-function
  ColdPart,                // cold-part
  ForeignPatch,            // foreign-patch
  ModuleGone,              // module-gone
  ThreadInside,            // thread-inside
  NoNearMemory,            // no-near-memory
  WrongTrampoline,         // wrong-trampoline
  LaterUprobe,             // later-uprobe
};
inline constexpr unsigned kRefusalReasons = 25;

// The stable name, as in the comments above.
std::string_view name(RefusalReason reason);

// One sentence for a human: lower case, no final stop.
std::string_view sentence(RefusalReason reason);

}  // namespace clew::code
