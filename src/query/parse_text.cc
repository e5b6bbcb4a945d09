// SPDX-License-Identifier: Apache-2.0
// The outermost grammar, and what all of the parser uses: a text is definitions and one query.
//
//     text        := { definition ";" } query [";"]
//     definition  := "var" NAME "=" (query | constant) | NAME ":" query
//     query       := clauses | chain
//
// Pivot Tracing prints queries as `Q8: From …`; the last query of a text is the answer.
#include <array>

#include <fmt/format.h>

#include "query/parser.h"

namespace clew::query {
namespace {

constexpr std::array<std::string_view, 22> kClauseWords = {
    "from", "where",      "let",       "group",     "groupby", "select", "order", "orderby",
    "take", "every",      "for",       "join",      "left",    "into",   "by",    "on",
    "as",   "descending", "ascending", "including", "with",    "window"};

constexpr std::array<std::string_view, 16> kClauseStarts = {
    "from", "where", "let", "group", "groupby",   "select",         "order by",   "orderby",
    "take", "every", "for", "join",  "left join", "including open", "with cause", "window"};

std::string shown_token(const Token& token) {
  if (token.kind == TokenKind::End) return "the end of the text";
  return fmt::format("'{}'", token.text.substr(0, 40));
}

}  // namespace

std::span<const std::string_view> clause_words() {
  return kClauseWords;
}

bool is_clause_word(std::string_view word) {
  for (const std::string_view candidate : kClauseWords) {
    if (same_word(word, candidate)) return true;
  }
  return false;
}

// --- tokens --------------------------------------------------------------------------------------

const Token& Parser::peek(size_t ahead) const {
  return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : tokens_.back();
}

bool Parser::at_symbol(std::string_view symbol, size_t ahead) const {
  return peek(ahead).kind == TokenKind::Symbol && peek(ahead).text == symbol;
}

bool Parser::at_word(std::string_view word, size_t ahead) const {
  return peek(ahead).kind == TokenKind::Name && same_word(peek(ahead).text, word);
}

bool Parser::take_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  take();
  return true;
}

bool Parser::take_word(std::string_view word) {
  if (!at_word(word)) return false;
  take();
  return true;
}

uint32_t Parser::end_of_previous() const {
  return at_ == 0 ? peek().span.begin : tokens_[at_ - 1].span.end;
}

// At the end of the text the place is behind the last word, not on an empty line after it.
tl::unexpected<Error> Parser::fail_here(std::string_view message) const {
  const uint32_t end = end_of_previous();
  return report_.fail(at_end() && at_ > 0 ? Span{end, end} : peek().span, message);
}

tl::unexpected<Error> Parser::fail_expected(std::string_view what) const {
  return fail_here(fmt::format("expected {}, found {}", what, shown_token(peek())));
}

Expected<void> Parser::expect_symbol(std::string_view symbol, std::string_view context) {
  if (take_symbol(symbol)) return {};
  return fail_expected(fmt::format("'{}' {}", symbol, context));
}

Expected<void> Parser::expect_word(std::string_view word, std::string_view context) {
  if (take_word(word)) return {};
  return fail_expected(fmt::format("'{}' {}", word, context));
}

Expected<Token> Parser::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::Name) return fail_expected(what);
  return take();
}

Expected<Token> Parser::expect_new_name(std::string_view what) {
  if (peek().kind == TokenKind::Name && is_clause_word(peek().text)) {
    return fail_here(fmt::format("'{}' is a keyword; choose another name", peek().text));
  }
  return expect_name(what);
}

Expected<void> Parser::check_nesting() const {
  if (nesting_ <= kNestingMax) return {};
  return fail_here(fmt::format("this is nested deeper than {} levels", kNestingMax));
}

// --- texts ---------------------------------------------------------------------------------------

Expected<SyntaxText> Parser::text() {
  SyntaxText text;
  for (;;) {
    if (at_end()) return fail_expected("a query ('from e in …' or 'entry(\"m!f\").…')");
    if (!at_definition()) {
      text.query = CLEW_TRY(query());
      take_symbol(";");
      if (!at_end()) return fail_trailing();
      return text;
    }
    SyntaxDefinition last = CLEW_TRY(definition());
    if (at_end() && !last.query.empty()) {
      text.query = std::move(last.query.front());
      return text;
    }
    text.definitions.push_back(std::move(last));
  }
}

bool Parser::at_definition() const {
  const bool is_var = at_word("var") && peek(1).kind == TokenKind::Name;
  return is_var || (peek().kind == TokenKind::Name && at_symbol(":", 1));
}

Expected<SyntaxDefinition> Parser::definition() {
  SyntaxDefinition result;
  const bool is_var = take_word("var");
  const Token name = CLEW_TRY(expect_name("a name"));
  result.name = name.text;
  result.name_span = name.span;
  CLEW_TRY(expect_symbol(is_var ? "=" : ":", "after the name"));
  const bool is_query = peek().kind == TokenKind::Name || at_symbol("(");
  if (is_query) {
    result.query.push_back(CLEW_TRY(query()));
  } else {
    result.expression.push_back(CLEW_TRY(expression()));
  }
  const bool is_closed = take_symbol(";");
  if (is_var && !is_closed && !at_end()) return fail_expected("';' after the definition");
  if (!is_closed && !at_end() && !at_definition()) return fail_trailing();
  return result;
}

Expected<SyntaxQuery> Parser::query() {
  const Nesting nesting(nesting_);
  CLEW_TRY(check_nesting());
  const uint32_t begin = peek().span.begin;
  CLEW_TRY(check_order());
  SyntaxQuery query = at_word("from") ? CLEW_TRY(clauses()) : CLEW_TRY(chain());
  query.span = span_from(begin);
  return query;
}

// SQL's order begins with what is wanted, and names the source later.
Expected<void> Parser::check_order() const {
  const bool is_select = at_word("select") && !at_symbol(".", 1) && !at_symbol("(", 1);
  if (!is_select) return {};
  return fail_here(
      "a query begins with its source, and 'select' stands behind it: "
      "'from e in entry(\"m!f\") select count()'");
}

tl::unexpected<Error> Parser::fail_trailing() const {
  std::string hint;
  if (peek().kind == TokenKind::Name) hint = did_you_mean(peek().text, kClauseStarts);
  if (at_word("limit")) hint = "; did you mean 'take'?";
  return fail_here(fmt::format("{} has no meaning after the query{}", shown_token(peek()), hint));
}

Expected<SyntaxExpression> Parser::whole_expression() {
  SyntaxExpression result = CLEW_TRY(expression());
  if (!at_end()) return fail_expected("an operator or the end");
  return result;
}

}  // namespace clew::query
