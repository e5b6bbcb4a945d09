// SPDX-License-Identifier: Apache-2.0
// Clauses -> Firing: the program of one site of a process, which does there what the kernel's main
// program and d_run do in the kernel (src/kernel/link.h):
//
//     Begin, with the probe's cookie; the point's arguments to the window's header
//     for each clause: whether tracing ended meanwhile; preparation, the clause, its aftermath
//                      (exit(), faults, the ERROR clauses)
//
// All sites of one kind and one list of clauses have one program; what differs are its constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "isa/program.h"

namespace clew::plan::d {

enum class FiringPoint : uint8_t {
  Entry,   // arg0… = the function's arguments
  Return,  // arg0 = offset of the exit in the function, arg1 = the result
  Offset,  // No arguments, or those of a static probe.
};

// The site constants of a Firing, by their numbers; all of them are to be given.
enum class FiringConstant : uint8_t {
  Cookie,          // The probe's id << 32 | the index of its enabling.
  ProgramCounter,  // Of the site, in the process.
  ReturnOffset,
  Count,
};

struct FiringClause {
  const isa::Program* program = nullptr;
  uint32_t clause = 0;         // Its index in the script.
  uint32_t scratch_begin = 0;  // Generated::scratch_begin
};

struct Firing {
  isa::Program program;
  // The stub has to save abi::kDSavedRegisters (native::Environment::saved): something in it looks
  // at the stack or the registers of the traced program.
  bool wants_registers = false;
};

// Whether a process can do all that these clauses, which run in one firing, and the ERROR clauses
// ask for. Else they belong into the kernel: they use what only it knows or may read.
bool runs_in_process(std::span<const FiringClause> clauses,
                     std::span<const FiringClause> error_clauses);

// `static_arguments`: where a static probe has its arguments (target/usdt.h). Errors: InvalidQuery
// for clauses that do not run in a process, or arguments that no program can read.
Expected<Firing> compose(FiringPoint point, std::span<const FiringClause> clauses,
                         std::span<const FiringClause> error_clauses,
                         std::string_view static_arguments = {});

}  // namespace clew::plan::d
