// SPDX-License-Identifier: Apache-2.0
// Where a stopped process will go on: the instruction pointers of its threads, and those saved in
// signal frames on their stacks, which sigreturn will load.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

struct ProgramCounter {
  uint64_t value = 0;
  size_t thread = 0;      // Index in StoppedTarget::threads(), or kNoThread.
  uint64_t saved_at = 0;  // In a signal frame: address of the saved word. 0 = the register.
};

struct AddressInterval {
  uint64_t begin = 0;
  uint64_t end = 0;  // One past.
};

// Signal frames that lie on no running thread's stack: of a coroutine that a handler switched away
// from. Looked for before the process is stopped, in at most kFrameSearchMax bytes of its writable
// memory; found by the address of the C library's signal restorer. Addresses of the saved rip.
inline constexpr uint64_t kFrameSearchMax = 32ULL << 20;
std::vector<uint64_t> find_resting_frames(pid_t pid, uint64_t restorer);

inline constexpr size_t kNoThread = SIZE_MAX;

// All program counters inside the intervals (ascending, disjoint). Of each stack at most
// kStackScanMax bytes above the stack pointer are searched for signal frames; `resting` is what
// find_resting_frames said (the thread of such a counter is kNoThread).
inline constexpr uint64_t kStackScanMax = 256UL * 1024;
std::vector<ProgramCounter> find_program_counters(StoppedTarget& target,
                                                  std::span<const target::Mapping> maps,
                                                  std::span<const AddressInterval> intervals,
                                                  std::span<const uint64_t> resting);

// The flags with which it will go on. Nothing where a frame cannot be read.
std::optional<uint64_t> flags_of(StoppedTarget& target, const ProgramCounter& counter);

// The thread, or the frame, will go on at `value`.
Expected<void> set_program_counter(StoppedTarget& target, const ProgramCounter& counter,
                                   uint64_t value);

}  // namespace clew::inline_
