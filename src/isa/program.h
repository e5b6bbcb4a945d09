// SPDX-License-Identifier: Apache-2.0
// The probe ISA: eBPF of RFC 9669 (base32/64, atomic32/64, divmul32/64), plus accessors
// (abi/accessor.h) and two pseudo loads. A Program is what a query becomes and what all engines
// run.
//
// Pointers. All memory that a program may write is its window: the region of its session in the
// slot of the thread (abi/region.h). A window pointer is a number; only the engine knows its base,
// and 0 is never a valid one. r10 points one past the program's frame (512 bytes inside the
// window). r1 at entry points to the read-only abi::Context and may be copied, but not computed
// with: the validator's `context` rules demand that each use of it is a load at a constant offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/accessor.h"

namespace clew::isa {

// One 8-byte instruction, as RFC 9669 section 3 lays it out (little endian). LDDW takes two.
struct Instruction {
  uint8_t opcode = 0;
  uint8_t registers = 0;  // Low nibble: destination; high nibble: source.
  int16_t offset = 0;
  int32_t immediate = 0;

  [[nodiscard]] uint8_t destination() const { return registers & 0xF; }
  [[nodiscard]] uint8_t source() const { return registers >> 4; }
  bool operator==(const Instruction&) const = default;
};
static_assert(sizeof(Instruction) == 8);

// Values of the source nibble of LDDW (opcode 0x18).
enum class Load64 : uint8_t {
  Immediate = 0,     // A 64-bit constant.
  Window = 1,        // immediate = offset in the window; the value is a window pointer.
  SiteConstant = 2,  // immediate = index; the value differs per site (its function, its cell, …).
  Global = 3,        // immediate = offset in the globals: a D session's, or what a query shares.
  Context = 4,       // The context again, as r1 has it at entry; immediate = 0.
};

inline constexpr uint32_t kFrameSizeBytes = 512;

// Calls of the program's own functions (RFC 9669, 4.3.2). A called function has a frame of its own
// below its caller's; all of them share the 512 bytes, so that a program with local calls has this
// much for each function.
inline constexpr uint32_t kCallDepthMax = 8;  // Functions, the first one included.
inline constexpr uint32_t kCalledFrameSizeBytes = kFrameSizeBytes / kCallDepthMax;

inline constexpr uint32_t kInstructionsMax = 65536;
inline constexpr uint32_t kSiteConstantsMax = 64;

struct Program {
  std::string name;
  std::vector<Instruction> code;
  uint32_t site_constant_count = 0;

  bool operator==(const Program&) const = default;
};

}  // namespace clew::isa
