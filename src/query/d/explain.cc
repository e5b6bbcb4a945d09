// SPDX-License-Identifier: Apache-2.0
#include "query/d/explain.h"

#include <algorithm>
#include <optional>

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

// The quoted word of `# 5 "x.h"` or `#line 5 "x.h"`; nothing of other lines.
std::optional<std::string_view> file_of(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return std::nullopt;
  line.remove_prefix(hash + 1);
  if (line.starts_with("line")) line.remove_prefix(4);
  line.remove_prefix(std::min(line.find_first_not_of(" \t0123456789"), line.size()));
  const size_t end = line.starts_with('"') ? line.find('"', 1) : std::string_view::npos;
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(1, end - 1);
}

}  // namespace

std::string named_file(std::string_view text, size_t offset) {
  text = text.substr(0, offset);
  while (!text.empty()) {
    const size_t begin = text.rfind('\n') + 1;  // 0 in the first line.
    const auto file = file_of(text.substr(begin));
    if (file) return file->starts_with('<') ? "" : std::string(*file);
    text = text.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return "";
}

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
