// SPDX-License-Identifier: Apache-2.0
// Which registers a function still reads: those may be saved around a call, since the verifier
// refuses to read one that nothing was written to. Internal to inline_calls.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/program.h"

namespace clew::isa {

// By instruction: a bit for each register that may be read behind it before it is written. What
// calls read and write of r0 to r5 is left out.
std::vector<uint32_t> live_behind(const std::vector<isa::Instruction>& code);

}  // namespace clew::isa
