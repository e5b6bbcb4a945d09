// SPDX-License-Identifier: Apache-2.0
// Writes the copy of a window for its place in the arena: displaced instructions with their
// displacements fixed, probes put in front of the instructions of its points, a jump back at the
// end. Bytes are copied and fields patched; nothing is ever re-encoded (Zydis 4.0 drops prefixes).
//
//   displaced            becomes
//   of both ways         [jc behind] in front of all; where that is, the caller says (both_ways.h)
//   what stays in place  [lea rsp, [rsp + n] in front of all, which takes it back] the same bytes
//   [rip + x] operands   the same bytes with another displacement
//   jmp / jcc rel8       jmp / jcc rel32; with a point on its taken side:
//                        jncc over ; probe ; jmp target ; over:
//   a way to a tail      … copy of the tail's first instructions ; probe ; ret …
//   loop, jrcxz          loop taken ; jmp over ; taken: jmp target ; over:
//   call target          push lo ; mov dword [rsp+4],hi ; jmp target
//                        with the ORIGINAL return address: unwinders and get-pc code see no copy.
//                        The return-stack predictor misses once; sites with calls are rare.
//   call r/m             the same words, then jmp r/m
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "code/window.h"

namespace clew::code {

// Appends to `code` the probe of `points`, which share an instruction and a side; the first byte
// appended will run at `address` (load time). Points come in the order Entry, Offset, Exit.
// Must append the same number of bytes wherever it is placed.
using ProbeEmitter = std::function<Expected<void>(std::span<const Point> points, uint64_t address,
                                                  std::vector<uint8_t>& code)>;

// Of the displacement of `jc behind`, in the copy of a window that serves both ways.
inline constexpr uint32_t kBehindField = 2;

// Where instruction i of the window is in the copy. A thread that stops exactly at `copy_offset` is
// as if it had stopped at the original instruction, behind the probe; at `probe_offset`, before it.
// Elsewhere it is inside a probe or an emulated instruction, and can be stepped out.
struct Boundary {
  uint8_t window_offset = 0;
  uint32_t probe_offset = 0;  // = copy_offset when no probe runs before this instruction.
  uint32_t copy_offset = 0;
};

// Bytes to write over the program's text, and what must be there before (compare, then write).
struct Patch {
  uint64_t address = 0;  // Load time.
  uint8_t size_bytes = 0;
  std::array<uint8_t, 12> original{};
  std::array<uint8_t, 12> replacement{};
};

struct Relocated {
  std::vector<uint8_t> bytes;
  std::vector<Boundary> boundaries;  // One per displaced instruction; last: the jump back, if any.
  std::vector<Patch> patches;        // The hop before the jump to it: write in this order.
};

struct Placement {
  uint64_t destination = 0;  // Load time address of the copy's first byte.
  uint64_t load_bias = 0;    // Load time minus link time of the module.
};

// `points` are Plan::points_of(window). The size of the result does not depend on the placement.
// Errors: Limit when something is out of rel32 reach; Refused when the window keeps an instruction
// that cannot stay (windows are made from a journal that anybody may write); whatever the emitter
// says.
Expected<Relocated> relocate(const Window& window, std::span<const Point> points,
                             const Placement& placement, const ProbeEmitter& emit);

}  // namespace clew::code
