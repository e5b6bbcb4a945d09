// SPDX-License-Identifier: Apache-2.0
// Program -> Code: x86-64 machine code of one probe body for one site, not yet verified, not yet at
// its address. The body obeys abi/stub.h; nothing here is trusted, src/verify reads the final
// bytes.
//
// Memory. Window pointer p lives at gs:[window_address + p]. Constant addresses become
// `gs:[disp32]`; others are masked to the window first. Context loads become register moves, stack
// reads `[rsp + x]`, slot reads `gs:[slot_address + x]`, or a read of the arena header `[disp32]`.
// Programs of D (abi/machine/process.h) besides call the D accessors, and reach the session's
// globals at constant addresses `[disp32]`; those of queries reach what their threads share there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/accessor.h"
#include "abi/region.h"
#include "abi/stub.h"
#include "base/error.h"
#include "isa/program.h"

namespace clew::native {

// Which context fields exist, and where.
enum class PointKind : uint8_t {
  Entry,   // arguments, frame, caller, stack arguments
  Exit,    // return value, frame, caller
  Offset,  // arguments (the registers as they are)
};

// Where the body will run. Equal for all sites of one session but for the site constants.
struct Environment {
  PointKind point = PointKind::Entry;
  uint32_t window_address = 0;  // A + region offset: gs displacement of window byte 0.
  uint32_t window_size_log2 = 0;
  uint32_t slot_address = 0;        // A: gs displacement of SlotControl.
  uint32_t generation_address = 0;  // Absolute address of SessionEntry::generation.
  uint64_t fuel = 100'000;          // Instructions, for programs with loops.
  // The word of the window that counts the hits that used them up.
  uint32_t missed_fuel_offset = offsetof(abi::RegionHeader, missed_fuel);
  // Absolute, among the globals: a 4-byte word that counts them, too, for all threads. 0 = none.
  uint32_t spent_address = 0;
  bool is_machine = false;  // A program of the machine (D): no branch guards, its own accessors.
  // Absolute: of D, or of a query the word of `spent_address`.
  uint32_t globals_address = 0;
  uint32_t globals_bytes = 0;
  bool branch_guards = false;   // Addresses are compared, not masked: shorter chains of loads.
  abi::RegisterSet saved = {};  // What the stub has to save besides what the body writes.
};

// A call whose 4-byte displacement must be set when the address is known.
struct CallFixup {
  uint32_t offset_bytes;  // Of the displacement field in Code::bytes.
  uint32_t door;          // abi/calling.h
};

// What holds of a register wherever a branch leads to a label, which the verifier checks at each.
struct DeclaredFact {
  uint32_t offset_bytes = 0;  // Of the label.
  abi::Register in = abi::Register::Rax;
  uint64_t high = 0;  // The register is not above it.
};

struct Code {
  std::vector<uint8_t> bytes;
  std::vector<CallFixup> calls;
  std::vector<DeclaredFact> facts = {};  // By offset.
  abi::RegisterSet clobbers;
  bool guarded = false;  // Needs the busy word: it updates state in more than one instruction.
};

// The size of the result does not depend on the site constants' addresses, only on their values.
// Errors: InvalidQuery for a program outside the validator's probe rules or a context field that
// the point kind lacks; Limit when the body is over 64 KiB.
Expected<Code> translate(const isa::Program& program, const Environment& environment,
                         std::span<const uint64_t> site_constants);

// Sets the call displacements of `bytes`, a copy of code.bytes that will run at `address`.
// `accessor_entries[k]` is the address of door k. False when one is out of rel32 reach.
bool relocate(const Code& code, uint64_t address, std::span<const uint64_t> accessor_entries,
              std::span<uint8_t> bytes);

}  // namespace clew::native
