// SPDX-License-Identifier: Apache-2.0
// How a function runs on a copy with its probe in it (copy/module_copy.h), and how that ends.
//
//   original:   jmp trampoline          who comes by a pointer, from another module, or from code
//   trampoline: stub, body ; jmp copy   that is no copy. Without a slot: the original, as always
//   entry:      [the probe once more]   who is called by another copy
//   copy:       the function
//
// It ends by two jumps: in the place of the probe at the entry to the original, and of the jump to
// the copy to what is behind it in the trampoline. Both places hold the same state of the thread as
// those they lead to, so it matters to nobody when that happens. Who is in a copy leaves it by its
// next call or return.
#pragma once

#include <cstdint>

#include "abi/journal.h"
#include "inline/arena.h"

namespace clew::inline_ {

// In JournalHeader::copied_modules, whose other bits are of the recorder: functions have run on
// copies with probes of queries, and return addresses may lead there for as long as the process
// lives.
inline constexpr uint32_t kQueryCopies = 1U << 31;
// And exceptions may go through them.
inline constexpr uint32_t kExceptionsPass = 1U << 30;
inline constexpr uint32_t kRecordersCopies = kExceptionsPass - 1;

// Of one point. Addresses in the target.
struct CopyWay {
  uint64_t resume = 0;  // The instruction in front of which the point is, in the copy; 0 = none.
  uint64_t entry = 0;   // The function's own probe in its copy: kEntryProbeBytesMin of it at least.
  uint64_t original = 0;
};
inline constexpr uint32_t kEntryProbeBytesMin = 8;  // Its first instruction has that many.

// As long as nobody stands behind the first byte of its first instruction.
void lead_to_original(const Arena& arena, const CopyWay& way);
// Both jumps, of a layer that has them.
void leave_copy(const Arena& arena, const abi::LayerRecord& layer);

}  // namespace clew::inline_
