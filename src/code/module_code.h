// SPDX-License-Identifier: Apache-2.0
// What one linear decode of a module's text knows: where instructions start, how control leaves
// each, and which bytes something may jump to or read. All later questions (windows, exits) are
// look-ups here; no process is needed, and the result depends on the file alone.
//
// Decoding restarts at each start and end of a function, so data or hand-written code between
// functions costs no more than the function around it. A byte that does not decode makes its
// function unsafe, it never makes the analysis fail.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "code/module_text.h"

namespace clew::code {

// How control leaves an instruction. Fits in 4 bits.
enum class Flow : uint8_t {
  Next,          // Falls through; nothing special.
  Nop,           // 0x90 and the long nops: may be padding.
  Int3,          // 0xcc: padding, when nothing reaches it.
  IndirectCall,  // call r/m
  IndirectJump,  // jmp r/m
  Call,          // Direct call.
  Jump,          // Direct jmp.
  Conditional,   // Direct jcc, loop, jrcxz.
  Return,        // ret, ret imm16
  Trap,          // ud2, hlt, int1: control does not pass.
  System,        // syscall, sysenter, int n, xbegin, far branches: never displaced.
  Bad,           // Did not decode, or runs across the start or end of a function.
};

struct Instruction {
  uint64_t address = 0;
  uint8_t length = 0;
  Flow flow = Flow::Bad;

  [[nodiscard]] uint64_t end() const { return address + length; }
};

// A direct jump from a function to its own first instruction (behind endbr64).
struct LoopHead {
  uint64_t address = 0;  // The target.
  uint64_t branch = 0;
};

class ModuleCode {
 public:
  // Of a text's sections, about which nothing is known yet: what an analysis begins with.
  static ModuleCode of_sections(const ModuleText& text);

  // The instruction that starts at `address`, if decoding met one there.
  [[nodiscard]] std::optional<Instruction> at(uint64_t address) const;
  // The instruction that ends right before `address`.
  [[nodiscard]] std::optional<Instruction> before(uint64_t address) const;
  // May anything but fall-through reach or read this byte?
  [[nodiscard]] bool is_target(uint64_t address) const;
  // The same, but for direct jumps from inside the same function.
  [[nodiscard]] bool is_foreign_target(uint64_t address) const;
  [[nodiscard]] bool overlaps_rseq(uint64_t begin, uint64_t end) const;
  // Executable text from `address` to the end of its section; empty outside.
  [[nodiscard]] std::span<const uint8_t> text_from(uint64_t address) const;
  // The section of executable text that the address is in; empty outside.
  [[nodiscard]] Section text_section(uint64_t address) const;
  // `size` bytes of a section that is not executable; empty when they are not all there.
  [[nodiscard]] std::span<const uint8_t> data_at(uint64_t address, uint64_t size) const;

  // By address, then the larger first. An inner range may lie in an outer one (assembly).
  [[nodiscard]] const std::vector<FunctionRange>& functions() const { return functions_; }
  // The innermost range that covers the address.
  [[nodiscard]] std::optional<uint32_t> range_at(uint64_t address) const;
  // Behind the last byte from `address` on that is in the same range, and where none starts.
  [[nodiscard]] uint64_t run_end(uint64_t address) const;
  // The range that starts at the address, function or part.
  [[nodiscard]] std::optional<uint32_t> range_starting_at(uint64_t address) const;
  // The same, if it is no cold part.
  [[nodiscard]] std::optional<uint32_t> function_starting_at(uint64_t address) const;
  // The function that a range belongs to: itself, or the one whose cold part it is. A part whose
  // function is not known belongs to itself.
  [[nodiscard]] uint32_t owner_of(uint32_t range) const;
  // The range itself and its cold parts.
  [[nodiscard]] std::vector<AddressRange> parts_of(uint32_t function) const;
  // Some byte of the range did not decode.
  [[nodiscard]] bool is_unsafe(uint32_t range) const { return unsafe_[range]; }

  // By target.
  [[nodiscard]] std::span<const LoopHead> loop_heads_at(uint64_t address) const;
  // Every indirect jump, by address.
  [[nodiscard]] const std::vector<uint64_t>& indirect_jumps() const { return indirect_jumps_; }
  // Of those: where a switch table leads, ascending; empty when the jump is not understood.
  [[nodiscard]] std::span<const uint64_t> table_targets(uint64_t jump) const;
  // A code pointer (relocation, init array) leads into the range behind its first byte.
  [[nodiscard]] bool has_inner_pointers(const AddressRange& range) const;
  // Behind the first instruction of a function's range: where code that is not the function's jumps
  // to, or anybody calls. By address; of functions() all together.
  [[nodiscard]] std::span<const uint64_t> side_entries(const AddressRange& range) const;
  // Where others may set uprobes besides functions' entries: static probes. Ascending.
  void set_probe_places(std::vector<uint64_t> places) { probe_places_ = std::move(places); }
  [[nodiscard]] std::span<const uint64_t> probe_places() const { return probe_places_; }
  // Every call that was decoded, direct or not.
  void each_call(const std::function<void(const Instruction&)>& visit) const;

 private:
  friend class Analyser;
  friend class AnalysisFile;

  struct TextMap {
    Section section;
    std::vector<uint8_t> map;       // Per byte: length | flow << 4 at instruction starts, or 0.
    std::vector<uint64_t> targets;  // One bit per byte.
    std::vector<uint64_t> foreign_targets;  // A subset of targets.
  };
  struct TableJump {
    uint64_t address = 0;
    size_t list = 0;  // In table_lists_; the jumps of a function share one.
  };
  [[nodiscard]] const TextMap* text_at(uint64_t address) const;

  std::vector<TextMap> texts_;  // The largest first: it answers nearly all look-ups.
  std::vector<Section> data_;   // By address; not executable.
  std::vector<AddressRange> rseq_;
  std::vector<FunctionRange> functions_;
  std::vector<uint32_t> enclosing_;  // Of each range: the innermost one around it, or kNoOwner.
  std::vector<uint32_t> cold_;       // Ranges that are cold parts, by owner.
  std::vector<bool> unsafe_;
  std::vector<LoopHead> loop_heads_;
  std::vector<uint64_t> indirect_jumps_;
  std::vector<TableJump> table_jumps_;  // By address.
  std::vector<std::vector<uint64_t>> table_lists_;
  std::vector<uint64_t> code_pointers_;  // By address.
  std::vector<uint64_t> side_entries_;   // By address.
  std::vector<uint64_t> probe_places_;
};

// Never fails: what cannot be read is refused later, site by site.
ModuleCode analyse(const ModuleText& text);

// The target of a direct branch (Flow::Jump, Conditional, Call).
uint64_t branch_target(const ModuleCode& code, const Instruction& branch);

// The end of the padding (nop and int3 that nothing leads to, with no function's start in it) that
// begins at `address`; `address` itself when there is none.
uint64_t padding_end(const ModuleCode& code, uint64_t address);

}  // namespace clew::code
