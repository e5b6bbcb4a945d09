// SPDX-License-Identifier: Apache-2.0
// Two sets of rules for Programs. validate() asks whether it is a program of RFC 9669 at all; the
// interpreter runs whatever passes. validate_probe() adds what every engine relies on. Neither is
// part of the safety of native code (src/verify judges the final bytes); they turn a mistake of a
// query, of the planner or of an extension into a message at the right place.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "isa/program.h"

namespace clew::isa {

// The rules, in the order in which they are looked at.
enum class Rule : uint8_t {
  // Of validate():
  Length,          // 1 to kInstructionsMax instructions, up to kSiteConstantsMax site constants.
  Opcode,          // Each instruction is a row of the opcode table.
  RegisterNumber,  // Registers are r0 to r10.
  ReservedField,   // Unused fields are 0, also in the second half of LDDW.
  ReadOnlyFrame,   // r10 is never written.
  Load64,          // LDDW has its second half; a window pointer is below 2^32.
  SiteConstant,    // The index is below Program::site_constant_count.
  BranchTarget,    // Branches and local calls reach the start of an instruction of the program.
  FallOff,         // The last instruction is an exit or an unconditional jump.
  Accessor,        // Calls name an accessor of abi/accessor.h.
  // Of validate_probe(), besides:
  Loop,           // Branches go forward only, unless allowed.
  LocalCall,      // No calls of the program's own functions, unless allowed.
  Recursion,      // Local calls form no cycle and are at most kCallDepthMax functions deep.
  Unreachable,    // Every instruction can be reached (the kernel refuses others).
  Uninitialised,  // A register is written before it is read, on every path; r0 before an exit.
  Context,        // The context is loaded from, at aligned constant offsets inside abi::Context, or
                  // copied whole from register to register; nothing else is done with it.
  Frame,          // An access by r10 itself stays inside the function's frame.
};

// As messages name them: "reserved-field".
std::string_view rule_name(Rule rule);

// Error: InvalidQuery (Limit for Rule::Length), "program p: instruction 3: rule opcode: …".
Expected<void> validate(const Program& program);

struct ProbeRules {
  bool loops_allowed = false;
  bool local_calls_allowed = false;
};

// validate(), then the rules for programs that engines run. At entry r1 is the context, and r10 the
// end of the frame; all other registers are uninitialised. Error: as validate().
Expected<void> validate_probe(const Program& program, const ProbeRules& rules = {});

}  // namespace clew::isa
