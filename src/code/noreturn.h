// SPDX-License-Identifier: Apache-2.0
// Which functions never return to their caller, and so which calls do not come back.
//
// Of imported functions the name says it: the loader writes their addresses into words that the
// PLT, or the call itself, reads. Of the module's own ones their code says it: a function never
// returns when all ways through its blocks end in a trap, in a loop, in a switch of stacks, or in a
// call or jump to a function that never returns. The answer is the smallest such set: it begins
// with the imports and grows until nothing is added.
//
// In doubt a function returns: an indirect jump that nothing explains, bytes that do not decode, a
// way into the middle of another function. Landing pads count as ways. One thing is believed of
// compilers, as exits.h does: a call behind which the function ends does not come back.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "code/module_code.h"
#include "target/module_image.h"

namespace clew::code {

// Names of functions of the C, C++ and unwinding libraries that never return, as the linker has
// them (without the version).
[[nodiscard]] std::span<const std::string_view> noreturn_names();

// The words that the loader fills with the addresses of such functions, ascending. Looks through
// the file's relocations once for each name.
Expected<std::vector<uint64_t>> noreturn_slots(const target::ModuleImage& image);

class NoReturn {
 public:
  // Nothing is known: every call comes back, but for those at the end of a function. Borrows
  // `code`, and so do the others.
  explicit NoReturn(const ModuleCode& code) : code_(code) {}
  // Finds them all. A walk over the blocks of all functions, and one more over those of the callers
  // of each function that never returns.
  NoReturn(const ModuleCode& code, std::vector<uint64_t> slots);

  // functions()[function]; false for cold parts.
  [[nodiscard]] bool never_returns(uint32_t function) const;
  // The same of what stands at an address: a function's first instruction, or a stub of the PLT.
  [[nodiscard]] bool never_returns_at(uint64_t address) const;
  // Does control never come back from where this call or jump, direct or not, leads?
  [[nodiscard]] bool is_last(const Instruction& branch) const;

 private:
  friend class NoReturnFinder;

  [[nodiscard]] bool reads_slot(const Instruction& branch) const;

  const ModuleCode& code_;
  std::vector<uint64_t> slots_;
  std::vector<bool> never_;  // By function; empty when nothing is known.
};

}  // namespace clew::code
