// SPDX-License-Identifier: Apache-2.0
// From a record back to the blocks that ran. A record of a DAG, the record behind it in the same
// thread, and the place where the thread stopped leave one path; each is checked, and what does not
// fit is said.
//
// Bits may be anything: they come from memory that the traced process could write. No walk visits a
// block twice, as the two sides of a branch without a bit share none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "copy/prove.h"
#include "recorder/flow.h"
#include "recorder/tile.h"

namespace clew::recorder {

struct DagName {
  uint32_t function = kNone;  // In ModuleProof::proved.
  uint32_t dag = kNone;       // Within the function.
  bool is_entry = false;      // Its head is the function's entry.

  bool operator==(const DagName&) const = default;
};

// What is known of the end of a path. Nothing: the last record of a thread that may still run.
struct Behind {
  std::optional<DagName> next;         // The next record.
  std::optional<uint64_t> stopped_at;  // The instruction at which control is, in the file.
  // Only for a while, in front of a signal's handler: bits may say more than how it came there.
  bool is_interrupted = false;
};

enum class PathEnd : uint8_t {
  Head,       // At the start of block `to`, a head.
  Return,     //
  Call,       // In a direct call of the copied function `to`.
  CallOut,    // In another call.
  Tail,       // In the copied function `to`, by a tail call.
  TailOut,    // In another one.
  Trap,       // At an instruction that stops the thread.
  Stopped,    // At `stopped_at`.
  Open,       // Somewhere behind these blocks: several paths go on from there.
  Misfit,     // No path with these bits ends so.
  Violation,  // No path has these bits.
};

struct Path {
  // In the order in which they ran; the head first. A loop that is recorded once (tile.h) is there
  // once, up to where it was left or control stopped; it may have gone round before.
  std::vector<uint32_t> blocks;
  PathEnd end = PathEnd::Violation;
  uint32_t to = kNone;  // See PathEnd.
  // Behind so many blocks there is a decision that no bit says, as another one would have been set
  // for the other side, and none is set behind it: if control got there at all. kNone: none is.
  uint32_t sure = kNone;
  // Several paths fit; `blocks` is what they have in common. Not of a record that probes wrote.
  bool is_ambiguous = false;
};

// Of one function. Borrows all of them.
class Paths {
 public:
  Paths(const code::Blocks& blocks, const Flow& flow, const FunctionTiling& tiling);

  [[nodiscard]] const Flow& flow() const { return flow_; }
  // Of a DAG of the function, with the bits of its record.
  [[nodiscard]] Path behind_head(uint32_t dag, uint32_t bits, const Behind& behind) const;
  // From the block behind a call, which is no head: no bit is set there.
  [[nodiscard]] Path behind_call(uint32_t block, const Behind& behind) const;
  [[nodiscard]] uint32_t dags() const { return static_cast<uint32_t>(tiling_.heads.size()); }
  [[nodiscard]] uint32_t head_of(uint32_t dag) const { return tiling_.heads[dag].block; }
  // Of the block that is its head, or kNone.
  [[nodiscard]] uint32_t dag_of(uint32_t block) const;
  [[nodiscard]] uint32_t entry_dag() const { return dag_of(flow_.entry()); }

 private:
  friend class PathFinder;

  const code::Blocks& blocks_;
  const Flow& flow_;
  const FunctionTiling& tiling_;
};

}  // namespace clew::recorder
