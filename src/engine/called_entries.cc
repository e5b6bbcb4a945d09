// SPDX-License-Identifier: Apache-2.0
#include "engine/called_entries.h"

#include "abi/accessor.h"
#include "isa/opcode.h"

namespace clew::engine {

std::vector<uint64_t> called_entries(const isa::Program& program,
                                     std::span<const uint64_t> entries) {
  std::vector<bool> is_called(entries.size());
  const auto call = [&](uint64_t number) {
    if (number < entries.size()) is_called[number] = true;
  };
  for (const abi::Accessor division : {abi::Accessor::DivideUnsigned, abi::Accessor::ModuloUnsigned,
                                       abi::Accessor::DivideSigned, abi::Accessor::ModuloSigned})
    call(static_cast<uint64_t>(division));
  for (const isa::Instruction& one : program.code) {
    if (one.opcode == isa::kCallOpcode) call(static_cast<uint32_t>(one.immediate));
  }
  std::vector<uint64_t> called;
  for (size_t number = 0; number < entries.size(); ++number) {
    if (is_called[number]) called.push_back(entries[number]);
  }
  return called;
}

}  // namespace clew::engine
