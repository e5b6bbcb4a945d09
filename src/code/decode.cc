// SPDX-License-Identifier: Apache-2.0
// The table-driven decoder, and Zydis behind it.
#include "code/decode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

#include <Zydis/Zydis.h>

namespace clew::code {

namespace {

// What follows an opcode, and with which mandatory prefixes the table may answer.
struct Shape {
  bool fast = false;
  bool modrm = false;
  bool memory_only = false;
  bool full_immediate = false;  // 4 bytes, 2 with a 66 prefix, 8 for mov r64 (B8 to BF).
  uint8_t immediate = 0;
  uint8_t prefixes = 0;  // Bit set of Prefix.
  Flow flow = Flow::Next;
};

// The last of 66, F3, F2 decides; F3 and F2 win over 66.
constexpr uint8_t kNone = 1;
constexpr uint8_t k66 = 2;
constexpr uint8_t kF3 = 4;
constexpr uint8_t kF2 = 8;
constexpr uint8_t kNone66 = kNone | k66;
constexpr uint8_t kAll = kNone | k66 | kF3 | kF2;

using Map = std::array<Shape, 256>;

constexpr Shape plain(uint8_t prefixes = kNone66) {
  return {.fast = true, .prefixes = prefixes};
}
constexpr Shape modrm(uint8_t prefixes = kNone66) {
  return {.fast = true, .modrm = true, .prefixes = prefixes};
}
constexpr Shape byte_immediate(Shape shape) {
  shape.immediate = 1;
  return shape;
}
constexpr Shape full_immediate(Shape shape) {
  shape.full_immediate = true;
  return shape;
}
constexpr Shape flowing(Flow flow, uint8_t immediate = 0) {
  return {.fast = true, .immediate = immediate, .prefixes = kNone, .flow = flow};
}

constexpr void set(Map& map, std::initializer_list<unsigned> opcodes, Shape shape) {
  for (const unsigned opcode : opcodes)
    map[opcode] = shape;
}

constexpr void set_range(Map& map, unsigned first, unsigned last, Shape shape) {
  for (unsigned opcode = first; opcode <= last; ++opcode)
    map[opcode] = shape;
}

// Left out, so Zydis decides: segment registers, far and privileged forms, x87, VEX, EVEX, XOP.
constexpr Map make_one_byte_map() {
  Map map{};
  for (unsigned row = 0; row < 0x40; row += 8) {
    set_range(map, row, row + 3, modrm());
    map[row + 4] = byte_immediate(plain());
    map[row + 5] = full_immediate(plain());
  }
  set_range(map, 0x50, 0x5f, plain());
  map[0x63] = modrm();
  map[0x68] = full_immediate(plain());
  map[0x69] = full_immediate(modrm());
  map[0x6a] = byte_immediate(plain());
  map[0x6b] = byte_immediate(modrm());
  set_range(map, 0x70, 0x7f, flowing(Flow::Conditional, 1));
  set(map, {0x80, 0x83, 0xc0, 0xc1}, byte_immediate(modrm()));
  map[0x81] = full_immediate(modrm());
  set_range(map, 0x84, 0x8b, modrm());
  map[0x8d] = modrm();
  map[0x8d].memory_only = true;
  set_range(map, 0x91, 0x99, plain());
  set(map, {0x9c, 0x9d, 0x9e, 0x9f}, plain());
  set_range(map, 0xa4, 0xa7, plain(kAll));
  map[0xa8] = byte_immediate(plain());
  map[0xa9] = full_immediate(plain());
  set_range(map, 0xaa, 0xaf, plain(kAll));
  set_range(map, 0xb0, 0xb7, byte_immediate(plain()));
  set_range(map, 0xb8, 0xbf, full_immediate(plain()));
  map[0xc2] = flowing(Flow::Return, 2);
  map[0xc3] = flowing(Flow::Return);
  map[0xc6] = byte_immediate(modrm());
  map[0xc7] = full_immediate(modrm());
  map[0xc9] = plain();
  map[0xcc] = flowing(Flow::Int3);
  set_range(map, 0xd0, 0xd3, modrm());
  set_range(map, 0xe0, 0xe3, flowing(Flow::Conditional, 1));
  map[0xe8] = flowing(Flow::Call, 4);
  map[0xe9] = flowing(Flow::Jump, 4);
  map[0xeb] = flowing(Flow::Jump, 1);
  map[0xf4] = flowing(Flow::Trap);
  set(map, {0xf5, 0xf8, 0xf9, 0xfc, 0xfd}, plain());
  set(map, {0xf6, 0xf7, 0xfe, 0xff}, modrm());
  return map;
}

constexpr Map make_two_byte_map() {
  Map map{};
  map[0x0b] = flowing(Flow::Trap);
  set_range(map, 0x10, 0x11, modrm(kAll));
  set_range(map, 0x14, 0x15, modrm());
  map[0x1f] = modrm();
  map[0x1f].flow = Flow::Nop;
  set_range(map, 0x28, 0x29, modrm());
  set(map, {0x2a, 0x2c, 0x2d}, modrm(kAll));
  set_range(map, 0x2e, 0x2f, modrm());
  set(map, {0x31, 0xa2}, flowing(Flow::Next));
  set_range(map, 0x40, 0x4f, modrm());
  map[0x51] = modrm(kAll);
  set_range(map, 0x54, 0x57, modrm());
  set_range(map, 0x58, 0x5a, modrm(kAll));
  map[0x5b] = modrm(kNone66 | kF3);
  set_range(map, 0x5c, 0x5f, modrm(kAll));
  set_range(map, 0x60, 0x6b, modrm());
  set_range(map, 0x6c, 0x6d, modrm(k66));
  map[0x6e] = modrm();
  map[0x6f] = modrm(kNone66 | kF3);
  map[0x70] = byte_immediate(modrm(kAll));
  set_range(map, 0x74, 0x76, modrm());
  set_range(map, 0x7e, 0x7f, modrm(kNone66 | kF3));
  set_range(map, 0x80, 0x8f, flowing(Flow::Conditional, 4));
  set_range(map, 0x90, 0x9f, modrm());
  set(map, {0xa3, 0xa5, 0xab, 0xad, 0xaf, 0xb0, 0xb1, 0xb3}, modrm());
  set(map, {0xb6, 0xb7, 0xbb, 0xbe, 0xbf, 0xc0, 0xc1}, modrm());
  set(map, {0xa4, 0xac}, byte_immediate(modrm()));
  map[0xb8] = modrm(kF3);
  map[0xba] = byte_immediate(modrm());
  set_range(map, 0xbc, 0xbd, modrm(kNone66 | kF3));
  map[0xc2] = byte_immediate(modrm(kAll));
  map[0xc6] = byte_immediate(modrm());
  set_range(map, 0xc8, 0xcf, plain(kNone));
  set_range(map, 0xd1, 0xd5, modrm());
  set_range(map, 0xd8, 0xe5, modrm());
  set_range(map, 0xe8, 0xef, modrm());
  set_range(map, 0xf1, 0xf6, modrm());
  set_range(map, 0xf8, 0xfe, modrm());
  return map;
}

constexpr Map kOneByte = make_one_byte_map();
constexpr Map kTwoByte = make_two_byte_map();

struct Prefixes {
  unsigned count = 0;  // Bytes, REX included.
  bool cs = false;     // 2E: in front of long nops.
  bool operand_size = false;
  uint8_t mandatory = kNone;
  uint8_t rex = 0;
};

Prefixes read_prefixes(const uint8_t* bytes) {
  Prefixes result;
  for (;; ++result.count) {
    const uint8_t byte = bytes[result.count];
    if (byte == 0x66) {
      result.operand_size = true;
      if (result.mandatory == kNone) result.mandatory = k66;
    } else if (byte == 0xf2 || byte == 0xf3) {
      result.mandatory = byte == 0xf2 ? kF2 : kF3;
    } else if (byte == 0x2e) {
      result.cs = true;
    } else if (byte != 0x64 && byte != 0x65) {
      break;
    }
    if (result.count == 8) break;
  }
  if ((bytes[result.count] & 0xf0) == 0x40) result.rex = bytes[result.count++];
  return result;
}

// Reads ModRM, SIB and displacement at `at`; the offset behind them.
unsigned read_operand(const uint8_t* bytes, unsigned at, Decoded& decoded) {
  const uint8_t mod_rm = bytes[at++];
  const unsigned mod = mod_rm >> 6;
  const unsigned rm = mod_rm & 7;
  if (mod == 3) return at;
  bool wide = mod == 2;
  if (rm == 4) {
    if (mod == 0 && (bytes[at] & 7) == 5) wide = true;
    ++at;
  } else if (mod == 0 && rm == 5) {
    decoded.rip_relative = true;
    wide = true;
  }
  if (!wide && mod == 0) return at;
  decoded.displacement_offset = static_cast<uint8_t>(at);
  decoded.displacement_size = wide ? 4 : 1;
  return at + decoded.displacement_size;
}

// Opcodes that continue in the reg field of ModRM. False: let Zydis decide.
bool refine_group(uint8_t opcode, uint8_t mod_rm, Shape& shape) {
  const unsigned reg = (mod_rm >> 3) & 7;
  switch (opcode) {
    case 0xc6:
    case 0xc7:
      return reg == 0;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
    case 0xc0:
    case 0xc1:
      return reg != 6;
    case 0xf6:
      if (reg == 0) shape.immediate = 1;
      return reg != 1;
    case 0xf7:
      if (reg == 0) shape.full_immediate = true;
      return reg != 1;
    case 0xfe:
      return reg < 2;
    case 0xff:
      if (reg == 2) shape.flow = Flow::IndirectCall;
      if (reg == 4) shape.flow = Flow::IndirectJump;
      return reg == 0 || reg == 1 || reg == 2 || reg == 4 || reg == 6;
    default:
      return true;
  }
}

unsigned immediate_size(const Shape& shape, const Prefixes& prefixes, uint8_t opcode) {
  if (!shape.full_immediate) return shape.immediate;
  const bool wide = (prefixes.rex & 8) != 0;
  if (wide) return (opcode & 0xf8) == 0xb8 ? 8 : 4;
  return prefixes.operand_size ? 2 : 4;
}

// `bytes` has at least kInstructionSizeMax + 1 readable bytes. Length 0: let Zydis decide.
Decoded decode_fast(const uint8_t* bytes) {
  const Prefixes prefixes = read_prefixes(bytes);
  unsigned at = prefixes.count;
  uint8_t opcode = bytes[at++];
  const bool two_byte = opcode == 0x0f;
  if (two_byte) opcode = bytes[at++];
  if (!two_byte && opcode == 0x90 && prefixes.rex == 0 && prefixes.mandatory <= k66) {
    return {.length = static_cast<uint8_t>(at), .flow = Flow::Nop};
  }
  Shape shape = two_byte ? kTwoByte[opcode] : kOneByte[opcode];
  if (!shape.fast || (shape.prefixes & prefixes.mandatory) == 0) return {};
  if (prefixes.cs && shape.flow != Flow::Nop) return {};
  Decoded decoded;
  if (shape.modrm) {
    const uint8_t mod_rm = bytes[at];
    if (!two_byte && !refine_group(opcode, mod_rm, shape)) return {};
    if (two_byte && opcode == 0xba && (mod_rm & 0x20) == 0) return {};
    if (shape.memory_only && mod_rm >= 0xc0) return {};
    if (shape.flow >= Flow::IndirectCall && prefixes.mandatory != kNone) return {};
    at = read_operand(bytes, at, decoded);
  }
  const unsigned size = immediate_size(shape, prefixes, opcode);
  if (size != 0) {
    decoded.immediate_offset = static_cast<uint8_t>(at);
    decoded.immediate_size = static_cast<uint8_t>(size);
    at += size;
  }
  if (at > kInstructionSizeMax) return {};
  decoded.length = static_cast<uint8_t>(at);
  decoded.flow = shape.flow;
  return decoded;
}

struct MnemonicFlow {
  ZydisMnemonic mnemonic;
  Flow flow;
};

constexpr MnemonicFlow kFlows[] = {
    {ZYDIS_MNEMONIC_NOP, Flow::Nop},        {ZYDIS_MNEMONIC_INT3, Flow::Int3},
    {ZYDIS_MNEMONIC_RET, Flow::Return},     {ZYDIS_MNEMONIC_UD0, Flow::Trap},
    {ZYDIS_MNEMONIC_UD1, Flow::Trap},       {ZYDIS_MNEMONIC_UD2, Flow::Trap},
    {ZYDIS_MNEMONIC_HLT, Flow::Trap},       {ZYDIS_MNEMONIC_INT1, Flow::Trap},
    {ZYDIS_MNEMONIC_SYSCALL, Flow::System}, {ZYDIS_MNEMONIC_SYSENTER, Flow::System},
    {ZYDIS_MNEMONIC_INT, Flow::System},     {ZYDIS_MNEMONIC_XBEGIN, Flow::System},
    {ZYDIS_MNEMONIC_XABORT, Flow::System},  {ZYDIS_MNEMONIC_IRET, Flow::System},
    {ZYDIS_MNEMONIC_IRETD, Flow::System},   {ZYDIS_MNEMONIC_IRETQ, Flow::System},
    {ZYDIS_MNEMONIC_SYSRET, Flow::System},  {ZYDIS_MNEMONIC_SYSEXIT, Flow::System},
    {ZYDIS_MNEMONIC_UIRET, Flow::System},
};

bool is_far(const ZydisDecodedInstruction& instruction) {
  if (instruction.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
      instruction.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT) {
    return false;
  }
  const bool far_group = instruction.opcode == 0xff &&
                         (instruction.raw.modrm.reg == 3 || instruction.raw.modrm.reg == 5);
  return far_group || instruction.opcode == 0xca || instruction.opcode == 0xcb;
}

Flow flow_of(const ZydisDecodedInstruction& instruction) {
  if (is_far(instruction)) return Flow::System;
  for (const MnemonicFlow& row : kFlows) {
    if (row.mnemonic == instruction.mnemonic) return row.flow;
  }
  const bool relative = instruction.raw.imm[0].is_relative != 0;
  if (instruction.mnemonic == ZYDIS_MNEMONIC_JMP) {
    return relative ? Flow::Jump : Flow::IndirectJump;
  }
  if (instruction.mnemonic == ZYDIS_MNEMONIC_CALL) {
    return relative ? Flow::Call : Flow::IndirectCall;
  }
  return relative ? Flow::Conditional : Flow::Next;
}

// VEX jumps on mask registers: Zydis reads them in every mode, all other CPUs refuse them.
bool is_of_knights_corner(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_JKZD || mnemonic == ZYDIS_MNEMONIC_JKNZD;
}

ZydisDecoder make_decoder() {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
  return decoder;
}

}  // namespace

std::optional<Decoded> decode_with_zydis(std::span<const uint8_t> bytes) {
  static const ZydisDecoder kDecoder = make_decoder();
  ZydisDecodedInstruction instruction;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&kDecoder, nullptr, bytes.data(), bytes.size(),
                                                  &instruction))) {
    return std::nullopt;
  }
  if (is_of_knights_corner(instruction.mnemonic)) return std::nullopt;
  Decoded decoded;
  decoded.length = instruction.length;
  decoded.flow = flow_of(instruction);
  if (instruction.raw.disp.size != 0) {
    decoded.displacement_offset = instruction.raw.disp.offset;
    decoded.displacement_size = static_cast<uint8_t>(instruction.raw.disp.size / 8);
    decoded.rip_relative = (instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 &&
                           instruction.raw.modrm.mod == 0 && instruction.raw.modrm.rm == 5;
  }
  for (const auto& immediate : instruction.raw.imm) {
    if (immediate.size == 0) continue;
    decoded.immediate_offset = immediate.offset;
    decoded.immediate_size = static_cast<uint8_t>(immediate.size / 8);
  }
  return decoded;
}

std::optional<Decoded> decode(std::span<const uint8_t> bytes) {
  if (bytes.size() > kInstructionSizeMax) {
    const Decoded decoded = decode_fast(bytes.data());
    if (decoded.length != 0) return decoded;
  }
  return decode_with_zydis(bytes);
}

unsigned opcode_offset(std::span<const uint8_t> bytes) {
  const auto is_prefix = [](uint8_t byte) {
    static constexpr uint8_t kLegacy[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26,
                                          0x2e, 0x36, 0x3e, 0x64, 0x65};
    const bool rex = (byte & 0xf0) == 0x40;
    return rex || std::find(std::begin(kLegacy), std::end(kLegacy), byte) != std::end(kLegacy);
  };
  const auto opcode = std::find_if_not(bytes.begin(), bytes.end(), is_prefix);
  return static_cast<unsigned>(opcode - bytes.begin());
}

int64_t signed_field(std::span<const uint8_t> bytes, unsigned offset, unsigned size) {
  int64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, size);
  const unsigned unused_bits = 64 - 8 * size;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused_bits) >> unused_bits;
}

}  // namespace clew::code
