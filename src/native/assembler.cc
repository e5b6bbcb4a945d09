// SPDX-License-Identifier: Apache-2.0
// Encodings: SDM volume 2, chapter 2 (formats) and the instructions' pages. Prefix order is F0, 65,
// 66, REX, and no prefix is redundant, as the verifier demands.
#include "native/assembler.h"

#include <limits>

namespace clew::native {
namespace {

constexpr uint8_t kRexBase = 0x40;

// A byte operand in spl..dil (4..7) needs a REX prefix; without one the number means ah..bh.
bool needs_rex_as_byte(unsigned number) {
  return number >= 4 && number < 8;
}

Interval signed_constant(int32_t value, bool wide) {
  const auto extended = static_cast<uint64_t>(int64_t{value});
  return Interval::constant(wide ? extended : static_cast<uint32_t>(extended));
}

Interval alu_result(Alu op, const Interval& a, const Interval& b, bool wide) {
  const Interval left = a.sized(wide);
  const Interval right = b.sized(wide);
  switch (op) {
    case Alu::Add:
      return add(left, right).sized(wide);
    case Alu::Subtract:
      return subtract(left, right).sized(wide);
    case Alu::And:
      return bit_and(left, right);
    case Alu::Or:
    case Alu::Xor:
      return bit_or(left, right);
    case Alu::Compare:
      return a;
  }
  return {};
}

}  // namespace

bool Assembler::fits_byte(int32_t value) {
  return value >= std::numeric_limits<int8_t>::min() && value <= std::numeric_limits<int8_t>::max();
}

void Assembler::set(Register r, const Interval& value) {
  intervals_[number(r)] = value;
  ++writes_[number(r)];
  written_.add(r);
}

void Assembler::little_endian(uint64_t value, uint32_t size) {
  for (uint32_t i = 0; i < size; ++i)
    byte(static_cast<unsigned>(value >> (8 * i) & 0xFF));
}

void Assembler::opcode(uint16_t value) {
  if (value > 0xFF) byte(value >> 8);
  byte(value & 0xFF);
}

void Assembler::prefixes(const Encoding& e, unsigned base, bool byte_base) {
  unsigned rex = 0;
  if (e.size == 8) rex |= kRexBase | 8;
  if (e.field >= 8) rex |= kRexBase | 4;
  if (base >= 8) rex |= kRexBase | 1;
  if (e.byte_register && needs_rex_as_byte(e.field)) rex |= kRexBase;
  if (byte_base && needs_rex_as_byte(base)) rex |= kRexBase;
  if (e.size == 2) byte(0x66);
  if (rex != 0) byte(rex);
  ++weight_;
}

void Assembler::put(const Encoding& e, Register rm, bool byte_rm) {
  prefixes(e, number(rm), byte_rm);
  opcode(e.opcode);
  byte(0xC0U | (e.field & 7U) << 3 | (number(rm) & 7U));
  little_endian(static_cast<uint32_t>(e.immediate), e.immediate_size);
}

void Assembler::put(const Encoding& e, const Address& rm) {
  if (e.lock) byte(0xF0);
  if (rm.space == Address::Space::Slot) byte(0x65);
  prefixes(e, rm.index ? number(*rm.index) : 0, false);
  opcode(e.opcode);
  put_operand(e.field, rm);
  little_endian(static_cast<uint32_t>(e.immediate), e.immediate_size);
}

void Assembler::put_operand(uint8_t field, const Address& rm) {
  const unsigned reg = (field & 7U) << 3;
  const auto displacement = static_cast<uint32_t>(rm.displacement);
  if (rm.space == Address::Space::Stack) {
    const bool is_short = fits_byte(rm.displacement);
    byte((is_short ? 0x40U : 0x80U) | reg | 4U);
    byte(0x24);
    little_endian(displacement, is_short ? 1 : 4);
    return;
  }
  if (rm.index) {
    const unsigned low = number(*rm.index) & 7U;
    byte(0x80U | reg | low);
    if (low == 4) byte(0x24);
  } else {
    byte(reg | 4U);
    byte(0x25);
  }
  little_endian(displacement, 4);
}

void Assembler::move(Register dst, Register src, bool wide) {
  put({.opcode = 0x89, .field = static_cast<uint8_t>(src), .size = wide ? uint8_t{8} : uint8_t{4}},
      dst);
  set(dst, interval(src).sized(wide));
}

void Assembler::move_constant(Register dst, uint64_t value) {
  const bool fits_unsigned = value <= std::numeric_limits<uint32_t>::max();
  const auto as_signed = static_cast<int64_t>(value);
  if (!fits_unsigned && as_signed == static_cast<int32_t>(as_signed)) {
    put({.opcode = 0xC7, .size = 8, .immediate_size = 4, .immediate = static_cast<int32_t>(value)},
        dst);
  } else {
    prefixes({.size = fits_unsigned ? uint8_t{4} : uint8_t{8}}, number(dst), false);
    byte(0xB8U | (number(dst) & 7U));
    little_endian(value, fits_unsigned ? 4 : 8);
  }
  set(dst, Interval::constant(value));
}

void Assembler::extend(Register dst, Register src, uint32_t from_bytes, bool is_signed, bool wide) {
  const auto field = static_cast<uint8_t>(dst);
  const bool full = wide && is_signed;
  uint16_t code = 0x63;  // movsxd
  if (from_bytes == 1) code = is_signed ? 0x0FBE : 0x0FB6;
  if (from_bytes == 2) code = is_signed ? 0x0FBF : 0x0FB7;
  put({.opcode = code, .field = field, .size = full ? uint8_t{8} : uint8_t{4}}, src,
      from_bytes == 1);
  if (is_signed) {
    set(dst, Interval::unknown().sized(wide));
  } else {
    const uint64_t limit = (uint64_t{1} << (8 * from_bytes)) - 1;
    set(dst, interval(src).high <= limit ? interval(src) : Interval::below(limit));
  }
}

void Assembler::alu(Alu op, Register dst, Register src, bool wide) {
  put({.opcode = static_cast<uint16_t>(static_cast<unsigned>(op) << 3 | 1U),
       .field = static_cast<uint8_t>(src),
       .size = wide ? uint8_t{8} : uint8_t{4}},
      dst);
  if (op != Alu::Compare) set(dst, alu_result(op, interval(dst), interval(src), wide));
}

void Assembler::alu_constant(Alu op, Register dst, int32_t value, bool wide) {
  const bool is_short = fits_byte(value);
  put({.opcode = is_short ? uint16_t{0x83} : uint16_t{0x81},
       .field = static_cast<uint8_t>(op),
       .size = wide ? uint8_t{8} : uint8_t{4},
       .immediate_size = is_short ? uint8_t{1} : uint8_t{4},
       .immediate = value},
      dst);
  if (op == Alu::Compare) return;
  if (op == Alu::Add || op == Alu::Subtract) {
    const int64_t change = op == Alu::Add ? int64_t{value} : -int64_t{value};
    set(dst, add_constant(interval(dst).sized(wide), change).sized(wide));
  } else {
    set(dst, alu_result(op, interval(dst), signed_constant(value, wide), wide));
  }
}

void Assembler::test(Register a, Register b, bool wide) {
  put({.opcode = 0x85, .field = static_cast<uint8_t>(b), .size = wide ? uint8_t{8} : uint8_t{4}},
      a);
}

void Assembler::test_constant(Register a, int32_t value, bool wide) {
  put({.opcode = 0xF7,
       .size = wide ? uint8_t{8} : uint8_t{4},
       .immediate_size = 4,
       .immediate = value},
      a);
}

void Assembler::multiply(Register dst, Register src, bool wide) {
  put({.opcode = 0x0FAF,
       .field = static_cast<uint8_t>(dst),
       .size = wide ? uint8_t{8} : uint8_t{4}},
      src);
  set(dst, Interval::unknown().sized(wide));
}

void Assembler::multiply_constant(Register dst, Register src, int32_t value, bool wide) {
  const bool is_short = fits_byte(value);
  put({.opcode = is_short ? uint16_t{0x6B} : uint16_t{0x69},
       .field = static_cast<uint8_t>(dst),
       .size = wide ? uint8_t{8} : uint8_t{4},
       .immediate_size = is_short ? uint8_t{1} : uint8_t{4},
       .immediate = value},
      src);
  const Interval source = interval(src).sized(wide);
  const bool bounded = value >= 0;
  set(dst, (bounded ? native::multiply(source, static_cast<uint32_t>(value)) : Interval::unknown())
               .sized(wide));
}

void Assembler::shift(Shift op, Register dst, uint8_t count, bool wide) {
  put({.opcode = 0xC1,
       .field = static_cast<uint8_t>(op),
       .size = wide ? uint8_t{8} : uint8_t{4},
       .immediate_size = 1,
       .immediate = count},
      dst);
  const Interval source = interval(dst).sized(wide);
  const uint64_t sign = wide ? uint64_t{1} << 63 : uint64_t{1} << 31;
  Interval result = Interval::unknown();
  if (op == Shift::Right || (op == Shift::RightSigned && source.high < sign)) {
    result = shift_right(source, count);
  } else if (op == Shift::Left) {
    result = native::multiply(source, uint64_t{1} << count);
  }
  set(dst, result.sized(wide));
}

void Assembler::shift_by_cl(Shift op, Register dst, bool wide) {
  put({.opcode = 0xD3, .field = static_cast<uint8_t>(op), .size = wide ? uint8_t{8} : uint8_t{4}},
      dst);
  const Interval source = interval(dst).sized(wide);
  set(dst, op == Shift::Right ? Interval::below(source.high) : Interval::unknown().sized(wide));
}

void Assembler::negate(Register dst, bool wide) {
  put({.opcode = 0xF7, .field = 3, .size = wide ? uint8_t{8} : uint8_t{4}}, dst);
  set(dst, Interval::unknown().sized(wide));
}

void Assembler::swap_bytes(Register dst, bool wide) {
  prefixes({.size = wide ? uint8_t{8} : uint8_t{4}}, number(dst), false);
  byte(0x0F);
  byte(0xC8U | (number(dst) & 7U));
  set(dst, Interval::unknown().sized(wide));
}

void Assembler::add_to(Register dst, Register base, int32_t displacement) {
  prefixes({.field = static_cast<uint8_t>(dst), .size = 8}, number(base), false);
  byte(0x8D);
  const bool is_short = fits_byte(displacement);
  const unsigned low = number(base) & 7U;
  byte((is_short ? 0x40U : 0x80U) | (number(dst) & 7U) << 3 | low);
  if (low == 4) byte(0x24);
  little_endian(static_cast<uint32_t>(displacement), is_short ? 1 : 4);
  set(dst, add_constant(interval(base), displacement));
}

void Assembler::frame_address(Register dst, int32_t displacement) {
  put({.opcode = 0x8D, .field = static_cast<uint8_t>(dst), .size = 8},
      Address{.space = Address::Space::Stack, .displacement = displacement});
  set(dst, Interval::unknown());
}

void Assembler::bit_scan_reverse(Register dst, Register src) {
  put({.opcode = 0x0FBD, .field = static_cast<uint8_t>(dst), .size = 8}, src);
  set(dst, Interval::unknown());
}

void Assembler::move_from_vector(Register dst, uint8_t vector) {
  byte(0x66);
  put({.opcode = 0x0F7E, .field = vector, .size = 8}, dst);
  set(dst, Interval::unknown());
}

void Assembler::move_if(Condition condition, Register dst, Register src, bool wide) {
  put({.opcode = static_cast<uint16_t>(0x0F40U | static_cast<unsigned>(condition)),
       .field = static_cast<uint8_t>(dst),
       .size = wide ? uint8_t{8} : uint8_t{4}},
      src);
  set(dst, merge(interval(dst), interval(src)).sized(wide));
}

void Assembler::read_time() {
  byte(0x0F);
  byte(0x31);
  ++weight_;
  set(Register::Rax, Interval::unknown_32());
  set(Register::Rdx, Interval::unknown_32());
}

void Assembler::read_time_and_cpu() {
  byte(0x0F);
  byte(0x01);
  byte(0xF9);
  ++weight_;
  set(Register::Rax, Interval::unknown_32());
  set(Register::Rdx, Interval::unknown_32());
  set(Register::Rcx, Interval::unknown_32());
}

void Assembler::load(Register dst, const Address& from, uint32_t size, bool is_signed) {
  uint16_t code = 0x8B;
  if (size == 1) code = is_signed ? 0x0FBE : 0x0FB6;
  if (size == 2) code = is_signed ? 0x0FBF : 0x0FB7;
  if (size == 4 && is_signed) code = 0x63;
  const bool wide = size == 8 || is_signed;
  put({.opcode = code, .field = static_cast<uint8_t>(dst), .size = wide ? uint8_t{8} : uint8_t{4}},
      from);
  const bool bounded = !is_signed && size < 8;
  set(dst, bounded ? Interval::below((uint64_t{1} << (8 * size)) - 1) : Interval::unknown());
}

void Assembler::store(const Address& to, Register src, uint32_t size) {
  put({.opcode = size == 1 ? uint16_t{0x88} : uint16_t{0x89},
       .field = static_cast<uint8_t>(src),
       .size = static_cast<uint8_t>(size),
       .byte_register = size == 1},
      to);
}

void Assembler::store_constant(const Address& to, int32_t value, uint32_t size) {
  put({.opcode = size == 1 ? uint16_t{0xC6} : uint16_t{0xC7},
       .size = static_cast<uint8_t>(size),
       .immediate_size = static_cast<uint8_t>(size < 4 ? size : 4),
       .immediate = value},
      to);
}

void Assembler::alu_memory(Alu op, const Address& to, Register src, uint32_t size) {
  put({.opcode = static_cast<uint16_t>(static_cast<unsigned>(op) << 3 | 1U),
       .field = static_cast<uint8_t>(src),
       .size = static_cast<uint8_t>(size)},
      to);
}

void Assembler::alu_memory_constant(Alu op, const Address& to, int32_t value, uint32_t size) {
  const bool is_short = fits_byte(value);
  put({.opcode = is_short ? uint16_t{0x83} : uint16_t{0x81},
       .field = static_cast<uint8_t>(op),
       .size = static_cast<uint8_t>(size),
       .immediate_size = is_short ? uint8_t{1} : uint8_t{4},
       .immediate = value},
      to);
}

void Assembler::alu_from_memory(Alu op, Register dst, const Address& from, uint32_t size) {
  put({.opcode = static_cast<uint16_t>(static_cast<unsigned>(op) << 3 | 3U),
       .field = static_cast<uint8_t>(dst),
       .size = static_cast<uint8_t>(size)},
      from);
  const bool wide = size == 8;
  const Interval loaded = Interval::unknown().sized(wide);
  if (op != Alu::Compare) set(dst, alu_result(op, interval(dst), loaded, wide));
}

void Assembler::locked_alu(Alu op, const Address& to, Register src, uint32_t size) {
  put({.opcode = static_cast<uint16_t>(static_cast<unsigned>(op) << 3 | 1U),
       .field = static_cast<uint8_t>(src),
       .size = static_cast<uint8_t>(size),
       .lock = true},
      to);
}

void Assembler::locked_fetch_add(const Address& to, Register src, uint32_t size) {
  put({.opcode = 0x0FC1,
       .field = static_cast<uint8_t>(src),
       .size = static_cast<uint8_t>(size),
       .lock = true},
      to);
  set(src, Interval::unknown().sized(size == 8));
}

void Assembler::exchange(const Address& to, Register src, uint32_t size) {
  put({.opcode = 0x87, .field = static_cast<uint8_t>(src), .size = static_cast<uint8_t>(size)}, to);
  set(src, Interval::unknown().sized(size == 8));
}

void Assembler::locked_compare_exchange(const Address& to, Register src, uint32_t size) {
  put({.opcode = 0x0FB1,
       .field = static_cast<uint8_t>(src),
       .size = static_cast<uint8_t>(size),
       .lock = true},
      to);
  set(Register::Rax, Interval::unknown());
}

}  // namespace clew::native
