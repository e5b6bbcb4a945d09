// SPDX-License-Identifier: Apache-2.0
// What callbacks of guards (guards.h) are led to: a record for each call that comes from the
// module, by its return address.
//
//   push rax ; push rcx
//   rax = the return address, from that of the first guard on ; beyond the last one's: end
//   ecx = table[rax] ; 0: end
//   rax = the next word of the lobe ; the cursor is there ; [rax] = rcx, and a zero behind it
//   end:   pop rcx ; pop rax ; ret
//   table: a word for each byte: the record, or 0
//
// All registers are kept, as a compiler may know that the callback changes none. A handler that
// comes between the cursor and the record writes behind it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "recorder/entries.h"
#include "recorder/recorded_module.h"

namespace clew::recorder {

// How the callbacks of a module that is guarded are entered; all go to the probe's first byte.
// Errors: Refused when no jump can stand there.
Expected<EntryPlan> plan_guard_entries(const RecordedModule& module);

// The probe, with its table, for any place.
std::vector<uint8_t> guard_probe(const RecordedModule& module, uint64_t load_bias);

}  // namespace clew::recorder
