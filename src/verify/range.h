// SPDX-License-Identifier: Apache-2.0
// Rule R7: what the verifier knows of a register, an unsigned 64-bit range and a number of low zero
// bits, and how each whitelisted instruction changes it. Every function over-approximates: each
// value that the instruction can produce from values in its operands' ranges is in the result.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "verify/instruction.h"

namespace clew::verify {

struct Range {
  uint64_t low = 0;
  uint64_t high = std::numeric_limits<uint64_t>::max();
  uint32_t zero_bits = 0;  // Low bits that are 0; kept by moves only.

  bool operator==(const Range&) const = default;
  [[nodiscard]] constexpr bool contains(uint64_t value) const {
    const uint64_t mask = zero_bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << zero_bits) - 1;
    return value >= low && value <= high && (value & mask) == 0;
  }
};

class Ranges {
 public:
  [[nodiscard]] const Range& of(Register r) const { return ranges_[static_cast<unsigned>(r)]; }
  // At a label: nothing is known (R8).
  void forget_all() {
    ranges_ = {};
    compared_.reset();
  }
  // Behind a call, which may have changed these.
  void forget(abi::RegisterSet registers) {
    for (unsigned n = 0; n < ranges_.size(); ++n) {
      if (registers.has(static_cast<Register>(n))) ranges_[n] = {};
    }
  }
  // At a label, behind forget_all().
  void declare(Register r, uint64_t high) { set(r, {0, high, 0}); }
  // What is known after `instruction`, which must have passed the rules on its operands. Of what a
  // call changes besides rax the caller knows: forget().
  void apply(const Instruction& instruction);
  // The same behind a conditional branch that was not taken: `cmp r64, imm ; ja …` leaves r <= imm.
  void apply_not_taken(const Instruction& branch);

 private:
  // What the last instruction compared with a constant, all 64 bits of it.
  struct Compared {
    Register in = Register::Rax;
    uint64_t with = 0;
  };
  void set(Register r, const Range& range) { ranges_[static_cast<unsigned>(r)] = range; }
  [[nodiscard]] Range source(const Instruction& instruction) const;
  [[nodiscard]] Range result(const Instruction& instruction) const;
  [[nodiscard]] Range product(const Instruction& instruction) const;
  [[nodiscard]] Range address(const Memory& memory) const;

  std::array<Range, 16> ranges_ = {};
  std::optional<Compared> compared_;
};

}  // namespace clew::verify
