// SPDX-License-Identifier: Apache-2.0
// A message with its place: `file:line:col: error: message`, the line of text, and a caret under
// it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "query/span.h"

namespace clew::query {

// The text of a query and what messages call it: its file, or "query".
struct Text {
  std::string name;
  std::string text;
};

inline constexpr size_t kTextMaxBytes = 64UL * 1024;

// Three lines without a final newline. Columns count bytes from 1; a long line is cut around the
// place; control characters are shown as '?'. `message` is one line, lower case, no final stop.
std::string render(const Text& text, Span span, std::string_view message);

// Makes errors about one text. The text must outlive it.
class Reporter {
 public:
  explicit Reporter(const Text& text) : text_(text) {}
  [[nodiscard]] tl::unexpected<Error> fail(Span span, std::string_view message) const;
  [[nodiscard]] const Text& text() const { return text_; }

 private:
  const Text& text_;
};

// "; did you mean 'x'?" for the nearest candidate, or nothing when none is near.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace clew::query
