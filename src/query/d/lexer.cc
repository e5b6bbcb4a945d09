// SPDX-License-Identifier: Apache-2.0
// Text -> tokens: blanks, names, constants, strings and operators. lex_macro.cc replaces macro
// variables, lex_control.cc obeys control lines.
#include "query/d/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace clew::query::d {
namespace {

// Longest first, so that the first that fits is the right one.
constexpr std::array<std::string_view, 48> kPunctuators = {
    "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
    "&&",  "||",  "^^",  "*=", "/=", "%=", "+=", "-=", "&=", "^=", "|=", "(",
    ")",   "[",   "]",   "{",  "}",  ",",  ";",  ":",  "?",  ".",  "&",  "|",
    "^",   "~",   "!",   "+",  "-",  "*",  "/",  "%",  "<",  ">",  "=",  "#"};

// Those of C that D has no statement for are reserved.
constexpr std::array<std::string_view, 48> kKeywords = {
    "auto",     "break",    "case",       "char",     "const",    "continue",     "counter",
    "default",  "do",       "double",     "else",     "enum",     "extern",       "float",
    "for",      "goto",     "if",         "import",   "inline",   "int",          "long",
    "offsetof", "probe",    "provider",   "register", "restrict", "return",       "self",
    "short",    "signed",   "sizeof",     "static",   "string",   "stringof",     "struct",
    "switch",   "this",     "translator", "typedef",  "union",    "unsigned",     "userland",
    "void",     "volatile", "while",      "xlate",    "_Bool",    "__extension__"};

constexpr std::string_view kDescriptionSymbols = "-$:_.?*\\[]!`^+";

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

std::string printable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isprint(byte) != 0 ? std::string(1, c) : fmt::format("\\{:03o}", byte);
}

}  // namespace

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_identifier_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_identifier_part(char c) {
  return is_identifier_start(c) || is_decimal_digit(c);
}

Lexer::Lexer(std::string_view text, const CompileOptions& options)
    : text_(text),
      options_(options),
      used_(options.arguments.size(), false),
      default_arguments_(options.default_arguments),
      allow_unused_arguments_(options.allow_unused_arguments) {}

// --- places --------------------------------------------------------------------------------------

Token Lexer::token(TokenKind kind, size_t begin) const {
  Token token;
  token.kind = kind;
  token.text = std::string(text_.substr(begin, at_ - begin));
  token.span = {static_cast<uint32_t>(begin), static_cast<uint32_t>(at_)};
  token.line = line_;
  return token;
}

tl::unexpected<CompileError> Lexer::fail_at(size_t begin, std::string tag,
                                            std::string message) const {
  const auto end = static_cast<uint32_t>(std::max(at_, begin + 1));
  return compile_error(std::move(tag), std::move(message), line_,
                       {static_cast<uint32_t>(begin), end});
}

void Lexer::advance_to(size_t end) {
  line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                            text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
  at_ = end;
}

std::vector<PragmaOption> Lexer::take_options() {
  return std::exchange(pragma_options_, {});
}

// --- blanks --------------------------------------------------------------------------------------

Compiled<void> Lexer::skip_blank() {
  while (!at_end()) {
    if (is_space(peek())) {
      advance_to(at_ + 1);
    } else if (rest().starts_with("/*")) {
      CLEW_TRY(skip_comment());
    } else if (rest().starts_with("*/")) {
      return fail_at(at_, "D_SYNTAX", "*/ encountered outside a comment");
    } else if (is_control_line(at_)) {
      CLEW_TRY(control_line());
    } else {
      return {};
    }
  }
  return {};
}

Compiled<void> Lexer::skip_comment() {
  const size_t begin = at_;
  const size_t end = text_.find("*/", begin + 2);
  const size_t inner = text_.find("/*", begin + 2);
  // The slash of "*/*" ends the comment and begins none.
  if (inner != std::string_view::npos && (end == std::string_view::npos || inner < end)) {
    advance_to(inner);
    return fail_at(inner, "D_SYNTAX", "/* encountered inside a comment");
  }
  if (end == std::string_view::npos) {
    advance_to(text_.size());
    return fail_at(begin, "D_SYNTAX", "end-of-file encountered before matching */");
  }
  advance_to(end + 2);
  return {};
}

size_t Lexer::blank_end(size_t at) const {
  if (is_space(text_[at])) return at + 1;
  if (is_control_line(at)) return std::min(text_.find('\n', at), text_.size());
  if (!text_.substr(at).starts_with("/*")) return at;
  const size_t end = text_.find("*/", at + 2);
  return end == std::string_view::npos ? text_.size() : end + 2;
}

char Lexer::peek_after(size_t ahead) const {
  size_t at = at_ + ahead;
  while (at < text_.size()) {
    const size_t end = blank_end(at);
    if (end == at) return text_[at];
    at = end;
  }
  return '\0';
}

// Past the string or character constant that begins at `at`.
size_t Lexer::quoted_end(size_t at) const {
  const char quote = text_[at];
  for (++at; at < text_.size() && text_[at] != quote && text_[at] != '\n'; ++at)
    if (text_[at] == '\\') ++at;
  return std::min(at + 1, text_.size());
}

bool Lexer::slash_ends_predicate() const {
  const char next = peek_after(0);
  if (next == '\0' || next == '{' || next == ';' || next == '/') return true;
  size_t depth = 0;
  for (size_t at = at_; at < text_.size();) {
    const char c = text_[at];
    const size_t end = blank_end(at);
    if (end != at) {
      at = end;
      continue;
    }
    if (c == '{' || c == ';') return true;
    if (c == '/' && depth == 0) return false;
    if ((c == ')' || c == ']') && depth == 0) return false;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    at = c == '"' || c == '\'' ? quoted_end(at) : at + 1;
  }
  return true;
}

// --- words ---------------------------------------------------------------------------------------

std::string_view Lexer::peek_identifier() const {
  if (!is_identifier_start(peek())) return {};
  const std::string_view here = rest();
  const auto end = std::find_if_not(here.begin(), here.end(), is_identifier_part);
  return here.substr(0, static_cast<size_t>(end - here.begin()));
}

std::string_view Lexer::peek_description() const {
  const auto belongs = [](char c) {
    return is_identifier_part(c) || kDescriptionSymbols.find(c) != std::string_view::npos;
  };
  const std::string_view here = rest();
  const auto end = std::find_if_not(here.begin(), here.end(), belongs);
  return here.substr(0, static_cast<size_t>(end - here.begin()));
}

// --- tokens --------------------------------------------------------------------------------------

Compiled<Token> Lexer::next() {
  CLEW_TRY(skip_blank());
  const char c = peek();
  if (at_end()) return token(TokenKind::End, at_);
  if (is_identifier_start(c) || c == '`') return identifier();
  if (is_decimal_digit(c) || (c == '.' && is_decimal_digit(peek(1)))) return number();
  if (c == '"') return string();
  if (c == '\'') return character();
  if (c == '$') return macro();
  if (c != '@') return punctuator();
  const size_t begin = at_++;
  const std::string_view name = peek_identifier();
  at_ += name.size();
  Token aggregation = token(TokenKind::Aggregation, begin);
  aggregation.name = std::string(name);
  return aggregation;
}

// How many characters a module's name has here, with its backquote: "vmlinux`", "a.out`",
// "pid$target`libc.so.6`". 0 when none stands here.
size_t Lexer::module_length() const {
  const auto belongs = [](char c) {
    return is_identifier_part(c) || c == '.' || c == '$' || c == '`';
  };
  constexpr size_t kBytesMax = 512;  // So that words with dots are not read again and again.
  const std::string_view here = rest().substr(0, kBytesMax);
  const auto end = std::find_if_not(here.begin(), here.end(), belongs);
  const size_t quote = here.substr(0, static_cast<size_t>(end - here.begin())).rfind('`');
  const bool has_name = quote != std::string_view::npos && is_identifier_start(peek(quote + 1));
  return has_name ? quote + 1 : 0;
}

// `name`, `module`name` or "`name"; a module's name may have dots, backquotes and macro variables
// itself.
Compiled<Token> Lexer::identifier() {
  const size_t begin = at_;
  const size_t module = module_length();
  at_ += module;
  at_ += peek_identifier().size();
  Token word = token(TokenKind::Identifier, begin);
  if (word.text.empty()) return punctuator();
  if (module != 0) {
    word.module = module == 1 ? " " : CLEW_TRY(expand(word.text.substr(0, module - 1), word.span));
    word.name = word.text.substr(module);
    return word;
  }
  word.name = word.text;
  if (std::find(kKeywords.begin(), kKeywords.end(), word.text) != kKeywords.end())
    word.kind = TokenKind::Keyword;
  return word;
}

Compiled<Token> Lexer::punctuator() {
  for (const std::string_view symbol : kPunctuators) {
    if (!rest().starts_with(symbol)) continue;
    at_ += symbol.size();
    return token(TokenKind::Punctuator, at_ - symbol.size());
  }
  return fail_at(at_, "D_SYNTAX", fmt::format("syntax error near \"{}\"", printable(peek())));
}

// --- strings and characters ----------------------------------------------------------------------

Compiled<size_t> Lexer::closing_quote(char quote, std::string_view newline_tag,
                                      std::string_view kind) const {
  for (size_t at = at_ + 1; at < text_.size(); ++at) {
    if (text_[at] == quote) return at;
    if (text_[at] == '\\') ++at;
    if (at < text_.size() && text_[at] == '\n')
      return fail_at(at_, std::string(newline_tag), fmt::format("newline encountered in {}", kind));
  }
  return fail_at(at_, "D_SYNTAX", fmt::format("end-of-file encountered before matching {}", quote));
}

Compiled<Token> Lexer::string() {
  const size_t begin = at_;
  at_ = CLEW_TRY(closing_quote('"', "D_STR_NL", "string literal")) + 1;
  Token literal = token(TokenKind::String, begin);
  literal.value = unescape(text_.substr(begin + 1, at_ - begin - 2));
  return literal;
}

// Several bytes make one number, the first the highest. One alone is a char: '\377' is -1.
Compiled<Token> Lexer::character() {
  const size_t begin = at_;
  at_ = CLEW_TRY(closing_quote('\'', "D_CHR_NL", "character constant")) + 1;
  Token literal = token(TokenKind::Integer, begin);
  const std::string bytes = unescape(text_.substr(begin + 1, at_ - begin - 2));
  if (bytes.empty()) return fail_at(begin, "D_CHR_NULL", "empty character constant");
  if (bytes.size() > sizeof(uint64_t))
    return fail_at(begin, "D_CHR_OFLOW", "character constant is too long");
  for (const char byte : bytes)
    literal.integer = literal.integer << 8 | static_cast<unsigned char>(byte);
  if (bytes.size() == 1)
    literal.integer = static_cast<uint64_t>(int64_t{static_cast<signed char>(bytes[0])});
  if (bytes.size() == 4)
    literal.integer = static_cast<uint64_t>(int64_t{static_cast<int32_t>(literal.integer)});
  literal.type_name = bytes.size() > sizeof(uint32_t) ? "long" : "int";
  return literal;
}

}  // namespace clew::query::d
