// SPDX-License-Identifier: Apache-2.0
// The plockstat provider: the locks of one process, as the functions of its C library take and give
// them. Private to providers/user*.cc.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/glob.h"
#include "target/catalog.h"

namespace clew::kernel {

// Adds what matches in module, function and name; the probes' provider is `provider`.
Expected<void> match_lock_functions(target::Catalog& catalog, const ProbeGlobs& globs,
                                    std::string_view provider, std::vector<Probe>& found);

}  // namespace clew::kernel
