// SPDX-License-Identifier: Apache-2.0
// Runs of operations that one x86 instruction does:
//
//     t = [A]; t op= x; [A] = t      op gs:[A], x          t dead afterwards
//     t = [A]; if t cond x           cmp gs:[A], x; jcc    t dead afterwards
//     t = [A]; d op= t               op d, gs:[A]          t dead afterwards
//     t = x; t <<= k; x >>= n-k; x |= t (any order)        rol, eBPF having none
//     d = x; d += k                  lea d, [x + k]
//
// The operations must follow each other directly, but for such as are not translated.
#include "native/lowering.h"

namespace clew::native {
namespace {

using Kind = OperationKind;

bool updates_memory(isa::Alu op) {
  return op == isa::Alu::Add || op == isa::Alu::Subtract || op == isa::Alu::Or ||
         op == isa::Alu::And || op == isa::Alu::Xor;
}

bool is_whole_load(const Operation& op) {
  return op.kind == Kind::Load && !op.is_signed && op.size_bytes >= 4;
}

// The number of bits of a shift by a constant, or nothing.
std::optional<uint32_t> shift_count(const Operation& op, isa::Alu kind, uint8_t r, bool wide) {
  const bool fits = op.kind == Kind::Binary && op.alu == kind && op.destination == r &&
                    !op.has_source && op.wide == wide;
  if (!fits) return std::nullopt;
  return static_cast<uint32_t>(op.immediate & (wide ? 63 : 31));
}

}  // namespace

std::optional<uint32_t> Lowering::next(uint32_t index) const {
  const Kind kind = input_.operations[index].kind;
  if (kind == Kind::Jump || kind == Kind::Exit || kind == Kind::Branch) return std::nullopt;
  for (uint32_t i = index + 1; i < input_.operations.size(); ++i) {
    if (input_.facts[i].is_target) return std::nullopt;
    if (input_.facts[i].reached && input_.facts[i].needed) return i;
  }
  return std::nullopt;
}

bool Lowering::is_dead_after(uint32_t index, uint8_t r) const {
  return (input_.facts[index].live_after >> r & 1U) == 0;
}

// Does the store write the bytes that the load read? Their base is the same number: the operations
// between do not write it, or it is a constant.
bool Lowering::same_place(uint32_t load, uint32_t store) const {
  const Operation& from = input_.operations[load];
  const Operation& to = input_.operations[store];
  if (from.size_bytes != to.size_bytes) return false;
  const Value& a = input_.facts[load].values[from.source];
  const Value& b = input_.facts[store].values[to.destination];
  if (a.is_constant() && b.is_constant()) {
    return a.constant + static_cast<uint64_t>(int64_t{from.offset_bytes}) ==
           b.constant + static_cast<uint64_t>(int64_t{to.offset_bytes});
  }
  if (a.kind == Value::Kind::Live) return a == b && from.offset_bytes == to.offset_bytes;
  return a.is_register() && from.source == to.destination && from.offset_bytes == to.offset_bytes &&
         from.source != from.destination;
}

std::optional<uint32_t> Lowering::fuse_update(uint32_t load, uint32_t change) {
  const Operation& from = input_.operations[load];
  const Operation& op = input_.operations[change];
  const auto store = next(change);
  if (!store || op.kind != Kind::Binary || !updates_memory(op.alu)) return std::nullopt;
  const Operation& to = input_.operations[*store];
  const bool chained = op.destination == from.destination && to.kind == Kind::Store &&
                       to.has_source && to.source == from.destination &&
                       (!op.has_source || op.source != from.destination);
  const bool whole = op.wide || from.size_bytes == 4;
  if (!chained || !whole || !is_dead_after(*store, from.destination)) return std::nullopt;
  if (!same_place(load, *store)) return std::nullopt;
  const Operand right = operand(change);
  const bool wide = from.size_bytes == 8;
  if (right.is_constant && !fits_immediate(right.constant, wide)) return std::nullopt;
  const Address to_address = address(load, from.source);
  if (right.is_constant) {
    out_.alu_memory_constant(alu_of(op.alu), to_address, static_cast<int32_t>(right.constant),
                             from.size_bytes);
  } else {
    out_.alu_memory(alu_of(op.alu), to_address, right.in, from.size_bytes);
  }
  return store;
}

std::optional<uint32_t> Lowering::fuse_compare(uint32_t load, uint32_t branch) {
  const Operation& from = input_.operations[load];
  const Operation& op = input_.operations[branch];
  const bool left_only =
      op.destination == from.destination && (!op.has_source || op.source != from.destination);
  const bool same_width = op.wide == (from.size_bytes == 8);
  if (!isa::is_compare(op.jump) || !left_only || !same_width) return std::nullopt;
  if (!is_dead_after(branch, from.destination)) return std::nullopt;
  const Operand right = operand(branch);
  if (right.is_constant && !fits_immediate(right.constant, op.wide)) return std::nullopt;
  const Address place = address(load, from.source);
  if (right.is_constant) {
    out_.alu_memory_constant(Alu::Compare, place, static_cast<int32_t>(right.constant),
                             from.size_bytes);
  } else {
    out_.alu_memory(Alu::Compare, place, right.in, from.size_bytes);
  }
  jump_if(condition_of(op.jump), branch);
  return branch;
}

std::optional<uint32_t> Lowering::fuse_operand(uint32_t load, uint32_t use) {
  const Operation& from = input_.operations[load];
  const Operation& op = input_.operations[use];
  const bool fits = op.kind == Kind::Binary && updates_memory(op.alu) && op.has_source &&
                    op.source == from.destination && op.destination != from.destination &&
                    op.wide == (from.size_bytes == 8);
  const bool in_register = input_.facts[use].values[op.destination].is_register() &&
                           input_.facts[use].result.is_register();
  if (!fits || !in_register || !is_dead_after(use, from.destination)) return std::nullopt;
  const Address place = address(load, from.source);
  out_.alu_from_memory(alu_of(op.alu), assigned(op.destination), place, from.size_bytes);
  return use;
}

// t = x, then one of {t, x} is shifted left and the other right by counts that add up to the width,
// then they are or-ed (or added) and one of them is dead.
std::optional<uint32_t> Lowering::fuse_rotate(uint32_t first) {
  const Operation& copy = input_.operations[first];
  const auto second = next(first);
  const auto third = second ? next(*second) : std::nullopt;
  const auto last = third ? next(*third) : std::nullopt;
  if (!last || copy.kind != Kind::Move || !copy.has_source) return std::nullopt;
  const Operation& join = input_.operations[*last];
  const bool wide = join.wide;
  const uint8_t t = copy.destination;
  const uint8_t x = copy.source;
  const bool joins =
      join.kind == Kind::Binary && join.has_source && t != x &&
      (join.alu == isa::Alu::Or || join.alu == isa::Alu::Xor || join.alu == isa::Alu::Add);
  const bool both =
      (join.destination == t && join.source == x) || (join.destination == x && join.source == t);
  if (!joins || !both || (wide && !copy.wide)) return std::nullopt;
  if (!is_dead_after(*last, join.source)) return std::nullopt;
  if (!input_.facts[first].values[x].is_register()) return std::nullopt;
  const auto rotation = [&](const Operation& a, const Operation& b,
                            uint8_t up) -> std::optional<uint32_t> {
    const auto left = shift_count(a, isa::Alu::ShiftLeft, up, wide);
    const auto right = shift_count(b, isa::Alu::ShiftRight, up == t ? x : t, wide);
    const bool whole = left && right && *left != 0 && *left + *right == (wide ? 64U : 32U);
    return whole ? left : std::nullopt;
  };
  const Operation& a = input_.operations[*second];
  const Operation& b = input_.operations[*third];
  std::optional<uint32_t> left;
  for (const uint8_t up : {t, x}) {
    if (!left) left = rotation(a, b, up);
    if (!left) left = rotation(b, a, up);
  }
  if (!left) return std::nullopt;
  const Register result = assigned(join.destination);
  if (join.destination == t) out_.move(result, assigned(x), wide);
  out_.shift(Shift::RotateLeft, result, static_cast<uint8_t>(*left), wide);
  return last;
}

std::optional<uint32_t> Lowering::fuse_add(uint32_t move, uint32_t add) {
  const Operation& copy = input_.operations[move];
  const Operation& op = input_.operations[add];
  const bool adds = op.kind == Kind::Binary && op.destination == copy.destination && op.wide &&
                    (op.alu == isa::Alu::Add || op.alu == isa::Alu::Subtract);
  if (!adds || !copy.wide || !copy.has_source) return std::nullopt;
  const bool itself = op.has_source && op.source == op.destination;
  const Operand right = operand(add);
  const uint64_t change = op.alu == isa::Alu::Subtract ? 0 - right.constant : right.constant;
  const bool known =
      !input_.facts[add].result.is_register() || !input_.facts[move].result.is_register();
  if (itself || known || !right.is_constant || !fits_immediate(change, true)) return std::nullopt;
  out_.add_to(assigned(copy.destination), operand(move).in, static_cast<int32_t>(change));
  return add;
}

std::optional<uint32_t> Lowering::fuse(uint32_t index) {
  const Operation& op = input_.operations[index];
  const auto following = next(index);
  if (!following) return std::nullopt;
  if (op.kind == Kind::Move) {
    if (const auto last = fuse_rotate(index)) return last;
    return fuse_add(index, *following);
  }
  const bool from_window =
      is_whole_load(op) && input_.facts[index].values[op.source].kind != Value::Kind::Context;
  if (!from_window) return std::nullopt;
  if (input_.operations[*following].kind == Kind::Branch) return fuse_compare(index, *following);
  if (const auto last = fuse_update(index, *following)) return last;
  return fuse_operand(index, *following);
}

}  // namespace clew::native
