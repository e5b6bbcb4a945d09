// SPDX-License-Identifier: Apache-2.0
// Percentages of the command line: 3%, 0.5%, 3.
#pragma once

#include <string_view>

#include "base/error.h"

namespace clew::cmd {

// A share, more than 0 and at most 1. InvalidQuery with what was found and what was expected.
Expected<double> parse_percent(std::string_view text);

}  // namespace clew::cmd
