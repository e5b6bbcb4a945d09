// SPDX-License-Identifier: Apache-2.0
// What the probes of a tiling are in the copy: which bytes, and where.
//
//   head    mov R, gs:[cursor] ; lea R16, [R + 4] ; mov gs:[cursor], R ; mov qword [R], record
//   bit     mov R, gs:[cursor] ; or byte [R + n], bit
//
// R is a register that is dead there (code/liveness.h). The 16-bit sum wraps in the lobe, which is
// aligned to its size. Where flags are live, a bit is added by lea instead, through a second
// register: it is set once in a record. Where no register is dead, rax is pushed below the red
// zone. So nothing of the program's state is changed, and a signal may come at any instruction:
// what its handler records between the two accesses to the cursor is overwritten then.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "code/call_effects.h"
#include "copy/facts.h"
#include "copy/insertions.h"
#include "copy/prove_module.h"
#include "recorder/tile.h"

namespace clew::recorder {

struct ProbeCounts {
  uint32_t heads = 0;
  uint32_t bits = 0;
  uint32_t spilled = 0;  // Of both, those without a dead register.
};

struct Probes {
  copy::Insertions insertions;
  ProbeCounts counts;
  code::ModuleEffects effects;  // By which registers were found to be dead.
};

// `first_id`: of the module's first DAG. `cursor`: gs displacement. The facts' flag values are
// looked up.
Probes make_probes(copy::Facts& facts, const copy::ModuleProof& proof, const ModuleTiling& tiling,
                   uint32_t first_id, uint32_t cursor);

struct RecordedParts {
  copy::Facts& facts;
  const copy::ModuleProof& proof;
  const ModuleTiling& tiling;
};

// The head's probe of a function's entry, for a thread that has done the first instructions already
// and is at `at`: other registers are dead there.
class EntryProbes {
 public:
  // Borrows all but the numbers. `effects`: as make_probes() found them.
  EntryProbes(const RecordedParts& parts, const code::ModuleEffects& effects, uint32_t first_id,
              uint32_t cursor);
  // Originals. Empty when no function that was proved begins at `function`.
  [[nodiscard]] std::vector<uint8_t> bytes(uint64_t function, uint64_t at) const;

 private:
  copy::Facts& facts_;
  const copy::ModuleProof& proof_;
  const ModuleTiling& tiling_;
  const code::ModuleEffects& effects_;
  uint32_t first_id_;
  uint32_t cursor_;
  std::unordered_map<uint64_t, size_t> by_address_;  // In proof_.proved.
};

}  // namespace clew::recorder
