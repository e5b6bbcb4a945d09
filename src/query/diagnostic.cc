// SPDX-License-Identifier: Apache-2.0
#include "query/diagnostic.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest.h"

namespace clew::query {
namespace {

constexpr size_t kLineShownMaxBytes = 200;

struct Place {
  size_t line = 1;    // From 1.
  size_t column = 1;  // In bytes, from 1.
  size_t line_begin = 0;
  size_t line_end = 0;
};

Place place_of(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  Place place;
  for (size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.line_begin = i + 1;
    }
  }
  place.column = offset - place.line_begin + 1;
  place.line_end = std::min(text.find('\n', place.line_begin), text.size());
  return place;
}

bool is_continuation_byte(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

char shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7F) ? c : '?';
}

// The line cut to a window that holds the place, so that a query on one long line stays readable.
struct Window {
  size_t begin;
  size_t end;
};

Window window_around(const Place& place) {
  const size_t offset = place.line_begin + place.column - 1;
  const size_t half = kLineShownMaxBytes / 2;
  Window window{place.line_begin, place.line_end};
  if (place.line_end - place.line_begin > kLineShownMaxBytes) {
    window.begin = offset - place.line_begin > half ? offset - half : place.line_begin;
    window.end = std::min(place.line_end, window.begin + kLineShownMaxBytes);
  }
  return window;
}

std::string caret_line(std::string_view text, Window window, Span span) {
  std::string line;
  for (size_t i = window.begin; i < span.begin && i < window.end; ++i) {
    if (!is_continuation_byte(text[i])) line += text[i] == '\t' ? '\t' : ' ';
  }
  line += '^';
  for (size_t i = span.begin + 1; i < span.end && i < window.end; ++i) {
    if (!is_continuation_byte(text[i])) line += '~';
  }
  return line;
}

}  // namespace

std::string render(const Text& text, Span span, std::string_view message) {
  const Place place = place_of(text.text, span.begin);
  const Window window = window_around(place);
  std::string line = text.text.substr(window.begin, window.end - window.begin);
  std::transform(line.begin(), line.end(), line.begin(), shown);
  return fmt::format("{}:{}:{}: error: {}\n{}\n{}", text.name, place.line, place.column, message,
                     line, caret_line(text.text, window, span));
}

tl::unexpected<Error> Reporter::fail(Span span, std::string_view message) const {
  return clew::fail(ErrorCode::InvalidQuery, render(text_, span, message));
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr size_t kShortest = 3;  // Every name of two letters is near to every other.
  if (name.size() < kShortest) return "";
  const std::string nearest = nearest_name(name, candidates);
  return nearest == name ? std::string() : clew::did_you_mean(nearest);
}

}  // namespace clew::query
