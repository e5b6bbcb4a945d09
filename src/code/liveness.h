// SPDX-License-Identifier: Apache-2.0
// Which general registers and status flags are live at an instruction: whose values there may still
// matter. What is dead may be overwritten there, and nobody will know. rsp is always live.
//
// A backward data flow over the blocks of one function. Inside of it instructions say what they
// read and overwrite; what other code wants of it is one of two assumptions:
//
//   by_abi            what compilers may rely on (System V ABI for x86-64, 3.2):
//     call            takes all registers, but for r11 when it leads through an import or a
//     pointer:
//                     how many arguments it has is not known, and an unwinder restores those that
//                     the callee preserves. It overwrites nothing for sure, also not what the ABI
//                     lets it: gcc keeps values over calls in registers that it has seen the callee
//                     leave alone (-fipa-ra, on from -O2 on).
//     tail call       the same.
//     return          rax, rdx, rbx, rbp, r12 to r15; and for the reason above every register that
//                     no instruction of the function changes, if it calls nothing but functions of
//                     the module. With the stack not as at entry it is a jump, and all is live.
//     flags           are dead in front of calls and behind returns, but for what flag_use.h finds.
//   assuming_nothing  at calls and returns all registers and flags are live. For code with other
//                     conventions, as Go's: the ABI does not hold for it.
//
// What is known of the module's own functions (call_effects.h) takes the place of the first two: a
// call of one takes what that one reads, and some overwrite r11; at a return is live what the ABI
// says, and what some caller wants. Such functions are compiled, as far as their returns go, and
// their jumps to labels lead to labels of theirs.
//
// In doubt all is live: at system calls, traps and int3, which others look at; at jumps that
// nothing explains or that lead into the middle of other functions; in code that is in no block;
// and in a function that is too much work (kEdgeVisitsMax).
//
// What signal handlers and debuggers see of dead registers is not considered.
//
// Cost: a full decoding of each instruction, some 300 ns; `before` decodes the rest of its block
// once more. Memory is some words for each block.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "abi/stub.h"
#include "code/blocks.h"
#include "code/flag_effect.h"
#include "code/flag_use.h"
#include "code/module_code.h"

namespace clew::code {

struct Live {
  abi::RegisterSet registers;
  FlagSet flags = 0;  // Of kStatusFlags.

  bool operator==(const Live&) const = default;
};
inline constexpr Live kAllLive = {abi::RegisterSet(0xffff), kStatusFlags};

struct FunctionBlocks {
  uint32_t function = 0;  // In code.functions().
  const Blocks* blocks = nullptr;
};

// What calls of a module's functions do, by function. Of those that nothing is known of: all.
struct CallEffects {
  std::vector<abi::RegisterSet> reads;
  std::vector<abi::RegisterSet> wanted;   // By some caller, behind the call.
  std::unordered_set<uint64_t> over_r11;  // Calls behind which nothing of r11 is left.
};

// What code reads of what it is reached with, and overwrites in any case.
struct Effect {
  Live read;
  Live written;
  abi::RegisterSet changed;  // Wholly or in part, and perhaps.
};

// Whether a block ends with a ret to whoever called. With another stack, or an address pushed on
// it, ret is a jump, and takes what it likes: setcontext.
enum class Returns : uint8_t {
  No,
  IfAsCompiled,  // How deep the stack is there is not known; in compiled code it does.
  Surely,
};

// What the blocks of a function do, whatever is assumed of other code: for who asks more than once.
struct BlockEffects {
  std::vector<Effect> sums;  // By block, and so the next one.
  std::vector<Returns> returns;
  abi::RegisterSet changed;
};
// `is_compiled`: traps take all but r11, which no compiler keeps for whoever handles the signal.
BlockEffects block_effects(const ModuleCode& code, uint32_t function, const Blocks& blocks,
                           bool is_compiled);

// Borrows the code and the blocks, which are those of functions()[function].
class Liveness {
 public:
  static Liveness by_abi(const ModuleCode& code, uint32_t function, const Blocks& blocks,
                         FlagValues& flags);
  // With what is known of the module's functions. The last two are borrowed for the call alone.
  static Liveness by_calls(const ModuleCode& code, const FunctionBlocks& function,
                           FlagValues& flags, const CallEffects& calls,
                           const BlockEffects& effects);
  static Liveness assuming_nothing(const ModuleCode& code, const Blocks& blocks);

  // At the first instruction of blocks()[block].
  [[nodiscard]] Live at_start(uint32_t block) const { return at_start_[block]; }
  // Before the instruction at `address`.
  [[nodiscard]] Live before(uint64_t address) const;

 private:
  friend class LivenessFinder;

  Liveness(const ModuleCode& code, const Blocks& blocks) : code_(code), blocks_(blocks) {}

  const ModuleCode& code_;
  const Blocks& blocks_;
  std::vector<Live> at_start_;  // By block, and so is the next one.
  std::vector<Live> behind_;    // Its last instruction, with what that one leads to.
};

}  // namespace clew::code
