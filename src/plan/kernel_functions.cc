// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_functions.h"

#include <set>
#include <string>
#include <utility>

#include "isa/opcode.h"

namespace clew::plan {
namespace {

// `state`: where its extension's variables are.
KernelFunction link_function(const extension::Function& function, uint32_t state) {
  std::vector<isa::Instruction> code = function.code;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].opcode != isa::kLoad64Opcode) continue;
    const bool is_state = code[i].source() == static_cast<uint8_t>(isa::Load64::Window);
    if (is_state) code[i].immediate += static_cast<int32_t>(state);
    ++i;
  }
  return {.name = function.name,
          .parameters = static_cast<uint32_t>(function.parameters.size()),
          .code = std::move(code)};
}

}  // namespace

void link_kernel_functions(std::span<const extension::Extension> extensions,
                           KernelLowered& lowered) {
  constexpr uint32_t kAlignment = 64;  // extension.h
  std::set<std::string, std::less<>> called;
  for (const KernelProgram& program : lowered.programs) {
    for (const isa::Reference& call : program.calls)
      called.insert(call.symbol);
  }
  for (const extension::Extension& extension : extensions) {
    const uint32_t state = (lowered.function_bytes + kAlignment - 1) / kAlignment * kAlignment;
    const size_t before = lowered.functions.size();
    for (const extension::Function& function : extension.functions) {
      if (called.contains(function.name))
        lowered.functions.push_back(link_function(function, state));
    }
    if (lowered.functions.size() == before) continue;
    for (const extension::InitialWord& word : extension.initial_words)
      lowered.initial_words.push_back({state + word.offset_bytes, word.value});
    lowered.function_bytes = state + extension.state_bytes;
  }
}

}  // namespace clew::plan
