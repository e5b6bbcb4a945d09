// SPDX-License-Identifier: Apache-2.0
// A message with its place, as `file:line:col: error: message`, the line, and a caret under it.
#pragma once

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

inline constexpr size_t kTextMaxBytes = 64 * 1024;

// What is wrong, and where.
struct Diagnostic {
  Span span;
  std::string message;  // One line, lower case, no final stop.
};

// Three lines without a final newline. Columns count bytes from 1; tabs are kept under tabs; a line
// over 200 bytes is cut around the place.
std::string render(const Text& text, const Diagnostic& diagnostic);

// An InvalidQuery error with the rendered diagnostic.
Error to_error(const Text& text, const Diagnostic& diagnostic);

}  // namespace clew::query
