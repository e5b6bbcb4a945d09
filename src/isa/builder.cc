// SPDX-License-Identifier: Apache-2.0
// Encodes instructions (RFC 9669, 3) and resolves labels.
#include "isa/builder.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace clew::isa {
namespace {

constexpr uint8_t bits(Class c) {
  return static_cast<uint8_t>(c);
}
constexpr uint8_t bits(Alu op) {
  return static_cast<uint8_t>(op);
}
constexpr uint8_t bits(Jump op) {
  return static_cast<uint8_t>(op);
}
constexpr uint8_t bits(Size size) {
  return static_cast<uint8_t>(size);
}
constexpr uint8_t bits(Mode mode) {
  return static_cast<uint8_t>(mode);
}

template <typename... Fields>
constexpr uint8_t opcode(Fields... fields) {
  return static_cast<uint8_t>((0U | ... | fields));
}

constexpr uint8_t pack(Register dst, Register src = Register::R0) {
  return static_cast<uint8_t>(static_cast<unsigned>(dst) | static_cast<unsigned>(src) << 4);
}

constexpr uint8_t alu_class(Width width) {
  return bits(width == Width::Bits64 ? Class::Alu64 : Class::Alu32);
}

constexpr uint8_t jump_class(Width width) {
  return bits(width == Width::Bits64 ? Class::Jump64 : Class::Jump32);
}

constexpr bool is_binary(Alu op) {
  return op != Alu::Move && op != Alu::Negate && op != Alu::Swap;
}

constexpr bool is_division(Alu op) {
  return op == Alu::Divide || op == Alu::Modulo;
}

constexpr bool is_condition(Jump op) {
  return op != Jump::Always && op != Jump::Call && op != Jump::Exit;
}

constexpr bool fits_offset(int64_t value) {
  return value >= std::numeric_limits<int16_t>::min() &&
         value <= std::numeric_limits<int16_t>::max();
}

}  // namespace

Label Builder::label() {
  labels_.emplace_back();
  return Label{static_cast<uint32_t>(labels_.size() - 1)};
}

Builder& Builder::bind(Label label) {
  if (label.index >= labels_.size()) {
    remember("a label of another builder");
  } else if (labels_[label.index]) {
    remember("a label that is bound twice");
  } else {
    labels_[label.index] = size();
  }
  return *this;
}

Builder& Builder::alu(Alu op, Register dst, Register src, Width width) {
  if (!is_binary(op)) remember("not an operation of two operands");
  return put(opcode(alu_class(width), bits(op), kSourceRegister), pack(dst, src), 0, 0);
}

Builder& Builder::alu(Alu op, Register dst, int32_t immediate, Width width) {
  if (!is_binary(op)) remember("not an operation of two operands");
  return put(opcode(alu_class(width), bits(op)), pack(dst), 0, immediate);
}

Builder& Builder::alu_signed(Alu op, Register dst, Register src, Width width) {
  if (!is_division(op)) remember("only division and modulo have a signed form");
  return put(opcode(alu_class(width), bits(op), kSourceRegister), pack(dst, src), 1, 0);
}

Builder& Builder::alu_signed(Alu op, Register dst, int32_t immediate, Width width) {
  if (!is_division(op)) remember("only division and modulo have a signed form");
  return put(opcode(alu_class(width), bits(op)), pack(dst), 1, immediate);
}

Builder& Builder::negate(Register dst, Width width) {
  return put(opcode(alu_class(width), bits(Alu::Negate)), pack(dst), 0, 0);
}

Builder& Builder::move(Register dst, Register src, Width width) {
  return put(opcode(alu_class(width), bits(Alu::Move), kSourceRegister), pack(dst, src), 0, 0);
}

Builder& Builder::move(Register dst, int32_t immediate, Width width) {
  return put(opcode(alu_class(width), bits(Alu::Move)), pack(dst), 0, immediate);
}

Builder& Builder::move_signed(Register dst, Register src, uint32_t from_bits, Width width) {
  const bool valid =
      from_bits == 8 || from_bits == 16 || (from_bits == 32 && width == Width::Bits64);
  if (!valid) remember("a sign extension from neither 8, 16 nor 32 bits");
  return put(opcode(alu_class(width), bits(Alu::Move), kSourceRegister), pack(dst, src),
             static_cast<int32_t>(from_bits), 0);
}

Builder& Builder::extend(Register dst, uint32_t size_bytes, bool is_signed) {
  if (size_bytes == 8) return *this;
  if (is_signed) return move_signed(dst, dst, 8 * size_bytes);
  if (size_bytes == 4) return move(dst, dst, Width::Bits32);
  return alu(Alu::And, dst, (1 << (8 * size_bytes)) - 1);
}

Builder& Builder::swap_bytes(Register dst, uint32_t swapped_bits) {
  return put_swap(opcode(bits(Class::Alu64), bits(Alu::Swap)), dst, swapped_bits);
}

Builder& Builder::to_big_endian(Register dst, uint32_t swapped_bits) {
  return put_swap(opcode(bits(Class::Alu32), bits(Alu::Swap), kSourceRegister), dst, swapped_bits);
}

Builder& Builder::to_little_endian(Register dst, uint32_t swapped_bits) {
  return put_swap(opcode(bits(Class::Alu32), bits(Alu::Swap)), dst, swapped_bits);
}

Builder& Builder::load_constant(Register dst, uint64_t value) {
  const auto low = static_cast<int32_t>(value);
  if (static_cast<uint64_t>(int64_t{low}) == value) return move(dst, low);
  if (value <= std::numeric_limits<uint32_t>::max()) return move(dst, low, Width::Bits32);
  return put_load64(dst, Load64::Immediate, value);
}

Builder& Builder::load_window(Register dst, uint32_t offset_bytes) {
  return put_load64(dst, Load64::Window, offset_bytes);
}

Builder& Builder::load_global(Register dst, uint32_t offset_bytes) {
  return put_load64(dst, Load64::Global, offset_bytes);
}

Builder& Builder::load_context(Register dst) {
  return put_load64(dst, Load64::Context, 0);
}

Builder& Builder::load_site_constant(Register dst, uint32_t index) {
  if (index >= kSiteConstantsMax) {
    remember("too many site constants");
    return *this;
  }
  site_constant_count_ = std::max(site_constant_count_, index + 1);
  return put_load64(dst, Load64::SiteConstant, index);
}

Builder& Builder::load(Size size, Register dst, Register base, int32_t offset) {
  return put(opcode(bits(Class::Ldx), bits(Mode::Memory), bits(size)), pack(dst, base), offset, 0);
}

Builder& Builder::load_signed(Size size, Register dst, Register base, int32_t offset) {
  if (size == Size::Double) remember("a sign-extending load of 8 bytes");
  return put(opcode(bits(Class::Ldx), bits(Mode::MemorySigned), bits(size)), pack(dst, base),
             offset, 0);
}

Builder& Builder::load_number(Register dst, Register base, int32_t offset, uint32_t size_bytes,
                              bool is_signed) {
  const Size size = size_of(size_bytes);
  const bool extends_sign = is_signed && size != Size::Double;
  return extends_sign ? load_signed(size, dst, base, offset) : load(size, dst, base, offset);
}

Builder& Builder::store(Size size, Register base, int32_t offset, Register src) {
  return put(opcode(bits(Class::Stx), bits(Mode::Memory), bits(size)), pack(base, src), offset, 0);
}

Builder& Builder::store(Size size, Register base, int32_t offset, int32_t immediate) {
  return put(opcode(bits(Class::St), bits(Mode::Memory), bits(size)), pack(base), offset,
             immediate);
}

Builder& Builder::atomic(Atomic op, Size size, Register base, int32_t offset, Register src) {
  if (size != Size::Word && size != Size::Double) remember("an atomic access of under 4 bytes");
  return put(opcode(bits(Class::Stx), bits(Mode::Atomic), bits(size)), pack(base, src), offset,
             static_cast<int32_t>(op));
}

Builder& Builder::jump(Label target) {
  return put_branch(opcode(bits(Class::Jump64), bits(Jump::Always)), 0, 0, target);
}

Builder& Builder::jump_if(Jump condition, Register left, Register right, Label target,
                          Width width) {
  if (!is_condition(condition)) remember("a branch without a condition");
  return put_branch(opcode(jump_class(width), bits(condition), kSourceRegister), pack(left, right),
                    0, target);
}

Builder& Builder::jump_if(Jump condition, Register left, int32_t right, Label target, Width width) {
  if (!is_condition(condition)) remember("a branch without a condition");
  return put_branch(opcode(jump_class(width), bits(condition)), pack(left), right, target);
}

Builder& Builder::call(abi::Accessor accessor) {
  return put(opcode(bits(Class::Jump64), bits(Jump::Call)), 0, 0, static_cast<int32_t>(accessor));
}

Builder& Builder::call_local(Label function) {
  constexpr auto kLocal = static_cast<Register>(CallKind::Local);
  return put_branch(opcode(bits(Class::Jump64), bits(Jump::Call)), pack(Register::R0, kLocal), 0,
                    function);
}

Builder& Builder::exit() {
  return put(opcode(bits(Class::Jump64), bits(Jump::Exit)), 0, 0, 0);
}

Expected<Program> Builder::finish(std::string name) const {
  if (!first_error_.empty()) {
    return fail(ErrorCode::InvalidQuery, fmt::format("program {}: {}", name, first_error_));
  }
  if (code_.size() > kInstructionsMax) {
    return fail(ErrorCode::Limit, fmt::format("program {}: {} instructions, at most {} are allowed",
                                              name, code_.size(), kInstructionsMax));
  }
  Program program{std::move(name), code_, site_constant_count_};
  for (const Use& use : uses_)
    CLEW_TRY(resolve(use, program.code));
  return program;
}

Builder& Builder::put(uint8_t opcode_byte, uint8_t registers, int32_t offset, int32_t immediate) {
  if (!fits_offset(offset)) remember("an offset over 16 bits");
  code_.push_back({opcode_byte, registers, static_cast<int16_t>(offset), immediate});
  return *this;
}

Builder& Builder::put_swap(uint8_t opcode_byte, Register dst, uint32_t swapped_bits) {
  const bool valid = swapped_bits == 16 || swapped_bits == 32 || swapped_bits == 64;
  if (!valid) remember("a byte swap of neither 16, 32 nor 64 bits");
  return put(opcode_byte, pack(dst), 0, static_cast<int32_t>(swapped_bits));
}

Builder& Builder::put_load64(Register dst, Load64 kind, uint64_t value) {
  put(kLoad64Opcode, pack(dst, static_cast<Register>(kind)), 0, static_cast<int32_t>(value));
  return put(0, 0, 0, static_cast<int32_t>(value >> 32));
}

Builder& Builder::put_branch(uint8_t opcode_byte, uint8_t registers, int32_t immediate,
                             Label target) {
  uses_.push_back({size(), target});
  return put(opcode_byte, registers, 0, immediate);
}

void Builder::remember(const char* what) {
  if (first_error_.empty()) first_error_ = fmt::format("instruction {}: {}", size(), what);
}

// A distance counts from the instruction after the branch. Calls and far jumps have it in
// `immediate`, the others in `offset` (RFC 9669, 4.3).
Expected<void> Builder::resolve(const Use& use, std::vector<Instruction>& code) const {
  std::optional<uint32_t> target;
  if (use.target.index < labels_.size()) target = labels_[use.target.index];
  if (!target) {
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("instruction {}: branch to a label that is never bound", use.instruction));
  }
  Instruction& branch = code[use.instruction];
  const int64_t distance = int64_t{*target} - use.instruction - 1;
  if (jump_of(branch) == Jump::Call) {
    branch.immediate = static_cast<int32_t>(distance);
  } else if (fits_offset(distance)) {
    branch.offset = static_cast<int16_t>(distance);
  } else if (jump_of(branch) == Jump::Always) {
    branch.opcode = opcode(bits(Class::Jump32), bits(Jump::Always));
    branch.immediate = static_cast<int32_t>(distance);
  } else {
    return fail(ErrorCode::Limit, fmt::format("instruction {}: branch over {} instructions",
                                              use.instruction, distance));
  }
  return {};
}

}  // namespace clew::isa
