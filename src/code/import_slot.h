// SPDX-License-Identifier: Apache-2.0
// The word that the loader fills with the address of an imported function, and through which a call
// or jump goes: itself, or by a stub of the PLT.
#pragma once

#include <cstdint>
#include <optional>

#include "code/module_code.h"

namespace clew::code {

// Nothing when the branch leads elsewhere.
[[nodiscard]] std::optional<uint64_t> import_slot(const ModuleCode& code,
                                                  const Instruction& branch);

}  // namespace clew::code
