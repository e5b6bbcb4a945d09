// SPDX-License-Identifier: Apache-2.0
// The name that a user probably meant: the candidate with the smallest edit distance.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace clew {

// The nearest candidate, or an empty string when none is near (distance over a third of the
// length). Case-insensitive. A transposition counts as one edit, and so does all that is left out
// in front of a `::` (`Cart::add` of `shop::Cart::add`). Names over 200 bytes are cut.
std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// "; did you mean 'NAME'?" behind a message; nothing where no name is near.
std::string did_you_mean(std::string_view nearest);

// Damerau-Levenshtein distance (optimal string alignment), or `limit` + 1 when it is larger.
unsigned edit_distance(std::string_view a, std::string_view b, unsigned limit);

}  // namespace clew
