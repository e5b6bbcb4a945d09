// SPDX-License-Identifier: Apache-2.0
// Puts a program together: a main program of the runtime, the clauses that it runs, and what they
// call, as one Image for the kernel, with the types that its verifier asks for.
//
//     main program with d_run (made here), dt_clause_…, accessors
//
// Every function but the main one is global to the verifier: it is looked at once, alone, as a
// function of numbers and of a window that is not null.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/bpf.h"
#include "kernel/bpf_object.h"

namespace clew::kernel {

// What a symbol that is no function stands for.
struct Symbol {
  // Function: of the kernel, by its type; 0 = it has none, and what the call gives is the window.
  enum class Kind : uint8_t { Number, MapAddress, Map, Function };
  Kind kind = Kind::Number;
  uint64_t value = 0;  // Number and Function: itself; the others: the map's descriptor.
};
using Symbols = std::map<std::string, Symbol, std::less<>>;

// A clause to run, and where its scratch room begins.
struct ClauseStep {
  uint32_t clause = 0;
  uint32_t scratch_begin = 0;
};

struct LinkInput {
  std::string name;
  std::string main;  // d_main_…
  ProgramType type = ProgramType::RawTracepoint;
  std::span<const ClauseStep> clauses;
  std::span<const ClauseStep> error_clauses;
  const Function* static_arguments = nullptr;  // static_arguments.h
  LoopKind loops = LoopKind::Open;
  bool inlines = true;       // Short functions stand where they are called.
  uint32_t attach_type = 0;  // Image::attach_type
};

// `clause_functions`: by clause. Errors: Refused when a name stands for nothing; Limit.
Expected<Image> link(const LinkInput& input, const std::vector<Function>& clause_functions,
                     const Symbols& symbols);

}  // namespace clew::kernel
