// SPDX-License-Identifier: Apache-2.0
// Where an error is, drawn: the line of the program and a caret under the place, for terminals. The
// message itself stays DTrace's.
//
//     syscall:::entry { trace(execnam); }
//                             ^~~~~~~ did you mean 'execname'?
#pragma once

#include <string>
#include <string_view>

#include "query/d/source.h"

namespace clew::query::d {

// Two lines with their ends; empty when the error has no place in `text`.
std::string explain(std::string_view text, const CompileError& error);

}  // namespace clew::query::d
