// SPDX-License-Identifier: Apache-2.0
// Rule R6, M4: words of the stack above those that are there for sure are read only behind a check
// that they lie on the page of one that is. The check has one form,
//
//     lea r, [rsp + k] ; mov q, r ; and q, 0xFFF ; cmp q, imm ; ja …
//
// with any number of moves and with other instructions between, but for cmp and ja. Where the
// branch is not taken, the 4096 - imm bytes from rsp + k on lie on one page. Stack pointers stay,
// so what is known ends at a label only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "verify/instruction.h"

namespace clew::verify {

class StackPage {
 public:
  // At a label: nothing is known (R8).
  void forget_all() { *this = {}; }
  // What is known behind `instruction`, which writes the registers of `written`.
  void apply(const Instruction& instruction, abi::RegisterSet written);
  // The same behind a conditional branch that was not taken.
  void apply_not_taken(const Instruction& branch);
  // Do the bytes [from, end) from rsp on lie on the page of a byte that is before `mapped_end`?
  [[nodiscard]] bool holds(int64_t from, int64_t end, int64_t mapped_end) const;

 private:
  enum class Kind : uint8_t { Other, Address, PageOffset };
  // Of rsp + offset: the address, or its low 12 bits.
  struct Known {
    Kind kind = Kind::Other;
    int64_t offset = 0;
  };
  struct Bound {
    int64_t offset = 0;
    int64_t at_most = 0;  // (rsp + offset) & 0xFFF.
  };
  [[nodiscard]] const Known& of(Register r) const { return known_[static_cast<unsigned>(r)]; }
  [[nodiscard]] Known result(const Instruction& instruction) const;
  [[nodiscard]] std::optional<Bound> compared(const Instruction& instruction) const;

  std::array<Known, 16> known_ = {};
  std::optional<Bound> compared_;  // By the last instruction.
  std::optional<Bound> bound_;
};

}  // namespace clew::verify
