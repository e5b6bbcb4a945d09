// SPDX-License-Identifier: Apache-2.0
// What one linear decode of a module's text knows: where instructions start, how control leaves
// each, and which bytes something may jump to or read. All later questions (windows, exits) are
// look-ups here; no process is needed, and the result depends on the file alone.
//
// Decoding restarts at each function start, so data or hand-written code between functions costs no
// more than the function around it. A byte that does not decode makes its function unsafe, it never
// makes the analysis fail.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "inline/module_text.h"

namespace clew::inline_ {

// How control leaves an instruction. Fits in 4 bits.
enum class Flow : uint8_t {
  Next,          // Falls through; nothing special.
  Nop,           // Multi-byte nop or 0x90: may be padding.
  Int3,          // 0xcc: padding, when nothing reaches it.
  Jump,          // Direct jmp.
  Conditional,   // Direct jcc, loop, jrcxz.
  Call,          // Direct call.
  IndirectCall,  // call r/m
  IndirectJump,  // jmp r/m
  Return,        // ret, ret imm16
  Trap,          // ud2, hlt, int1: control does not pass.
  System,        // syscall, sysenter, int n, xbegin, far branches: never displaced.
  Stack,         // Falls through, and changes rsp other than by call: for depth analysis.
  Bad,           // Did not decode, or runs across a function start.
};

struct Instruction {
  uint64_t address = 0;
  uint8_t length = 0;
  Flow flow = Flow::Bad;
};

class ModuleCode {
 public:
  // The instruction that starts at `address`, if decoding met one there.
  [[nodiscard]] std::optional<Instruction> at(uint64_t address) const;
  // The instruction that ends right before `address`.
  [[nodiscard]] std::optional<Instruction> before(uint64_t address) const;
  // May anything but fall-through reach or read this byte?
  [[nodiscard]] bool is_target(uint64_t address) const;
  [[nodiscard]] bool in_rseq(uint64_t address) const;
  // Bytes of executable text from `address` to the end of its section; empty outside.
  [[nodiscard]] std::span<const uint8_t> bytes_from(uint64_t address) const;
  // Bytes of any section that was given, at most `size`; empty outside.
  [[nodiscard]] std::span<const uint8_t> data_at(uint64_t address, uint64_t size) const;

  // Functions sorted by address; ranges never overlap (an inner one ends the outer one).
  [[nodiscard]] const std::vector<FunctionRange>& functions() const { return functions_; }
  // Index in functions() of the range that contains or starts at the address.
  [[nodiscard]] std::optional<uint32_t> function_at(uint64_t address) const;
  // The function that owns range `index`: itself, or the one whose cold part it is.
  [[nodiscard]] uint32_t owner_of(uint32_t index) const;

 private:
  friend class Analyser;

  struct TextMap {
    Section section;
    std::vector<uint8_t> map;       // Per byte: length | flow << 4 at instruction starts, or 0.
    std::vector<uint64_t> targets;  // One bit per byte.
  };
  [[nodiscard]] const TextMap* text_at(uint64_t address) const;

  std::vector<TextMap> texts_;  // Sorted by address.
  std::vector<Section> data_;   // Sorted by address; not executable.
  std::vector<AddressRange> rseq_;
  std::vector<FunctionRange> functions_;
};

// Never fails: what cannot be read is refused later, site by site. About 15 ms per MB of text.
ModuleCode analyse(const ModuleText& text);

// The target of a direct branch (Flow::Jump, Conditional, Call).
uint64_t branch_target(const ModuleCode& code, const Instruction& branch);

}  // namespace clew::inline_
