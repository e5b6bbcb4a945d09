// SPDX-License-Identifier: Apache-2.0
// Clauses -> Firing: the program of one site of a process, which does there what the kernel's main
// program and d_run do in the kernel (src/kernel/link.h):
//
//     Begin, with the probe's cookie; the point's arguments to the window's header
//     for each clause: whether tracing ended meanwhile; preparation, the clause, its aftermath
//                      (exit(), faults, the ERROR clauses)
//
// Clauses that only compute and count in cells need no more than a look at whether tracing is on,
// and their arguments.
//
// Functions of extensions that clauses call stand where they are called (extensions.h). A loop in
// one may use up the firing's fuel: then it ends there, and is counted; a thread to which that
// happened kExhaustedMax times at a probe has no firings of it any more.
//
// All sites of one kind and one list of clauses have one program; what differs are its constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "isa/program.h"
#include "plan/d/generate.h"

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
  Fuel,  // Window pointer to the count of the probe's firings that ran out of fuel.
  Tick,  // kTickConstant of a CellClause.
  Count,
};

struct FiringClause {
  const isa::Program* program = nullptr;
  uint32_t clause = 0;         // Its index in the script.
  uint32_t scratch_begin = 0;  // Generated::scratch_begin, or above it.
  bool has_privates = false;   // It is one of Generated::private_clauses and names such variables.
  // CellClause::updates, when that is the program.
  std::span<const CellUpdate> updates{};
  std::span<const ExtensionCall> calls{};  // In the program.
};

inline constexpr int32_t kExhaustedMax = 8;

// Where the window has what is the thread's own.
struct FiringState {
  PrivateArea privates{};
  const ExtensionState* extensions = nullptr;  // Borrowed; null when no clause calls any function.
  uint32_t left_alone_offset = 0;              // Counts firings that were not begun.
};

struct Firing {
  isa::Program program;
  // The stub has to save abi::kAllSaved (native::Environment::saved): something in it
  // looks at the stack or the registers of the traced program.
  bool wants_registers = false;
  // Those of all clauses. Site constant FiringConstant::Count + i is where updates[i] has its
  // cells.
  std::vector<CellUpdate> updates;
};

// Whether a process can do all that these clauses, which run in one firing, and the ERROR clauses
// ask for. Else they belong into the kernel: they use what only it knows or may read.
bool runs_in_process(std::span<const FiringClause> clauses,
                     std::span<const FiringClause> error_clauses);

// `static_arguments`: where a static probe has its arguments (target/usdt.h). Errors: InvalidQuery
// for clauses that do not run in a process, or arguments that no program can read; Limit when the
// code of extensions is too long, or needs more room than a frame has.
Expected<Firing> compose(FiringPoint point, std::span<const FiringClause> clauses,
                         std::span<const FiringClause> error_clauses,
                         std::string_view static_arguments = {}, const FiringState& state = {});

}  // namespace clew::plan::d
