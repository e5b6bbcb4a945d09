// SPDX-License-Identifier: Apache-2.0
// The blocks that a thread ran, from its records of all modules. A stack of the calls in progress
// says what a record may be: behind a direct call of a copied function it is that function's entry;
// when such a function returns, control goes on behind the call, also where no record says so.
//
// Where records do not fit, control came another way: an exception, longjmp, a signal, a lost or
// overwritten record; and of the oldest ones the callers are not known. Then
//   - an activation on the stack that goes on at that head behind its call, at its landing pad, or
//     behind a call that may have been setjmp is believed, the innermost one first, and those
//     above it are gone;
//   - else an entry is believed to be called from there;
//   - else the activation is one that was not known, and nothing is known of its callers.
// A signal's record says where a handler has interrupted an activation, which may go on later.
// Each step from which on this holds is marked, and counted. All words are hostile: work is bounded
// by kStepsMax, and by kUnwindMax for each record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "copy/facts.h"
#include "copy/prove_module.h"
#include "recorder/paths.h"
#include "recorder/tile.h"

namespace clew::recorder {

inline constexpr size_t kStepsMax = size_t{1} << 22;
inline constexpr size_t kUnwindMax = 4096;  // Activations that are looked through.

// Of all functions of a module. Borrows all but `copied`, which must be what the tiling was made
// with; not to be moved.
class ModulePaths {
 public:
  ModulePaths(const copy::Facts& facts, const copy::ModuleProof& proof, const Copied& copied,
              const ModuleTiling& tiling);

  [[nodiscard]] const Paths& of(uint32_t function) const { return paths_[function]; }
  // Of a relative id.
  [[nodiscard]] std::optional<DagName> name_of(uint32_t dag) const;

 private:
  const ModuleTiling& tiling_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::vector<Paths> paths_;
};

// Bits of Step::marks.
inline constexpr uint8_t kViolation = 1;  // The bits of this head's record fit no path.
inline constexpr uint8_t kUncertain = 2;  // Blocks may be missing in front of this one, or callers.
inline constexpr uint8_t kUnwound = 4;    // Activations have ended without a return.
inline constexpr uint8_t kGap = 8;  // Words in front of this one are no records of the modules.
inline constexpr uint8_t kHandler = 16;  // A signal's handler begins.
// In front of the step something may be missing.
inline constexpr uint8_t kMissing = kGap | kViolation | kUncertain;

struct Step {
  uint32_t module = 0;    // In the modules that were given.
  uint32_t function = 0;  // In ModuleProof::proved.
  uint32_t block = 0;
  int32_t depth = 0;  // 0: the activation of the first record. Its callers have less.
  uint8_t marks = 0;
  bool is_entry = false;  // The first block of an activation.
};

// Not the whole block of a step ran in it, as a handler has interrupted that: up to the instruction
// at `address`, or from there on.
struct PartOfStep {
  size_t step = 0;
  uint64_t address = 0;
  bool is_rest = false;
};

struct Walk {
  std::vector<Step> steps;
  std::vector<PartOfStep> parts;  // By step.
  std::vector<size_t> begins;     // By word: how many steps there are in front of what it led to.
  PathEnd end = PathEnd::Open;    // Of the last path.
  uint64_t records = 0;
  uint64_t violations = 0;
  uint64_t misfits = 0;    // Records that are not what the one in front of them leads to.
  uint64_t ambiguous = 0;  // Several paths fit.
  uint64_t unwound = 0;
  uint64_t uncertain = 0;
  uint64_t gaps = 0;
  bool is_cut = false;  // At kStepsMax.

  // The number of the first step behind so many words.
  [[nodiscard]] size_t step_behind(size_t words) const {
    return words < begins.size() ? begins[words] : steps.size();
  }
};

class GuardPaths;

struct WalkedModule {
  const ModulePaths* paths = nullptr;
  uint32_t first_id = 1;               // The id of its DAG 0.
  const GuardPaths* guards = nullptr;  // Null: it is recorded by copies.
};

// An instruction of a module's file.
struct WalkedPlace {
  uint32_t module = 0;
  uint64_t address = 0;
};

// What a thread wrote, oldest first. A word that is no record of a module is a gap.
struct ThreadRecords {
  std::span<const uint32_t> words;
  // What an address in a copy is, for the places of signals; empty: none is known.
  std::function<std::optional<WalkedPlace>(uint64_t)> place_of = {};
  // Where control is now, or where the call is that has not come back. In the file of:
  std::optional<uint64_t> stopped_at = std::nullopt;
  uint32_t stopped_in = 0;
  // The stack pointer, of one that is not in a call.
  std::optional<uint64_t> stopped_stack = std::nullopt;
};

// Ids of modules do not overlap.
Walk walk(std::span<const WalkedModule> modules, const ThreadRecords& records);
// Of one module, whose first id is 1.
Walk walk(const ModulePaths& module, const ThreadRecords& records);

}  // namespace clew::recorder
