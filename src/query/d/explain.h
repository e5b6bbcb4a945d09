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

// The file that the text is of at `offset`, where a control line names one (#line 5 "x.h"; what the
// preprocessor leaves of an #include); empty in the program's own text ("<stdin>").
std::string named_file(std::string_view text, size_t offset);

// Two lines with their ends; empty when the error has no place in `text`.
std::string explain(std::string_view text, const CompileError& error);

}  // namespace clew::query::d
