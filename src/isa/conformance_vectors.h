// SPDX-License-Identifier: Apache-2.0
// Test support: reads the public eBPF conformance vectors (see the README beside them), for every
// engine that has to agree with them. Link clew_isa_testing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "isa/program.h"

namespace clew::isa {

// Where the engines place a vector's memory and frame in a window of kVectorWindowSizeLog2. At
// entry r1 = kVectorMemoryOffset (or 0 when there is no memory), r2 = its length, r10 =
// kVectorFrameEnd. A program that takes r1 for the context cannot run a vector.
inline constexpr uint32_t kVectorWindowSizeLog2 = 14;
inline constexpr uint32_t kVectorFrameEnd = 768;
inline constexpr uint32_t kVectorMemoryOffset = 8192;

struct ConformanceVector {
  std::string name;               // The file's, without its extension.
  std::string assembly;           // Section `asm`; empty when there is none.
  std::vector<Instruction> code;  // NAME.hex, or section `raw`; empty when there is neither.
  std::vector<uint8_t> memory;
  std::optional<uint64_t> result;    // r0 at the exit.
  std::optional<std::string> error;  // Text of section `error`; may be empty.
};

// All NAME.data of a folder, by name. Errors: NotFound when the folder does not exist,
// InvalidQuery when a file cannot be understood.
Expected<std::vector<ConformanceVector>> load_conformance_vectors(const std::string& folder);

// The conformance groups (RFC 9669, 2.4) that a program needs, of: base32 base64 atomic32 atomic64
// divmul32 divmul64 callx.
std::vector<std::string> conformance_groups(const std::vector<Instruction>& code);

}  // namespace clew::isa
