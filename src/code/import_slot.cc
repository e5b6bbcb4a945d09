// SPDX-License-Identifier: Apache-2.0
#include "code/import_slot.h"

#include <algorithm>
#include <array>
#include <span>

#include "code/decode.h"
#include "code/opcodes.h"

namespace clew::code {

namespace {

// The word that `jmp [rip + x]` or `call [rip + x]` reads.
std::optional<uint64_t> word_of(const ModuleCode& code, const Instruction& branch) {
  const auto bytes = code.text_from(branch.address);
  const auto decoded = decode(bytes);
  if (!decoded || !decoded->rip_relative || decoded->displacement_size != 4) return std::nullopt;
  const int64_t distance = signed_field(bytes, decoded->displacement_offset, 4);
  return branch.end() + static_cast<uint64_t>(distance);
}

// What the PLT's stub at a direct branch's target jumps through; the branch itself when it is none.
std::optional<Instruction> last_jump(const ModuleCode& code, const Instruction& branch) {
  if (branch.flow == Flow::IndirectCall || branch.flow == Flow::IndirectJump) return branch;
  const uint64_t target = branch_target(code, branch);
  if (code.range_at(target)) return std::nullopt;
  const auto stub = code.text_from(target);
  const bool has_endbr64 =
      stub.size() > kEndbr64.size() && std::equal(kEndbr64.begin(), kEndbr64.end(), stub.begin());
  const auto jump = code.at(target + (has_endbr64 ? kEndbr64.size() : 0));
  return jump && jump->flow == Flow::IndirectJump ? jump : std::nullopt;
}

}  // namespace

std::optional<uint64_t> import_slot(const ModuleCode& code, const Instruction& branch) {
  const auto jump = last_jump(code, branch);
  return jump ? word_of(code, *jump) : std::nullopt;
}

}  // namespace clew::code
