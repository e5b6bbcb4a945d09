// SPDX-License-Identifier: Apache-2.0
// The text of a printf or printa format -> its parts.
#pragma once

#include <string_view>

#include "query/d/script.h"
#include "query/d/source.h"

namespace clew::query::d {

// %[flags][width][.precision][length]conversion, with D's `@` (an aggregation's value) and `?` (as
// wide as a pointer) among the flags or instead of the width. D_SYNTAX when it is malformed or the
// conversion is unknown; whether the arguments fit is the checker's to say.
Compiled<Format> parse_format(std::string_view text, uint32_t line, Span span);

}  // namespace clew::query::d
