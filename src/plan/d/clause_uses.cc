// SPDX-License-Identifier: Apache-2.0
#include "plan/d/clause_uses.h"

#include "abi/machine/accessor.h"
#include "abi/machine/window.h"
#include "isa/opcode.h"
#include "plan/d/one_of.h"

namespace clew::plan::d {

using abi::MachineAccessor;
using abi::MachineBuiltin;
using isa::Instruction;

namespace {

constexpr uint8_t kMoveImmediate = 0xB7;
constexpr uint8_t kMoveImmediate32 = 0xB4;
constexpr uint64_t kKernelBegin = 0xFFFF'8000'0000'0000;
constexpr uint64_t kKernelEnd = 0xFFFF'FFFF'F000'0000;  // From here on rather a negative number.

bool is_branch(const Instruction& i) {
  const isa::Class kind = isa::class_of(i);
  return kind == isa::Class::Jump64 || kind == isa::Class::Jump32;
}

// What an instruction that is neither a branch nor a store puts into its destination.
std::optional<uint64_t> constant_of(const isa::Program& program, size_t at) {
  const Instruction& i = program.code[at];
  if (i.opcode == kMoveImmediate) return static_cast<uint64_t>(int64_t{i.immediate});
  if (i.opcode == kMoveImmediate32) return static_cast<uint32_t>(i.immediate);
  const bool is_load = i.opcode == isa::kLoad64Opcode &&
                       i.source() == static_cast<uint8_t>(isa::Load64::Immediate) &&
                       at + 1 < program.code.size();
  if (!is_load) return std::nullopt;
  const auto high = static_cast<uint32_t>(program.code[at + 1].immediate);
  return static_cast<uint32_t>(i.immediate) | uint64_t{high} << 32;
}

bool is_tagged(uint64_t address) {
  return (address & abi::kMachineWindowTagMask) == abi::kMachineWindowTag;
}

class ProgramReader {
 public:
  explicit ProgramReader(const isa::Program& program) : program_(program) {}

  ClauseUses read() {
    for (size_t at = 0; at < program_.code.size(); ++at) {
      const Instruction& i = program_.code[at];
      const bool is_call = is_branch(i) && isa::jump_of(i) == isa::Jump::Call;
      if (is_call) {
        call(at);
        continue;
      }
      if (i.opcode == isa::kLoad64Opcode) load64(at);
      if (isa::class_of(i) == isa::Class::Ldx) argument(i.offset);
      const auto constant = is_branch(i) ? std::nullopt : constant_of(program_, at);
      const bool is_kernel = constant && *constant >= kKernelBegin && *constant < kKernelEnd;
      if (is_kernel && !is_tagged(*constant)) uses_.has_kernel_constant = true;
      if (i.opcode == isa::kLoad64Opcode) ++at;
    }
    return uses_;
  }

 private:
  // The window is given by a constant that is 0 where its header is meant; what is not an argument
  // but looks like one costs a store.
  void argument(int64_t offset) {
    constexpr int64_t kBegin = offsetof(abi::MachineWindowHeader, arguments);
    if (offset < kBegin || offset >= kBegin + int64_t{8} * kProbeArguments) return;
    uses_.arguments |= 1U << ((offset - kBegin) / 8);
  }

  void load64(size_t at) {
    const Instruction& i = program_.code[at];
    const auto kind = static_cast<isa::Load64>(i.source());
    if (kind == isa::Load64::Global) uses_.reads_variables = true;
    if (kind == isa::Load64::Window) argument(i.immediate);
  }

  void call(size_t at) {
    if (calls_function(program_.code[at])) {
      uses_.follows_user_pointers = true;  // Perhaps, and no others.
      return;
    }
    const auto accessor = static_cast<MachineAccessor>(program_.code[at].immediate);
    if (is_one_of(accessor, MachineAccessor::BuiltinInteger, MachineAccessor::BuiltinString)) {
      return builtin(constant_before(program_, at, 2));
    }
    if (is_one_of(accessor, MachineAccessor::DPath, MachineAccessor::Progenyof))
      uses_.needs_kernel = true;
    if (is_one_of(accessor, MachineAccessor::VariableLoad, MachineAccessor::VariableLoadBytes,
                  MachineAccessor::GlobalLoadBytes)) {
      uses_.reads_variables = true;
    }
    if (is_one_of(accessor, MachineAccessor::UserRegister, MachineAccessor::UserArgument)) {
      uses_.needs_registers = true;
      uses_.arguments |= (1U << kProbeArguments) - 1;
    }
    const bool is_stack = is_one_of(accessor, MachineAccessor::Stack, MachineAccessor::StackDepth);
    const uint8_t kind = accessor == MachineAccessor::Stack ? 4 : 2;
    if (is_stack && constant_before(program_, at, kind) != 0) walk_user_stack();
    if (accessor == MachineAccessor::Load) pointer(at, 2, 4);
    if (is_one_of(accessor, MachineAccessor::Copy, MachineAccessor::ReadString)) pointer(at, 3, 5);
    if (is_one_of(accessor, MachineAccessor::InetNtoa, MachineAccessor::InetNtoa6,
                  MachineAccessor::InetNtop, MachineAccessor::LinkNtop)) {
      uses_.follows_pointers = true;
    }
  }

  void pointer(size_t at, uint8_t address, uint8_t user) {
    const auto place = constant_before(program_, at, address);
    const auto is_user = constant_before(program_, at, user);
    if (is_user && *is_user != 0) {
      uses_.follows_user_pointers = true;
      return;
    }
    if (!place || !is_tagged(*place)) uses_.follows_pointers = true;
  }

  void builtin(std::optional<uint64_t> which) {
    if (!which || *which > static_cast<uint64_t>(MachineBuiltin::Walltimestamp)) {
      uses_.needs_kernel = true;
      return;
    }
    const auto known = static_cast<MachineBuiltin>(*which);
    const auto first = static_cast<uint64_t>(MachineBuiltin::Arg0);
    if (*which >= first && known <= MachineBuiltin::Arg9) uses_.arguments |= 1U << (*which - first);
    if (is_one_of(known, MachineBuiltin::Curthread, MachineBuiltin::Curpsinfo,
                  MachineBuiltin::Curlwpsinfo, MachineBuiltin::Execargs)) {
      uses_.needs_kernel = true;
    }
    if (is_one_of(known, MachineBuiltin::Ucaller, MachineBuiltin::Ustackdepth)) walk_user_stack();
  }

  void walk_user_stack() {
    uses_.needs_registers = true;
    uses_.walks_user_stack = true;
  }

  const isa::Program& program_;
  ClauseUses uses_;
};

}  // namespace

bool calls_function(const isa::Instruction& call) {
  return call.source() == static_cast<uint8_t>(isa::CallKind::Local);
}

ClauseUses& ClauseUses::operator|=(const ClauseUses& other) {
  arguments |= other.arguments;
  needs_registers = needs_registers || other.needs_registers;
  needs_kernel = needs_kernel || other.needs_kernel;
  walks_user_stack = walks_user_stack || other.walks_user_stack;
  has_kernel_constant = has_kernel_constant || other.has_kernel_constant;
  follows_pointers = follows_pointers || other.follows_pointers;
  follows_user_pointers = follows_user_pointers || other.follows_user_pointers;
  reads_variables = reads_variables || other.reads_variables;
  return *this;
}

ClauseUses uses_of(const isa::Program& program) {
  return ProgramReader(program).read();
}

std::optional<uint64_t> constant_before(const isa::Program& program, size_t call, uint8_t in) {
  for (size_t at = call; at-- > 0 && !is_branch(program.code[at]);) {
    const Instruction& i = program.code[at];
    const isa::Class kind = isa::class_of(i);
    const bool writes_none = i.opcode == 0 || kind == isa::Class::Stx || kind == isa::Class::St;
    if (writes_none || i.destination() != in) continue;
    return constant_of(program, at);
  }
  return std::nullopt;
}

}  // namespace clew::plan::d
