// SPDX-License-Identifier: Apache-2.0
#include "serve/diagnostics.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "output/format.h"

namespace clew::serve {
namespace {

using output::Json;

// A diagnostic while it is read. Lines and columns count from 1, columns in bytes.
struct Said {
  size_t line = 0;  // 0: it has no place.
  size_t column = 1;
  size_t size_bytes = 1;
  std::string message;
};

std::optional<size_t> take_number(std::string_view& text) {
  size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return number;
}

// "query:2:10: error: …"
std::optional<Said> said_of_query(std::string_view line) {
  constexpr std::string_view kError = ": error: ";
  const size_t error = line.find(kError);
  if (error == std::string_view::npos) return std::nullopt;
  const size_t second = line.rfind(':', error - 1);
  if (second == std::string_view::npos || second == 0) return std::nullopt;
  const size_t first = line.rfind(':', second - 1);
  if (first == std::string_view::npos) return std::nullopt;
  std::string_view at_line = line.substr(first + 1);
  std::string_view at_column = line.substr(second + 1);
  const auto number = take_number(at_line);
  const auto column = take_number(at_column);
  if (!number || !column || *column == 0) return std::nullopt;
  return Said{*number, *column, 1, std::string(line.substr(error + kError.size()))};
}

// "dtrace: failed to compile script /dev/stdin: line 2: failed to resolve foo: …"
std::optional<Said> said_of_script(std::string_view line) {
  constexpr std::string_view kLine = "/dev/stdin: line ";
  const size_t at = line.find(kLine);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kLine.size());
  const auto number = take_number(rest);
  if (!number || !rest.starts_with(": ")) return std::nullopt;
  return Said{*number, 1, 1, std::string(rest.substr(2))};
}

bool is_marks(std::string_view line) {
  return line.find('^') != std::string_view::npos &&
         line.substr(0, line.find('^')).find_first_not_of(" \t") == std::string_view::npos;
}

// The line with the caret says how long the place is; for D also where, behind two spaces, and what
// was meant.
void add_marks(Said& said, std::string_view marks, bool is_script) {
  const size_t begin = marks.find('^');
  const size_t end = std::min(marks.find_first_not_of('~', begin + 1), marks.size());
  said.size_bytes = end - begin;
  if (!is_script) return;
  constexpr size_t kIndent = 2;
  said.column = begin < kIndent ? 1 : begin - kIndent + 1;
  if (end < marks.size()) said.message += ";" + std::string(marks.substr(end));
}

size_t byte_of(std::string_view text, size_t line, size_t column) {
  size_t at = 0;
  for (size_t i = 1; i < line && at < text.size(); ++i)
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  return std::min(at + column - 1, text.size());
}

std::string_view quoted_behind(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, std::min(text.find('\''), text.size()));
}

// Puts the name that was meant in the place of the one that is there, where it is there once.
Json fix_of(std::string_view text, size_t from, size_t to, std::string_view message) {
  const std::string_view meant = quoted_behind(message, "did you mean '");
  if (meant.empty()) return {};
  const std::string_view place = text.substr(from, to - from);
  std::string_view wrong = quoted_behind(message, "'");
  if (wrong == meant) wrong = place;
  const size_t at = wrong.empty() ? std::string_view::npos : place.find(wrong);
  if (at == std::string_view::npos || place.find(wrong, at + 1) != std::string_view::npos)
    return {};
  return {{"from", utf16_offset(text, from + at)},
          {"to", utf16_offset(text, from + at + wrong.size())},
          {"insert", meant}};
}

Json diagnostic_json(std::string_view text, const Said& said) {
  if (said.line == 0) {
    return {{"from", 0},          {"to", 0},
            {"line", 1},          {"column", 1},
            {"severity", "info"}, {"message", said.message}};
  }
  const size_t from = byte_of(text, said.line, said.column);
  const size_t to = std::min(from + said.size_bytes, text.size());
  Json json = {{"from", utf16_offset(text, from)},
               {"to", utf16_offset(text, to)},
               {"line", said.line},
               {"column", said.column},
               {"severity", "error"},
               {"message", said.message}};
  Json fix = fix_of(text, from, to, said.message);
  if (!fix.is_null()) json["fix"] = std::move(fix);
  return json;
}

// Without what our commands put in front.
std::string plain_message(std::string_view line) {
  for (const std::string_view front : {"clew: error: ", "dtrace: "})
    if (line.starts_with(front)) line.remove_prefix(front.size());
  return std::string(line);
}

bool is_continuation(unsigned char c) {
  constexpr unsigned kContinuationMask = 0xc0;
  constexpr unsigned kContinuation = 0x80;
  return (c & kContinuationMask) == kContinuation;
}

// Two units for what takes four bytes.
size_t units_of(unsigned char first) {
  constexpr unsigned char kFourBytes = 0xf0;
  if (is_continuation(first)) return 0;
  return first >= kFourBytes ? 2 : 1;
}

}  // namespace

size_t utf16_offset(std::string_view text, size_t at) {
  size_t units = 0;
  for (const char c : text.substr(0, at))
    units += units_of(static_cast<unsigned char>(c));
  return units;
}

size_t byte_offset(std::string_view text, size_t units) {
  size_t at = 0;
  for (size_t passed = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (passed >= units && !is_continuation(c)) return at;
    passed += units_of(c);
  }
  return at;
}

Json diagnostics_of(std::string_view text, std::string_view messages) {
  Json list = Json::array();
  const std::vector<std::string_view> lines = output::lines_in(messages);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto of_query = said_of_query(lines[i]);
    const auto of_script = of_query ? std::nullopt : said_of_script(lines[i]);
    Said said = of_query    ? *of_query
                : of_script ? *of_script
                            : Said{.message = plain_message(lines[i])};
    // Below it: the line of the text, and the marks.
    constexpr size_t kLinesBelow = 2;
    if (i + kLinesBelow < lines.size() && is_marks(lines[i + kLinesBelow])) {
      if (said.line > 0) add_marks(said, lines[i + kLinesBelow], of_script.has_value());
      i += kLinesBelow;
    }
    if (!said.message.empty()) list.push_back(diagnostic_json(text, said));
  }
  return list;
}

}  // namespace clew::serve
