// SPDX-License-Identifier: Apache-2.0
// Clauses that call functions of extensions. They run in processes, inline, or in the kernel: all
// of a script's in the same, for the functions' variables of a thread are there.
#pragma once

#include "base/error.h"
#include "engine/dtrace/inline_probes.h"
#include "engine/dtrace/script_compiler.h"

namespace clew::engine {

// Whether the kernel has to run one of them: at a probe that is in no process, or in none that is
// named, or because all probes of the script are the kernel's.
bool extensions_belong_to_kernel(const CompiledScript& compiled);

// What the kernel is to run; nothing when it is none of its business.
kernel::MachineExtensions kernel_extensions(const CompiledScript& compiled);

// For processes: whether `probes` armed all of them. Else the caller gives up what it did. Errors:
// Refused, with the function, its line and the probe.
Expected<void> check_extension_clauses(const CompiledScript& compiled, const InlineProbes& probes);

}  // namespace clew::engine
