// SPDX-License-Identifier: Apache-2.0
// One x86 register per BPF register for the whole body: query programs use few, so live ranges
// need not be split. BPF registers that are never needed at the same time share one, as each takes
// a word of the traced program's stack, and two instructions of each hit.
#include "native/allocation.h"

#include <algorithm>
#include <bit>

namespace clew::native {
namespace {

using abi::RegisterSet;

RegisterSet set_of(std::initializer_list<Register> registers) {
  RegisterSet set;
  for (const Register r : registers)
    set.add(r);
  return set;
}

constexpr uint32_t bit(uint32_t bpf_register) {
  return 1U << bpf_register;
}

// What stands in the way of an assignment.
struct Demands {
  uint32_t used = 0;       // BPF registers that live in x86 registers.
  uint32_t arguments = 0;  // Those that stand where calls take and give them.
  RegisterSet touched;     // What operations write besides their results.
  bool loops = false;
  abi::Doors doors = abi::Doors::Keeping;
  // Of each BPF register: those that hold something when it is written, and what operations touch
  // while it holds something.
  std::array<uint32_t, kBpfRegisters> conflicts = {};
  std::array<RegisterSet, kBpfRegisters> avoided = {};
};

RegisterSet touched_by_call(abi::Accessor accessor, abi::Doors doors) {
  using R = Register;
  if (accessor == abi::Accessor::BitLength) return {};
  if (accessor == abi::Accessor::Time) return set_of({R::Rax, R::Rdx});
  if (accessor == abi::Accessor::Cpu) return set_of({R::Rax, R::Rcx, R::Rdx});
  const uint32_t door = abi::door_of(static_cast<uint32_t>(accessor), doors);
  RegisterSet set = abi::changed_by(door);
  for (uint32_t r = 1; r < abi::kCallRegisters.size(); ++r) {
    if ((argument_registers(accessor) & bit(r)) != 0) set.add(abi::kCallRegisters[r]);
  }
  return set;
}

RegisterSet touched_by_atomic(isa::Atomic atomic) {
  const bool pair = atomic == isa::Atomic::FetchOr || atomic == isa::Atomic::FetchAnd ||
                    atomic == isa::Atomic::FetchXor;
  if (pair) return set_of({kSecondScratch});
  return atomic == isa::Atomic::CompareExchange ? set_of({Register::Rax}) : RegisterSet{};
}

// The registers that a translated operation writes besides that of its result and r10.
RegisterSet touched_by(const Operation& op, const Facts& facts, abi::Doors doors) {
  if (op.kind == OperationKind::Call) return touched_by_call(op.accessor, doors);
  if (op.kind == OperationKind::Atomic) return touched_by_atomic(op.atomic);
  if (divides_by_call(op, facts)) {
    return set_of({abi::kCallRegisters[0], abi::kCallRegisters[1], abi::kCallRegisters[2],
                   kSecondScratch, kThirdScratch});
  }
  const bool known = result_register(op) && !facts.result.is_register();
  const bool count_unknown = op.has_source && !facts.values[op.source].is_constant();
  return op.is_shift() && !known && count_unknown ? set_of({Register::Rcx}) : RegisterSet{};
}

// The BPF registers that have to be where calls want them.
uint32_t call_registers(const Operation& op, const Facts& facts) {
  if (divides_by_call(op, facts)) return 0b111;
  if (op.kind == OperationKind::Atomic) return op.atomic == isa::Atomic::CompareExchange ? 1 : 0;
  if (op.kind != OperationKind::Call || op.accessor == abi::Accessor::BitLength) return 0;
  return is_inline(op.accessor) ? 1 : 1U | argument_registers(op.accessor);
}

// The BPF registers whose x86 registers it writes: its result's, and those that it brings a
// constant to.
uint32_t written_by(const Operation& op) {
  const auto result = result_register(op);
  const uint32_t written = result ? bit(*result) : 0;
  return op.kind == OperationKind::Atomic ? written | bit(op.source) : written;
}

void add_operation(const Operation& op, const Facts& facts, Demands& demands) {
  const uint32_t written = written_by(op);
  const uint32_t around = facts.live_after | register_reads(op, facts) | written;
  const uint32_t fixed = call_registers(op, facts);
  const RegisterSet touched = touched_by(op, facts, demands.doors);
  demands.used |= around | fixed;
  demands.arguments |= fixed;
  demands.touched = joined(demands.touched, touched);
  for (uint32_t r = 0; r < kBpfRegisters; ++r) {
    if ((around & bit(r)) == 0) continue;
    demands.avoided[r] = joined(demands.avoided[r], touched);
    demands.conflicts[r] |= (written & bit(r)) != 0 ? around : written;
  }
}

Demands find_demands(std::span<const Operation> operations, std::span<const Facts> facts,
                     abi::Doors doors) {
  Demands demands;
  demands.doors = doors;
  for (size_t i = 0; i < operations.size(); ++i) {
    demands.loops = demands.loops || facts[i].is_loop_head;
    if (facts[i].needed) add_operation(operations[i], facts[i], demands);
  }
  return demands;
}

// Candidates in the order in which they are taken: what the body writes anyway comes first.
std::vector<Register> candidates(const Environment& environment, const Demands& demands) {
  using R = Register;
  std::vector<R> order = {R::R11, R::Rbx, R::Rbp, R::R12, R::R14, R::R15, R::R13};
  if (environment.point == PointKind::Exit) {
    order.insert(order.end(), {R::R9, R::R8, R::Rdi, R::Rsi, R::Rcx, R::Rdx, R::Rax});
  } else {
    order.insert(order.begin(), R::Rax);
    order.insert(order.end(), {R::R9, R::R8, R::Rcx, R::Rdx, R::Rsi, R::Rdi});
  }
  const auto drop = [&](R r) {
    order.erase(std::remove(order.begin(), order.end(), r), order.end());
  };
  // What accessors find in a register is the program's, or saved where they know.
  const bool is_all_saved = (abi::kAllSaved.bits() & ~environment.saved.bits()) == 0;
  if (environment.is_machine || is_all_saved) drop(R::Rbp);
  if (demands.loops) drop(abi::kFuelRegister);
  std::stable_partition(order.begin(), order.end(), [&](R r) { return demands.touched.has(r); });
  return order;
}

// The BPF registers that are in `in` already.
uint32_t occupants(const Allocation& allocation, Register in) {
  uint32_t found = 0;
  for (uint32_t r = 0; r < kBpfRegisters; ++r) {
    if (allocation.registers[r] == in) found |= bit(r);
  }
  return found;
}

// One that others have already, or nobody, where neither they nor an operation are in the way.
std::optional<Register> choose(uint32_t bpf_register, std::span<const Register> order,
                               const Demands& demands, const Allocation& allocation) {
  std::optional<Register> fresh;
  for (const Register in : order) {
    const uint32_t others = occupants(allocation, in);
    if (demands.avoided[bpf_register].has(in)) continue;
    if ((others & demands.conflicts[bpf_register]) != 0) continue;
    if (others != 0 || demands.touched.has(in)) return in;
    if (!fresh) fresh = in;
  }
  return fresh;
}

}  // namespace

RegisterSet joined(RegisterSet a, RegisterSet b) {
  return RegisterSet(static_cast<uint16_t>(a.bits() | b.bits()));
}

bool divides_by_call(const Operation& op, const Facts& facts) {
  if (!op.is_division() || !facts.result.is_register()) return false;
  const bool constant = !op.has_source || facts.values[op.source].is_constant();
  if (!constant) return true;
  uint64_t divisor = op.has_source ? facts.values[op.source].constant : op.immediate;
  if (!op.wide) divisor = static_cast<uint32_t>(divisor);
  return divisor != 0 && (op.is_signed || !std::has_single_bit(divisor));
}

Expected<Allocation> allocate(std::span<const Operation> operations, std::span<const Facts> facts,
                              const Environment& environment, abi::Doors doors) {
  const Demands demands = find_demands(operations, facts, doors);
  const std::vector<Register> order = candidates(environment, demands);
  Allocation allocation;
  allocation.has_loops = demands.loops;
  allocation.doors = doors;
  for (uint32_t r = 0; r < abi::kCallRegisters.size(); ++r) {
    if ((demands.arguments & bit(r)) != 0) allocation.registers[r] = abi::kCallRegisters[r];
  }
  for (uint32_t r = 0; r < kBpfRegisters; ++r) {
    if ((demands.used & bit(r)) == 0 || allocation.registers[r]) continue;
    allocation.registers[r] = choose(r, order, demands, allocation);
    if (!allocation.registers[r]) {
      return fail(ErrorCode::Limit, "the program needs too many registers");
    }
  }
  allocation.clobbers = demands.touched;
  for (const std::optional<Register>& in : allocation.registers) {
    if (in) allocation.clobbers.add(*in);
  }
  allocation.clobbers.add(kScratch);
  if (demands.loops) allocation.clobbers.add(abi::kFuelRegister);
  return allocation;
}

}  // namespace clew::native
