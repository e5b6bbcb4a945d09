// SPDX-License-Identifier: Apache-2.0
#include "kernel/extension_to_bpf.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <linux/bpf.h>

#include "abi/machine/extension.h"
#include "isa/opcode.h"
#include "kernel/opcodes.h"
#include "kernel/to_bpf_reach.h"

namespace clew::kernel {
namespace {

using abi::MachineExtensionEnd;
using abi::MachineExtensionHead;
using isa::Class;
using isa::Instruction;

constexpr uint8_t kAdd = 0x0F;
constexpr uint8_t kAddImmediate32 = 0x04;
constexpr uint8_t kAndImmediate = 0x57;
constexpr uint8_t kStoreImmediate = 0x7A;
constexpr uint8_t kJumpEqual = 0x15;
constexpr uint8_t kJumpNotEqual = 0x55;
constexpr uint8_t kJumpGreaterOrEqual = 0x35;
constexpr uint8_t kMayGoto = 0xE5;
constexpr int32_t kCurrentTask = 158;  // Helpers.
constexpr int32_t kTaskStorage = 156;
constexpr int32_t kCreate = 1;

constexpr uint8_t kNone = 0xFF;
constexpr uint8_t kKeptFirst = 6;
constexpr uint8_t kKeptLast = 9;

// Places in the BPF function's own frame.
constexpr int16_t kWindowPlace = -8;
constexpr int16_t kAreaPlace = -16;
constexpr int16_t kFuelPlace = -24;
constexpr int16_t kFirstSaved = -32;
constexpr int16_t kSecondSaved = -40;

constexpr int64_t kCallCost = 64;  // Of an accessor: abi::kCallFuel.

// The head, seen from the area's begin.
constexpr int16_t head(size_t offset) {
  return static_cast<int16_t>(static_cast<int64_t>(offset) -
                              static_cast<int64_t>(sizeof(MachineExtensionHead)));
}
constexpr int16_t kBusyPlace = head(offsetof(MachineExtensionHead, busy));
constexpr int16_t kExhaustedPlace = head(offsetof(MachineExtensionHead, exhausted));
constexpr int16_t kZeroPlace = head(offsetof(MachineExtensionHead, zero));
constexpr int16_t kForgottenPlace = head(offsetof(MachineExtensionHead, forgotten));

// Where a branch leads: an instruction of the extension's function, or one of these.
constexpr int64_t kDone = -1;
constexpr int64_t kOut = -2;
constexpr int64_t kEnd = -3;  // r1: the window, r2: why.

struct ExtensionCallee {
  abi::Accessor accessor;
  std::string_view function;
};
constexpr ExtensionCallee kExtensionCallees[] = {
    {abi::Accessor::Time, "d_extension_time"},
    {abi::Accessor::Cpu, "d_builtin_cpu"},
    {abi::Accessor::BitLength, "d_query_bit_length"},
    {abi::Accessor::DivideUnsigned, "d_divide_unsigned"},
    {abi::Accessor::ModuloUnsigned, "d_modulo_unsigned"},
    {abi::Accessor::DivideSigned, "d_divide_signed"},
    {abi::Accessor::ModuloSigned, "d_modulo_signed"},
    {abi::Accessor::TryRead, "d_extension_read"},
    {abi::Accessor::TryReadString, "d_extension_read_string"},
};

constexpr uint8_t registers(uint8_t destination, uint8_t source) {
  return static_cast<uint8_t>(destination | source << 4);
}

bool branches_back(const std::vector<Instruction>& code) {
  for (size_t at = 0; at < code.size(); ++at) {
    const std::optional<int64_t> target = isa::branch_target(code, at);
    if (target && *target <= static_cast<int64_t>(at)) return true;
    if (code[at].opcode == isa::kLoad64Opcode) ++at;
  }
  return false;
}

// As for machine code, where a register's value seldom has to be moved.
int64_t cost_of(const Instruction& i) {
  if (i.opcode == isa::kCallOpcode) return kCallCost;
  return i.opcode == kMove || i.opcode == kMove32 ? 0 : 1;
}

class ExtensionTranslator {
 public:
  ExtensionTranslator(const MachineExtensionFunction& function, const MachineExtensions& extensions)
      : source_(function),
        extensions_(extensions),
        area_bytes_(extensions.area_bytes()),
        code_(function.code),
        has_loops_(branches_back(function.code)) {
    result_.name = extension_function_name(function.name);
  }

  Expected<Function> translate() {
    choose_registers();
    put_begin();
    for (size_t at = 0; at < code_.size(); ++at) {
      places_.push_back(size());
      CLEW_TRY(put_one(at));
      if (code_[at].opcode != isa::kLoad64Opcode) continue;
      places_.push_back(size());
      ++at;
    }
    places_.push_back(size());
    put_done();
    if (has_loops_) put_out();
    put_end();
    CLEW_TRY(bind_branches());
    remove_unreachable(result_);
    return std::move(result_);
  }

 private:
  struct Branch {
    uint32_t place = 0;
    int64_t target = 0;
  };

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(result_.code.size()); }
  void put(const Instruction& i) { result_.code.push_back(i); }
  void put_branch(const Instruction& i, int64_t target) {
    branches_.push_back({size(), target});
    put(i);
  }
  void put_reference(std::string symbol, bool is_call) {
    result_.references.push_back({size(), is_call, std::move(symbol)});
  }
  void put_map(uint8_t to, std::string symbol) {
    put_reference(std::move(symbol), false);
    put({isa::kLoad64Opcode, to, 0, 0});
    put({});
  }
  void load(uint8_t to, uint8_t from, int16_t offset) {
    put({kLoadDouble, registers(to, from), offset, 0});
  }
  void store(uint8_t to, int16_t offset, uint8_t from) {
    put({kStoreDouble, registers(to, from), offset, 0});
  }
  void move(uint8_t to, uint8_t from) { put({kMove, registers(to, from), 0, 0}); }
  void set(uint8_t to, int32_t number) { put({kMoveImmediate, to, 0, number}); }

  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view why) const {
    return fail(ErrorCode::Refused,
                fmt::format("{}() cannot run in the kernel: {}", source_.name, why));
  }

  // --- registers

  void choose_registers() {
    uint32_t named = 0;
    for (size_t at = 0; at < code_.size(); ++at) {
      const Instruction& i = code_[at];
      named |= 1U << i.destination();
      if (i.opcode == isa::kLoad64Opcode) {
        ++at;
      } else {
        named |= 1U << i.source();
      }
      if (i.opcode == isa::kCallOpcode) named |= 0x3F;
    }
    for (uint8_t reg = kKeptFirst; reg <= kKeptLast; ++reg) {
      if ((named >> reg & 1) != 0) continue;
      if (area_ == kNone) {
        area_ = reg;
      } else if (spare_ == kNone) {
        spare_ = reg;
      }
    }
    for (uint8_t reg = 0; reg < kKeptFirst && spare_ == kNone; ++reg) {
      if ((named >> reg & 1) == 0) spare_ = reg;
    }
  }

  // A register for a moment, none of `used`. r6 to r9 always have a value that can be saved.
  uint8_t borrow(uint32_t used, int16_t place) {
    for (uint8_t reg = kKeptLast; reg >= kKeptFirst; --reg) {
      if (reg == area_ || (used >> reg & 1) != 0) continue;
      store(kFrameRegister, place, reg);
      return reg;
    }
    return kNone;  // Not reached: two of the four are used at most.
  }
  uint8_t borrow_spare(uint32_t used) {
    return spare_ != kNone ? spare_ : borrow(used, kFirstSaved);
  }
  void give_back_spare(uint8_t reg) {
    if (spare_ == kNone) load(reg, kFrameRegister, kFirstSaved);
  }
  uint8_t borrow_area(uint32_t used) {
    if (area_ != kNone) return area_;
    const uint8_t reg = borrow(used, kSecondSaved);
    load(reg, kFrameRegister, kAreaPlace);
    return reg;
  }
  void give_back_area(uint8_t reg) {
    if (area_ == kNone) load(reg, kFrameRegister, kSecondSaved);
  }

  // --- begin and end

  void put_begin() {
    store(kFrameRegister, kWindowPlace, 1);
    put({isa::kCallOpcode, 0, 0, kCurrentTask});
    put_map(1, "d_extension_states");
    move(2, 0);
    put_map(3, "d_extension_initial");
    set(4, kCreate);
    put({isa::kCallOpcode, 0, 0, kTaskStorage});
    load(1, kFrameRegister, kWindowPlace);
    set(2, static_cast<int32_t>(MachineExtensionEnd::NoRoom));
    put_branch({kJumpEqual, 0, 0, 0}, kEnd);
    put({kAddImmediate, 0, 0, int32_t{sizeof(MachineExtensionHead)}});
    set(2, static_cast<int32_t>(MachineExtensionEnd::Nested));
    load(3, 0, kBusyPlace);
    put_branch({kJumpNotEqual, 3, 0, 0}, kEnd);
    if (has_loops_) put_fuel();
    put({kStoreImmediate, 0, kBusyPlace, 1});
    store(kFrameRegister, kAreaPlace, 0);
    if (area_ != kNone) move(area_, 0);
    put_parameters();
  }

  // What is left of the firing's; a thread that had none too often is left alone.
  void put_fuel() {
    set(2, static_cast<int32_t>(MachineExtensionEnd::Fuel));
    load(3, 0, kExhaustedPlace);
    put_branch({kJumpGreaterOrEqual, 3, 0, int32_t{abi::kMachineExtensionExhaustedMax}}, kEnd);
    load(3, 1, abi::kMachineExtensionFuel);
    store(kFrameRegister, kFuelPlace, 3);
  }

  void put_parameters() {
    const uint8_t window = 0;
    move(window, 1);
    for (uint8_t i = 0; i < source_.parameters; ++i) {
      load(static_cast<uint8_t>(i + 1), window,
           static_cast<int16_t>(abi::kMachineExtensionArguments + 8 * i));
    }
    for (uint8_t reg = kKeptFirst; reg <= kKeptLast; ++reg) {
      if (reg != area_) set(reg, 0);
    }
  }

  // r0 is the result.
  void put_done() {
    done_ = size();
    load(1, kFrameRegister, kAreaPlace);
    put({kStoreImmediate, 1, kBusyPlace, 0});
    if (has_loops_) {
      load(1, kFrameRegister, kWindowPlace);
      load(2, kFrameRegister, kFuelPlace);
      store(1, abi::kMachineExtensionFuel, 2);
    }
    put({isa::kExitOpcode, 0, 0, 0});
  }

  void put_out() {
    out_ = size();
    load(1, kFrameRegister, kAreaPlace);
    put({kStoreImmediate, 1, kBusyPlace, 0});
    load(2, 1, kExhaustedPlace);
    put({kAddImmediate, 2, 0, 1});
    store(1, kExhaustedPlace, 2);
    load(1, kFrameRegister, kWindowPlace);
    set(2, static_cast<int32_t>(MachineExtensionEnd::Fuel));
  }

  void put_end() {
    end_ = size();
    put_call("d_extension_end");
    set(0, 0);
    put({isa::kExitOpcode, 0, 0, 0});
  }

  void put_call(std::string_view function) {
    put_reference(std::string(function), true);
    put({isa::kCallOpcode, BPF_PSEUDO_CALL << 4, 0, -1});
  }

  // --- instructions

  Expected<void> put_one(size_t at) {
    const Instruction& i = code_[at];
    switch (isa::class_of(i)) {
      case Class::Ld:
        return put_load64(at);
      case Class::Ldx:
        return put_access(i, i.source());
      case Class::St:
      case Class::Stx:
        return put_access(i, i.destination());
      case Class::Alu32:
      case Class::Alu64:
        return put_arithmetic(i);
      case Class::Jump64:
      case Class::Jump32:
        return put_jump(at);
    }
    return {};
  }

  Expected<void> put_load64(size_t at) {
    const Instruction& low = code_[at];
    switch (static_cast<isa::Load64>(low.source())) {
      case isa::Load64::Immediate:
        put(low);
        put(code_[at + 1]);
        return {};
      case isa::Load64::Window:
        put_number(low.destination(), low.immediate - static_cast<int32_t>(extensions_.begin) +
                                          static_cast<int32_t>(abi::kMachineExtensionVariables));
        return {};
      case isa::Load64::SiteConstant:
      case isa::Load64::Global:
      case isa::Load64::Context:
        break;
    }
    return refuse("it loads what no function of an extension has");
  }

  void put_number(uint8_t to, int32_t number, uint8_t add = kAddImmediate,
                  uint8_t plain = kMoveImmediate) {
    if (!has_loops_) return put({plain, to, 0, number});
    if (area_ != kNone) {
      load(to, area_, kZeroPlace);
    } else {
      load(to, kFrameRegister, kAreaPlace);
      load(to, to, kZeroPlace);
    }
    if (number != 0) put({add, to, 0, number});
  }

  Expected<void> put_arithmetic(const Instruction& i) {
    if (isa::has_register_source(i) && isa::alu_of(i) != isa::Alu::Swap &&
        i.source() == kFrameRegister) {
      if (i.opcode != kMove || i.offset != 0) return refuse("arithmetic with its frame's address");
      put_number(i.destination(), static_cast<int32_t>(area_bytes_));
      return {};
    }
    if (i.opcode == kMoveImmediate) {
      put_number(i.destination(), i.immediate);
    } else if (i.opcode == kMoveImmediate32) {
      put_number(i.destination(), i.immediate, kAddImmediate32, kMoveImmediate32);
    } else {
      put(i);
    }
    return {};
  }

  // A load, a store or an atomic operation at base + i.offset.
  Expected<void> put_access(const Instruction& i, uint8_t base) {
    const bool is_load = isa::class_of(i) == Class::Ldx;
    const bool is_atomic = !is_load && isa::mode_of(i) == isa::Mode::Atomic;
    if (isa::class_of(i) == Class::Stx && i.source() == kFrameRegister)
      return refuse("it stores its frame's address");
    if (base == kFrameRegister && !is_atomic) return put_frame_access(i, is_load);
    uint32_t used = 1U << i.destination() | 1U << i.source();
    if (is_atomic) used |= 1;
    // What is loaded has a register already.
    const uint8_t address = is_load ? i.destination() : borrow_spare(used);
    if (base == kFrameRegister) {
      put_number(address, static_cast<int32_t>(area_bytes_));
    } else if (address != base) {
      move(address, base);
    }
    if (i.offset != 0) put({kAddImmediate, address, 0, i.offset});
    put_real_address(address, used, is_atomic ? isa::size_bytes(isa::size_of(i)) : 1);
    Instruction access = i;
    access.offset = 0;
    access.registers = is_load ? registers(i.destination(), address)
                               : registers(address, isa::class_of(i) == Class::St ? 0 : i.source());
    put(access);
    if (is_atomic) keep_result_known(i);
    if (!is_load) give_back_spare(address);
    return {};
  }

  // `address` becomes a pointer. The kernel wants to see that atomic operations are aligned.
  void put_real_address(uint8_t address, uint32_t used, uint32_t alignment) {
    const uint8_t area = borrow_area(used | 1U << address);
    if (has_loops_) {
      store(area, kForgottenPlace, address);
      load(address, area, kForgottenPlace);
    }
    const auto mask = static_cast<int32_t>((area_bytes_ - 1) & ~(alignment - 1));
    put({kAndImmediate, address, 0, mask});
    put({kAdd, registers(address, area), 0, 0});
    give_back_area(area);
  }

  // Linux 6.18 takes the 32 bits that a compare-exchange leaves in r0 for what r0 had before.
  void keep_result_known(const Instruction& i) {
    const bool is_exchange = static_cast<isa::Atomic>(i.immediate) == isa::Atomic::CompareExchange;
    if (is_exchange && isa::size_of(i) == isa::Size::Word) put({kMove32, 0, 0, 0});
  }

  // At a place that the verifier knows.
  Expected<void> put_frame_access(const Instruction& i, bool is_load) {
    if (i.offset < -int32_t{abi::kMachineExtensionFrameBytes} || i.offset >= 0)
      return refuse("it reaches out of its frame");
    const uint32_t used = 1U << i.destination() | 1U << i.source();
    uint8_t area = area_;
    if (is_load && area == kNone) {
      area = i.destination();
      load(area, kFrameRegister, kAreaPlace);
    } else {
      area = borrow_area(used);
    }
    Instruction access = i;
    access.offset = static_cast<int16_t>(static_cast<int32_t>(area_bytes_) + i.offset);
    access.registers = is_load ? registers(i.destination(), area) : registers(area, i.source());
    put(access);
    if (!is_load) give_back_area(area);
    return {};
  }

  Expected<void> put_jump(size_t at) {
    const Instruction& i = code_[at];
    if (i.opcode == isa::kCallOpcode) return put_accessor(i);
    if (i.opcode == isa::kExitOpcode) {
      put_branch({isa::kJumpOpcode, 0, 0, 0}, kDone);
      return {};
    }
    const bool is_register = isa::has_register_source(i) && i.source() == kFrameRegister;
    if (i.destination() == kFrameRegister || is_register)
      return refuse("a comparison with its frame");
    const std::optional<int64_t> branch_target = isa::branch_target(code_, at);
    if (!branch_target) return refuse("an instruction that the kernel does not have");
    const int64_t target = *branch_target;
    if (target <= static_cast<int64_t>(at)) put_charge(static_cast<size_t>(target), at);
    Instruction branch = i;
    if (i.opcode == isa::kJumpFarOpcode) branch = {isa::kJumpOpcode, 0, 0, 0};
    put_branch(branch, target);
    return {};
  }

  // For a round of the loop [first, last]. What the loops in it spend is counted once more.
  void put_charge(size_t first, size_t last) {
    int64_t cost = 0;
    for (size_t at = first; at <= last; ++at) {
      cost += cost_of(code_[at]);
      if (code_[at].opcode == isa::kLoad64Opcode) ++at;
    }
    const uint32_t used = 1U << code_[last].destination() | 1U << code_[last].source();
    const uint8_t fuel = borrow_spare(used);
    load(fuel, kFrameRegister, kFuelPlace);
    put({kAddImmediate, fuel, 0, static_cast<int32_t>(-cost)});
    store(kFrameRegister, kFuelPlace, fuel);
    put_branch({kJumpNegative, fuel, 0, 0}, kOut);
    give_back_spare(fuel);
    put_branch({kMayGoto, 0, 0, 0}, kOut);
  }

  Expected<void> put_accessor(const Instruction& i) {
    const auto* const callee =
        std::find_if(std::begin(kExtensionCallees), std::end(kExtensionCallees),
                     [&](const ExtensionCallee& one) {
                       return static_cast<int32_t>(one.accessor) == i.immediate;
                     });
    if (callee == std::end(kExtensionCallees) || i.source() != 0)
      return refuse(fmt::format("accessor {} is none of the kernel's", i.immediate));
    for (auto left = static_cast<uint8_t>(isa::accessor_argument_count(callee->accessor)); left > 0;
         --left)
      move(static_cast<uint8_t>(left + 1), left);
    load(1, kFrameRegister, kWindowPlace);
    put_call(callee->function);
    return {};
  }

  Expected<void> bind_branches() {
    for (const Branch& branch : branches_) {
      const int64_t distance = int64_t{place_of(branch.target)} - branch.place - 1;
      if (distance < std::numeric_limits<int16_t>::min() ||
          distance > std::numeric_limits<int16_t>::max()) {
        return refuse("it is too long");
      }
      result_.code[branch.place].offset = static_cast<int16_t>(distance);
    }
    return {};
  }

  [[nodiscard]] uint32_t place_of(int64_t target) const {
    if (target == kDone) return done_;
    if (target == kOut) return out_;
    if (target == kEnd) return end_;
    return places_[static_cast<size_t>(target)];
  }

  const MachineExtensionFunction& source_;
  const MachineExtensions& extensions_;
  uint32_t area_bytes_;
  const std::vector<Instruction>& code_;
  bool has_loops_;
  uint8_t area_ = kNone;   // Has the area's address all the time, if the function leaves one free.
  uint8_t spare_ = kNone;  // Free all the time.
  Function result_;
  std::vector<uint32_t> places_;  // Of each instruction, in the result.
  std::vector<Branch> branches_;
  uint32_t done_ = 0;
  uint32_t out_ = 0;
  uint32_t end_ = 0;
};

}  // namespace

Expected<Function> extension_to_bpf(const MachineExtensionFunction& function,
                                    const MachineExtensions& extensions, bool can_loop) {
  const auto refuse = [&](std::string why) {
    return fail(ErrorCode::Refused,
                fmt::format("{}() cannot run in the kernel: {}", function.name, why));
  };
  if (branches_back(function.code) && !can_loop)
    return refuse("it has loops, which the kernel's verifier can end from Linux 6.9 on");
  const uint32_t most = abi::kMachineExtensionAreaMax - abi::kMachineExtensionVariables -
                        abi::kMachineExtensionFrameBytes;
  if (extensions.variables_bytes > most) {
    return refuse(fmt::format("the variables of all extensions are {} bytes; {} is the most there",
                              extensions.variables_bytes, most));
  }
  return ExtensionTranslator(function, extensions).translate();
}

}  // namespace clew::kernel
