// SPDX-License-Identifier: Apache-2.0
// Jumps that nobody has written down, as who wrote them was killed: they are found by comparing the
// text with its file.
#pragma once

#include "code/module_code.h"
#include "code/window.h"

namespace clew::code {

// Are the jumps of a window where such a comparison says that one can be (can_be_patched)? Few are
// not: near tables that lie between functions, for one.
bool can_be_found(const ModuleCode& code, const Window& window);

}  // namespace clew::code
