// SPDX-License-Identifier: Apache-2.0
// A query or script for others' eyes: what it does, but not what it looks for.
#pragma once

#include <string>
#include <string_view>

namespace clew::cmd {

// What stands in quotes ("…", '…', `…`) and in comments (/* */, //) is left out, also where it has
// no end.
[[nodiscard]] std::string without_literals(std::string_view text);

// From the first line on that is no comment (//): those in front say what a verb is for.
[[nodiscard]] std::string_view without_head(std::string_view text);

}  // namespace clew::cmd
