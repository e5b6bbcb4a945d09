// SPDX-License-Identifier: Apache-2.0
// Where a copied function records: DAG tiling. After Ayers et al., "TraceBack: First Fault
// Diagnosis by Reconstruction of Distributed Control Flow", PLDI 2005, section 2; overlap of DAGs
// and bits on one side of a branch are ours.
//
// A *head* is a block at whose start a new record is begun. All blocks that are reached from it
// without passing another head or a call that may record are its *DAG*; it has no cycle. A record
// is the DAG's id and path bits: a *bit site* sets one when control takes that side of a branch.
// A block may be in several DAGs; its bit is free in all of them.
//
// Heads are
//   - the function's entry, landing pads, what switches lead to, and the heads of loops that go
//     through no call which may record: such a call ends the path anyway;
//   - what is behind a call that is not silent (imports.h), but for calls of copied functions that
//     return by themselves: behind those only where a decision follows, as bits would go into a
//     record of the callee;
//   - blocks that more than kOwnersMax DAGs would share, and those where a DAG's bits run out.
//
// What ends a path decides which branches need a bit. The next record is certain where it ends at a
// head, or in a call of or a jump to a copied function. Behind a return, other calls, other tail
// calls, traps, it may be any. A branch needs no bit when the next records of its two sides are
// certain, and no record is on both sides; then also no block is. So:
//
//   - The bits and the next record together leave exactly one path, whatever the program does.
//   - Where a path ends with what is not certain, the bits alone do.
//   - So they do up to a given instruction, if control is known to be there now.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/recorder.h"
#include "copy/facts.h"
#include "copy/prove_module.h"
#include "recorder/flow.h"

namespace clew::recorder {

inline constexpr uint32_t kOwnersMax = 8;

struct DagHead {
  uint32_t block = 0;  // In Proved::blocks.blocks().
  uint32_t dag = 0;    // Number within the function: 0, 1, ….
};

struct BitSite {
  uint32_t block = 0;  // Whose last instruction is the branch.
  uint32_t edge = 0;   // Of edges_of(block): the side that sets the bit.
  uint8_t bit = 0;     // Below abi::kPathBits.
  // The edge is the only way to where it leads, and no head is there: the bit is set at the start
  // of that block. Else between the two.
  bool on_target = false;
};

// A loop that begins a record when it is entered, not when control comes back to its head: that
// way leads behind what the head writes.
struct OnceLoop {
  uint32_t head = 0;     // A block, and so is the next one.
  uint32_t latch = 0;    // Leads back to the head.
  bool runs_on = false;  // Not by a jump: the latch stands in front of the head.
};

struct FunctionTiling {
  std::vector<DagHead> heads;   // By block.
  std::vector<BitSite> bits;    // By block.
  std::vector<OnceLoop> loops;  // By latch.
};

// Once: of an innermost loop that calls nothing and has one way round, what is recorded is that it
// ran, and where it was left, but not how often it went round. Its head's DAG has the loop's blocks
// in a row, and every exit but one has a bit. Each: all loops record each time round.
enum class Loops : uint8_t { Once, Each };

// The blocks of each DAG are at most those of the function, and there are at most as many DAGs.
FunctionTiling tile(const copy::Facts& facts, const copy::Proved& proved, const Flow& flow,
                    const Copied& copied, Loops loops);

// All of a module. Ids are relative: DAG d of function f is first_dag[f] + d.
struct ModuleTiling {
  std::vector<FunctionTiling> functions;  // As in ModuleProof::proved, and so the next one.
  std::vector<uint32_t> first_dag;
  uint32_t dag_count = 0;
};

ModuleTiling tile_module(const copy::Facts& facts, const copy::ModuleProof& proof,
                         const Copied& copied, Loops loops);

}  // namespace clew::recorder
