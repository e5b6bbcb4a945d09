// SPDX-License-Identifier: Apache-2.0
#include "cmd/without_literals.h"

#include <algorithm>

namespace clew::cmd {
namespace {

// Behind the quote that ends what begins here, or the text.
size_t end_of_quoted(std::string_view text) {
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == text[0]) {
      return at + 1;
    }
  }
  return text.size();
}

size_t end_of_comment(std::string_view text) {
  const bool is_line = text[1] == '/';
  const size_t found = text.find(is_line ? "\n" : "*/", 2);
  return std::min(text.size(), found == std::string_view::npos || is_line ? found : found + 2);
}

}  // namespace

std::string_view without_head(std::string_view text) {
  std::string_view rest = text;
  while (rest.starts_with("//") || rest.starts_with('\n')) {
    const size_t line_end = rest.find('\n');
    rest = line_end == std::string_view::npos ? "" : rest.substr(line_end + 1);
  }
  return rest.empty() ? text : rest;
}

std::string without_literals(std::string_view text) {
  constexpr std::string_view kQuotes = "\"'`";
  std::string rest;
  while (!text.empty()) {
    size_t taken = 1;
    if (kQuotes.find(text[0]) != std::string_view::npos) {
      taken = end_of_quoted(text);
      rest += std::string{text[0]} + "…" + text[0];
    } else if (text.starts_with("/*") || text.starts_with("//")) {
      taken = end_of_comment(text);
      rest += ' ';
    } else {
      rest += text[0];
    }
    text.remove_prefix(taken);
  }
  return rest;
}

}  // namespace clew::cmd
