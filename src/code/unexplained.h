// SPDX-License-Identifier: Apache-2.0
// A jump that nobody understands may go to any instruction at which the stack is as deep as at the
// jump: compilers keep the depth the same along every edge.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "code/module_code.h"
#include "code/stack_depth.h"

namespace clew::code {

// Borrows the code. Of one function at a time; the last one is kept.
class UnexplainedJumps {
 public:
  explicit UnexplainedJumps(const ModuleCode& code) : code_(code) {}

  // May one of the function's jumps lead to this instruction of it?
  bool may_lead_to(uint64_t address);

 private:
  const ModuleCode& code_;
  uint32_t function_ = kNoOwner;  // Whose data is in the next two.
  std::vector<uint64_t> jumps_;
  std::optional<StackDepths> depths_;
};

}  // namespace clew::code
