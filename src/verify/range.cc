// SPDX-License-Identifier: Apache-2.0
// The transfer functions. Whatever is not listed gives the full range of its operand size.
#include "verify/range.h"

#include <algorithm>
#include <bit>

namespace clew::verify {
namespace {

constexpr uint64_t kMax32 = std::numeric_limits<uint32_t>::max();

constexpr Range up_to(uint64_t high) {
  return {0, high, 0};
}

constexpr Range exactly(uint64_t value) {
  return {value, value, static_cast<uint32_t>(std::countr_zero(value))};
}

// All values of `size_bytes` bytes.
constexpr Range full(uint32_t size_bytes) {
  return up_to(size_bytes >= 8 ? std::numeric_limits<uint64_t>::max()
                               : (uint64_t{1} << (8 * size_bytes)) - 1);
}

// The low 32 bits of a value in `range`, when only these count.
constexpr Range range_of_low(const Range& range, uint32_t size_bytes) {
  return size_bytes == 8 || range.high <= kMax32 ? range : up_to(kMax32);
}

Range sum(const Range& a, const Range& b) {
  Range out;
  if (__builtin_add_overflow(a.high, b.high, &out.high)) return {};
  out.low = a.low + b.low;
  return out;
}

Range difference(const Range& a, const Range& b) {
  if (a.low < b.high) return {};
  return {a.low - b.high, a.high - b.low, 0};
}

// a + value, where value is signed.
Range moved(const Range& a, int64_t value) {
  const auto magnitude = static_cast<uint64_t>(value);
  return value >= 0 ? sum(a, exactly(magnitude)) : difference(a, exactly(0 - magnitude));
}

Range scaled(const Range& a, uint64_t factor) {
  Range out;
  if (__builtin_mul_overflow(a.high, factor, &out.high)) return {};
  out.low = a.low * factor;
  return out;
}

Range all_bits_of(const Range& a, const Range& b) {
  const auto width = static_cast<uint32_t>(std::bit_width(a.high | b.high));
  return width >= 64 ? Range{} : up_to((uint64_t{1} << width) - 1);
}

// The immediate of an operation of `size_bytes` as a signed number.
int64_t signed_immediate(const Instruction& i) {
  if (i.size_bytes == 8) return static_cast<int64_t>(i.immediate);
  return int64_t{static_cast<int32_t>(static_cast<uint32_t>(i.immediate))};
}

uint32_t count_of(const Instruction& i) {
  return static_cast<uint32_t>(i.immediate & (i.size_bytes == 8 ? 63U : 31U));
}

Range shifted(const Instruction& i, const Range& value) {
  const uint64_t sign = i.size_bytes == 8 ? uint64_t{1} << 63 : uint64_t{1} << 31;
  const bool by_count = i.second.kind == Operand::Kind::CountRegister;
  if (i.operation == Operation::ShiftRight && by_count) return up_to(value.high);
  if (by_count) return {};
  const uint32_t count = count_of(i);
  if (i.operation == Operation::ShiftLeft) return scaled(value, uint64_t{1} << count);
  const bool may_be_negative = i.operation == Operation::ShiftRightSigned && value.high >= sign;
  if (may_be_negative) return {};
  return {value.low >> count, value.high >> count, 0};
}

}  // namespace

// The second operand: immediate, register, or whatever is in memory.
Range Ranges::source(const Instruction& i) const {
  if (i.has_immediate) return exactly(i.immediate);
  const uint32_t size = i.source_size_bytes != 0 ? i.source_size_bytes : i.size_bytes;
  if (i.second.kind != Operand::Kind::Register) return full(size);
  const Range& known = of(i.second.in);
  return known.high <= full(size).high ? known : full(size);
}

Range Ranges::product(const Instruction& i) const {
  if (!i.has_immediate || signed_immediate(i) < 0) return {};
  return scaled(range_of_low(of(i.second.in), i.size_bytes), i.immediate);
}

Range Ranges::address(const Memory& memory) const {
  if (memory.index || !memory.base || *memory.base == Register::Rsp) return {};
  return moved(of(*memory.base), memory.displacement);
}

Range Ranges::result(const Instruction& i) const {
  const Range left = range_of_low(of(i.first.in), i.size_bytes);
  switch (i.operation) {
    case Operation::Move:
    case Operation::MoveZeroExtended:
      return source(i);
    case Operation::Add:
      return i.has_immediate ? moved(left, signed_immediate(i)) : sum(left, source(i));
    case Operation::Subtract:
      return i.has_immediate ? moved(left, -signed_immediate(i)) : difference(left, source(i));
    case Operation::And: {
      const Range right = source(i);
      return {0, std::min(left.high, right.high), std::max(left.zero_bits, right.zero_bits)};
    }
    case Operation::Or:
    case Operation::Xor:
      return all_bits_of(left, source(i));
    case Operation::Multiply:
      return product(i);
    case Operation::ShiftLeft:
    case Operation::ShiftRight:
    case Operation::ShiftRightSigned:
      return shifted(i, left);
    case Operation::AddressOf:
      return address(i.memory);
    case Operation::MoveIf: {
      const Range right = source(i);
      return {std::min(left.low, right.low), std::max(left.high, right.high),
              std::min(left.zero_bits, right.zero_bits)};
    }
    case Operation::MoveSignExtended:
    case Operation::Negate:
    case Operation::RotateLeft:
    case Operation::RotateRight:
    case Operation::SwapBytes:
    case Operation::BitScanReverse:
    case Operation::MoveFromVector:
    case Operation::Compare:
    case Operation::Test:
    case Operation::ReadTime:
    case Operation::ReadTimeAndCpu:
    case Operation::Jump:
    case Operation::JumpIf:
    case Operation::Call:
    case Operation::ExchangeAdd:
    case Operation::Exchange:
    case Operation::CompareExchange:
      return {};
  }
  return {};
}

void Ranges::apply_not_taken(const Instruction& branch) {
  constexpr uint8_t kAboveOrEqual = 3;  // jae
  constexpr uint8_t kAbove = 7;         // ja
  if (branch.operation != Operation::JumpIf || !compared_) return;
  const Compared compared = *compared_;
  uint64_t high = compared.with;
  const bool excludes = branch.condition == kAboveOrEqual && high != 0;
  if (!excludes && branch.condition != kAbove) return;
  if (excludes) --high;
  Range known = of(compared.in);
  known.high = std::min(known.high, high);
  known.low = std::min(known.low, known.high);  // Where no value fits, the place is not reached.
  set(compared.in, known);
}

void Ranges::apply(const Instruction& i) {
  compared_.reset();
  const bool bounds = i.operation == Operation::Compare && i.size_bytes == 8 && i.has_immediate &&
                      i.first.kind == Operand::Kind::Register;
  if (bounds) compared_ = Compared{.in = i.first.in, .with = i.immediate};
  switch (i.operation) {
    case Operation::Compare:
    case Operation::Test:
    case Operation::Jump:
    case Operation::JumpIf:
      return;
    case Operation::ReadTimeAndCpu:
      set(Register::Rcx, up_to(kMax32));
      [[fallthrough]];
    case Operation::ReadTime:
      set(Register::Rax, up_to(kMax32));
      set(Register::Rdx, up_to(kMax32));
      return;
    case Operation::Call:
    case Operation::CompareExchange:
      return set(Register::Rax, {});
    case Operation::ExchangeAdd:
    case Operation::Exchange:
      return set(i.second.in, full(i.size_bytes));
    case Operation::Move:
    case Operation::MoveZeroExtended:
    case Operation::MoveSignExtended:
    case Operation::Add:
    case Operation::Or:
    case Operation::And:
    case Operation::Subtract:
    case Operation::Xor:
    case Operation::Negate:
    case Operation::Multiply:
    case Operation::RotateLeft:
    case Operation::RotateRight:
    case Operation::ShiftLeft:
    case Operation::ShiftRight:
    case Operation::ShiftRightSigned:
    case Operation::AddressOf:
    case Operation::SwapBytes:
    case Operation::BitScanReverse:
    case Operation::MoveFromVector:
    case Operation::MoveIf:
      break;
  }
  if (i.first.kind != Operand::Kind::Register) return;
  // 32-bit results clear the upper half; 8- and 16-bit ones, which keep it, are not whitelisted.
  set(i.first.in, range_of_low(result(i), i.size_bytes));
}

}  // namespace clew::verify
