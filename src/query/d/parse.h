// SPDX-License-Identifier: Apache-2.0
// Text -> Program. The text has been through cpp already if it was asked for; lines that cpp left
// (`# 12 "file"`) are obeyed.
#pragma once

#include <string_view>
#include <vector>

#include "query/d/provider.h"
#include "query/d/source.h"
#include "query/d/syntax.h"
#include "query/d/types.h"

namespace clew::query::d {

// Types that the program defines or names go into `types`. Macro arguments ($1, $$1, $target, …)
// are replaced by the lexer; one that is given and never used is D_MACRO_UNUSED.
Compiled<Program> parse(std::string_view text, const CompileOptions& options, TypeTable& types);
// The provider definitions of a text: what a program that is built with `dtrace -h` and -G has.
Compiled<std::vector<ProviderDefinition>> parse_providers(std::string_view text,
                                                          const CompileOptions& options,
                                                          TypeTable& types);

}  // namespace clew::query::d
