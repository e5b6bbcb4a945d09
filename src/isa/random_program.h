// SPDX-License-Identifier: Apache-2.0
// Test support: random programs that pass validate_probe() and never leave the window, for running
// two engines against each other. Link clew_isa_testing.
#pragma once

#include <cstdint>

#include "isa/program.h"

namespace clew::isa {

struct RandomProgramOptions {
  uint64_t seed = 0;    // The same seed and options give the same program.
  uint32_t steps = 40;  // About one instruction each, some are up to 4.
  // Memory besides the frame that is read and written: [data_offset, data_offset + data_size).
  // Multiples of 8; at most 2048 bytes.
  uint32_t data_offset = 1024;
  uint32_t data_size_bytes = 256;
  bool context = true;          // Loads from abi::Context through r1. False: r1 is never read.
  bool accessors = true;        // BitLength, Divide*, Modulo*: what needs no host.
  bool window_pointers = true;  // Data by window pointers. False: frame only.
  uint32_t site_constants = 0;
  // For the kernel, which refuses shifts by more than the width, division by a constant 0, atomic
  // instructions on packets, and misaligned accesses to the stack.
  bool kernel_rules = false;
};

// Forward branches only. All frame bytes that are read were written before. r0 at the exit mixes
// all registers and what was stored, so that one wrong bit anywhere shows.
Program random_program(const RandomProgramOptions& options);

}  // namespace clew::isa
