// SPDX-License-Identifier: Apache-2.0
// Modules that a compiler has made ready for a recording: with -fsanitize-coverage=trace-pc-guard
// or trace-pc they call a callback where their blocks begin, which is a function of their own that
// does nothing (guards/guards.S). They run as they are. The callback alone is led to a probe, which
// finds the record of each call by its return address.
//
// The record is that of a DAG without bits, whose head is the block that ends in the call.
// Compilers call for the blocks that tell which others ran, not for each; so paths between the
// records are looked for in the machine code (guarded_paths.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "copy/facts.h"
#include "copy/prove_module.h"
#include "recorder/tile.h"
#include "target/module_image.h"

namespace clew::recorder {

// The section of a module that was linked with guards/guards.S.
inline constexpr std::string_view kGuardsNote = ".note.clew.guards";

// What that names, if it does nothing: where it begins, ascending. Empty: the module has no guards
// that can be recorded.
std::vector<uint64_t> guard_callbacks(const target::ModuleImage& image);

// Those that call them, as far as all ways through them are known; nothing is proved of them, as
// they are not copied.
copy::ModuleProof guarded_functions(const copy::Facts& facts,
                                    const std::vector<uint64_t>& callbacks);
// A DAG for each call.
ModuleTiling tile_guards(const copy::Facts& facts, const std::vector<uint64_t>& callbacks,
                         const copy::ModuleProof& proof);

struct GuardCall {
  uint64_t behind = 0;  // The return address.
  // Relative, as the tiling has it; dag_count: of a function whose ways are not known.
  uint32_t dag = 0;
};

// All of the module, by address.
std::vector<GuardCall> guard_calls(const copy::Facts& facts, const std::vector<uint64_t>& callbacks,
                                   const copy::ModuleProof& proof, const ModuleTiling& tiling);

}  // namespace clew::recorder
