// SPDX-License-Identifier: Apache-2.0
// Languages whose runtime looks up each return address on a stack in tables of its own: it moves
// stacks or collects garbage by them. Of an address in a copy they know nothing, and end the
// program, so their functions stay as they are.
#pragma once

#include "base/error.h"
#include "target/linked_names.h"
#include "target/process.h"

namespace clew::engine {

// Errors: Refused when the module is of such a language; Io when it cannot be read.
Expected<void> check_stack_maps(const target::ProcessModule& module,
                                const target::LinkedNames& names);

}  // namespace clew::engine
