// SPDX-License-Identifier: Apache-2.0
// A query's text in a log of people: one line, of signs that do nothing at a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clew::cluster {

inline std::string shown_query(std::string_view text) {
  constexpr size_t kShownMax = 240;
  std::string line;
  for (const char one : text) {
    const bool is_control = static_cast<unsigned char>(one) < ' ' || one == '\x7f';
    const bool is_blank = is_control || one == ' ';
    if (is_blank && (line.empty() || line.back() == ' ')) continue;
    line += is_blank ? ' ' : one;
    if (line.size() >= kShownMax) return line + " …";
  }
  while (!line.empty() && line.back() == ' ')
    line.pop_back();
  return line;
}

}  // namespace clew::cluster
