// SPDX-License-Identifier: Apache-2.0
// The input of the analysis: what it must know of a module, as plain data. Tests write it by hand;
// for a real module an adaptor makes it from the module's image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace clew::code {

inline constexpr uint32_t kNoOwner = UINT32_MAX;           // A function.
inline constexpr uint32_t kUnknownOwner = UINT32_MAX - 1;  // A part of a function not known which.

struct Section {
  uint64_t address = 0;  // Link time.
  std::span<const uint8_t> bytes;
  bool executable = false;  // Others are read for jump tables.
};

struct FunctionRange {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint32_t owner = kNoOwner;  // A cold part: index of the function it belongs to.
  bool unnamed = false;       // No symbol, or a `.cold` one: may be a cold part.
  bool mid_frame = false;     // The unwind entry says that a frame is on the stack at its start.
};

struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // One past the last byte.
};

// An exception table of `function` has a landing pad in `part`: both are of one function.
struct PartLink {
  uint64_t function = 0;
  uint64_t part = 0;
};

// Borrows the sections' bytes; they must outlive the ModuleCode made from it. Order is free.
struct ModuleText {
  std::vector<Section> sections;
  std::vector<FunctionRange> functions;
  std::vector<uint64_t> landing_pads;  // Of exception tables.
  std::vector<PartLink> part_links;
  std::vector<uint64_t> code_pointers;  // Relocation addends, init arrays, symbols, entry point.
  std::vector<AddressRange> rseq;       // [start_ip, post_commit), and [abort - 4, abort + 1).
  bool position_dependent = false;      // ET_EXEC: 32-bit immediates and data words are pointers.
};

}  // namespace clew::code
