// SPDX-License-Identifier: Apache-2.0
// A walk straight on to the first instruction that reads the flags, or writes all of them.
#include "inline/flag_use.h"

#include <algorithm>
#include <optional>

namespace clew::inline_ {

namespace {

constexpr unsigned kInstructionsMax = 32;

enum class Use : uint8_t { None, Reads, Writes };

// Intel SDM, volume 2, appendix A: opcodes of the one-byte map.
constexpr uint8_t kTwoByteMap = 0x0f;
constexpr uint8_t kThreeByteMap = 0x38;
constexpr uint8_t kCarryAdd = 0xf6;  // adcx, adox

bool is_prefix(uint8_t byte) {
  static constexpr uint8_t kPrefixes[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26,
                                          0x2e, 0x36, 0x3e, 0x64, 0x65};
  return std::find(std::begin(kPrefixes), std::end(kPrefixes), byte) != std::end(kPrefixes) ||
         (byte & 0xf0) == 0x40;
}

// add, or, adc, sbb, and, sub, xor, cmp, by number.
Use use_of_arithmetic(unsigned operation) {
  return operation == 2 || operation == 3 ? Use::Reads : Use::Writes;
}

// cmovcc, setcc, adcx and adox read; what the others write is not counted on.
Use use_of_two_byte(uint8_t opcode, uint8_t next) {
  const bool conditional = (opcode & 0xf0) == 0x40 || (opcode & 0xf0) == 0x90;
  const bool carries = opcode == kThreeByteMap && next == kCarryAdd;
  return conditional || carries ? Use::Reads : Use::None;
}

Use use_of_one_byte(uint8_t opcode, uint8_t mod_rm) {
  const unsigned operation = (mod_rm >> 3) & 7U;
  if (opcode < 0x40 && (opcode & 7) < 6) return use_of_arithmetic(opcode >> 3);
  if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) return use_of_arithmetic(operation);
  if (opcode == 0x84 || opcode == 0x85 || opcode == 0xa8 || opcode == 0xa9) return Use::Writes;
  if (opcode == 0xf6 || opcode == 0xf7) return operation < 2 ? Use::Writes : Use::None;
  const bool rotates = opcode == 0xc0 || opcode == 0xc1 || (opcode >= 0xd0 && opcode <= 0xd3);
  if (rotates) return operation == 2 || operation == 3 ? Use::Reads : Use::None;
  // pushf, lahf, cmc, salc
  return opcode == 0x9c || opcode == 0x9f || opcode == 0xf5 || opcode == 0xd6 ? Use::Reads
                                                                              : Use::None;
}

Use use_of(std::span<const uint8_t> bytes) {
  size_t at = 0;
  while (at + 1 < bytes.size() && is_prefix(bytes[at]))
    ++at;
  const auto byte = [&](size_t index) { return index < bytes.size() ? bytes[index] : uint8_t{0}; };
  if (byte(at) == kTwoByteMap) return use_of_two_byte(byte(at + 1), byte(at + 2));
  return use_of_one_byte(byte(at), byte(at + 1));
}

}  // namespace

bool may_use_flags(const ModuleCode& code, uint64_t address) {
  std::optional<Instruction> at = code.at(address);
  for (unsigned i = 0; at && i < kInstructionsMax; ++i) {
    switch (at->flow) {
      case Flow::Next:
        if (const Use use = use_of(code.text_from(at->address).first(at->length));
            use != Use::None) {
          return use == Use::Reads;
        }
        break;
      case Flow::Nop:
        break;
      case Flow::Jump:
        at = code.at(branch_target(code, *at));
        continue;
      case Flow::Call:
      case Flow::IndirectCall:
      case Flow::Return:
        return false;  // The ABI knows no flags in either.
      case Flow::Int3:
      case Flow::IndirectJump:
      case Flow::Conditional:
      case Flow::Trap:
      case Flow::System:
      case Flow::Bad:
        return true;
    }
    at = code.at(at->end());
  }
  return true;
}

}  // namespace clew::inline_
