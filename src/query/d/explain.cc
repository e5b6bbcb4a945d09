// SPDX-License-Identifier: Apache-2.0
#include "query/d/explain.h"

#include <algorithm>

#include <fmt/format.h>

namespace clew::query::d {
namespace {

constexpr size_t kColumnsMax = 160;  // Of a longer line, the part around the error.
constexpr size_t kColumnsBefore = 80;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// A script is not trusted to send the terminal what it likes.
std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(),
      [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; },
      '.');
  return result;
}

// As wide as `text` on a terminal: its tabs stay.
std::string blank(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (!continues_character(c)) result += c == '\t' ? '\t' : ' ';
  }
  return result;
}

size_t columns(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

}  // namespace

std::string explain(std::string_view text, const CompileError& error) {
  const size_t at = error.span.begin;
  if (error.line == 0 || error.span.end <= error.span.begin || at > text.size()) return "";
  size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  size_t end = std::min(text.find('\n', at), text.size());
  if (end - begin > kColumnsMax) {
    begin = at - begin > kColumnsBefore ? at - kColumnsBefore : begin;
    end = std::min(end, begin + kColumnsMax);
  }
  const size_t stop = std::clamp<size_t>(error.span.end, at, std::max(end, at));
  const size_t width = std::max<size_t>(columns(text.substr(at, stop - at)), 1);
  const std::string hint =
      error.nearest.empty() ? "" : fmt::format(" did you mean '{}'?", error.nearest);
  return fmt::format("  {}\n  {}^{}{}\n", printable(text.substr(begin, end - begin)),
                     blank(text.substr(begin, at - begin)), std::string(width - 1, '~'), hint);
}

}  // namespace clew::query::d
