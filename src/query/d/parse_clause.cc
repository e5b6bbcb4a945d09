// SPDX-License-Identifier: Apache-2.0
// Clauses: probe descriptions, the predicate between slashes, the body and its statements.
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "query/d/parser.h"

namespace clew::query::d {
namespace {

// How many fields of a description may be written.
size_t fields_max(CompileOptions::Form form) {
  switch (form) {
    case CompileOptions::Form::Provider:
      return 1;
    case CompileOptions::Form::Module:
      return 2;
    case CompileOptions::Form::Function:
      return 3;
    case CompileOptions::Form::File:
    case CompileOptions::Form::Name:
    case CompileOptions::Form::Id:
      return 4;
  }
  return 4;
}

}  // namespace

Compiled<void> Parser::clause() {
  Clause clause;
  clause.line = lexer_.line();
  clause.span.begin = lexer_.offset();
  for (;;) {
    clause.probes.push_back(CLEW_TRY(description()));
    last_end_ = lexer_.offset();
    CLEW_TRY(lexer_.skip_blank());
    if (lexer_.peek() != ',') break;
    CLEW_TRY(start());  // The comma.
    CLEW_TRY(lexer_.skip_blank());
  }
  if (lexer_.peek() == '/') {
    clause.predicate = CLEW_TRY(in_region(Region::Predicate, predicate()));
    CLEW_TRY(lexer_.skip_blank());
  }
  if (lexer_.peek() == '{') {
    clause.body = CLEW_TRY(in_region(Region::Actions, body()));
    clause.has_body = true;
  } else if (clause.predicate) {
    return compile_error("D_SYNTAX",
                         "expected actions { } following probe description and predicate",
                         clause.line, {clause.span.begin, lexer_.offset()});
  } else if (!lexer_.at_end()) {
    CLEW_TRY(start());
    return syntax_error();
  } else if (options_.form == CompileOptions::Form::File) {
    return compile_error("D_SYNTAX",
                         "expected predicate and/or actions following probe description",
                         clause.line, {clause.span.begin, last_end_});
  }
  clause.span.end = lexer_.offset();
  flush_options();
  program_.clauses.push_back(std::move(clause));
  add_item(Program::Item::Clause, program_.clauses.size());
  return {};
}

// --- probe descriptions --------------------------------------------------------------------------

Compiled<ProbeDescription> Parser::description() {
  ProbeDescription description;
  description.line = lexer_.line();
  description.span.begin = lexer_.offset();
  description.text = std::string(lexer_.peek_description());
  lexer_.skip(description.text.size());
  description.span.end = lexer_.offset();
  if (description.text.empty()) {
    CLEW_TRY(start());
    return syntax_error();
  }
  const std::string text = CLEW_TRY(lexer_.expand(description.text, description.span));
  CLEW_TRY(split_description(description, text));
  return description;
}

// Fields are filled from the right, beginning with the one that the form names.
Compiled<void> Parser::split_description(ProbeDescription& description,
                                         const std::string& text) const {
  const bool is_number = std::all_of(text.begin(), text.end(), is_decimal_digit) && !text.empty();
  uint64_t id = 0;
  const bool fits = std::from_chars(text.data(), text.data() + text.size(), id).ec == std::errc();
  if (is_number && fits) description.id = id;
  if (description.id) return {};
  const auto count = static_cast<size_t>(std::count(text.begin(), text.end(), ':')) + 1;
  const size_t allowed = fields_max(options_.form);
  if (count > allowed || options_.form == CompileOptions::Form::Id) {
    return compile_error("D_PDESC_INVAL",
                         fmt::format("invalid probe description \"{}\": Overspecified probe "
                                     "description",
                                     text),
                         description.line, description.span);
  }
  const std::array<std::string*, 4> fields = {&description.provider, &description.module,
                                              &description.function, &description.name};
  size_t begin = 0;
  for (size_t field = allowed - count; field < allowed; ++field) {
    const size_t end = text.find(':', begin);
    *fields[field] = text.substr(begin, end - begin);
    begin = end + 1;
  }
  return {};
}

// --- predicate and body --------------------------------------------------------------------------

Compiled<Node> Parser::predicate() {
  CLEW_TRY(start());
  CLEW_TRY(expect("/"));
  in_predicate_ = true;
  Node condition = CLEW_TRY(full_expression());
  in_predicate_ = false;
  CLEW_TRY(expect_last("/"));
  return condition;
}

Compiled<std::vector<Statement>> Parser::body() {
  CLEW_TRY(start());
  CLEW_TRY(expect("{"));
  std::vector<Statement> statements;
  while (!at("}"))
    CLEW_TRY(statement(statements));
  return statements;
}

// With its semicolon, which the last one before a brace may lack.
Compiled<void> Parser::statement(std::vector<Statement>& statements) {
  const Nested nested(nesting_);
  CLEW_TRY(check_nesting());
  if (CLEW_TRY(accept(";"))) return {};
  if (at("if")) return if_statement(statements);
  Statement statement;
  statement.expression = CLEW_TRY(full_expression());
  statements.push_back(std::move(statement));
  if (at("}")) return {};
  return expect(";");
}

Compiled<void> Parser::if_statement(std::vector<Statement>& statements) {
  Statement statement;
  statement.kind = StatementKind::If;
  CLEW_TRY(expect("if"));
  CLEW_TRY(expect("("));
  statement.expression = CLEW_TRY(full_expression());
  CLEW_TRY(expect(")"));
  statement.then_part = CLEW_TRY(branch());
  if (CLEW_TRY(accept("else"))) statement.else_part = CLEW_TRY(branch());
  statements.push_back(std::move(statement));
  return {};
}

Compiled<std::vector<Statement>> Parser::branch() {
  std::vector<Statement> statements;
  if (!CLEW_TRY(accept("{"))) {
    if (at("}")) return syntax_error();
    CLEW_TRY(statement(statements));
    return statements;
  }
  while (!at("}"))
    CLEW_TRY(statement(statements));
  CLEW_TRY(advance());
  return statements;
}

}  // namespace clew::query::d
