// SPDX-License-Identifier: Apache-2.0
// The tree as D text again, in one form: every operator in parentheses, one item per line. For
// error messages and tests.
#pragma once

#include <string>

#include "query/d/syntax.h"
#include "query/d/types.h"

namespace clew::query::d {

std::string print(const Node& node, const TypeTable& types);
std::string print(const Statement& statement, const TypeTable& types);
std::string print(const Program& program, const TypeTable& types);
std::string print(const ProbeDescription& description);  // All four fields, or the number.

// `text` with what a string literal must escape escaped; without quotes.
std::string escape(std::string_view text);

}  // namespace clew::query::d
