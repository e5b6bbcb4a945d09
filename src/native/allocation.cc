// SPDX-License-Identifier: Apache-2.0
// One x86 register per BPF register for the whole body: query programs use few, so live ranges
// need not be split.
#include "native/allocation.h"

#include <algorithm>
#include <bit>

#include "abi/calling.h"

namespace clew::native {
namespace {

// What instructions with fixed registers take.
struct Needs {
  bool call = false;
  bool rax = false;
  bool rcx = false;
  bool rdx = false;
  bool loops = false;
  uint16_t used = 0;  // BPF registers that live in x86 registers.
};

void add_call(const Operation& op, Needs& needs) {
  switch (op.accessor) {
    case abi::Accessor::Time:
      needs.rax = true;
      needs.rdx = true;
      return;
    case abi::Accessor::Cpu:
      needs.rax = true;
      needs.rcx = true;
      needs.rdx = true;
      return;
    case abi::Accessor::BitLength:
      return;
    case abi::Accessor::DivideUnsigned:
    case abi::Accessor::ModuloUnsigned:
    case abi::Accessor::DivideSigned:
    case abi::Accessor::ModuloSigned:
    case abi::Accessor::TryRead:
    case abi::Accessor::TryReadString:
    case abi::Accessor::TableFind:
    case abi::Accessor::RecordPut:
    case abi::Accessor::RecordTake:
    case abi::Accessor::RecordDrop:
    case abi::Accessor::RecordTakeLeft:
      break;
  }
  needs.call = true;
  needs.used = static_cast<uint16_t>(needs.used | argument_registers(op.accessor));
}

void add_atomic(const Operation& op, Needs& needs) {
  needs.used = static_cast<uint16_t>(needs.used | 1U << op.source);
  const bool pair = op.atomic == isa::Atomic::FetchOr || op.atomic == isa::Atomic::FetchAnd ||
                    op.atomic == isa::Atomic::FetchXor;
  if (pair) needs.rcx = true;
  if (op.atomic == isa::Atomic::CompareExchange) {
    needs.rax = true;
    needs.used = static_cast<uint16_t>(needs.used | 1U);
  }
}

void add_operation(const Operation& op, const Facts& facts, Needs& needs) {
  uint32_t used = needs.used | register_reads(op, facts);
  if (const auto written = result_register(op)) used |= 1U << *written;
  needs.used = static_cast<uint16_t>(used);
  if (op.kind == OperationKind::Call) return add_call(op, needs);
  if (op.kind == OperationKind::Atomic) return add_atomic(op, needs);
  const bool known = result_register(op) && !facts.result.is_register();
  const bool count_unknown = op.has_source && !facts.values[op.source].is_constant();
  if (op.is_shift() && !known && count_unknown) needs.rcx = true;
  if (divides_by_call(op, facts)) {
    needs.call = true;
    needs.rax = true;
    needs.rcx = true;
    needs.rdx = true;
    needs.used = static_cast<uint16_t>(needs.used | 0b111U);
  }
}

Needs find_needs(std::span<const Operation> operations, std::span<const Facts> facts) {
  Needs needs;
  for (size_t i = 0; i < operations.size(); ++i) {
    needs.loops = needs.loops || facts[i].is_loop_head;
    if (facts[i].needed) add_operation(operations[i], facts[i], needs);
  }
  return needs;
}

// Candidates in the order in which they are taken.
std::vector<Register> candidates(const Environment& environment, const Needs& needs) {
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
  // What the D accessors find in a register is the program's, or saved where they know.
  if (environment.is_d) drop(R::Rbp);
  if (needs.loops) drop(abi::kFuelRegister);
  if (needs.rcx) drop(R::Rcx);
  if (needs.rdx) drop(R::Rdx);
  return order;
}

void fix(Allocation& allocation, uint32_t bpf_register, Register r, std::vector<Register>& order) {
  allocation.registers[bpf_register] = r;
  order.erase(std::remove(order.begin(), order.end(), r), order.end());
}

}  // namespace

bool divides_by_call(const Operation& op, const Facts& facts) {
  if (!op.is_division() || !facts.result.is_register()) return false;
  const bool constant = !op.has_source || facts.values[op.source].is_constant();
  if (!constant) return true;
  uint64_t divisor = op.has_source ? facts.values[op.source].constant : op.immediate;
  if (!op.wide) divisor = static_cast<uint32_t>(divisor);
  return divisor != 0 && (op.is_signed || !std::has_single_bit(divisor));
}

Expected<Allocation> allocate(std::span<const Operation> operations, std::span<const Facts> facts,
                              const Environment& environment) {
  const Needs needs = find_needs(operations, facts);
  std::vector<Register> order = candidates(environment, needs);
  Allocation allocation;
  allocation.has_loops = needs.loops;
  if (needs.call || needs.rax) fix(allocation, 0, Register::Rax, order);
  for (uint32_t r = 1; needs.call && r < abi::kCallRegisters.size(); ++r) {
    fix(allocation, r, abi::kCallRegisters[r], order);
  }
  size_t next = 0;
  for (uint32_t r = 0; r < kBpfRegisters; ++r) {
    if ((needs.used >> r & 1U) == 0 || allocation.registers[r]) continue;
    if (next == order.size()) return fail(ErrorCode::Limit, "the program needs too many registers");
    allocation.registers[r] = order[next++];
  }
  for (uint32_t r = 0; r < kBpfRegisters; ++r) {
    const std::optional<Register> in = allocation.registers[r];
    if ((needs.used >> r & 1U) != 0 && in) allocation.clobbers.add(*in);
  }
  allocation.clobbers.add(kScratch);
  if (needs.rax || needs.call) allocation.clobbers.add(Register::Rax);
  if (needs.rcx) allocation.clobbers.add(Register::Rcx);
  if (needs.rdx) allocation.clobbers.add(Register::Rdx);
  if (needs.loops) allocation.clobbers.add(abi::kFuelRegister);
  return allocation;
}

}  // namespace clew::native
