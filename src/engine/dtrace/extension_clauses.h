// SPDX-License-Identifier: Apache-2.0
// Clauses that call functions of extensions. Such a function runs in processes only, so a script
// where the kernel would have to run such a clause is refused.
#pragma once

#include "base/error.h"
#include "engine/dtrace/inline_probes.h"
#include "engine/dtrace/script_compiler.h"

namespace clew::engine {

// What is known before anything is loaded: probes that are in no process, or in none that is named,
// and scripts whose probes are all the kernel's. Errors: Refused, with the function, its line and
// the probe.
Expected<void> check_extension_clauses(const CompiledScript& compiled);

// The same for what `probes` could not arm. The caller gives up what it did.
Expected<void> check_extension_clauses(const CompiledScript& compiled, const InlineProbes& probes);

}  // namespace clew::engine
