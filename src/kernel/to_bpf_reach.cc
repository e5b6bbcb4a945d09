// SPDX-License-Identifier: Apache-2.0
#include "kernel/to_bpf_reach.h"

#include <vector>

#include "isa/opcode.h"
#include "kernel/opcodes.h"

namespace clew::kernel {
namespace {

using isa::Instruction;

bool falls_through(const Instruction& i) {
  return i.opcode != isa::kJumpOpcode && i.opcode != isa::kJumpFarOpcode &&
         i.opcode != isa::kExitOpcode;
}

size_t length(const Instruction& i) {
  return i.opcode == isa::kLoad64Opcode ? 2 : 1;
}

std::vector<bool> reached(const std::vector<Instruction>& code) {
  std::vector<bool> seen(code.size());
  std::vector<size_t> open = {0};
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    if (at >= code.size() || seen[at]) continue;
    const Instruction& i = code[at];
    seen[at] = true;
    if (length(i) == 2 && at + 1 < code.size()) seen[at + 1] = true;
    if (falls_through(i)) open.push_back(at + length(i));
    if (branches(i))
      open.push_back(static_cast<size_t>(static_cast<int64_t>(at) + 1 + distance(i)));
  }
  return seen;
}

}  // namespace

void remove_unreachable(Function& function) {
  const std::vector<Instruction>& code = function.code;
  const std::vector<bool> seen = reached(code);
  std::vector<uint32_t> place(code.size() + 1);  // Of each instruction, afterwards.
  for (size_t at = 0; at < code.size(); ++at)
    place[at + 1] = place[at] + (seen[at] ? 1 : 0);
  std::vector<Instruction> kept;
  for (size_t at = 0; at < code.size(); at += length(code[at])) {
    if (!seen[at]) continue;
    Instruction i = code[at];
    if (branches(i)) {
      const auto target = static_cast<size_t>(static_cast<int64_t>(at) + 1 + distance(i));
      const auto moved = static_cast<int32_t>(place[target]) - static_cast<int32_t>(place[at]) - 1;
      if (i.opcode == isa::kJumpFarOpcode) {
        i.immediate = moved;
      } else {
        i.offset = static_cast<int16_t>(moved);
      }
    }
    kept.push_back(i);
    if (length(i) == 2) kept.push_back(code[at + 1]);
  }
  std::vector<Reference> references;
  for (Reference& one : function.references) {
    if (!seen[one.instruction]) continue;
    one.instruction = place[one.instruction];
    references.push_back(std::move(one));
  }
  function.code = std::move(kept);
  function.references = std::move(references);
}

}  // namespace clew::kernel
