// SPDX-License-Identifier: Apache-2.0
// How control goes through a proved function, exactly: its blocks with the ways out of each, where
// switches lead to what their own tables name, and calls and tail calls to the copied function they
// enter, if they do. Tiler, decoders and probes all read this, so they agree on what a way is.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "copy/facts.h"
#include "copy/prove.h"
#include "copy/prove_module.h"
#include "recorder/imports.h"

namespace clew::recorder {

inline constexpr uint32_t kNone = UINT32_MAX;  // No block, no function.
static_assert(kNone == code::kNoBlock);

// The functions of a module that run on copies, by their place in ModuleProof::proved. A value of
// its own.
class Copied {
 public:
  Copied(const copy::Facts& facts, const copy::ModuleProof& proof, Imports imports);

  // The function whose first instruction is there, or kNone.
  [[nodiscard]] uint32_t at(uint64_t address) const;
  [[nodiscard]] const Imports& imports() const { return imports_; }
  // The one that a direct call or jump enters, also through a stub of the PLT; or kNone.
  [[nodiscard]] uint32_t entered_by(const code::ModuleCode& code,
                                    const code::Instruction& branch) const;
  // It leaves by its own `ret`, or by that of a function that does: never by a jump into what is
  // not copied and not silent, which may call back before it returns.
  [[nodiscard]] bool returns_itself(uint32_t function) const { return returns_itself_[function]; }

 private:
  std::vector<std::pair<uint64_t, uint32_t>> by_address_;
  std::vector<bool> returns_itself_;
  Imports imports_;
};

enum class WayKind : uint8_t {
  Block,    // To `block`.
  Return,   // To whoever called, also by a tail call of a silent function.
  Tail,     // A tail call into the copied function `function`.
  TailOut,  // A tail call to what is not copied, or not known.
};

struct Way {
  WayKind kind = WayKind::Block;
  uint32_t block = kNone;     // Block.
  uint32_t function = kNone;  // Tail: in ModuleProof::proved.
  uint64_t target = 0;        // The address, where it is known.

  bool operator==(const Way&) const = default;
};

enum class CallKind : uint8_t {
  None,
  Copied,    // Direct or through an own import, of the copied function `callee`.
  Outside,   // Direct, of another function.
  Indirect,  // Through a register or memory.
};

// A block that calls has no ways: what is behind the call is `behind`. But one whose call is silent
// goes straight on.
struct Node {
  CallKind call = CallKind::None;
  bool may_land_anywhere = false;  // Of a call: nothing is known of where exceptions land.
  uint32_t landing = kNone;        // Else there: a block, or none of the function's.
  uint32_t callee = kNone;         // Copied.
  uint32_t behind = kNone;         // kNone when the call does not come back.
  bool is_branch = false;          // Two ways: edges_of(block)[0] and [1].
  uint32_t first_way = 0;
  uint32_t ways = 0;  // 0 without a call: a trap.
};

// A value of its own.
class Flow {
 public:
  Flow(const copy::Facts& facts, const copy::Proved& proved, const Copied& copied);

  // By block of proved.blocks.
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  // No two of them are equal, but those of a branch may be.
  [[nodiscard]] std::span<const Way> ways_of(uint32_t block) const {
    return std::span(ways_).subspan(nodes_[block].first_way, nodes_[block].ways);
  }
  [[nodiscard]] uint32_t entry() const { return entry_; }    // The function's first block.
  [[nodiscard]] uint32_t function() const { return self_; }  // In ModuleProof::proved.
  // Blocks that an unwinder enters, and those that a switch does.
  [[nodiscard]] const std::vector<uint32_t>& landing_pads() const { return landing_pads_; }
  [[nodiscard]] const std::vector<uint32_t>& cases() const { return cases_; }
  // Blocks behind calls of what is not copied: setjmp is one of them, and returns twice.
  [[nodiscard]] const std::vector<uint32_t>& resumes() const { return resumes_; }

 private:
  friend class FlowMaker;

  std::vector<Node> nodes_;
  std::vector<Way> ways_;
  std::vector<uint32_t> landing_pads_;  // Ascending, and so the next two.
  std::vector<uint32_t> cases_;
  std::vector<uint32_t> resumes_;
  uint32_t entry_ = 0;
  uint32_t self_ = kNone;
};

}  // namespace clew::recorder
