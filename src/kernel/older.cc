// SPDX-License-Identifier: Apache-2.0
#include "kernel/older.h"

#include <limits>
#include <vector>

#include <fmt/format.h>

#include "isa/opcode.h"
#include "kernel/opcodes.h"

namespace clew::kernel {
namespace {

using isa::Instruction;

constexpr uint8_t kJumpNotNull = 0x55;
constexpr uint8_t kShiftLeft = 0x67;
constexpr uint8_t kShiftRightSigned = 0xC7;
constexpr uint8_t kShiftLeft32 = 0x64;
constexpr uint8_t kShiftRightSigned32 = 0xC4;
constexpr uint8_t kMemory = 0x60;
constexpr uint8_t kSwap = 0xD7;
constexpr uint8_t kToBigEndian = 0xDC;
constexpr uint8_t kNegate = 0x87;
constexpr uint8_t kJumpNotNegative = 0x75;  // if dst s>= 0

using Instructions = std::vector<Instruction>;

int32_t width_bits(const Instruction& i) {
  switch (static_cast<isa::Size>(i.opcode & isa::kSizeMask)) {
    case isa::Size::Byte:
      return 8;
    case isa::Size::Half:
      return 16;
    case isa::Size::Word:
      return 32;
    case isa::Size::Double:
      return 64;
  }
  return 64;
}

// dst = dst with its lowest `bits` sign-extended.
void put_sign_extension(uint8_t dst, int32_t bits, Instructions& to) {
  to.push_back({kShiftLeft, dst, 0, 64 - bits});
  to.push_back({kShiftRightSigned, dst, 0, 64 - bits});
}

constexpr Instruction negate(uint8_t dst) {
  return {kNegate, dst, 0, 0};
}

// By the smallest constant it stays, and is refused: its amount is no constant.
bool is_signed_division(const Instruction& i) {
  if (i.immediate == std::numeric_limits<int32_t>::min()) return false;
  const auto operation = static_cast<isa::Alu>(i.opcode & isa::kOperationMask);
  return isa::class_of(i) == isa::Class::Alu64 && i.offset == 1 &&
         (operation == isa::Alu::Divide || operation == isa::Alu::Modulo);
}

// dst op= |src|, and src as it was. A quotient also takes the sign of src.
//
//     if src s>= 0 goto last ; src = -src ; dst op= src ; src = -src ; [dst = -dst] ; goto end
//     last: dst op= src ; end:
void put_by_amount(const Instruction& unsigned_one, bool is_quotient, Instructions& to) {
  const uint8_t dst = unsigned_one.destination();
  const uint8_t src = unsigned_one.source();
  const auto over = static_cast<int16_t>(is_quotient ? 5 : 4);
  to.push_back({kJumpNotNegative, src, over, 0});
  to.push_back(negate(src));
  to.push_back(unsigned_one);
  to.push_back(negate(src));
  if (is_quotient) to.push_back(negate(dst));
  to.push_back({isa::kJumpOpcode, 0, 1, 0});
  to.push_back(unsigned_one);
}

void put_by_constant(const Instruction& unsigned_one, bool is_quotient, Instructions& to) {
  Instruction amount = unsigned_one;
  if (amount.immediate < 0) amount.immediate = static_cast<int32_t>(-int64_t{amount.immediate});
  to.push_back(amount);
  if (is_quotient && unsigned_one.immediate < 0) to.push_back(negate(amount.destination()));
}

// Of a dividend below 0 the amount is divided, and the result gets its sign.
//
//     if dst s< 0 goto A ; B ; goto end ; A: dst = -dst ; B ; dst = -dst
Instructions divide(const Instruction& i) {
  Instruction unsigned_one = i;
  unsigned_one.offset = 0;
  const bool is_quotient =
      static_cast<isa::Alu>(i.opcode & isa::kOperationMask) == isa::Alu::Divide;
  const bool by_register = (i.opcode & isa::kSourceRegister) != 0;
  const uint8_t dst = i.destination();
  if (by_register && i.source() == dst) return {unsigned_one};  // 1 or 0, by either.
  Instructions body;
  if (by_register) {
    put_by_amount(unsigned_one, is_quotient, body);
  } else {
    put_by_constant(unsigned_one, is_quotient, body);
  }
  const auto size = static_cast<int16_t>(body.size());
  Instructions to = {{kJumpNegative, dst, static_cast<int16_t>(size + 1), 0}};
  to.insert(to.end(), body.begin(), body.end());
  to.push_back({isa::kJumpOpcode, 0, static_cast<int16_t>(size + 2), 0});
  to.push_back(negate(dst));
  to.insert(to.end(), body.begin(), body.end());
  to.push_back(negate(dst));
  return to;
}

// What stands for one instruction; jumps keep their old distance.
Instructions expand(const Instruction& i) {
  Instructions to;
  const bool is_signed_load =
      isa::class_of(i) == isa::Class::Ldx &&
      (i.opcode & isa::kModeMask) == static_cast<uint8_t>(isa::Mode::MemorySigned);
  if (is_signed_load) {
    const auto opcode = static_cast<uint8_t>((i.opcode & ~isa::kModeMask) | kMemory);
    to.push_back({opcode, i.registers, i.offset, 0});
    put_sign_extension(i.destination(), width_bits(i), to);
  } else if (i.opcode == kSwap) {
    to.push_back({kToBigEndian, i.registers, 0, i.immediate});
  } else if (is_signed_division(i)) {
    to = divide(i);
  } else if (i.opcode == kMove && i.offset != 0) {
    to.push_back({kMove, i.registers, 0, 0});
    put_sign_extension(i.destination(), i.offset, to);
  } else if (i.opcode == kMove32 && i.offset != 0) {
    to.push_back({kMove32, i.registers, 0, 0});
    to.push_back({kShiftLeft32, i.destination(), 0, 32 - i.offset});
    to.push_back({kShiftRightSigned32, i.destination(), 0, 32 - i.offset});
  } else {
    to.push_back(i);
  }
  return to;
}

// if (window == null) return 0;
Instructions null_check() {
  return {{kJumpNotNull, 1, 2, 0}, {kMoveImmediate, 0, 0, 0}, {isa::kExitOpcode, 0, 0, 0}};
}

struct Expansion {
  Instructions code;
  std::vector<uint32_t> places;  // By old instruction, and one for the end.
};

Expansion expand_all(const Function& function) {
  Expansion made;
  if (!function.is_main) made.code = null_check();
  for (size_t at = 0; at < function.code.size(); ++at) {
    made.places.push_back(static_cast<uint32_t>(made.code.size()));
    const Instruction& i = function.code[at];
    if (i.opcode != isa::kLoad64Opcode) {
      for (const Instruction& one : expand(i))
        made.code.push_back(one);
      continue;
    }
    made.code.push_back(i);
    made.places.push_back(static_cast<uint32_t>(made.code.size()));
    made.code.push_back(function.code[++at]);
  }
  made.places.push_back(static_cast<uint32_t>(made.code.size()));
  return made;
}

}  // namespace

Expected<Function> for_older_kernel(const Function& function) {
  Expansion made = expand_all(function);
  for (size_t at = 0; at < function.code.size(); ++at) {
    const Instruction& i = function.code[at];
    if (i.opcode == isa::kLoad64Opcode) ++at;
    if (!branches(i)) continue;
    const auto target = static_cast<size_t>(static_cast<int64_t>(at) + 1 + distance(i));
    const int64_t moved = int64_t{made.places[target]} - made.places[at] - 1;
    if (moved < std::numeric_limits<int16_t>::min() ||
        moved > std::numeric_limits<int16_t>::max()) {
      return fail(ErrorCode::Limit,
                  fmt::format("'{}' is too long for this kernel: a jump over {} instructions",
                              function.name, moved));
    }
    Instruction& jump = made.code[made.places[at]];
    if (jump.opcode == isa::kJumpFarOpcode) jump = {isa::kJumpOpcode, 0, 0, 0};
    jump.offset = static_cast<int16_t>(moved);
  }
  Function older = function;
  older.code = std::move(made.code);
  for (Reference& one : older.references)
    one.instruction = made.places[one.instruction];
  return older;
}

}  // namespace clew::kernel
