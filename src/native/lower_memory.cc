// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics. A window address is masked unless its interval shows that it is
// inside; a masked address stays in r10 for the accesses that follow.
#include <limits>

#include "abi/context.h"
#include "abi/region.h"
#include "abi/slot.h"
#include "base/assert.h"
#include "native/lowering.h"

namespace clew::native {
namespace {

using Kind = OperationKind;

Alu alu_of(isa::Atomic op) {
  switch (op) {
    case isa::Atomic::Add:
    case isa::Atomic::FetchAdd:
      return Alu::Add;
    case isa::Atomic::Or:
    case isa::Atomic::FetchOr:
      return Alu::Or;
    case isa::Atomic::And:
    case isa::Atomic::FetchAnd:
      return Alu::And;
    case isa::Atomic::Xor:
    case isa::Atomic::FetchXor:
      return Alu::Xor;
    case isa::Atomic::Exchange:
    case isa::Atomic::CompareExchange:
      break;
  }
  CLEW_ASSERT(false);
  return Alu::Add;
}

}  // namespace

Address Lowering::slot_word(uint32_t offset_bytes) const {
  return {.displacement = static_cast<int32_t>(input_.environment.slot_address + offset_bytes)};
}

// Above the words that the stub pushed.
Address Lowering::stack_word(uint32_t offset_bytes) const {
  const uint32_t pushed = 8 * abi::saved_count(input_.clobbers);
  return {.space = Address::Space::Stack,
          .displacement = static_cast<int32_t>(pushed + offset_bytes)};
}

Address Lowering::address(uint32_t index, uint8_t base, uint32_t alignment) {
  const Operation& op = input_.operations[index];
  const Value& value = input_.facts[index].values[base];
  if (!value.is_constant()) {
    const bool may_mask_base = value.is_register() && alignment == 1;
    return dynamic_address(operand_of(index, base).in, op, may_mask_base, alignment);
  }
  uint64_t place = value.constant + static_cast<uint64_t>(int64_t{op.offset_bytes});
  if (is_global(place, op.size_bytes)) {
    place &= ~uint64_t{alignment - 1};
    return {.space = Address::Space::Absolute, .displacement = static_cast<int32_t>(place)};
  }
  const uint64_t limit = window_size() + abi::kWindowSlackBytes - op.size_bytes;
  if (place > limit) place &= window_mask();
  place &= ~uint64_t{alignment - 1};
  return {.displacement = static_cast<int32_t>(input_.environment.window_address + place)};
}

bool Lowering::is_global(uint64_t address, uint32_t size_bytes) const {
  const Environment& e = input_.environment;
  const uint64_t offset = address - e.globals_address;
  return address >= e.globals_address && offset + size_bytes <= e.globals_bytes;
}

std::optional<Address> Lowering::scratch_address(Register base, const Operation& op) const {
  const int64_t distance = int64_t{op.offset_bytes} - scratch_.offset_bytes;
  const bool fresh = scratch_.valid && scratch_.base == base &&
                     scratch_.base_writes == out_.writes(base) &&
                     scratch_.scratch_writes == out_.writes(kScratch);
  const bool near = distance >= 0 && distance + op.size_bytes <= abi::kWindowSlackBytes;
  if (!fresh || !near) return std::nullopt;
  const int64_t displacement = input_.environment.window_address + distance;
  return Address{.index = kScratch, .displacement = static_cast<int32_t>(displacement)};
}

// The base itself is compared with the window's end, so the fact serves its other accesses, too;
// and a chain of loads does not wait for the comparison, as it would for a mask. In front of the
// frame no program has anything: with an offset up to there the base of an access that is right is
// not below 0. (That of t[i + 400] may be t - 8, with an offset of 3200.)
std::optional<Address> Lowering::compared_address(Register base, const Operation& op) {
  const bool near =
      op.offset_bytes >= 0 && static_cast<uint32_t>(op.offset_bytes) <= abi::kFrameOffset;
  if (!near) return std::nullopt;
  out_.bound(base, static_cast<int32_t>(window_mask()), stray_);
  may_stray_ = true;
  const auto window = static_cast<int32_t>(input_.environment.window_address);
  return Address{.index = base, .displacement = window + op.offset_bytes};
}

Address Lowering::dynamic_address(Register base, const Operation& op, bool may_mask_base,
                                  uint32_t alignment) {
  const auto window = static_cast<int32_t>(input_.environment.window_address);
  const auto mask = static_cast<int32_t>(window_mask() & ~uint64_t{alignment - 1});
  const uint64_t limit = window_size() + abi::kWindowSlackBytes;
  const Interval moved = native::add_constant(out_.interval(base), op.offset_bytes);
  if (alignment == 1 && moved.high <= limit - op.size_bytes) {
    return {.index = base, .displacement = window + op.offset_bytes};
  }
  if (may_mask_base && input_.environment.branch_guards) {
    if (const auto compared = compared_address(base, op)) return *compared;
  }
  if (may_mask_base && op.offset_bytes == 0) {
    // No change for a program that stays in its window, and the fact lasts.
    out_.alu_constant(Alu::And, base, mask, false);
    return {.index = base, .displacement = window};
  }
  if (alignment == 1) {
    if (const auto kept = scratch_address(base, op)) return *kept;
  }
  if (op.offset_bytes == 0) {
    out_.move(kScratch, base, false);
  } else {
    out_.add_to(kScratch, base, op.offset_bytes);
  }
  out_.alu_constant(Alu::And, kScratch, mask, false);
  scratch_ = {.valid = alignment == 1,
              .base = base,
              .base_writes = out_.writes(base),
              .scratch_writes = out_.writes(kScratch),
              .offset_bytes = op.offset_bytes};
  return {.index = kScratch, .displacement = window};
}

void Lowering::load(uint32_t index) {
  const Operation& op = input_.operations[index];
  if (input_.facts[index].values[op.source].kind == Value::Kind::Context) {
    return load_context(index);
  }
  const Address from = address(index, op.source);
  out_.load(assigned(op.destination), from, op.size_bytes, op.is_signed);
}

// Keeps the part of a context word that the load asks for.
void Lowering::narrow(Register dst, const Operation& op) {
  const auto shift = static_cast<uint8_t>(8 * (op.offset_bytes % 8));
  if (shift != 0) out_.shift(Shift::Right, dst, shift, true);
  if (op.size_bytes == 8) return;
  if (op.is_signed || op.size_bytes < 4) {
    out_.extend(dst, dst, op.size_bytes, op.is_signed, true);
  } else {
    out_.move(dst, dst, false);
  }
}

void Lowering::load_tid(Register dst) {
  static_assert(abi::kTidUnknown == 0xFFFF'FFFF);
  out_.move_constant(kScratch, 0);
  out_.load(dst, slot_word(offsetof(abi::SlotControl, tid)), 4, false);
  out_.alu_constant(Alu::Compare, dst, -1, false);
  out_.move_if(Condition::Equal, dst, kScratch, false);
}

// Part of an argument, or one whose register the body writes elsewhere.
void Lowering::load_argument(const Operation& op, Register argument) {
  const Register dst = assigned(op.destination);
  const auto part = static_cast<uint32_t>(op.offset_bytes) % 8;
  if (input_.clobbers.has(argument)) {
    const uint32_t saved = abi::saved_offset_bytes(input_.clobbers, argument);
    const Address from = {.space = Address::Space::Stack,
                          .displacement = static_cast<int32_t>(saved + part)};
    return out_.load(dst, from, op.size_bytes, op.is_signed);
  }
  const bool plain = part == 0 && op.size_bytes < 8;
  if (plain && op.size_bytes == 4 && !op.is_signed) return out_.move(dst, argument, false);
  if (plain) return out_.extend(dst, argument, op.size_bytes, op.is_signed, true);
  out_.move(dst, argument, true);
  narrow(dst, op);
}

void Lowering::load_context(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Register dst = assigned(op.destination);
  const auto offset = static_cast<uint32_t>(op.offset_bytes);
  const auto word = context_word(input_.environment.point, offset);
  CLEW_ASSERT(word.has_value());
  switch (word->where) {
    case ContextWord::Where::Argument:
      return load_argument(op, word->argument);
    case ContextWord::Where::Stack:
      return out_.load(dst, stack_word(word->offset_bytes + offset % 8), op.size_bytes,
                       op.is_signed);
    case ContextWord::Where::Frame:
      out_.frame_address(dst, stack_word(0).displacement);
      break;
    case ContextWord::Where::SlotWord:
      out_.load(dst, slot_word(word->offset_bytes), 4, false);
      break;
    case ContextWord::Where::Tid:
      load_tid(dst);
      break;
    case ContextWord::Where::Vector:
      out_.move_from_vector(dst, word->vector);
      break;
    case ContextWord::Where::Generation: {
      const auto absolute = static_cast<int32_t>(input_.environment.generation_address);
      out_.load(dst, {.space = Address::Space::Absolute, .displacement = absolute}, 4, false);
      break;
    }
  }
  const bool whole =
      offset % 8 == 0 && (op.size_bytes == 8 || (op.size_bytes == 4 && !op.is_signed));
  const bool is_wider =
      word->where == ContextWord::Where::Frame || word->where == ContextWord::Where::Vector;
  if (!whole || (is_wider && op.size_bytes < 8)) narrow(dst, op);
}

void Lowering::store_constant(const Address& to, uint64_t value, uint32_t size_bytes) {
  const auto low = static_cast<int32_t>(value);
  if (size_bytes < 8 || fits_immediate(value, true)) {
    return out_.store_constant(to, low, size_bytes);
  }
  Address high = to;
  high.displacement += 4;
  out_.store_constant(to, low, 4);
  out_.store_constant(high, static_cast<int32_t>(value >> 32), 4);
}

void Lowering::store(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Address to = address(index, op.destination);
  const Operand value = operand(index);
  guarded_ = true;
  if (value.is_constant) return store_constant(to, value.constant, op.size_bytes);
  out_.store(to, value.in, op.size_bytes);
}

// A fetching or/and/xor is a load and a locked update: one thread writes a region (abi/region.h),
// so the word cannot change between them; whoever reads it sees only whole updates.
void Lowering::atomic_update(const Operation& op, const Address& to, Register source) {
  const bool fetches = (static_cast<uint8_t>(op.atomic) & 1U) != 0;
  if (fetches) out_.load(kSecondScratch, to, op.size_bytes, false);
  out_.locked_alu(alu_of(op.atomic), to, source, op.size_bytes);
  if (fetches) out_.move(source, kSecondScratch, true);
}

void Lowering::atomic(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Register source = bring(index, op.source);
  if (op.atomic == isa::Atomic::CompareExchange) static_cast<void>(bring(index, 0));
  const Address to = address(index, op.destination, op.size_bytes);
  switch (op.atomic) {
    case isa::Atomic::Add:
    case isa::Atomic::Or:
    case isa::Atomic::And:
    case isa::Atomic::Xor:
      return atomic_update(op, to, source);
    case isa::Atomic::FetchOr:
    case isa::Atomic::FetchAnd:
    case isa::Atomic::FetchXor:
      guarded_ = true;
      return atomic_update(op, to, source);
    case isa::Atomic::FetchAdd:
      return out_.locked_fetch_add(to, source, op.size_bytes);
    case isa::Atomic::Exchange:
      guarded_ = true;
      return out_.exchange(to, source, op.size_bytes);
    case isa::Atomic::CompareExchange:
      guarded_ = true;
      out_.locked_compare_exchange(to, source, op.size_bytes);
      // When memory was equal a 32-bit cmpxchg leaves the high half of rax as it was.
      if (op.size_bytes == 4) out_.move(Register::Rax, Register::Rax, false);
      return;
  }
}

}  // namespace clew::native
