// SPDX-License-Identifier: Apache-2.0
// Durations of the command line: 250ns, 10us, 5ms, 1.5s, 2m, 1h.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace clew::cmd {

// Nanoseconds, at least 1. InvalidQuery with what was found and what was expected.
Expected<uint64_t> parse_duration(std::string_view text);

}  // namespace clew::cmd
