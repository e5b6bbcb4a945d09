// SPDX-License-Identifier: Apache-2.0
// Where control leaves a function: its returns and tail jumps, in the function and its cold parts,
// and where an unwinder's function goes on in an outer frame. Jumps between the parts of one
// function are not exits; calls that never return are not exits; an indirect jump is a tail call
// when the stack is as it was at entry and no jump table explains it. A function that runs on into
// the next one leaves behind its last instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tl/expected.hpp>

#include "code/module_code.h"
#include "code/refusal.h"
#include "code/window.h"

namespace clew::code {

struct Exit {
  uint64_t address = 0;      // Of the instruction at which control leaves,
  Side side = Side::Before;  // and where.
  bool tail_call = false;
};

struct ExitRefusal {
  uint64_t address = 0;  // The instruction that is not understood.
  RefusalReason reason = RefusalReason::IndirectJump;
};

// The exits of functions()[function], by address. Empty when it never returns.
tl::expected<std::vector<Exit>, ExitRefusal> find_exits(const ModuleCode& code, uint32_t function);

// Where every call that ends with a ret passes before it: at the direct jumps that lead to `begin`,
// and behind the instruction in front of it if that one runs on. From there it is straight on to
// the ret, over fewer bytes than a jump has: over none, or over instructions that may run anywhere.
struct ReturnWays {
  uint64_t begin = 0;
  std::vector<Exit> ways;
  Tail tail = {};  // From `begin` on; none when that is the ret.
};

// Nothing when there may be other ways.
std::optional<ReturnWays> ways_to_return(const ModuleCode& code, uint32_t function, uint64_t ret);

// Where a function of the unwinder leaves its own frame and those below the one that it has found:
// the `mov rsp, rcx` of gcc's __builtin_eh_return. At it, rcx is the address of the word that says
// where to go on, and rcx + 8 the stack pointer there. Such a function has the jump behind it not
// among its exits.
// Longjmp: the `mov rsp, r8` of glibc's longjmp; r8 is the stack pointer there.
enum class StackSwitch : uint8_t { Unwinder, Longjmp };
std::vector<uint64_t> find_stack_switches(const ModuleCode& code, uint32_t function,
                                          StackSwitch kind);

// The offsets in `text` that look like one, wherever instructions start. In Debian's programs and
// libraries nothing else does.
std::vector<size_t> find_stack_switches(std::span<const uint8_t> text, StackSwitch kind);

// Indirect jumps of the function that are neither switches nor tail calls: they may go anywhere in
// the function. Usually none.
std::vector<uint64_t> unexplained_jumps(const ModuleCode& code, uint32_t function);

}  // namespace clew::code
