// SPDX-License-Identifier: Apache-2.0
// The probe that writes a Time record (abi/recorder.h), where memory has the cursor.
//
//   mov R, gs:[cursor] ; rdtsc ; the three values of its words in rax and rdx
//   add R16, 24 ; mov dword [R], 0                 the new end
//   add R16, -4 ; mov [R], …                       five times: the last word first
//   add R16, 16 ; mov gs:[cursor], R
//
// Until the first word is there the ring ends where it did: it takes the place of the old zero. The
// order of stores is kept by the processor. A handler may come at any instruction, and begins its
// records at the same word.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/recorder.h"
#include "abi/stub.h"
#include "code/liveness.h"

namespace clew::recorder {

// In front of a call that moves bytes its descriptor is in edi, behind it its result in eax.
struct NoteOfTime {
  abi::Transfer in_front = abi::Transfer::None;
  std::optional<abi::Register> flags{};  // Of a call that takes any: rcx or r8.
  bool is_behind = false;
};

// `live`: where it stands. `cursor`: gs displacement. Empty where flags are live: nothing is
// written then. Registers that are live are kept, on the stack below the red zone if need be.
std::vector<uint8_t> time_probe(const code::Live& live, uint32_t cursor, NoteOfTime note = {});

}  // namespace clew::recorder
