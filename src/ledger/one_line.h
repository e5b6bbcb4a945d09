// SPDX-License-Identifier: Apache-2.0
// Texts of others, for a line of a log and for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clew::ledger {

// Control characters, those that turn the direction of a text or are not seen, and bytes that are
// no UTF-8 as \n, \t, \xNN. Of a longer text the first characters, and "…".
[[nodiscard]] std::string one_line(std::string_view text, size_t characters_max);

}  // namespace clew::ledger
