// SPDX-License-Identifier: Apache-2.0
// Text -> tokens of D, on demand: what a character means depends on where it stands, so the parser
// asks for tokens inside declarations and clauses and for words in probe descriptions. Macro
// variables are replaced here; control lines (#pragma, #line) are obeyed here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "query/d/source.h"
#include "query/d/syntax.h"

namespace clew::query::d {

enum class TokenKind : uint8_t {
  End,
  Identifier,  // name, module
  Keyword,
  Punctuator,
  Integer,      // integer, type_name; also character constants
  String,       // value
  Aggregation,  // name, without the @
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;    // As it was written.
  std::string name;    // Identifier, Aggregation
  std::string module;  // Identifier: before the backquote; " " when nothing stands before it.
  std::string value;   // String: unescaped.
  uint64_t integer = 0;
  std::string_view type_name;  // Integer: of the base type or predefined typedef.
  Span span;
  uint32_t line = 0;

  [[nodiscard]] bool is(std::string_view symbol) const {
    return (kind == TokenKind::Punctuator || kind == TokenKind::Keyword) && text == symbol;
  }
};

// An integer constant of a D program, "0x1f", "12ul".
struct IntegerLiteral {
  uint64_t value = 0;
  std::string_view type_name;
};

class Lexer {
 public:
  Lexer(std::string_view text, const CompileOptions& options);

  // The next token of a declaration, a predicate or a body.
  Compiled<Token> next();

  // --- between clauses and in probe descriptions ---
  // White space, comments and control lines.
  Compiled<void> skip_blank();
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // The identifier that stands here, not consumed; may be empty.
  [[nodiscard]] std::string_view peek_identifier() const;
  // The first character of what comes after `ahead` more bytes, blanks and comments skipped; 0 at
  // the end.
  [[nodiscard]] char peek_after(size_t ahead) const;
  // Whether a slash that was just read ends a predicate: no operand follows, or no other slash does
  // before the clause's body or the next clause's.
  [[nodiscard]] bool slash_ends_predicate() const;
  // The characters of a probe description that stand here; may be empty.
  [[nodiscard]] std::string_view peek_description() const;
  void skip(size_t bytes) { at_ += bytes; }  // Within a line.
  // $target, $1 and their like in a probe description, replaced.
  Compiled<std::string> expand(std::string_view description, Span span);

  [[nodiscard]] uint32_t line() const { return line_; }
  [[nodiscard]] uint32_t offset() const { return static_cast<uint32_t>(at_); }
  // #pragma D option, in order; the lexer forgets them. It obeys argref and defaultargs itself.
  std::vector<PragmaOption> take_options();
  [[nodiscard]] bool wants_tags() const { return wants_tags_; }
  std::vector<Dependency> take_dependencies() { return std::move(dependencies_); }
  std::vector<AttributesPragma> take_attributes() { return std::move(attributes_); }
  std::vector<ProviderPragma> take_provider_pragmas() { return std::move(provider_pragmas_); }
  // Error: an argument was given that the text does not mention.
  [[nodiscard]] Compiled<void> check_arguments() const;

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] Token token(TokenKind kind, size_t begin) const;
  [[nodiscard]] tl::unexpected<CompileError> fail_at(size_t begin, std::string tag,
                                                     std::string message) const;
  void advance_to(size_t end);
  // Where the comment, control line or white space that begins at `at` ends; `at` when none does.
  [[nodiscard]] size_t blank_end(size_t at) const;
  [[nodiscard]] size_t quoted_end(size_t at) const;
  Compiled<void> skip_comment();

  Compiled<Token> identifier();
  [[nodiscard]] size_t module_length() const;
  Compiled<Token> number();
  Compiled<Token> string();
  Compiled<Token> character();
  Compiled<Token> punctuator();
  [[nodiscard]] Compiled<size_t> closing_quote(char quote, std::string_view newline_tag,
                                               std::string_view kind) const;

  // Macro variables (lex_macro.cc).
  Compiled<Token> macro();
  Compiled<Token> macro_argument(Token token, std::string_view digits, bool as_string);
  Compiled<Token> argument_token(Token token, std::string_view argument);
  Compiled<std::string> expand_one(std::string_view& text, Span span);
  [[nodiscard]] bool mark_used(uint64_t argument);

  // Control lines (lex_control.cc).
  [[nodiscard]] bool is_control_line(size_t at) const;
  Compiled<void> control_line();
  Compiled<void> pragma(const std::vector<std::string>& words, size_t begin);
  Compiled<void> pragma_d(const std::vector<std::string>& words, size_t begin);
  Compiled<void> pragma_option(const std::vector<std::string>& words, size_t begin);
  Compiled<void> pragma_attributes(const std::vector<std::string>& words, size_t begin);
  void set_line(std::string_view number);

  const std::string_view text_;
  const CompileOptions& options_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::vector<bool> used_;  // By argument.
  bool default_arguments_;
  bool allow_unused_arguments_;
  bool wants_tags_ = false;
  std::vector<PragmaOption> pragma_options_;
  std::vector<Dependency> dependencies_;
  std::vector<AttributesPragma> attributes_;
  std::vector<ProviderPragma> provider_pragmas_;
};

// Of the digits and the suffix as they stand; everything must be used up.
Compiled<IntegerLiteral> parse_integer(std::string_view text, uint32_t line, Span span);
// How many bytes of `text` a constant takes: digits, then a suffix.
size_t integer_length(std::string_view text);
// The text between quotes with its escapes replaced.
std::string unescape(std::string_view text);

bool is_identifier_start(char c);
bool is_identifier_part(char c);
bool is_decimal_digit(char c);

}  // namespace clew::query::d
