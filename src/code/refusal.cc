// SPDX-License-Identifier: Apache-2.0
// The names and sentences of refusal reasons.
#include "code/refusal.h"

#include <utility>

namespace clew::code {

namespace {

using Texts = std::pair<std::string_view, std::string_view>;

Texts texts(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::TooShort:
      return {"too-short", "the instructions leave no room for a jump, here or nearby"};
    case RefusalReason::BranchIntoWindow:
      return {"branch-into-window", "something may jump into the bytes that would be overwritten"};
    case RefusalReason::EntryIsLoopHead:
      return {"entry-is-loop-head", "a loop jumps back to the entry, so hits would not be calls"};
    case RefusalReason::Undecodable:
      return {"undecodable", "the bytes are no instruction that is known"};
    case RefusalReason::IndirectJump:
      return {"indirect-jump", "the function has an indirect jump whose targets are not known"};
    case RefusalReason::Rseq:
      return {"rseq", "the bytes are part of a restartable sequence"};
    case RefusalReason::CrossesFunction:
      return {"crosses-function", "the bytes to overwrite reach into another function"};
    case RefusalReason::DataInText:
      return {"data-in-text", "the program reads the bytes that would be overwritten as data"};
    case RefusalReason::NoRoomForExit:
      return {"no-room-for-exit", "an exit of the function has no room for a jump"};
    case RefusalReason::SyscallInWindow:
      return {"syscall-in-window", "a system call or trap cannot run from another place"};
    case RefusalReason::UnsupportedInstruction:
      return {"unsupported-instruction", "an instruction cannot be copied to another place"};
    case RefusalReason::FallsThrough:
      return {"falls-through", "the function runs on into what is not known to be another one"};
    case RefusalReason::UnbalancedExit:
      return {"unbalanced-exit", "a jump leaves the function with its frame still on the stack"};
    case RefusalReason::SharedTail:
      return {"shared-tail", "calls of other functions get into its middle and leave by its exits"};
    case RefusalReason::WindowInUse:
      return {"window-in-use", "another probe's jump already overlaps these bytes"};
    case RefusalReason::NotCode:
      return {"not-code", "the address is not in the module's executable text"};
    case RefusalReason::NotAnInstruction:
      return {"not-an-instruction", "no instruction starts at the address"};
    case RefusalReason::NotAFunction:
      return {"not-a-function", "no function starts at the address"};
    case RefusalReason::ColdPart:
      return {"cold-part", "the code is a part of another function, which has its own entry"};
    case RefusalReason::ForeignPatch:
      return {"foreign-patch", "the bytes in memory are not those of the file"};
    case RefusalReason::ModuleGone:
      return {"module-gone",
              "the module was unloaded, or loaded anew, before its probes were there"};
    case RefusalReason::ThreadInside:
      return {"thread-inside", "a thread stands in the bytes to overwrite and cannot be moved"};
    case RefusalReason::NoNearMemory:
      return {"no-near-memory", "no free memory is within reach of a jump"};
    case RefusalReason::WrongTrampoline:
      return {"wrong-trampoline", "the code that would run there is not right: a fault of Clew's"};
    case RefusalReason::LaterUprobe:
      return {
          "later-uprobe",
          "a uprobe that somebody else sets there later (bpftrace, perf) would end the process, "
          "as the jump would lie under it; root has a uprobe of the kernel there, and "
          "--allow-late-uprobe-danger takes it all the same"};
  }
  return {"unknown", "unknown"};
}

}  // namespace

std::string_view name(RefusalReason reason) {
  return texts(reason).first;
}

std::string_view sentence(RefusalReason reason) {
  return texts(reason).second;
}

}  // namespace clew::code
