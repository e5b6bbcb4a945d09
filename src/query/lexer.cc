// SPDX-License-Identifier: Apache-2.0
// Text -> tokens. It knows numbers with units, strings, and the typographic quotes and minus that
// text copied from a paper has.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "query/token.h"

namespace clew::query {
namespace {

// Longest first, so that the first that fits is the right one.
constexpr std::array<std::string_view, 35> kSymbols = {
    "<<", ">>", "->", "=>", "<=", ">=", "==", "!=", "&&", "||", "::", "(",
    ")",  "[",  "]",  "{",  "}",  ",",  ".",  ";",  ":",  "?",  "=",  "<",
    ">",  "+",  "-",  "*",  "/",  "%",  "&",  "|",  "^",  "~",  "!"};

constexpr std::string_view kTypographicMinus = "\xE2\x88\x92";
constexpr std::string_view kQuoteOpen = "\xE2\x80\x9C";
constexpr std::string_view kQuoteClose = "\xE2\x80\x9D";

struct UnitScale {
  std::string_view name;
  uint64_t ns;
};
constexpr std::array<UnitScale, 6> kDurationUnits = {{{"ns", 1},
                                                      {"us", 1'000},
                                                      {"ms", 1'000'000},
                                                      {"s", 1'000'000'000},
                                                      {"m", 60'000'000'000},
                                                      {"h", 3'600'000'000'000}}};

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

class Lexer {
 public:
  Lexer(const Reporter& report, Span span)
      : report_(report),
        text_(std::string_view(report.text().text).substr(0, span.end)),
        at_(span.begin) {}

  Expected<std::vector<Token>> run() {
    std::vector<Token> tokens;
    for (;;) {
      CLEW_TRY(skip_blank());
      tokens.push_back(CLEW_TRY(next()));
      if (tokens.back().kind == TokenKind::End) return tokens;
    }
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool at_text(std::string_view what) const {
    return rest().substr(0, what.size()) == what;
  }
  [[nodiscard]] Span span_from(size_t begin) const {
    return {static_cast<uint32_t>(begin), static_cast<uint32_t>(at_)};
  }
  [[nodiscard]] Token token(TokenKind kind, size_t begin) const {
    Token token;
    token.kind = kind;
    token.span = span_from(begin);
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }
  [[nodiscard]] tl::unexpected<Error> fail_from(size_t begin, std::string_view message) const {
    return report_.fail(span_from(begin), message);
  }

  Expected<void> skip_blank() {
    for (;;) {
      const size_t before = at_;
      while (at_ < text_.size() && is_space(text_[at_]))
        ++at_;
      if (at_text("//") || at_text("#")) at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_text("/*")) CLEW_TRY(skip_block_comment());
      if (at_ == before) return {};
    }
  }

  Expected<void> skip_block_comment() {
    const size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) {
      at_ += 2;
      return fail_from(at_ - 2, "this comment has no end");
    }
    at_ = end + 2;
    return {};
  }

  Expected<Token> next() {
    const size_t begin = at_;
    if (at_ == text_.size()) return token(TokenKind::End, begin);
    if (is_name_start(peek())) return name();
    if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) return number();
    if (at_text("``")) return quoted("``", "''");
    if (at_text(kQuoteOpen)) return quoted(kQuoteOpen, kQuoteClose);
    if (peek() == '"') return quoted("\"", "\"");
    if (peek() == '\'') return character();
    return symbol();
  }

  Token name() {
    const size_t begin = at_;
    while (is_name_part(peek()))
      ++at_;
    return token(TokenKind::Name, begin);
  }

  Expected<Token> symbol() {
    const size_t begin = at_;
    if (at_text(kTypographicMinus)) {
      at_ += kTypographicMinus.size();
      Token minus = token(TokenKind::Symbol, begin);
      minus.text = "-";
      return minus;
    }
    for (const std::string_view candidate : kSymbols) {
      if (!at_text(candidate)) continue;
      at_ += candidate.size();
      return token(TokenKind::Symbol, begin);
    }
    const auto byte = static_cast<unsigned char>(peek());
    ++at_;
    return fail_from(begin, fmt::format("the byte 0x{:02x} has no meaning here", byte));
  }

  // --- numbers ---------------------------------------------------------------------------------

  Expected<Token> number() {
    const bool is_based = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X' || peek(1) == 'b');
    if (is_based) return based_integer();
    const size_t begin = at_;
    while (is_digit(peek()))
      ++at_;
    bool is_real = false;
    if (peek() == '.' && is_digit(peek(1))) {
      is_real = true;
      ++at_;
      while (is_digit(peek()))
        ++at_;
    }
    is_real = skip_exponent() || is_real;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (is_name_start(peek())) return suffixed(begin, digits, is_real);
    return is_real ? real(begin, digits) : decimal(begin, digits);
  }

  bool skip_exponent() {
    if (peek() != 'e' && peek() != 'E') return false;
    const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if (!is_digit(peek(1 + sign))) return false;
    at_ += 1 + sign;
    while (is_digit(peek()))
      ++at_;
    return true;
  }

  Expected<Token> real(size_t begin, std::string_view digits) {
    Token result = token(TokenKind::Float, begin);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), result.real);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      return fail_from(begin, "this number is out of the range of double");
    }
    return result;
  }

  Expected<Token> integer(size_t begin, std::string_view digits, int base) {
    Token result = token(TokenKind::Integer, begin);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), result.integer, base);
    if (code == std::errc::result_out_of_range) {
      return fail_from(begin, "this number does not fit in 64 bits");
    }
    if (code != std::errc() || end != digits.data() + digits.size()) {
      return fail_from(begin, fmt::format("'{}' is not a number", result.text));
    }
    result.is_decimal = base == 10;
    return result;
  }

  Expected<Token> decimal(size_t begin, std::string_view digits) {
    const bool is_octal = digits.size() > 1 && digits[0] == '0';
    return is_octal ? integer(begin, digits.substr(1), 8) : integer(begin, digits, 10);
  }

  Expected<Token> based_integer() {
    const size_t begin = at_;
    const int base = peek(1) == 'b' ? 2 : 16;
    at_ += 2;
    while (std::isxdigit(static_cast<unsigned char>(peek())) != 0)
      ++at_;
    const std::string_view digits = text_.substr(begin + 2, at_ - begin - 2);
    return with_integer_suffix(CLEW_TRY(integer(begin, digits, base)));
  }

  Expected<Token> with_integer_suffix(Token number) {
    const size_t begin = at_;
    while (is_name_part(peek()))
      ++at_;
    const std::string_view suffix = text_.substr(begin, at_ - begin);
    const size_t number_begin = number.span.begin;
    for (const char c : suffix) {
      const bool is_u = c == 'u' || c == 'U';
      const bool is_l = c == 'l' || c == 'L';
      if ((!is_u && !is_l) || suffix.size() > 3) return fail_unit(number_begin, suffix);
      number.is_unsigned = number.is_unsigned || is_u;
      number.is_long = number.is_long || is_l;
    }
    number.span = span_from(number_begin);
    number.text = text_.substr(number_begin, at_ - number_begin);
    return number;
  }

  [[nodiscard]] tl::unexpected<Error> fail_unit(size_t begin, std::string_view suffix) const {
    return fail_from(begin, fmt::format("'{}' is not a unit; durations take ns, us, ms, s, m, h, "
                                        "frequencies hz, integers u, l, ul",
                                        suffix));
  }

  // A number with letters behind it: a duration, a frequency, or C's u and l.
  Expected<Token> suffixed(size_t begin, std::string_view digits, bool is_real) {
    const size_t suffix_begin = at_;
    while (is_name_part(peek()))
      ++at_;
    const std::string_view suffix = text_.substr(suffix_begin, at_ - suffix_begin);
    const Token number =
        is_real ? CLEW_TRY(real(begin, digits)) : CLEW_TRY(integer(begin, digits, 10));
    const double amount = is_real ? number.real : static_cast<double>(number.integer);
    if (same_word(suffix, "hz")) return frequency(begin, amount);
    for (const UnitScale& unit : kDurationUnits) {
      if (suffix == unit.name) return duration(begin, number, unit.ns);
    }
    if (is_real) return fail_unit(begin, suffix);
    at_ = suffix_begin;
    return with_integer_suffix(CLEW_TRY(decimal(begin, digits)));
  }

  Expected<Token> duration(size_t begin, const Token& number, uint64_t scale_ns) {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    Token result = token(TokenKind::Duration, begin);
    const bool is_real = number.kind == TokenKind::Float;
    const bool is_too_long = is_real ? number.real * static_cast<double>(scale_ns) >= 9.2e18
                                     : number.integer > kMax / scale_ns;
    if (is_too_long) return fail_from(begin, "this duration is over 292 years");
    result.integer = is_real ? static_cast<uint64_t>(number.real * static_cast<double>(scale_ns))
                             : number.integer * scale_ns;
    return result;
  }

  Expected<Token> frequency(size_t begin, double hertz) {
    if (hertz < 0.001 || hertz > 1e6) {
      return fail_from(begin, "a frequency is from 0.001hz to 1000000hz");
    }
    Token result = token(TokenKind::Frequency, begin);
    result.integer = static_cast<uint64_t>(1e9 / hertz);
    return result;
  }

  // --- strings ---------------------------------------------------------------------------------

  Expected<Token> quoted(std::string_view open, std::string_view close) {
    const size_t begin = at_;
    at_ += open.size();
    std::string value;
    while (!at_text(close)) {
      if (at_ == text_.size() || peek() == '\n') {
        return fail_from(begin, "this string has no end on its line");
      }
      value += CLEW_TRY(string_character());
    }
    at_ += close.size();
    Token result = token(TokenKind::String, begin);
    result.value = std::move(value);
    return result;
  }

  Expected<char> string_character() {
    const char c = text_[at_++];
    if (c == '\0') return fail_from(at_ - 1, "a string cannot hold a zero byte");
    return c == '\\' ? escape() : Expected<char>(c);
  }

  Expected<char> escape() {
    const size_t begin = at_ - 1;
    const char c = peek();
    if (at_ < text_.size()) ++at_;
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case '\\':
        return '\\';
      case '"':
        return '"';
      case '\'':
        return '\'';
      case 'x':
        return hex_escape(begin);
      case '%':
      case '_':
        // A pattern of `like` sees the backslash, so that "\%" is a plain percent sign there.
        --at_;
        return '\\';
    }
    return fail_from(begin, R"(unknown escape; strings know \n \t \r \\ \" \' \xNN \% \_)");
  }

  Expected<char> hex_escape(size_t begin) {
    uint8_t value = 0;
    const std::string_view digits = rest().substr(0, 2);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (code != std::errc() || end != digits.data() + 2 || value == 0) {
      return fail_from(begin, R"(\x needs two hexadecimal digits that are not 00)");
    }
    at_ += 2;
    return static_cast<char>(value);
  }

  Expected<Token> character() {
    const size_t begin = at_;
    ++at_;
    if (at_ == text_.size()) return fail_from(begin, "this character has no end");
    const char value = CLEW_TRY(string_character());
    if (peek() != '\'') {
      return fail_from(begin, "a character is one byte between single quotes; strings take \"");
    }
    ++at_;
    Token result = token(TokenKind::Integer, begin);
    result.integer = static_cast<unsigned char>(value);
    return result;
  }

  const Reporter& report_;
  std::string_view text_;
  size_t at_;
};

}  // namespace

Expected<std::vector<Token>> lex(const Reporter& report, Span span) {
  return Lexer(report, span).run();
}

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const int left = std::tolower(static_cast<unsigned char>(a[i]));
    const int right = std::tolower(static_cast<unsigned char>(b[i]));
    if (left != right) return false;
  }
  return true;
}

}  // namespace clew::query
