// SPDX-License-Identifier: Apache-2.0
// Where each block of a function has the cursor. That is what makes a record cheap: a cursor in
// memory is loaded, changed and stored by each, one behind the other; one in a register is changed.
//
// A block's *home* of the cursor is a register that is dead in it and that it does not touch: r11
// where that is free, else one that its neighbours have, too. It is memory where none is free, and
// where no probe and nobody who wants r11 follows before the next call. In front of a block the
// cursor *arrives* in that home, or in the home of all blocks that lead there, or in memory; it is
// moved (moves.h) where these differ.
//
// Functions *take* the cursor in r11 from each other, and *leave* it there when they return; then
// memory has it, too, for whoever called from outside. Behind calls, and where an unwinder enters
// a function, memory always has it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "abi/stub.h"
#include "code/call_effects.h"
#include "code/liveness.h"
#include "copy/facts.h"
#include "copy/prove_module.h"
#include "recorder/flow.h"
#include "recorder/tile.h"

namespace clew::recorder {

using Home = std::optional<abi::Register>;  // Nothing: memory.

inline constexpr Home kMemory = std::nullopt;
inline constexpr Home kPassed = abi::Register::R11;  // From function to function.

// How control leaves a block, as far as the cursor is concerned.
struct Leaving {
  code::Instruction last;
  uint32_t callee = kNone;  // The copied function that a direct call enters.
  bool calls = false;       // Also a silent function.
  bool returns = false;     // By a ret.

  [[nodiscard]] bool switches() const { return last.flow == code::Flow::IndirectJump; }
};

// All that is known of a function when homes are looked for. Borrows all.
struct RecordedFunction {
  const copy::Facts& facts;
  const copy::Proved& proved;
  const Copied& copied;
  const FunctionTiling& tiling;
  const Flow& flow;
  const code::Liveness& live;

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(flow.nodes().size()); }
  [[nodiscard]] Leaving leaving(uint32_t block) const;
  // Is the register free in front of the block's last instruction, and not touched by it?
  [[nodiscard]] bool is_free_at_end(uint32_t block, abi::Register r) const;
  // Some ways lead behind what is in front of the block's only instruction: nothing can be done
  // there.
  [[nodiscard]] bool is_passed_by(uint32_t block) const;
  // The block goes round a loop that is recorded once (tile.h) by its way to that one.
  [[nodiscard]] bool goes_round(uint32_t block, uint32_t to) const;
};

struct FunctionHomes {
  std::vector<Home> at;       // By block, and so is the next one.
  std::vector<Home> arrives;  // Not by ways that lead behind what is in front of the block.
  bool takes = false;
  bool leaves = false;
};

// As ModuleProof::proved, and so is the answer.
std::vector<FunctionHomes> find_homes(std::span<const RecordedFunction> functions,
                                      const code::CallEffects& calls);

// Where a way must bring the cursor.
Home wanted_on(const Way& way, const RecordedFunction& from, uint32_t block,
               std::span<const FunctionHomes> homes);

}  // namespace clew::recorder
