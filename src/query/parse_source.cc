// SPDX-License-Identifier: Apache-2.0
// Sources: a provider's call, a scope's function, a dotted tracepoint, a query's name, or a query.
//
//     sources := source { "," source }
//     source  := head ["one" "in" INT] ["as" (STRING | dotted)] ["{" NAME "=" expression { "," … }
//     "}"] head    := NAME "(" arguments ")" | "recording" "(" STRING ")" ["." NAME]
//              | scope "." NAME "(" arguments ")" | dotted | "(" query ")" | clusters | outstanding
//     scope   := "cluster" | "machine" | "process" [ "(" arguments ")" ]
#include <fmt/format.h>

#include "query/parser.h"

namespace clew::query {

Expected<std::vector<SyntaxSource>> Parser::sources() {
  std::vector<SyntaxSource> result;
  do {
    CLEW_TRY(add_source(result));
  } while (take_symbol(","));
  return result;
}

Expected<void> Parser::add_source(std::vector<SyntaxSource>& sources) {
  if (sources.size() == kSourcesMax) {
    return fail_here(fmt::format("a union has at most {} sources", kSourcesMax));
  }
  sources.push_back(CLEW_TRY(source()));
  return {};
}

Expected<SyntaxSource> Parser::source() {
  const uint32_t begin = peek().span.begin;
  SyntaxSource result = CLEW_TRY(source_head());
  result.span = span_from(begin);
  CLEW_TRY(source_tail(result));
  return result;
}

Expected<SyntaxSource> Parser::source_head() {
  if (at_symbol("(")) {
    SyntaxSource result;
    take();
    result.query.push_back(CLEW_TRY(query()));
    CLEW_TRY(expect_symbol(")", "after the query"));
    return result;
  }
  if (peek().kind != TokenKind::Name) {
    return fail_expected("a source, such as entry(\"module!function\")");
  }
  if (at_clusters()) return clusters();
  if (at_outstanding()) return outstanding();
  const bool is_scope = at_symbol(".", 1) || at_symbol("(", 1);
  if (at_word("cluster") && is_scope) return scoped_source(Scope::Cluster);
  if (at_word("machine") && is_scope) return scoped_source(Scope::Machine);
  if (at_word("process") && is_scope) return scoped_source(Scope::Process);
  return named_source();
}

Expected<SyntaxSource> Parser::scoped_source(Scope scope) {
  SyntaxSource result;
  result.scope = scope;
  take();
  if (at_symbol("(")) result.scope_arguments = CLEW_TRY(arguments());
  CLEW_TRY(expect_symbol(".", "and 'Function(…)' after the scope"));
  const Token name = CLEW_TRY(expect_name("'Function' after '.'"));
  result.name = name.text;
  result.name_span = name.span;
  if (!at_symbol("(")) return fail_expected("'(' and a function");
  result.is_call = true;
  result.arguments = CLEW_TRY(arguments());
  return result;
}

// Or meant for it, as record(…) is: that there is no such source is said where sources are known.
bool Parser::is_recording(std::string_view name) {
  constexpr size_t kShortest = 3;
  return name.size() >= kShortest &&
         same_word(std::string_view("recording").substr(0, name.size()), name);
}

// A dotted name ends before the method of a chain: redis.command.Where(…) is redis.command.
Expected<SyntaxSource> Parser::named_source() {
  SyntaxSource result;
  const Token first = take();
  result.name = first.text;
  result.name_span = first.span;
  while (at_symbol(".") && peek(1).kind == TokenKind::Name && !at_symbol("(", 2)) {
    take();
    result.name += fmt::format(".{}", take().text);
  }
  result.name_span.end = end_of_previous();
  result.is_call = at_symbol("(");
  if (result.is_call) result.arguments = CLEW_TRY(arguments());
  if (result.is_call && is_recording(result.name)) recorded_event(result);
  return result;
}

// recording("app.snap").line
void Parser::recorded_event(SyntaxSource& source) {
  if (!at_symbol(".") || peek(1).kind != TokenKind::Name || at_symbol("(", 2)) return;
  take();
  const Token name = take();
  source.event = name.text;
  source.event_span = name.span;
}

Expected<void> Parser::source_tail(SyntaxSource& source) {
  if (at_word("one") && at_word("in", 1)) return one_in(source);
  if (take_word("as")) {
    const Token label = take();
    if (label.kind != TokenKind::String && label.kind != TokenKind::Name) {
      return report_.fail(label.span, "expected the probe's name after 'as'");
    }
    source.label = label.kind == TokenKind::String ? label.value : std::string(label.text);
  }
  if (at_symbol("{")) return export_list(source);
  return {};
}

Expected<void> Parser::export_list(SyntaxSource& source) {
  take();  // {
  do {
    SyntaxItem item;
    const Token name = CLEW_TRY(expect_name("the name of an export"));
    item.name = name.text;
    item.name_span = name.span;
    CLEW_TRY(expect_symbol("=", "after the export's name"));
    item.expression = CLEW_TRY(expression());
    source.exports.push_back(std::move(item));
  } while (take_symbol(","));
  return expect_symbol("}", "after the exports");
}

Expected<std::vector<SyntaxExpression>> Parser::arguments() {
  std::vector<SyntaxExpression> result;
  take();  // (
  if (take_symbol(")")) return result;
  do {
    result.push_back(CLEW_TRY(expression()));
  } while (take_symbol(","));
  CLEW_TRY(expect_symbol(")", "after the arguments"));
  return result;
}

}  // namespace clew::query
