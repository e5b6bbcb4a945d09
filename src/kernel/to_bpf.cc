// SPDX-License-Identifier: Apache-2.0
#include "kernel/to_bpf.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <linux/bpf.h>

#include "abi/machine/accessor.h"
#include "abi/machine/window.h"
#include "isa/opcode.h"
#include "kernel/opcodes.h"
#include "kernel/to_bpf_reach.h"

namespace clew::kernel {
namespace {

using abi::MachineAccessor;
using abi::MachineBuiltin;
using isa::Instruction;

constexpr uint8_t kBuiltinRegister = 2;
constexpr uint8_t kStackKindRegister = 4;
constexpr uint8_t kDepthKindRegister = 2;

// By MachineAccessor, from kMachineAccessorBase on.
constexpr std::array<std::string_view, abi::kMachineAccessorCount> kAccessors = {
#define CLEW_MACHINE_ACCESSOR(name, in_kernel, in_process, arguments) #in_kernel,
#include "abi/machine/accessors.def"
};

std::string_view division(abi::Accessor accessor) {
  switch (static_cast<uint32_t>(accessor)) {
    case static_cast<uint32_t>(abi::Accessor::DivideUnsigned):
      return "d_divide_unsigned";
    case static_cast<uint32_t>(abi::Accessor::ModuloUnsigned):
      return "d_modulo_unsigned";
    case static_cast<uint32_t>(abi::Accessor::DivideSigned):
      return "d_divide_signed";
    case static_cast<uint32_t>(abi::Accessor::ModuloSigned):
      return "d_modulo_signed";
    default:
      return {};
  }
}

struct NamedBuiltin {
  MachineBuiltin builtin;
  std::string_view function;
};

constexpr NamedBuiltin kBuiltins[] = {
    {MachineBuiltin::Caller, "d_builtin_caller"},
    {MachineBuiltin::Cpu, "d_builtin_cpu"},
    {MachineBuiltin::Curcpu, "d_builtin_cpu"},
    {MachineBuiltin::Curlwpsinfo, "d_builtin_task"},
    {MachineBuiltin::Curpsinfo, "d_builtin_task"},
    {MachineBuiltin::Curthread, "d_builtin_task"},
    {MachineBuiltin::Cwd, "d_builtin_cwd"},
    {MachineBuiltin::Epid, "d_builtin_epid"},
    {MachineBuiltin::Errno, "d_builtin_errno"},
    {MachineBuiltin::Execargs, "d_builtin_execargs"},
    {MachineBuiltin::Execname, "d_builtin_execname"},
    {MachineBuiltin::Gid, "d_builtin_gid"},
    {MachineBuiltin::Id, "d_builtin_id"},
    {MachineBuiltin::Ipl, "d_builtin_ipl"},
    {MachineBuiltin::Pid, "d_builtin_pid"},
    {MachineBuiltin::Ppid, "d_builtin_ppid"},
    {MachineBuiltin::Probefunc, "d_builtin_probefunc"},
    {MachineBuiltin::Probemod, "d_builtin_probemod"},
    {MachineBuiltin::Probename, "d_builtin_probename"},
    {MachineBuiltin::Probeprov, "d_builtin_probeprov"},
    {MachineBuiltin::Root, "d_builtin_root"},
    {MachineBuiltin::Stackdepth, "d_builtin_stackdepth"},
    {MachineBuiltin::Tid, "d_builtin_tid"},
    {MachineBuiltin::Timestamp, "d_builtin_timestamp"},
    {MachineBuiltin::Ucaller, "d_builtin_ucaller"},
    {MachineBuiltin::Uid, "d_builtin_uid"},
    {MachineBuiltin::Ustackdepth, "d_builtin_ustackdepth"},
    {MachineBuiltin::Vtimestamp, "d_builtin_vtimestamp"},
    {MachineBuiltin::Walltimestamp, "d_builtin_walltimestamp"},
};

std::string builtin_function(uint64_t builtin) {
  constexpr auto kFirst = static_cast<uint64_t>(MachineBuiltin::Arg0);
  constexpr auto kLast = static_cast<uint64_t>(MachineBuiltin::Arg9);
  if (builtin >= kFirst && builtin <= kLast) {
    return "d_builtin_argument";
  }
  for (const NamedBuiltin& one : kBuiltins) {
    if (static_cast<uint64_t>(one.builtin) == builtin) return std::string(one.function);
  }
  return {};
}

bool is_branch(const Instruction& i) {
  const auto kind = static_cast<isa::Class>(i.opcode & isa::kClassMask);
  return kind == isa::Class::Jump64 || kind == isa::Class::Jump32;
}

// Two functions, so that a script of the kernel's stacks does not load what walks those of
// processes.
std::string stack_function(MachineAccessor accessor, uint64_t kind) {
  if (kind > 1) return {};
  if (accessor == MachineAccessor::Stack) return kind == 0 ? "d_stack" : "d_user_stack";
  return kind == 0 ? "d_stack_depth" : "d_user_stack_depth";
}

// The constant in a register at the call at `call`, when the straight line in front of it loads
// one.
std::optional<uint64_t> constant_before(const std::vector<Instruction>& code, size_t call,
                                        uint8_t wanted) {
  for (size_t at = call; at-- > 0 && !is_branch(code[at]);) {
    const Instruction& i = code[at];
    const auto kind = static_cast<isa::Class>(i.opcode & isa::kClassMask);
    if (i.opcode == 0 || kind == isa::Class::Stx || kind == isa::Class::St) continue;
    if (i.destination() != wanted) continue;
    if (i.opcode != kMoveImmediate && i.opcode != kMoveImmediate32) return std::nullopt;
    return static_cast<uint64_t>(i.immediate);
  }
  return std::nullopt;
}

class Rewriter {
 public:
  Rewriter(const isa::Program& program, uint32_t clause,
           std::span<const MachineExtensionCall> calls)
      : program_(program), calls_(calls) {
    function_.name = clause_name(clause);
  }

  Expected<Function> rewrite() {
    function_.code.push_back({kMove, kWindowRegister | 1 << 4, 0, 0});
    for (size_t at = 0; at < program_.code.size(); ++at) {
      const Instruction& i = program_.code[at];
      if (const MachineExtensionCall* const call = extension_call(at); call != nullptr) {
        rewrite_extension_call(*call);
        at += 2;
      } else if (i.opcode == isa::kLoad64Opcode) {
        CLEW_TRY(rewrite_load64(at));
        ++at;
      } else if (i.opcode == isa::kCallOpcode && i.source() == 0) {
        CLEW_TRY(rewrite_call(at));
      } else {
        function_.code.push_back(i);
      }
    }
    remove_unreachable(function_);
    return std::move(function_);
  }

 private:
  [[nodiscard]] auto refuse(std::string_view what) const {
    return fail(ErrorCode::Refused, std::string(what));
  }

  void refer_to(std::string symbol, bool is_call) {
    const auto place = static_cast<uint32_t>(function_.code.size());
    function_.references.push_back({place, is_call, std::move(symbol)});
  }

  [[nodiscard]] const MachineExtensionCall* extension_call(size_t at) const {
    const auto found =
        std::find_if(calls_.begin(), calls_.end(),
                     [at](const MachineExtensionCall& one) { return one.instruction == at; });
    return found == calls_.end() ? nullptr : &*found;
  }

  // r6 is kept by the call.
  void rewrite_extension_call(const MachineExtensionCall& call) {
    refer_to(call.function, true);
    function_.code.push_back({isa::kCallOpcode, BPF_PSEUDO_CALL << 4, 0, -1});
    for (int half = 0; half < 2; ++half)
      function_.code.push_back({kMove, kWindowRegister | kWindowRegister << 4, 0, 0});
  }

  Expected<void> rewrite_load64(size_t at) {
    const Instruction& low = program_.code[at];
    const Instruction& high = program_.code[at + 1];
    switch (static_cast<isa::Load64>(low.source())) {
      case isa::Load64::Immediate:
        break;
      case isa::Load64::Window: {
        const uint8_t to = low.destination();
        const auto move = static_cast<uint8_t>(to | kWindowRegister << 4);
        function_.code.push_back({kMove, move, 0, 0});
        function_.code.push_back({kAddImmediate, to, 0, low.immediate});
        return {};
      }
      case isa::Load64::Global:
        refer_to("d_globals", false);
        function_.code.push_back({low.opcode, low.destination(), 0, low.immediate});
        function_.code.push_back(high);
        return {};
      case isa::Load64::Context:
        return refuse("the context");
      case isa::Load64::SiteConstant:
        return refuse("site constants have no meaning in the kernel");
    }
    function_.code.push_back(low);
    function_.code.push_back(high);
    return {};
  }

  Expected<void> rewrite_call(size_t at) {
    const std::string name = CLEW_TRY(callee(at));
    refer_to(name, true);
    function_.code.push_back({isa::kCallOpcode, BPF_PSEUDO_CALL << 4, 0, -1});
    return {};
  }

  [[nodiscard]] Expected<std::string> callee(size_t at) const {
    const auto number = static_cast<uint32_t>(program_.code[at].immediate);
    const std::string_view divides = division(static_cast<abi::Accessor>(number));
    if (!divides.empty()) return std::string(divides);
    if (number < abi::kMachineAccessorBase ||
        number - abi::kMachineAccessorBase >= abi::kMachineAccessorCount) {
      return refuse(fmt::format("accessor {} is none of the kernel's", number));
    }
    const std::string_view name = kAccessors[number - abi::kMachineAccessorBase];
    if (name != "chosen") return std::string(name);
    std::string function = chosen(static_cast<MachineAccessor>(number), at);
    if (function.empty()) return refuse("a built-in variable that the kernel does not have");
    return function;
  }

  // By a constant argument; empty: there is none.
  [[nodiscard]] std::string chosen(MachineAccessor accessor, size_t at) const {
    const bool is_stack = accessor == MachineAccessor::Stack;
    if (is_stack || accessor == MachineAccessor::StackDepth) {
      const auto kind =
          constant_before(program_.code, at, is_stack ? kStackKindRegister : kDepthKindRegister);
      return kind ? stack_function(accessor, *kind) : std::string();
    }
    const auto builtin = constant_before(program_.code, at, kBuiltinRegister);
    return builtin ? builtin_function(*builtin) : std::string();
  }

  const isa::Program& program_;
  std::span<const MachineExtensionCall> calls_;
  Function function_;
};

}  // namespace

std::string clause_name(uint32_t clause) {
  return fmt::format("dt_clause_{}", clause);
}

Expected<Function> to_bpf(const isa::Program& program, uint32_t clause,
                          std::span<const MachineExtensionCall> calls) {
  return Rewriter(program, clause, calls).rewrite();
}

// The window is given by r6 plus a constant; any load at an offset of the arguments may be one.
uint32_t arguments_read(const Function& function) {
  constexpr uint32_t kAll = (1U << 10) - 1;
  constexpr int32_t kBegin = offsetof(abi::MachineWindowHeader, arguments);
  constexpr int32_t kEnd = offsetof(abi::MachineWindowHeader, probe);
  const auto is_inside = [](int32_t offset) { return offset >= kBegin && offset < kEnd; };
  const auto bit = [](int32_t offset) { return 1U << ((offset - kBegin) / 8); };
  uint32_t read = 0;
  for (const Instruction& i : function.code) {
    const auto kind = static_cast<isa::Class>(i.opcode & isa::kClassMask);
    if (kind == isa::Class::Ldx && is_inside(i.offset)) read |= bit(i.offset);
    if (i.opcode == kAddImmediate && is_inside(i.immediate)) read |= bit(i.immediate);
  }
  for (const Reference& one : function.references) {
    if (one.symbol == "d_user_argument") return kAll;
    if (one.symbol != "d_builtin_argument") continue;
    const auto builtin = constant_before(function.code, one.instruction, kBuiltinRegister);
    if (!builtin) return kAll;
    read |= 1U << (*builtin - static_cast<uint64_t>(MachineBuiltin::Arg0));
  }
  return read;
}

}  // namespace clew::kernel
