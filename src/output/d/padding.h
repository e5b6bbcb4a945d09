// SPDX-License-Identifier: Apache-2.0
// Columns as C's printf makes them: widths count bytes, whatever the text is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clew::output::d {

inline void append_right(std::string& out, std::string_view text, size_t width) {
  if (text.size() < width) out.append(width - text.size(), ' ');
  out += text;
}

inline void append_left(std::string& out, std::string_view text, size_t width) {
  out += text;
  if (text.size() < width) out.append(width - text.size(), ' ');
}

}  // namespace clew::output::d
