// SPDX-License-Identifier: Apache-2.0
// Whether code depends on the flags that it is reached with. At the entry of a function the ABI
// says that it does not; where a hand-written function runs on into another one, that is looked at.
#pragma once

#include <cstdint>

#include "inline/module_code.h"

namespace clew::inline_ {

// May the code at `address` read flags that it did not write itself? True in doubt.
bool may_use_flags(const ModuleCode& code, uint64_t address);

}  // namespace clew::inline_
