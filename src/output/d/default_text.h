// SPDX-License-Identifier: Apache-2.0
// Values without a format: what trace(), stack(), sym() and their kin print, and key columns.
#pragma once

#include <string>

#include "output/d/options.h"
#include "output/d/printf.h"
#include "output/d/symbols.h"

namespace clew::output::d {

// In quiet mode the value alone, else behind the blanks that DTrace gives to its type.
void append_traced(const Datum& datum, const target::Symbolizer& symbols,
                   const PrintOptions& options, std::string& out);

void append_key_text(const Datum& datum, const target::Symbolizer& symbols,
                     const PrintOptions& options, std::string& out);

}  // namespace clew::output::d
