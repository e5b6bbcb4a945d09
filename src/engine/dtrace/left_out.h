// SPDX-License-Identifier: Apache-2.0
// Probes that the kernel cannot set, of descriptions that match others too: they are told and left
// out. A description with no others is an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/dtrace/script_compiler.h"
#include "kernel/providers/catalogue.h"

namespace clew::engine {

// `left_out`: ids of probes. The warning, as a line with its end; empty when there are none.
// Error: Refused, naming the description.
Expected<std::string> left_out_text(const CompiledScript& compiled, kernel::Catalogue& catalogue,
                                    std::span<const uint32_t> left_out);

}  // namespace clew::engine
