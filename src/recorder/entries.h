// SPDX-License-Identifier: Apache-2.0
// How calls come from the originals of functions to their copies: by pointers, from other modules,
// and from functions that are not copied. At each entry a thread shows that it has a slot, and so a
// lobe; one that gets none runs the original.
//
//   original:   jmp entry                           (a window as any probe's)
//   entry:      push r10 ; owner check ; jne slow
//   run:        pop r10 ; [the entry's own probe] ; jmp copy
//   slow:       call claim ; jnz run
//   plain:      pop r10 ; displaced instructions ; jmp original behind them
//
// A first instruction that stays in front of the jump is taken back, as it is done again
// (code/kept_instruction.h). Bytes that serve both ways (code/both_ways.h) have an entry for each.
//
//   claim:      the runtime's; then, for a slot without a cursor: the last word of its lobe, as
//               the first record goes to the one behind; a Start
//               record, and a Time record
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "code/led_window.h"
#include "copy/facts.h"
#include "copy/module_copy.h"

namespace clew::recorder {

// What code in the target uses; gs displacements, but for `cookie`, `claim` and `lobes`.
struct HeadPlaces {
  uint32_t owner = 0;
  uint32_t index = 0;
  uint32_t tid = 0;
  uint32_t cookie = 0;  // An absolute address.
  uint32_t cursor = 0;
  uint64_t claim = 0;
  bool has_time = false;  // Threads that begin may read it.
  uint64_t lobes = 0;     // 0: nothing is recorded, and no thread needs a slot.
  bool keeps_self_pointer = false;
  bool has_base_instructions = false;
};

// Where a thread that comes by a window goes on in the copy, and what it records before.
struct EntryWay {
  uint64_t copy_offset = 0;
  std::vector<uint8_t> probe;
};

struct PlannedEntry {
  code::Window window;
  EntryWay first;   // In front of the window's first instruction,
  EntryWay second;  // and behind it: of bytes that serve both ways alone.
};

// How functions are entered, wherever module and copy will be.
struct EntryPlan {
  std::vector<PlannedEntry> entries;  // By address.
  std::vector<uint64_t> unreachable;  // Originals without a window: link time, ascending.
};

// The probe of a function's entry, for a thread that is at the instruction `at`: both originals.
using EntryProbe = std::function<std::vector<uint8_t>(uint64_t function, uint64_t at)>;

// Errors: Limit when a window begins where there is no copy.
Expected<EntryPlan> plan_entries(const copy::Facts& facts, const copy::ModuleCopy& copy,
                                 const EntryProbe& probe);

struct Entries {
  std::vector<uint8_t> bytes;            // For their place.
  std::vector<code::LedWindow> windows;  // Of the originals.
};

struct EntryPlacement {
  uint64_t load_bias = 0;  // Of the module.
  uint64_t copy = 0;       // Where the copy will be,
  uint64_t address = 0;    // and the first entry.
};

// Of a thread that is at `address` in an entry, with these bytes in front of it: where in the copy
// it goes on, if it has recorded that it enters. Nothing when it has not, or is elsewhere.
std::optional<uint64_t> entered(std::span<const uint8_t> bytes, uint64_t address);
inline constexpr size_t kEnteringBytesMax = 32;

// Room that is enough for the entries of a plan.
uint64_t entry_bytes_max(const EntryPlan& plan);

// Errors: Limit when something is out of reach; Refused when a window is none.
Expected<Entries> write_entries(const EntryPlan& plan, const HeadPlaces& places,
                                const EntryPlacement& placement);

}  // namespace clew::recorder
