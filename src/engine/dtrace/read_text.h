// SPDX-License-Identifier: Apache-2.0
// Reads a script or a library as a whole.
#pragma once

#include <string>

#include "base/error.h"

namespace clew::engine {

// Errors: "failed to open PATH: No such file or directory", and that it cannot be read or has no
// end in sight (/dev/zero).
Expected<std::string> read_text(const std::string& path);

}  // namespace clew::engine
