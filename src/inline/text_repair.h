// SPDX-License-Identifier: Apache-2.0
// Jumps of sessions that no journal knows of go: the file's bytes come back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "inline/changed_text.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

struct TextRepair {
  uint32_t repaired = 0;
  std::vector<TextChange> left;  // A thread stands where nobody can say how it goes on.
};

// With all threads stopped. `jumps` are ascending, of this stop; `resting` is what
// find_resting_frames said. A thread in front of a jump goes on with the program's own
// instructions.
Expected<TextRepair> repair_text(StoppedTarget& target, std::span<const target::Mapping> maps,
                                 std::span<const uint64_t> resting,
                                 std::span<const TextChange> jumps);

}  // namespace clew::inline_
