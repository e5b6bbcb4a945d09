// SPDX-License-Identifier: Apache-2.0
// Integer constants with C's rules for their types, and the escapes of strings.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "query/d/lexer.h"

namespace clew::query::d {
namespace {

struct Candidate {
  std::string_view name;
  uint64_t max;
  bool is_unsigned;
  uint32_t longs;
};
// In C's order (6.4.4.1). A decimal constant without u takes the signed ones first; that the
// largest unsigned one takes what is left is D's.
constexpr std::array<Candidate, 6> kCandidates = {
    {{"int", 0x7fff'ffff, false, 0},
     {"unsigned int", 0xffff'ffff, true, 0},
     {"long", 0x7fff'ffff'ffff'ffff, false, 1},
     {"unsigned long", 0xffff'ffff'ffff'ffff, true, 1},
     {"long long", 0x7fff'ffff'ffff'ffff, false, 2},
     {"unsigned long long", 0xffff'ffff'ffff'ffff, true, 2}}};

struct Suffix {
  bool is_unsigned = false;
  uint32_t longs = 0;
};

int digit_value(char c) {
  if (is_decimal_digit(c)) return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

bool is_hexadecimal(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') &&
         digit_value(text[2]) < 16;
}

size_t digits_length(std::string_view text) {
  if (!is_hexadecimal(text)) return std::min(text.find_first_not_of("0123456789"), text.size());
  return std::min(text.find_first_not_of("0123456789abcdefABCDEF", 2), text.size());
}

// At most one u and two l, in any order but ul and lu.
std::optional<Suffix> parse_suffix(std::string_view text) {
  Suffix suffix;
  for (const char c : text) {
    const bool is_u = c == 'u' || c == 'U';
    if (is_u && suffix.is_unsigned) return std::nullopt;
    suffix.is_unsigned = suffix.is_unsigned || is_u;
    suffix.longs += is_u ? 0 : 1;
  }
  return suffix.longs <= 2 ? std::optional(suffix) : std::nullopt;
}

std::string_view type_of(uint64_t value, Suffix suffix, bool is_decimal) {
  for (const Candidate& candidate : kCandidates) {
    const bool is_allowed = candidate.longs >= suffix.longs && value <= candidate.max &&
                            (!suffix.is_unsigned || candidate.is_unsigned) &&
                            (!candidate.is_unsigned || suffix.is_unsigned || !is_decimal);
    if (is_allowed) return candidate.name;
  }
  return suffix.longs == 2 ? "unsigned long long" : "unsigned long";
}

struct Escape {
  char letter;
  char byte;
};
constexpr std::array<Escape, 7> kEscapes = {
    {{'a', '\a'}, {'b', '\b'}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'v', '\v'}}};

// Takes the digits after a backslash: up to three octal ones, or x and any number of others.
char take_numeric_escape(std::string_view text, size_t& at) {
  uint32_t value = 0;
  if (text[at] == 'x') {
    for (++at; at < text.size() && digit_value(text[at]) < 16; ++at)
      value = value << 4 | static_cast<uint32_t>(digit_value(text[at]));
    return static_cast<char>(value);
  }
  const size_t end = std::min(at + 3, text.size());
  for (; at < end && digit_value(text[at]) < 8; ++at)
    value = value << 3 | static_cast<uint32_t>(digit_value(text[at]));
  return static_cast<char>(value);
}

bool starts_numeric_escape(std::string_view text, size_t at) {
  if (text[at] == 'x') return at + 1 < text.size() && digit_value(text[at + 1]) < 16;
  return digit_value(text[at]) < 8;
}

}  // namespace

size_t integer_length(std::string_view text) {
  const size_t digits = digits_length(text);
  return std::min(text.find_first_not_of("uUlL", digits), text.size());
}

Compiled<IntegerLiteral> parse_integer(std::string_view text, uint32_t line, Span span) {
  const std::string_view digits = text.substr(0, digits_length(text));
  const std::optional<Suffix> suffix = parse_suffix(text.substr(digits.size()));
  if (digits.empty() || !suffix)
    return compile_error("D_SYNTAX", fmt::format("syntax error near \"{}\"", text), line, span);
  const bool is_hex = is_hexadecimal(digits);
  const bool is_octal = !is_hex && digits[0] == '0' && digits.size() > 1;
  const unsigned base = is_hex ? 16 : is_octal ? 8 : 10;
  uint64_t value = 0;
  for (const char c : digits.substr(is_hex ? 2 : 0)) {
    const auto digit = static_cast<unsigned>(digit_value(c));
    if (digit >= base) {
      return compile_error(
          "D_INT_DIGIT", fmt::format("constant {} contains invalid digit {}", text, c), line, span);
    }
    if (__builtin_mul_overflow(value, uint64_t{base}, &value) ||
        __builtin_add_overflow(value, uint64_t{digit}, &value)) {
      return compile_error(
          "D_INT_OFLOW", fmt::format("constant {} results in integer overflow", text), line, span);
    }
  }
  return IntegerLiteral{value, type_of(value, *suffix, base == 10)};
}

std::string unescape(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      result += text[at++];
      continue;
    }
    ++at;
    if (starts_numeric_escape(text, at)) {
      result += take_numeric_escape(text, at);
      continue;
    }
    const auto known = std::find_if(kEscapes.begin(), kEscapes.end(),
                                    [&](Escape escape) { return escape.letter == text[at]; });
    result += known == kEscapes.end() ? text[at] : known->byte;
    ++at;
  }
  return result;
}

Compiled<Token> Lexer::number() {
  const size_t begin = at_;
  const std::string_view here = rest();
  const size_t digits = digits_length(here);
  const std::string_view after = here.substr(digits);
  const bool has_exponent = after.size() > 1 && (after[0] == 'e' || after[0] == 'E') &&
                            (is_decimal_digit(after[1]) || after[1] == '-' || after[1] == '+');
  if (!is_hexadecimal(here) && (after.starts_with(".") || has_exponent))
    return fail_at(begin, "D_SYNTAX", "floating-point constants are not permitted");
  at_ += integer_length(here);
  Token literal = token(TokenKind::Integer, begin);
  const IntegerLiteral value = CLEW_TRY(parse_integer(literal.text, line_, literal.span));
  literal.integer = value.value;
  literal.type_name = value.type_name;
  return literal;
}

}  // namespace clew::query::d
