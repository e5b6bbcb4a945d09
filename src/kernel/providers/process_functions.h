// SPDX-License-Identifier: Apache-2.0
// The pid provider: the functions of one process, their entries, returns and instructions.
// Private to providers/user*.cc.
#pragma once

#include <vector>

#include "base/error.h"
#include "kernel/glob.h"
#include "target/catalog.h"

namespace clew::kernel {

// Instructions that one description may match; a probe at each is a trap at each.
inline constexpr size_t kInstructionProbesMax = 100'000;

// How a module of a process is called in probes: the name of its file; of the program, the name
// that it was started by.
std::string probe_module_name(const target::CatalogModule& module);
// "libz.so.1.2" is also libz, libz.so and libz.so.1.
bool matches_file_name(const Glob& glob, std::string_view name);
// Whether a description means the module: by that name, the file's, and `a.out` for the program.
bool matches_module(const Glob& glob, const target::CatalogModule& module);

// Adds what matches in module, function and name; the probes' provider is `provider`.
Expected<void> match_functions(target::Catalog& catalog, const ProbeGlobs& globs,
                               std::string_view provider, std::vector<Probe>& found);

}  // namespace clew::kernel
