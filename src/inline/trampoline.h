// SPDX-License-Identifier: Apache-2.0
// One window's trampoline: the displaced instructions with a stub in front of each that has points.
// First without bodies, at its final address, so that each body's address is known; the verified
// bodies are filled in later and change no other byte.
//
//   [lea rsp, [rsp + n]]   once, in front of all, when the first instruction stays in its place and
//                          has moved rsp (kept_instruction.h)
//
//   [jc behind]            in front of all, where bytes serve both ways (code/both_ways.h)
//
//   stub, unguarded                     stub, guarded
//     [lea rsp,[rsp-128] ; pushfq ; cld]  offset points only
//     push r10                            push r10
//     owner check                         owner check
//                                       run:
//                                         cmp qword gs:[A + busy], 0
//                                         jne busy
//                                       free:
//                                         mov gs:[A + busy], rsp
//   run:
//     push clobbers                       push clobbers
//     body                                body
//     pop clobbers                        pop clobbers
//                                         mov qword gs:[A + busy], 0
//     [pop r10 ; jmp copy]                where the function runs on a copy (copy_way.h)
//   skip:                               skip:
//     pop r10                             pop r10
//     [popfq ; lea rsp,[rsp+128]]
//
//   Where flags are a value at an entry or exit (abi/stub.h), they are among what is pushed; the
//   check of the owner stands behind that, with `cld` in front, and skip in front of the pops.
//
//   owner check, by SelfPointer | Instruction                 by Claim
//     mov r10, fs:[0] | rdfsbase r10                            jmp claim
//     add r10, [A + cookie]
//     cmp r10, gs:[A + owner]
//     jne claim
//
//   out of line
//   behind: for each probe at the first instruction, which has lost what it reads:
//             push r10 ; owner check ; run: add qword gs:[missed_unreadable], 1 ; skip: pop r10
//           jmp to the second instruction's probes
//   claim: call runtime.claim ; jnz run  ; jmp skip
//   busy:  call runtime.busy  ; jnz free ; jmp skip
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/journal.h"
#include "abi/stub.h"
#include "base/error.h"
#include "code/relocate.h"
#include "code/window.h"
#include "inline/attachment.h"

namespace clew::inline_ {

// How a stub finds out whether the thread owns the slot (abi/slot.h).
enum class OwnerCheck : uint8_t {
  SelfPointer,
  Instruction,
  Claim,  // Not by itself.
};

// What all stubs of one session near one extent have in common.
struct StubEnvironment {
  uint32_t low_address = 0;  // A.
  uint32_t session = 0;
  uint64_t blob_address = 0;  // Of the blob copy in the extent.
  OwnerCheck owner_check = OwnerCheck::SelfPointer;
  uint32_t unreadable_address = 0;  // Of the session's missed_unreadable; by gs.
};

struct TrampolineRequest {
  const code::Window* window = nullptr;
  std::span<const code::Point> points;          // Of the window.
  std::span<const BodyShape> bodies;            // One per point.
  const std::vector<bool>* left_out = nullptr;  // By point; null = none.
  uint64_t load_bias = 0;
  uint64_t destination = 0;
  // Instructions where layers below have probes: bit i, and the address of that probe.
  uint32_t lower_points = 0;
  std::array<uint64_t, abi::kWindowInstructionsMax> lower_probes{};
  bool loader_hook = false;  // The only point calls the loader's hook instead of a body.
  uint64_t copy = 0;  // Where threads go on that have run the only point's body; 0 = as all do.
};

struct Trampoline {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> body_offsets;  // One per point; 0 where it is left out.
  std::vector<BodyShape> bodies;       // The same: for which bodies the stubs were built.
  std::vector<code::Patch> patches;
  abi::LayerRecord layer{};  // Everything but session, site, lower, upper.
};

// Errors: Limit (rel32 reach, or the window does not fit the journal's records).
Expected<Trampoline> build_trampoline(const TrampolineRequest& request,
                                      const StubEnvironment& environment);

inline constexpr uint32_t kLinkSizeBytes = 5;

// A link slot that leads to `target`, or on to the next byte when target is 0.
std::array<uint8_t, kLinkSizeBytes> link_bytes(uint64_t address, uint64_t target);

}  // namespace clew::inline_
