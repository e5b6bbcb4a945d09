// SPDX-License-Identifier: Apache-2.0
#include "engine/callees.h"

#include "abi/accessor.h"
#include "abi/calling.h"
#include "isa/opcode.h"

namespace clew::engine {

std::vector<verify::Callee> callees_of(const isa::Program& program,
                                       std::span<const uint64_t> entries) {
  std::vector<bool> is_called(entries.size());
  const auto call = [&](uint64_t number) {
    if (number < entries.size()) is_called[number] = true;
  };
  for (const abi::Accessor division : {abi::Accessor::DivideUnsigned, abi::Accessor::ModuloUnsigned,
                                       abi::Accessor::DivideSigned, abi::Accessor::ModuloSigned})
    call(static_cast<uint64_t>(division));
  for (const isa::Instruction& one : program.code) {
    if (one.opcode != isa::kCallOpcode) continue;
    for (const abi::Doors doors : {abi::Doors::Keeping, abi::Doors::Sparing})
      call(abi::door_of(static_cast<uint32_t>(one.immediate), doors));
  }
  std::vector<verify::Callee> callees;
  for (uint32_t number = 0; number < entries.size(); ++number) {
    if (is_called[number] && entries[number] != 0)
      callees.push_back({entries[number], abi::changed_by(number), abi::saved_for(number)});
  }
  return callees;
}

}  // namespace clew::engine
