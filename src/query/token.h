// SPDX-License-Identifier: Apache-2.0
// Tokens of the query language. Keywords are names with a meaning in some places only, so that
// `time`, `end` or `count` can name events and columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "query/diagnostic.h"

namespace clew::query {

enum class TokenKind : uint8_t {
  End,
  Name,
  Integer,    // `integer`, is_unsigned and is_long by suffix; also 'c'
  Float,      // `real`
  Duration,   // `integer` in ns
  Frequency,  // `integer` in ns per period
  String,     // `value`, escapes resolved
  Symbol,     // `text`
};

struct Token {
  TokenKind kind = TokenKind::End;
  Span span;
  std::string_view text;  // As written (a plain '-' for the typographic minus).
  uint64_t integer = 0;
  double real = 0;
  bool is_unsigned = false;
  bool is_long = false;
  bool is_decimal = true;
  std::string value;
};

// The tokens of text[span], the last one is End. They refer to the text, which must outlive them.
Expected<std::vector<Token>> lex(const Reporter& report, Span span);

// Equal, not counting case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);

}  // namespace clew::query
