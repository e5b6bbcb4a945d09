// SPDX-License-Identifier: Apache-2.0
#include "kernel/probe_suspects.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include <sys/types.h>
#include <unistd.h>

namespace clew::kernel {
namespace {

// Opcodes by how they are encoded. With a VEX or EVEX prefix, the kernel looks the opcode up among
// those of one byte, whatever the map.
enum class Map : uint8_t { One, Two, Three, Vector };

// What the kernel's tables leave out, at least: calls and jumps to other segments, interrupts,
// ports, and what has no meaning in 64-bit code.
constexpr std::array<uint8_t, 44> kOneByte = {
    0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x26, 0x27, 0x2e, 0x2f, 0x36, 0x37, 0x3e, 0x3f,
    0x60, 0x61, 0x62, 0x66, 0x67, 0x6c, 0x6d, 0x6e, 0x6f, 0x82, 0x9a, 0xc4, 0xc5, 0xcc, 0xcd,
    0xce, 0xd4, 0xd5, 0xd6, 0xe4, 0xe5, 0xe6, 0xe7, 0xea, 0xec, 0xed, 0xee, 0xef, 0xf1};
constexpr std::array<uint8_t, 6> kOneByteMore = {0xf0, 0xf2, 0xf3, 0xf4, 0xfa, 0xfb};
constexpr std::array<uint8_t, 32> kTwoBytes = {
    0x00, 0x01, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0e, 0x0f, 0x20, 0x21, 0x22,
    0x23, 0x24, 0x25, 0x26, 0x27, 0x30, 0x36, 0x37, 0x39, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0xaa, 0xff};

template <size_t kSize>
bool has(const std::array<uint8_t, kSize>& set, uint8_t opcode) {
  return std::find(set.begin(), set.end(), opcode) != set.end();
}

bool is_suspect(Map map, uint8_t opcode) {
  switch (map) {
    case Map::One:
    case Map::Vector:
      return has(kOneByte, opcode) || has(kOneByteMore, opcode);
    case Map::Two:
      return has(kTwoBytes, opcode);
    case Map::Three:
      return true;
  }
  return true;
}

struct Opcode {
  Map map = Map::One;
  uint8_t byte = 0;
};

// Opcodes whose instructions the kernel does by itself, or whose rip it does not mend: push, jumps
// on conditions, nop, calls, popf, returns, jumps.
bool is_followed(uint8_t opcode) {
  constexpr std::array<uint8_t, 15> kFollowed = {0x90, 0x9a, 0x9d, 0xc2, 0xc3, 0xca, 0xcb, 0xcf,
                                                 0xe8, 0xe9, 0xea, 0xeb, 0xf1, 0xff, 0xf4};
  return (opcode & 0xf8) == 0x50 || (opcode & 0xf0) == 0x70 || has(kFollowed, opcode);
}

// `code` begins behind the prefixes.
std::optional<Opcode> opcode_of(std::span<const uint8_t> code) {
  constexpr size_t kLongest = 5;
  if (code.size() < kLongest) return std::nullopt;
  if (code[0] == 0xc5) return Opcode{Map::Vector, code[2]};
  if (code[0] == 0xc4) return Opcode{Map::Vector, code[3]};
  if (code[0] == 0x62) return Opcode{Map::Vector, code[4]};
  if (code[0] != 0x0f) return Opcode{Map::One, code[0]};
  if (code[1] == 0x38 || code[1] == 0x3a) return Opcode{Map::Three, code[2]};
  return Opcode{Map::Two, code[1]};
}

}  // namespace

// arch_uprobe_analyze_insn() in arch/x86/kernel/uprobes.c. The first is not in <errno.h>.
bool is_about_instruction(int64_t error) {
  constexpr int64_t kNotSupported = 524;  // ENOTSUPP
  return error == kNotSupported || error == ENOEXEC;
}

std::optional<InstructionBytes> read_instruction(const FileDescriptor& file,
                                                 uint64_t offset_bytes) {
  InstructionBytes code = {};
  const ssize_t got = pread(file.get(), code.data(), code.size(), static_cast<off_t>(offset_bytes));
  return got == static_cast<ssize_t>(code.size()) ? std::optional(code) : std::nullopt;
}

std::optional<InstructionClass> suspect_class(std::span<const uint8_t> code) {
  constexpr std::string_view kPrefixes = "\x66\x67\xf2\xf3\x64\x65";
  constexpr std::string_view kBadPrefixes = "\xf0\x26\x2e\x36\x3e";  // lock; es, cs, ss, ds
  constexpr size_t kPrefixesMax = 10;
  uint8_t bad_prefix = 0;
  size_t at = 0;
  for (; at < code.size() && at < kPrefixesMax; ++at) {
    const char byte = static_cast<char>(code[at]);
    if (kBadPrefixes.find(byte) != std::string_view::npos) {
      bad_prefix = code[at];
    } else if (kPrefixes.find(byte) == std::string_view::npos) {
      break;
    }
  }
  if (at < code.size() && (code[at] & 0xf0) == 0x40) ++at;  // REX
  const auto opcode = opcode_of(code.subspan(at));
  if (!opcode) return std::nullopt;
  if (bad_prefix != 0) return InstructionClass{bad_prefix} << 16;
  if (!is_suspect(opcode->map, opcode->byte)) return std::nullopt;
  return static_cast<InstructionClass>(opcode->map) << 8 | opcode->byte;
}

bool is_misread(std::span<const uint8_t> code) {
  constexpr std::string_view kSegments = "\x64\x65";  // What may stand before VEX and EVEX.
  size_t at = 0;
  while (at < code.size() && kSegments.find(static_cast<char>(code[at])) != std::string_view::npos)
    ++at;
  const auto opcode = opcode_of(code.subspan(at));
  return opcode && opcode->map == Map::Vector && is_followed(opcode->byte);
}

}  // namespace clew::kernel
