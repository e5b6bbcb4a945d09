// SPDX-License-Identifier: Apache-2.0
// What is wrong with a text, as our own commands print it, with the places where an editor marks
// it. A message has its place in front (query/diagnostic.h), or a line and a caret below it (D).
#pragma once

#include <string>
#include <string_view>

#include "output/json_value.h"

namespace clew::serve {

// A list: from, to (in UTF-16 units), line, column, severity, message, fix. Messages without a
// place are "info" at the beginning.
[[nodiscard]] output::Json diagnostics_of(std::string_view text, std::string_view messages);

// The UTF-16 units of what is in front of the byte at `at`.
[[nodiscard]] size_t utf16_offset(std::string_view text, size_t at);
// The other way round.
[[nodiscard]] size_t byte_offset(std::string_view text, size_t units);

}  // namespace clew::serve
