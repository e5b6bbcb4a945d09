// SPDX-License-Identifier: Apache-2.0
// Calls of functions of extensions: placeholders (extensions.h).
#include "base/assert.h"
#include "plan/d/clause_coder.h"

namespace clew::plan::d {

namespace {

Register argument_register(size_t index) {
  return static_cast<Register>(static_cast<size_t>(Register::R1) + index);
}

}  // namespace

// A function of C's may change the register that has the context, and no memory may. In the kernel
// it may end the firing.
void ClauseCoder::extension_call(const Node& node) {
  std::vector<Slot> slots;
  for (const Node& operand : node.operands) {
    value(operand);
    slots.push_back(emit_.push());
  }
  CLEW_ASSERT(slots.size() <= extension::kParametersMax);
  for (size_t i = 0; i < slots.size(); ++i)
    emit_.load(argument_register(i), slots[i]);
  for (size_t i = 0; i < slots.size(); ++i)
    emit_.release();
  CLEW_ASSERT(node.index < script_.extension_functions.size() && form_.calls != nullptr);
  const isa::Label behind = code().label();
  form_.calls->push_back({code().size(), script_.extension_functions[node.index], node.line});
  code().call_local(behind).bind(behind).load_context(Register::R6);
  emit_.check_fault();
  emit_.fit(Register::R0, node.type);
}

}  // namespace clew::plan::d
