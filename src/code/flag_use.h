// SPDX-License-Identifier: Apache-2.0
// Whether code depends on the flags that it is reached with. The ABI knows none at entries, calls
// and returns (System V ABI for x86-64, 3.2.1), and compiled code keeps to it. Hand-written code
// does not always: `cmp ; jmp f` gives f flags, and `call f ; setc` takes them from it.
//
// For each function of a module that is looked for in the module itself: its own code from the
// entry on, what its tail jumps lead to, and what stands behind the calls that lead to it. Nobody
// looks into other modules; so flags that a comparison leaves for nobody in sight are kept as well.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "code/exits.h"
#include "code/module_code.h"

namespace clew::code {

// May the code at `address` read flags that it did not write itself? True in doubt.
bool may_use_flags(const ModuleCode& code, uint64_t address);

// Borrows the code. Callers are looked for once, at the first question that needs them.
class FlagValues {
 public:
  explicit FlagValues(const ModuleCode& code) : code_(code) {}

  // May flags be an argument at `address`, an instruction near the entry of functions()[function]?
  bool live_at_entry(uint64_t address, uint32_t function);
  // May they be a result there?
  bool live_at_exit(const Exit& exit, uint32_t function);

 private:
  [[nodiscard]] bool is_result_of(uint32_t function);
  void find_callers();
  void note_call(const Instruction& call);
  void add(uint64_t target);
  void add_tail_calls(uint32_t function);

  const ModuleCode& code_;
  bool is_searched_ = false;
  bool any_ = false;               // A call that may lead anywhere is followed by a reader.
  std::vector<bool> results_;      // By function: a caller reads flags behind its return.
  std::vector<uint32_t> pending_;  // Of those, the ones whose tail calls were not looked at.
};

}  // namespace clew::code
