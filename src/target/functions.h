// SPDX-License-Identifier: Apache-2.0
// From symbols and unwind entries to functions: aliases merged, sizes found, cold parts attached,
// code without a symbol named, names made readable. Internal to target/.
#pragma once

#include <string_view>

#include "target/image_tables.h"
#include "target/symbols.h"

namespace clew::target {

// Fills `functions`, `names` and `cold`; needs `sections` and `fdes`. `module_name` is what made-up
// names start with. Consumes the list.
void make_functions(SymbolList list, std::string_view module_name, ImageTables& tables);

}  // namespace clew::target
