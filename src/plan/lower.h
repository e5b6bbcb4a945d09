// SPDX-License-Identifier: Apache-2.0
// Plan -> programs and the layout of their state: what stands in front of the merge, as probe ISA.
//
// State takes one of three forms:
//   Dense   every key is constant per site or per process: each site knows its cells' address
//   Table   keys are computed at the hit: cells by key, in a table per thread
//   Events  nothing is aggregated in the probe: captured values go through a ring
//
// A return source that needs the entry (elapsed, entry.argN) gets a second program, the recorder,
// at the entries of the same functions. An exception source always has one, and one at the exits
// that frees the record; its own program runs at the unwinder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "abi/arena.h"
#include "abi/region.h"
#include "aggregate/accumulator.h"
#include "base/error.h"
#include "collect/event_batch.h"
#include "extension/extension.h"
#include "isa/program.h"
#include "plan/coder.h"
#include "plan/plan.h"

namespace clew::plan {

enum class ProgramPoint : uint8_t {
  Entry,
  Exit,
  Offset,
  UnwindStart,  // The entries of the unwinder's functions, which may leave calls for an exception.
  Landing,      // Where they go on in an outer frame: serves all exception sources.
  Jump,         // Where longjmp, whose entry is an UnwindStart, does the same without an exception.
};

// Programs at the unwinder belong to no site of their source.
constexpr bool is_at_unwinder(ProgramPoint point) {
  return point == ProgramPoint::UnwindStart || point == ProgramPoint::Landing ||
         point == ProgramPoint::Jump;
}

struct ProbeProgram {
  isa::Program program;
  uint16_t source = 0;  // Index in query.sources.
  ProgramPoint point = ProgramPoint::Entry;
  bool is_recorder = false;
  // At exits by tail call, where there is no return value: counts the hit as missed. Set for
  // programs that read it.
  std::optional<isa::Program> at_tail_call = std::nullopt;
  std::vector<SiteConstant> site_constants = {};
};

enum class StateForm : uint8_t { Dense, Table, Events };

// What the tracer knows when it lowers.
struct LowerInput {
  uint64_t tick_multiplier = 0;
  uint32_t tick_shift = 0;
  uint64_t base_ticks = 0;
  uint64_t base_ns = 0;
  int64_t epoch_ns = 0;       // CLOCK_REALTIME - CLOCK_MONOTONIC.
  uint32_t group_count = 1;   // Dense: distinct keys over all sites.
  bool branch_guards = true;  // Addresses of extensions are compared, not masked.
  uint64_t extension_fuel = extension::kFuel;
  // That have the functions that the query calls.
  std::span<const extension::Extension> extensions = {};
  // Probes count from when they are armed, one process after the other, and the session begins
  // later: what was counted before can be taken away.
  bool begins_later = false;
};

// What a time stamp means. The tracer computes what Coder::monotonic_time computes in a probe.
struct Clock {
  uint64_t tick_multiplier = 0;  // Nanoseconds = ticks * multiplier >> shift.
  uint32_t tick_shift = 0;
  uint64_t base_ticks = 0;  // Time stamp counter at `base_ns` of CLOCK_MONOTONIC.
  uint64_t base_ns = 0;
  int64_t epoch_ns = 0;  // Nanoseconds since 1970 = those of CLOCK_MONOTONIC + this.

  [[nodiscard]] uint64_t monotonic_ns(uint64_t ticks) const;
};

// What the record of an open call holds behind its key: words of the payload.
struct RecordShape {
  bool has_time = false;            // Word 0 is the time stamp at entry.
  std::vector<uint16_t> arguments;  // Then these, in this order.
  std::optional<uint32_t> caller_word = std::nullopt;
};

struct Lowered {
  StateForm form = StateForm::Dense;
  std::vector<ProbeProgram> programs;
  abi::RegionLayout layout{};
  uint32_t dense_words = 0;  // Of one generation.
  RecordShape records;
  aggregate::StateShape state;
  // Events: what each event carries; words_in_event(capture i) words follow those of i - 1, of long
  // text (has_own_length) a word with the size in bytes of what follows it. Shape = source.
  std::vector<query::Expression> captures;
  std::vector<collect::EventWords> event_words;  // By shape.
  Clock clock;                                   // Of the time stamps of events.
  bool calls_extensions = false;
  bool walks_stacks = false;  // Of the process, by tables that it must have (abi/machine/unwind.h).
  bool branch_guards = false;  // As LowerInput has it.
  uint64_t extension_fuel = extension::kFuel;
  // In the window, when functions with loops are called: the count of hits that were not looked at,
  // then kFuelWords counts of hits out of fuel, by probe. 0 = none.
  uint32_t fuel_offset = 0;
  uint32_t duty_words = 0;  // Counts of joins in place (DutyCounter), in front of their counters.
  std::optional<uint32_t>
      passed_dense;  // Index in state.dense of the count of all hits that passed.

  // Window pointer to the cells of dense group `group`: SiteConstant::GroupPointer.
  [[nodiscard]] uint64_t group_pointer(uint32_t group) const;
  // Window pointer to the count of one of the probes.
  [[nodiscard]] uint64_t fuel_pointer(uint32_t word) const {
    return fuel_offset + 8 * (uint64_t{1} + word);
  }
};

// Which form the state of a plan takes.
StateForm state_form(const Plan& plan);

// Errors: Limit when state does not fit kRegionSizeLog2Max or the frame; InvalidQuery for a program
// that cannot be built.
Expected<Lowered> lower(const Plan& plan, const LowerInput& input);

// Probes beyond share their counts, and are disarmed together. One of abi::kSpentWords is that of
// landings.
inline constexpr uint32_t kFuelWords = abi::kSpentWords - 1;
inline constexpr uint32_t kRegionSizeLog2Max = 26;  // 64 MiB of address space per thread.
inline constexpr uint32_t kRingSizeLog2 = 20;
inline constexpr uint32_t kRecordsLog2 = 11;
inline constexpr uint32_t kTableBytesMax = 4U << 20;
inline constexpr uint32_t kTableEntriesLog2Max = 13;
inline constexpr uint32_t kTableEntriesLog2Min = 6;

}  // namespace clew::plan
