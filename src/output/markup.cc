// SPDX-License-Identifier: Apache-2.0
#include "output/markup.h"

#include <algorithm>
#include <cstdint>

#include "output/format.h"

namespace clew::output {

std::string escaped(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("\xEF\xBF\xBE") || rest.starts_with("\xEF\xBF\xBF")) {
      result += "\xEF\xBF\xBD";
      at += 2;
      continue;
    }
    switch (text[at]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += text[at];
        break;
    }
  }
  return result;
}

std::string shortened(std::string_view text, size_t characters_max) {
  if (display_width(text) <= characters_max) return std::string(text);
  size_t at = 0;
  for (size_t left = characters_max - 2; at < text.size(); ++at) {
    const bool begins = (static_cast<uint8_t>(text[at]) & 0xC0) != 0x80;
    if (begins && left-- == 0) break;
  }
  return std::string(text.substr(0, at)) + "..";
}

std::string in_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return printable(text);
}

}  // namespace clew::output
