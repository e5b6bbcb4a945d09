// SPDX-License-Identifier: Apache-2.0
// What the code of one program may call: for the verifier, so that a mistake of the translator
// calls no other accessor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isa/program.h"
#include "verify/verified_code.h"

namespace clew::engine {

// Of `entries`, by accessor, those that the program calls, and those of division, an instruction of
// programs that is a call of machine code.
std::vector<verify::Callee> callees_of(const isa::Program& program,
                                       std::span<const uint64_t> entries);

}  // namespace clew::engine
