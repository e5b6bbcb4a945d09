// SPDX-License-Identifier: Apache-2.0
#include "query/parse.h"

#include <fmt/format.h>

#include "query/normalise.h"
#include "query/parser.h"
#include "query/token.h"
#include "query/unsupported.h"

namespace clew::query {
namespace {

Expected<void> check_definitions(const SyntaxText& syntax, const Reporter& report) {
  for (size_t i = 0; i < syntax.definitions.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (syntax.definitions[i].name != syntax.definitions[j].name) continue;
      return report.fail(syntax.definitions[i].name_span,
                         fmt::format("'{}' is defined twice", syntax.definitions[i].name));
    }
  }
  return {};
}

Expected<SyntaxText> syntax_of(const Text& text, const Reporter& report) {
  if (text.text.size() > kTextMaxBytes) {
    return fail(ErrorCode::Limit,
                fmt::format("{}: error: a query has at most {} bytes", text.name, kTextMaxBytes));
  }
  const Span all{0, static_cast<uint32_t>(text.text.size())};
  std::vector<Token> tokens = CLEW_TRY(lex(report, all));
  SyntaxText syntax = CLEW_TRY(Parser(report, std::move(tokens)).text());
  CLEW_TRY(check_definitions(syntax, report));
  return syntax;
}

}  // namespace

Expected<void> check_syntax(const Text& text) {
  CLEW_TRY(syntax_of(text, Reporter(text)));
  return {};
}

Expected<Query> parse_any(const Text& text, const Environment& environment) {
  const Reporter report(text);
  const SyntaxText syntax = CLEW_TRY(syntax_of(text, report));
  Limits limits;
  return analyse_query(syntax.query, syntax.definitions, report, environment, limits);
}

Expected<Query> parse(const Text& text, const Environment& environment) {
  Query query = CLEW_TRY(parse_any(text, environment));
  CLEW_TRY(check_supported(query, Reporter(text)));
  return query;
}

}  // namespace clew::query
