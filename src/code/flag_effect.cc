// SPDX-License-Identifier: Apache-2.0
// The opcode for the most common instructions, Zydis for all.
#include "code/flag_effect.h"

#include <algorithm>

#include <Zydis/Zydis.h>

namespace clew::code {

namespace {

static_assert(kStatusFlags == (ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF |
                               ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF));

// Intel SDM, volume 2, appendix A: opcodes of the one-byte map.
constexpr uint8_t kTwoByteMap = 0x0f;
constexpr uint8_t kThreeByteMap = 0x38;
constexpr uint8_t kCarryAdd = 0xf6;  // adcx, adox

bool is_any_prefix(uint8_t byte) {
  static constexpr uint8_t kPrefixes[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26,
                                          0x2e, 0x36, 0x3e, 0x64, 0x65};
  return std::find(std::begin(kPrefixes), std::end(kPrefixes), byte) != std::end(kPrefixes) ||
         (byte & 0xf0) == 0x40;
}

// add, or, adc, sbb, and, sub, xor, cmp, by number.
FlagUse use_of_arithmetic(unsigned operation) {
  return operation == 2 || operation == 3 ? FlagUse::Reads : FlagUse::Writes;
}

// cmovcc, setcc, adcx and adox read; what the others write is not counted on.
FlagUse use_of_two_byte(uint8_t opcode, uint8_t next) {
  const bool conditional = (opcode & 0xf0) == 0x40 || (opcode & 0xf0) == 0x90;
  const bool carries = opcode == kThreeByteMap && next == kCarryAdd;
  return conditional || carries ? FlagUse::Reads : FlagUse::None;
}

FlagUse use_of_one_byte(uint8_t opcode, uint8_t mod_rm) {
  const unsigned operation = (mod_rm >> 3) & 7U;
  if (opcode < 0x40 && (opcode & 7) < 6) return use_of_arithmetic(opcode >> 3);
  if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) return use_of_arithmetic(operation);
  if (opcode == 0x84 || opcode == 0x85 || opcode == 0xa8 || opcode == 0xa9) return FlagUse::Writes;
  if (opcode == 0xf6 || opcode == 0xf7) return operation < 2 ? FlagUse::Writes : FlagUse::None;
  const bool rotates = opcode == 0xc0 || opcode == 0xc1 || (opcode >= 0xd0 && opcode <= 0xd3);
  if (rotates) return operation == 2 || operation == 3 ? FlagUse::Reads : FlagUse::None;
  // pushf, lahf, cmc, salc
  return opcode == 0x9c || opcode == 0x9f || opcode == 0xf5 || opcode == 0xd6 ? FlagUse::Reads
                                                                              : FlagUse::None;
}

// Shifts by nothing and comparisons of no bytes write nothing: those by cl or by a constant of
// which nothing is left below the operand's size, those that repeat.
bool may_write_none(const ZydisDecodedInstruction& instruction) {
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if ((instruction.attributes & kRepeats) != 0) return true;
  const unsigned opcode = instruction.opcode;
  const bool one_byte = instruction.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
  const bool two_byte = instruction.opcode_map == ZYDIS_OPCODE_MAP_0F;
  const bool by_cl = (one_byte && (opcode == 0xd2 || opcode == 0xd3)) ||
                     (two_byte && (opcode == 0xa5 || opcode == 0xad));
  const bool by_constant = (one_byte && (opcode == 0xc0 || opcode == 0xc1)) ||
                           (two_byte && (opcode == 0xa4 || opcode == 0xac));
  const uint64_t mask = instruction.operand_width == 64 ? 0x3f : 0x1f;
  return by_cl || (by_constant && (instruction.raw.imm[0].value.u & mask) == 0);
}

}  // namespace

FlagUse flag_use(std::span<const uint8_t> bytes) {
  size_t at = 0;
  while (at + 1 < bytes.size() && is_any_prefix(bytes[at]))
    ++at;
  const auto byte = [&](size_t index) { return index < bytes.size() ? bytes[index] : uint8_t{0}; };
  if (byte(at) == kTwoByteMap) return use_of_two_byte(byte(at + 1), byte(at + 2));
  return use_of_one_byte(byte(at), byte(at + 1));
}

FlagEffect flag_effect(std::span<const uint8_t> bytes) {
  const FlagUse use = flag_use(bytes);
  if (use == FlagUse::Writes) return {.written = kStatusFlags};
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction instruction;
  const bool decodes = ZYAN_SUCCESS(
      ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &instruction));
  if (!decodes || instruction.cpu_flags == nullptr) {
    return {.read = use == FlagUse::Reads ? kStatusFlags : 0};
  }
  const ZydisAccessedFlags& flags = *instruction.cpu_flags;
  FlagEffect effect{.read = flags.tested};
  if (use == FlagUse::Reads && effect.read == 0) effect.read = kStatusFlags;
  if (!may_write_none(instruction)) {
    effect.written = flags.modified | flags.set_0 | flags.set_1 | flags.undefined;
  }
  return effect;
}

bool is_plainly_neutral(std::span<const uint8_t> bytes) {
  const size_t at = bytes.size() > 1 && (bytes[0] & 0xf0) == 0x40 ? 1 : 0;
  const uint8_t opcode = bytes[at];
  return (opcode >= 0x50 && opcode < 0x60) || (opcode >= 0x88 && opcode <= 0x8d) ||
         (opcode & 0xf0) == 0xb0 || opcode == 0xc6 || opcode == 0xc7 || opcode == 0x63;
}

}  // namespace clew::code
