// SPDX-License-Identifier: Apache-2.0
// What the probes of a tiling are in the copy: which bytes, and where.
//
//           where a register R has the cursor (homes.h)   elsewhere
//   head    add R16, 4                                    mov R, gs:[cursor] ; add R16, 4
//           mov qword [R], record                         mov gs:[cursor], R ; mov qword [R],
//           record
//   bit     or byte [R + n], bit                          mov R, gs:[cursor] ; or byte [R + n], bit
//
// Elsewhere R is a register that is dead there (code/liveness.h). The 16-bit sum wraps in the lobe,
// which is aligned to its size. Where flags are live, lea does the sum, and a bit is added by lea
// instead, through a second register: it is set once in a record. Where no register is dead, rax is
// pushed below the red zone. So nothing of the program's state is changed, and a signal may come at
// any instruction: what its handler records may be overwritten then, or overwrite what was recorded
// and not yet told (CursorMap knows where to look for it).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "code/call_effects.h"
#include "code/liveness.h"
#include "copy/facts.h"
#include "copy/insertions.h"
#include "copy/prove_module.h"
#include "recorder/homes.h"
#include "recorder/moves.h"
#include "recorder/stamps.h"
#include "recorder/tile.h"

namespace clew::recorder {

struct ProbeCounts {
  uint32_t heads = 0;
  uint32_t bits = 0;
  uint32_t spilled = 0;          // Of both, those without a dead register.
  uint32_t heads_in_memory = 0;  // Without a register for the cursor.
};

struct Probes {
  copy::Insertions insertions;
  ProbeCounts counts;
  code::ModuleEffects effects;       // By which registers were found to be dead.
  std::vector<FunctionHomes> homes;  // As ModuleProof::proved, and so is the next one.
  std::vector<FunctionMoves> moves;
  // Calls with Time records (stamps.h), and how many bytes write one: the last ones in front of the
  // call, and the first ones behind it.
  std::unordered_map<uint64_t, uint32_t> times_in_front;
  std::unordered_map<uint64_t, uint32_t> times_behind;
};

struct RecordedParts {
  copy::Facts& facts;
  const copy::ModuleProof& proof;
  const Copied& copied;
  const ModuleTiling& tiling;
  std::span<const StampedImport> stamped = {};
};

// `first_id`: of the module's first DAG. `cursor`: gs displacement. The facts' flag values are
// looked up.
Probes make_probes(const RecordedParts& parts, uint32_t first_id, uint32_t cursor);

// How many bytes a move takes.
[[nodiscard]] uint32_t size_of_move(const CursorMove& move);

// The head's probe of a function's entry, for a thread that has done the first instructions already
// and is at `at`: other registers are dead there.
class EntryProbes {
 public:
  // Borrows all but the numbers. `probes`: as make_probes() made them.
  EntryProbes(const RecordedParts& parts, const Probes& probes, uint32_t first_id, uint32_t cursor);
  // Originals. Empty when no function that was proved begins at `function`.
  [[nodiscard]] std::vector<uint8_t> bytes(uint64_t function, uint64_t at) const;

 private:
  [[nodiscard]] code::Live live_at(uint32_t index, uint64_t at) const;

  copy::Facts& facts_;
  const copy::ModuleProof& proof_;
  const Copied& copied_;
  const ModuleTiling& tiling_;
  const Probes& probes_;
  uint32_t first_id_;
  uint32_t cursor_;
};

}  // namespace clew::recorder
