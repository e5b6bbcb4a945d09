// SPDX-License-Identifier: Apache-2.0
// Where a function's arguments are when it is entered: the calling convention applied to their
// types (psABI x86-64, section 3.2.3), corrected by what DWARF says of the first instruction.
// Internal to target/.
#pragma once

#include "target/dwarf_file.h"
#include "target/dwarf_types.h"
#include "target/types.h"

namespace clew::target {

// `may_break_convention`: the compiler made this copy for itself (foo.isra.0) and may pass what and
// where it likes; only DWARF's own word counts then.
Signature read_signature(Dwarf_Die function, uint64_t address, bool may_break_convention,
                         TypeTable& types);

}  // namespace clew::target
