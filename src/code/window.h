// SPDX-License-Identifier: Apache-2.0
// The values that the analysis hands to the attachment: windows, the instructions they displace,
// and the points inside them where probes run.
//
// A *window* is a run of whole instructions that is executed from a copy in the arena. At its first
// byte, or behind its first instruction (kept_instruction.h), stands a jump: 5 bytes to the arena,
// or 2 bytes to a dead place nearby that holds the 5-byte jump. Invariants, which the planner
// proves and the fuzzer checks:
//   - no branch, landing pad, code pointer or return address leads to a byte behind the first;
//   - all instructions are of one function, none is a system call, a trap or undecodable;
//   - windows of one plan overlap neither each other nor each other's hops.
//
// A *point* is a place in a window where a probe runs: on one side of one displaced instruction.
// One window can carry several points: a 4-byte function's entry and exit share a window.
//
// All addresses are link-time addresses of the module (as in its symbol table); the attachment adds
// the load bias.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "code/refusal.h"

namespace clew::code {

inline constexpr unsigned kJumpSizeBytes = 5;       // jmp rel32
inline constexpr unsigned kShortJumpSizeBytes = 2;  // jmp rel8
inline constexpr unsigned kWindowSizeMax = 32;      // Displaced bytes. Merged windows stop here.
// Of WindowClass::BothWays: what is done first, and a jump.
inline constexpr unsigned kMarkSizeBytes = 5;
inline constexpr unsigned kBothWaysSizeBytes = kMarkSizeBytes + kJumpSizeBytes;

// What relocation must do with a displaced instruction. Everything not named is copied as it is.
enum class Form : uint8_t {
  Plain,            // Same bytes anywhere.
  RipRelative,      // A 4-byte displacement at `field_offset` reaches `target`.
  Jump,             // jmp rel8/rel32 to `target`.
  ConditionalJump,  // jcc rel8/rel32 to `target`; the condition is the low nibble of the opcode.
  CountJump,        // loop, loope, loopne, jrcxz, jecxz to `target`: have no rel32 form.
  Call,             // call rel32 to `target`. Always the last of its window.
  IndirectCall,     // call r/m, not RIP-relative. Always the last of its window.
  RipIndirectCall,  // call [rip + x], reads `target`. Always the last of its window.
  Return,           // ret, ret imm16, rep ret. Control does not fall through.
  IndirectJump,     // jmp r/m. RIP-relative when `field_offset` != 0. No fall-through.
};

struct Displaced {
  uint8_t offset = 0;  // In the window.
  uint8_t length = 0;  // Bytes.
  Form form = Form::Plain;
  uint8_t field_offset = 0;  // Of the displacement field in the instruction; 0 = none.
  uint64_t target = 0;       // Link-time address; see Form.
};

enum class WindowClass : uint8_t {
  OwnBytes,            // The jump lies in the displaced instructions.
  OwnBytesAndPadding,  // It also covers proven padding behind the last one.
  ShortJump,           // jmp rel8 to `hop_address`, where 5 dead bytes take the jump. May cover one
                       // byte of padding behind a `ret`.
  BothWays,            // Bytes that lead to the copy from the first one on, and from behind the
                       // first instruction, too, if the file's has been done (both_ways.h). May
                       // cover padding.
};

struct Window {
  uint64_t address = 0;
  uint8_t size_bytes = 0;  // Whole displaced instructions, without padding.
  WindowClass window_class = WindowClass::OwnBytes;
  uint8_t kept_bytes = 0;     // OwnBytes only: of the first instruction, when it stays.
  bool falls_through = true;  // Control may reach address + size_bytes.
  uint64_t hop_address = 0;   // ShortJump only.
  std::vector<Displaced> instructions;
  std::array<uint8_t, kWindowSizeMax> original{};  // max(size_bytes, bytes overwritten) of them.
  std::array<uint8_t, kJumpSizeBytes> hop_original{};  // ShortJump only.

  [[nodiscard]] uint64_t jump_address() const {
    return address + (window_class == WindowClass::BothWays ? kMarkSizeBytes : kept_bytes);
  }
};

enum class PointKind : uint8_t {
  Entry,   // Before the first instruction behind endbr64, or behind a check of the stack
           // (stack_check.h); or behind a first instruction that changes nothing of what the probe
           // reads (kept_instruction.h).
  Offset,  // Before that instruction. Flags and the red zone are alive.
  Exit,    // Before a ret or a tail jump, or where control goes straight on to one: rsp at the
           // return address.
};

// Where a point lies at its instruction.
enum class Side : uint8_t {
  Before,  // Whatever the instruction does then.
  Taken,   // Behind a jump that is taken. Exits only.
  Passed,  // Behind an instruction, when control goes on to the next one. Exits only.
};

// The instructions between a branch target and a ret that leave no room for a jump: on the ways to
// them a copy runs instead, with the probe in front of the ret. None that depends on its place.
inline constexpr unsigned kTailSizeMax = kJumpSizeBytes - 1;
struct Tail {
  std::array<uint8_t, kTailSizeMax> bytes{};
  uint8_t ret_offset = 0;
  uint8_t size_bytes = 0;  // 0 = no tail: what follows is not copied.
};

struct Point {
  uint32_t window = 0;      // Index in Plan::windows.
  uint8_t instruction = 0;  // Index in Window::instructions.
  PointKind kind = PointKind::Entry;
  Side side = Side::Before;
  bool tail_call = false;    // Exit only: leaves by a jump, so rax is not the function's result.
  bool keeps_flags = false;  // Entry and Exit: flags may be a value there (flag_use.h). Else dead.
  uint32_t request = 0;      // Index in the requests that were planned.
  // Link-time address of the site or of the exit: of a ret whose calls are caught before it, its
  // own; of the first instruction, where the point is behind that.
  uint64_t address = 0;
  Tail tail = {};  // Exit behind an instruction only; all points of that side have the same.

  [[nodiscard]] uint64_t tail_address() const { return address - tail.ret_offset; }
};

}  // namespace clew::code
