// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: plain, slow, and the judge of the native engine. It follows RFC 9669
// word by word, checks each access, and refuses what native code would merely confine: an access
// outside the window is an error here, and lands inside it there.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "abi/context.h"
#include "abi/region.h"
#include "base/error.h"
#include "isa/accessor_host.h"
#include "isa/opcode.h"
#include "isa/program.h"

namespace clew::isa {

// The address of the context, as the program sees it: far from every window pointer.
inline constexpr uint64_t kContextAddress = uint64_t{1} << 62;

inline constexpr uint64_t kFuelDefault = 100'000;

// Everything a run needs besides the program. Borrows all of it.
struct Environment {
  std::span<uint8_t> window = {};
  const abi::Context* context = nullptr;  // Null: there is none (r1 is then the caller's business).
  std::span<const uint64_t> site_constants = {};
  AccessorHost* host = nullptr;         // Null: a call that needs it is an error.
  uint64_t fuel = kFuelDefault;         // Instructions.
  uint64_t r1 = kContextAddress;        // At entry.
  uint64_t r2 = 0;                      // At entry; the conformance vectors pass a length.
  uint64_t frame_end = abi::kFrameEnd;  // r10 at entry.
};

struct Outcome {
  uint64_t result = 0;        // r0 at the exit.
  uint64_t instructions = 0;  // Executed; LDDW counts as one.
  std::array<uint64_t, kRegisterCount> registers{};
};

// Runs the program to its exit. Errors: InvalidQuery when validate() refuses the program; Limit
// when the fuel is used up; Refused for an access outside window and context, a misaligned atomic
// access, too deep calls, a call that the host refuses. Each names the instruction. What the run
// wrote before the error stays written.
Expected<Outcome> interpret(const Program& program, const Environment& environment);

}  // namespace clew::isa
