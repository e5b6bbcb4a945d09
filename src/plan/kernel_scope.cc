// SPDX-License-Identifier: Apache-2.0
// Which processes count: those that the session began with and, where it follows them, those that
// they make.
#include "abi/region.h"
#include "isa/opcode.h"
#include "plan/kernel_lowering.h"

namespace clew::plan {

using abi::MachineAccessor;
using abi::QueryWord;
using isa::Jump;
using isa::Register;
using isa::Size;
using query::Expression;

namespace {

// Of KernelLowered::variables; by pid: it belongs to the scope.
constexpr int32_t kFamilyVariable = 0;

}  // namespace

// Which processes. machine.Function and cluster.Function mean all, whatever the session traces.
Expected<void> KernelLowering::restrict(Coder& coder, const query::Source& source) {
  const bool is_everyone = query::is_everywhere(source.scope);
  if (!is_everyone && follows()) return restrict_to_family(coder, source);
  const Expression condition =
      pid_condition(is_everyone ? std::vector<int64_t>() : input_.pids, input_.tracer_pid);
  KernelUse use;
  use.words.insert(QueryWord::Pid);
  CLEW_TRY(provide(coder, source, use));
  return coder.require(condition);
}

// The pids that the session began with, and those that processes of it made since.
Expected<void> KernelLowering::restrict_to_family(Coder& coder, const query::Source& source) {
  KernelUse use;
  use.words.insert(QueryWord::Pid);
  CLEW_TRY(provide(coder, source, use));
  isa::Builder& builder = coder.builder();
  const isa::Label is_one = builder.label();
  builder.load(Size::Double, Register::R2, Register::R6, context_of(QueryWord::Pid));
  for (const int64_t pid : input_.pids)
    builder.jump_if(Jump::Equal, Register::R2, static_cast<int32_t>(pid), is_one);
  builder.load_window(Register::R3, machine(abi::kMachineKeyOffset))
      .store(Size::Double, Register::R3, 0, Register::R2)
      .move(Register::R2, kFamilyVariable);
  call(coder, MachineAccessor::VariableLoad);
  builder.jump_if(Jump::Equal, Register::R0, 0, coder.exit_label()).bind(is_one);
  return {};
}

Expected<void> KernelLowering::family() {
  if (input_.family == nullptr) return {};
  CLEW_TRY(family_begins(input_.family->begins));
  return follows() ? family_ends(input_.family->ends) : Expected<void>{};
}

// Before the new process runs for the first time.
Expected<void> KernelLowering::family_begins(const query::Query& begins) {
  Coder coder(begins, begins.sources[0], environment_);
  provided_ = {};
  coder.begin();
  CLEW_TRY(restrict(coder, begins.sources[0]));
  for (const Expression& condition : begins.where)
    CLEW_TRY(coder.require(condition));
  coder.count_loss(offsetof(abi::RegionHeader, forks));
  if (follows()) {
    isa::Builder& builder = coder.builder();
    builder.load_window(Register::R9, machine(abi::kMachineKeyOffset));
    CLEW_TRY(coder.store(begins.values[0].expression, Register::R9, 0));
    builder.move(Register::R2, kFamilyVariable).move(Register::R3, 1);
    call(coder, MachineAccessor::VariableStore);
  }
  result_.programs.push_back(
      {.program = CLEW_TRY(coder.finish("a process begins")), .family = FamilyEvent::Begins});
  return {};
}

// Its pid may be another's from now on.
Expected<void> KernelLowering::family_ends(const query::Query& ends) {
  Coder coder(ends, ends.sources[0], environment_);
  coder.begin();
  isa::Builder& builder = coder.builder();
  builder.load_window(Register::R9, machine(abi::kMachineKeyOffset));
  CLEW_TRY(coder.store(ends.values[0].expression, Register::R9, 0));
  builder.move(Register::R2, kFamilyVariable);
  call(coder, MachineAccessor::VariableDelete);
  result_.programs.push_back(
      {.program = CLEW_TRY(coder.finish("a process has ended")), .family = FamilyEvent::Ends});
  return {};
}

}  // namespace clew::plan
