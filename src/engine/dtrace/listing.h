// SPDX-License-Identifier: Apache-2.0
// dtrace -l: the probes that there are, or those that the programs' descriptions match.
#pragma once

#include "base/error.h"
#include "engine/dtrace/console.h"
#include "engine/dtrace/request.h"
#include "engine/dtrace/script_types.h"
#include "kernel/providers/catalogue.h"

namespace clew::engine {

// The exit status.
Expected<int> list_probes(const DtraceRequest& request, kernel::Catalogue& catalogue,
                          ScriptTypes& types, DtraceConsole& console);

}  // namespace clew::engine
