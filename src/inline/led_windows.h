// SPDX-License-Identifier: Apache-2.0
// Writes the jumps of windows that lead to copies of whole functions into a stopped process, and
// takes them back. Each step may be the last one: threads leave the windows first, then each jump
// is written by itself, and what it leads to is there already.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "code/led_window.h"
#include "inline/program_counters.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

// Where a process stands, for both.
struct StandingPlaces {
  std::vector<target::Mapping> maps;
  std::vector<uint64_t> resting;  // See find_resting_frames().
};

// A thread that stands in a window goes on in the copy of its instructions. Errors: Refused, with
// nothing changed, when the text is not as the file has it, or a thread stands where no instruction
// of the window begins.
Expected<void> lead_windows(StoppedTarget& target, const StandingPlaces& places,
                            std::span<const code::LedWindow> windows);

// The file's bytes, wherever a jump of these still is. What the jumps led to is left as it is:
// threads may be there. Windows that have somebody else's bytes by now keep them.
Expected<void> restore_windows(StoppedTarget& target, const StandingPlaces& places,
                               std::span<const code::LedWindow> windows);

}  // namespace clew::inline_
