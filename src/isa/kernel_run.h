// SPDX-License-Identifier: Apache-2.0
// Test support: random programs (random_program.h) in the kernel, as XDP programs under
// BPF_PROG_TEST_RUN with their data area in the packet. Needs the right to load programs. Link
// clew_isa_testing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/program.h"

namespace clew::isa {

struct KernelRun {
  std::string problem;  // Empty, or what the kernel says, its verifier's log included.
  uint32_t result = 0;  // The low half of r0.
  std::vector<uint8_t> data = {};
};

// The program must start with `lddw window %r8, …`, which becomes a pointer to the packet, and be
// one of RandomProgramOptions::kernel_rules.
KernelRun run_in_kernel(const Program& program, const std::vector<uint8_t>& data);

// Why programs cannot be run here, or nothing.
std::string why_not_in_kernel();

}  // namespace clew::isa
