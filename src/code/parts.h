// SPDX-License-Identifier: Apache-2.0
// Which ranges are no functions but parts of one: the `.cold` code that compilers move away. In
// stripped files only unwind entries show them, and jumps tell whose they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/module_code.h"

namespace clew::code {

// A direct jump from one range to another.
struct CrossJump {
  uint64_t from = 0;
  uint64_t to = 0;
};

struct PartEvidence {
  std::span<const CrossJump> jumps;
  std::span<const PartLink> links;
  // By range: something calls its first byte or points to it, so it is a function.
  const std::vector<bool>& has_callers;
};

// The owner of each of code.functions(): kNoOwner, kUnknownOwner, or the index of the function it
// is a part of. Ranges that have an owner keep it. A range is a part
//   - when it is entered in mid-frame: its owner is the one function that jumps to it or that it
//     jumps back into, or that is linked to it by an exception table;
//   - when no symbol names it, nobody calls it, and the only function that jumps to it is also
//     jumped back into, behind its first byte, or it lies among parts (a cold part that is entered
//     before the function makes a frame, and does not come back).
std::vector<uint32_t> find_owners(const ModuleCode& code, const PartEvidence& evidence);

}  // namespace clew::code
