// SPDX-License-Identifier: Apache-2.0
#include "kernel/older.h"

#include <limits>
#include <vector>

#include <fmt/format.h>

#include "isa/opcode.h"

namespace clew::kernel {
namespace {

using isa::Instruction;

constexpr uint8_t kJump = 0x05;
constexpr uint8_t kJumpFar = 0x06;
constexpr uint8_t kJumpNotNull = 0x55;
constexpr uint8_t kCall = 0x85;
constexpr uint8_t kExit = 0x95;
constexpr uint8_t kMoveImmediate = 0xB7;
constexpr uint8_t kMove = 0xBF;
constexpr uint8_t kShiftLeft = 0x67;
constexpr uint8_t kShiftRightSigned = 0xC7;
constexpr uint8_t kMove32 = 0xBC;
constexpr uint8_t kShiftLeft32 = 0x64;
constexpr uint8_t kShiftRightSigned32 = 0xC4;
constexpr uint8_t kMemory = 0x60;

using Instructions = std::vector<Instruction>;

bool branches(const Instruction& i) {
  const bool is_jump =
      isa::class_of(i) == isa::Class::Jump64 || isa::class_of(i) == isa::Class::Jump32;
  return is_jump && i.opcode != kCall && i.opcode != kExit;
}

int32_t distance(const Instruction& i) {
  return i.opcode == kJumpFar ? i.immediate : i.offset;
}

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
  return {{kJumpNotNull, 1, 2, 0}, {kMoveImmediate, 0, 0, 0}, {kExit, 0, 0, 0}};
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
    if (jump.opcode == kJumpFar) jump = {kJump, 0, 0, 0};
    jump.offset = static_cast<int16_t>(moved);
  }
  Function older = function;
  older.code = std::move(made.code);
  for (Reference& one : older.references)
    one.instruction = made.places[one.instruction];
  return older;
}

}  // namespace clew::kernel
