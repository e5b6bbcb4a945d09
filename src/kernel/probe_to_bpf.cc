// SPDX-License-Identifier: Apache-2.0
#include "kernel/probe_to_bpf.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <linux/bpf.h>

#include "abi/accessor.h"
#include "abi/machine/accessor.h"
#include "abi/query_window.h"
#include "isa/opcode.h"
#include "kernel/opcodes.h"
#include "kernel/to_bpf.h"
#include "kernel/to_bpf_reach.h"

namespace clew::kernel {
namespace {

using isa::Class;
using isa::Instruction;

constexpr uint8_t kSubtractRegister = 0x1F;

constexpr Instruction move(uint8_t to, uint8_t from) {
  return {kMove, static_cast<uint8_t>(to | from << 4), 0, 0};
}
constexpr Instruction add(uint8_t to, int32_t number) {
  return {kAddImmediate, to, 0, number};
}

constexpr int32_t kFrameEnd = abi::kQueryRegionOffset + abi::kFrameEnd;

// Of a word of the context, in the window; nothing for what no event of the kernel has.
std::optional<int32_t> context_place(int32_t offset) {
  constexpr auto kArguments = static_cast<int32_t>(offsetof(abi::MachineWindowHeader, arguments));
  constexpr auto kRegisters = static_cast<int32_t>(sizeof(abi::Context::arguments));
  if (offset < 0) return std::nullopt;
  if (offset < kRegisters) return kArguments + offset;
  if (offset == offsetof(abi::Context, return_value)) return kArguments + 8;
  if (offset == offsetof(abi::Context, frame))
    return offsetof(abi::MachineWindowHeader, frame_address);
  if (offset >= static_cast<int32_t>(offsetof(abi::Context, vectors))) return std::nullopt;
  return static_cast<int32_t>(abi::kQueryContextOffset) + offset;
}

// Where a window pointer of the program points to.
int32_t window_place(uint32_t offset) {
  if (offset >= abi::kQueryMachine) return static_cast<int32_t>(offset - abi::kQueryMachine);
  return static_cast<int32_t>(abi::kQueryRegionOffset + offset);
}

// How an accessor's arguments become those of the function, which has the window in front.
enum class Shape : uint8_t { None, OneNumber, Read, Machine };

struct ProbeCallee {
  std::string_view function;
  uint32_t accessor;
  Shape shape;
};

template <typename Accessor>
constexpr uint32_t number_of(Accessor accessor) {
  return static_cast<uint32_t>(accessor);
}

constexpr ProbeCallee kProbeCallees[] = {
    {"d_query_time", number_of(abi::Accessor::Time), Shape::None},
    {"d_builtin_cpu", number_of(abi::Accessor::Cpu), Shape::None},
    {"d_query_bit_length", number_of(abi::Accessor::BitLength), Shape::OneNumber},
    {"d_query_read", number_of(abi::Accessor::TryRead), Shape::Read},
    {"d_query_read_text", number_of(abi::Accessor::TryReadString), Shape::Read},
    {"d_builtin_pid", number_of(abi::QueryAccessor::Pid), Shape::Machine},
    {"d_builtin_tid", number_of(abi::QueryAccessor::Tid), Shape::Machine},
    {"d_query_comm", number_of(abi::QueryAccessor::Comm), Shape::Machine},
    {"d_query_process_name", number_of(abi::QueryAccessor::ProcessName), Shape::Machine},
    {"d_query_node_name", number_of(abi::QueryAccessor::NodeName), Shape::Machine},
    {"d_query_uid", number_of(abi::QueryAccessor::Uid), Shape::Machine},
    {"d_query_control_group", number_of(abi::QueryAccessor::ControlGroup), Shape::Machine},
    {"d_builtin_caller", number_of(abi::QueryAccessor::Caller), Shape::Machine},
    {"d_user_stack", number_of(abi::QueryAccessor::UserStack), Shape::Machine},
    {"d_stack", number_of(abi::QueryAccessor::KernelStack), Shape::Machine},
    {"d_commit", number_of(abi::MachineAccessor::Commit), Shape::Machine},
    {"d_aggregate", number_of(abi::MachineAccessor::Aggregate), Shape::Machine},
    {"d_variable_load", number_of(abi::MachineAccessor::VariableLoad), Shape::Machine},
    {"d_variable_store", number_of(abi::MachineAccessor::VariableStore), Shape::Machine},
    {"d_variable_load_bytes", number_of(abi::MachineAccessor::VariableLoadBytes), Shape::Machine},
    {"d_variable_store_bytes", number_of(abi::MachineAccessor::VariableStoreBytes), Shape::Machine},
    {"d_variable_delete", number_of(abi::MachineAccessor::VariableDelete), Shape::Machine},
};

class ProbeTranslator {
 public:
  ProbeTranslator(const isa::Program& program, uint32_t clause,
                  std::span<const MachineExtensionCall> calls)
      : code_(program.code), clause_(clause), calls_(calls) {
    function_.name = clause_name(clause);
  }

  Expected<Function> translate() {
    place_.resize(code_.size() + 1);
    for (size_t at = 0; at < code_.size(); ++at) {
      place_[at] = size();
      const bool is_long = code_[at].opcode == isa::kLoad64Opcode;
      CLEW_TRY(is_long ? load64(at) : one(at));
      if (is_long) place_[++at] = size();
    }
    place_[code_.size()] = size();
    CLEW_TRY(bind_branches());
    remove_unreachable(function_);
    return std::move(function_);
  }

 private:
  struct Branch {
    uint32_t place = 0;  // In the function,
    size_t target = 0;   // in the program.
  };

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(function_.code.size()); }
  void put(const Instruction& i) { function_.code.push_back(i); }

  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(ErrorCode::Refused, fmt::format("program {}: {}", clause_, what));
  }

  Expected<void> load64(size_t at) {
    const Instruction& low = code_[at];
    const uint8_t to = low.destination();
    switch (static_cast<isa::Load64>(low.source())) {
      case isa::Load64::Immediate:
        put(low);
        put(code_[at + 1]);
        return {};
      case isa::Load64::Window:
        put(move(to, kWindowRegister));
        put(add(to, window_place(static_cast<uint32_t>(low.immediate))));
        return {};
      case isa::Load64::SiteConstant:
        put({kLoadDouble, static_cast<uint8_t>(to | kWindowRegister << 4),
             static_cast<int16_t>(offsetof(abi::MachineWindowHeader, enabling)), 0});
        return {};
      case isa::Load64::Context:
        if (to != kWindowRegister) break;
        put(move(kWindowRegister, kWindowRegister));  // Calls keep it.
        return {};
      case isa::Load64::Global:
        break;
    }
    return refuse("a load that only processes have");
  }

  Expected<void> one(size_t at) {
    const Instruction& i = code_[at];
    switch (isa::class_of(i)) {
      case Class::Ldx:
        return memory(i, i.source());
      case Class::St:
      case Class::Stx:
        return memory(i, i.destination());
      case Class::Jump64:
      case Class::Jump32:
        return jump(at);
      case Class::Alu64:
      case Class::Alu32:
      case Class::Ld:
        return arithmetic(i);
    }
    return {};
  }

  // Frame and context are at constant places of the window.
  Expected<void> memory(Instruction i, uint8_t base) {
    std::optional<int32_t> offset = i.offset;
    if (base == kFrameRegister) offset = kFrameEnd + i.offset;
    if (base == kWindowRegister) offset = context_place(i.offset);
    if (!offset || *offset > std::numeric_limits<int16_t>::max()) {
      return refuse(fmt::format("the kernel has no word {} of the context", i.offset));
    }
    i.offset = static_cast<int16_t>(*offset);
    if (base == kFrameRegister) i.registers = with_window(i);
    put(i);
    return {};
  }

  // The same instruction with the window where it has the frame.
  static uint8_t with_window(const Instruction& i) {
    const uint8_t destination =
        i.destination() == kFrameRegister ? kWindowRegister : i.destination();
    const uint8_t source = i.source() == kFrameRegister ? kWindowRegister : i.source();
    return static_cast<uint8_t>(destination | source << 4);
  }

  Expected<void> arithmetic(const Instruction& i) {
    const bool is_binary = isa::has_register_source(i) && isa::class_of(i) != Class::Ld;
    if (!is_binary || i.source() != kFrameRegister) {
      put(i);
      return {};
    }
    if (i.opcode != kMove) return refuse("arithmetic with the frame");
    put(move(i.destination(), kWindowRegister));
    put(add(i.destination(), kFrameEnd));
    return {};
  }

  Expected<void> jump(size_t at) {
    const Instruction& i = code_[at];
    const auto is_here = [at](const MachineExtensionCall& one) { return one.instruction == at; };
    const auto found = std::find_if(calls_.begin(), calls_.end(), is_here);
    if (found != calls_.end()) {
      function_.references.push_back({size(), true, found->function});
      put({isa::kCallOpcode, BPF_PSEUDO_CALL << 4, 0, -1});
      return {};
    }
    if (i.opcode == isa::kCallOpcode) return call(static_cast<uint32_t>(i.immediate));
    if (i.opcode != isa::kExitOpcode) {
      const int64_t distance = i.opcode == isa::kJumpFarOpcode ? i.immediate : i.offset;
      branches_.push_back({size(), static_cast<size_t>(static_cast<int64_t>(at) + 1 + distance)});
    }
    put(i);
    return {};
  }

  // By a type with a word of 64 bits in front, of which the kernel lets any part be loaded.
  void kernel_memory() {
    function_.references.push_back({size(), false, kUntrustedType});
    put({isa::kLoad64Opcode, 2, 0, 0});
    put({});
    function_.references.push_back({size(), false, kUntrustedPointer});
    put({isa::kCallOpcode, 0, 0, 0});
  }

  Expected<void> call(uint32_t accessor) {
    if (accessor == number_of(abi::QueryAccessor::KernelMemory)) {
      kernel_memory();
      return {};
    }
    for (const ProbeCallee& callee : kProbeCallees) {
      if (callee.accessor != accessor) continue;
      arguments(callee.shape);
      put(move(1, kWindowRegister));
      function_.references.push_back({size(), true, std::string(callee.function)});
      put({isa::kCallOpcode, BPF_PSEUDO_CALL << 4, 0, -1});
      return {};
    }
    return refuse(fmt::format("accessor {} is none of the kernel's", accessor));
  }

  void arguments(Shape shape) {
    switch (shape) {
      case Shape::None:
      case Shape::Machine:
        return;
      case Shape::OneNumber:
        put(move(2, 1));
        return;
      case Shape::Read:  // (destination, size, address) as (offset of it, size, address)
        put(move(4, 3));
        put(move(3, 2));
        put(move(2, 1));
        put({kSubtractRegister, 2 | kWindowRegister << 4, 0, 0});
        return;
    }
  }

  Expected<void> bind_branches() {
    for (const Branch& branch : branches_) {
      Instruction& i = function_.code[branch.place];
      const int64_t distance = int64_t{place_[branch.target]} - branch.place - 1;
      if (i.opcode == isa::kJumpFarOpcode) {
        i.immediate = static_cast<int32_t>(distance);
        continue;
      }
      if (distance < std::numeric_limits<int16_t>::min() ||
          distance > std::numeric_limits<int16_t>::max()) {
        return fail(ErrorCode::Limit, "the query needs a longer program than is possible");
      }
      i.offset = static_cast<int16_t>(distance);
    }
    return {};
  }

  const std::vector<Instruction>& code_;
  uint32_t clause_;
  std::span<const MachineExtensionCall> calls_;
  Function function_;
  std::vector<uint32_t> place_;  // Of each instruction, in the function.
  std::vector<Branch> branches_;
};

}  // namespace

Expected<Function> probe_to_bpf(const isa::Program& program, uint32_t clause,
                                std::span<const MachineExtensionCall> calls) {
  return ProbeTranslator(program, clause, calls).translate();
}

}  // namespace clew::kernel
