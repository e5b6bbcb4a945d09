// SPDX-License-Identifier: Apache-2.0
// Text in drawings. Private to the folder.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clew::output {

// For XML, of text that has no control characters. Two code points of valid UTF-8 are none of
// XML's.
[[nodiscard]] std::string escaped(std::string_view text);
// As many characters as there is room for, with two dots when some are missing.
[[nodiscard]] std::string shortened(std::string_view text, size_t characters_max);
// White space as one blank for each, all else printable.
[[nodiscard]] std::string in_one_line(std::string text);

}  // namespace clew::output
