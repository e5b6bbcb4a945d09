// SPDX-License-Identifier: Apache-2.0
// Records of guards as a tree of activations: what called what, and at which guards each was. See
// guard_walk.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recorder/guard_front.h"
#include "recorder/walk.h"

namespace clew::recorder {

struct GuardHit {
  uint32_t block = 0;  // Which the guard's call ends.
  uint8_t marks = 0;   // Of what is in front of it: see walk.h.
};

struct TreeCallee {
  uint32_t activation = 0;
  size_t behind_hits = 0;  // It was called behind so many guards of its caller.
};

struct GuardActivation {
  uint32_t module = 0;
  uint32_t function = 0;           // In ModuleProof::proved.
  std::optional<int64_t> frame{};  // Of its entry: where the stack pointer was, from anywhere.
  bool has_begun = false;          // Its first guard is there; else it began before.
  bool is_loose = false;           // Nobody's call leads to it: a handler, or that is not known.
  int32_t depth = 0;               // Of a root.
  int64_t last_stack = 0;          // At its last guard.
  GuardFront front{};              // As it stands at the end.
  std::vector<GuardHit> hits{};    //
  std::vector<TreeCallee> callees{};
};

struct GuardTree {
  std::vector<GuardActivation> activations;  // Each behind its caller.
  std::vector<uint32_t> roots;               // Of which no caller is known; oldest first.
  // That have not ended as far as guards say, the innermost last; from so many on they may have.
  std::vector<uint32_t> open;
  size_t surely_open = 0;
  bool is_at_stop = false;  // The last of them is where the thread stopped.
  uint64_t records = 0;
  uint64_t gaps = 0;
};

GuardTree read_tree(std::span<const WalkedModule> modules, const ThreadRecords& records);

}  // namespace clew::recorder
