// SPDX-License-Identifier: Apache-2.0
#include "query/check_sources.h"

#include <string_view>
#include <utility>
#include <vector>

#include "query/parser.h"
#include "query/resolve_source.h"
#include "query/token.h"

namespace clew::query {
namespace {

class SourceChecker {
 public:
  SourceChecker(const SyntaxText& text, const Reporter& report, const Vocabulary& vocabulary)
      : report_(report), vocabulary_(vocabulary) {
    for (const SyntaxDefinition& definition : text.definitions)
      names_.push_back(definition.name);
  }

  Expected<void> check(const SyntaxQuery& query) const {
    CLEW_TRY(check(query.sources));
    for (const Step& step : query.steps)
      CLEW_TRY(check(step.sources));
    return {};
  }

 private:
  [[nodiscard]] Expected<void> check(const std::vector<SyntaxSource>& sources) const {
    for (const SyntaxSource& source : sources) {
      if (source.is_call) (void)CLEW_TRY(kind_of(source, report_));
      if (!source.is_call && !is_known(source)) {
        return unknown_source(source, report_, &vocabulary_, names_);
      }
      for (const SyntaxQuery& inner : source.query)
        CLEW_TRY(check(inner));
      for (const SyntaxOutstanding& what : source.outstanding) {
        CLEW_TRY(check(what.opened));
        CLEW_TRY(check(what.closed));
      }
    }
    return {};
  }

  [[nodiscard]] bool is_known(const SyntaxSource& source) const {
    if (!source.query.empty() || !source.outstanding.empty()) return true;
    if (vocabulary_.find(source.name) != nullptr) return true;
    if (vocabulary_.outstanding(source.name) != nullptr) return true;
    if (same_word(source.name, "begin") || same_word(source.name, "end")) return true;
    for (const std::string_view name : names_) {
      if (name == source.name) return true;
    }
    return false;
  }

  const Reporter& report_;
  const Vocabulary& vocabulary_;
  std::vector<std::string_view> names_;  // Of queries and constants.
};

}  // namespace

Expected<void> check_sources(const Text& text, const Vocabulary& vocabulary) {
  const Reporter report(text);
  std::vector<Token> tokens = CLEW_TRY(lex(report, {0, static_cast<uint32_t>(text.text.size())}));
  const SyntaxText syntax = CLEW_TRY(Parser(report, std::move(tokens)).text());
  const SourceChecker checker(syntax, report, vocabulary);
  for (const SyntaxDefinition& definition : syntax.definitions) {
    for (const SyntaxQuery& query : definition.query)
      CLEW_TRY(checker.check(query));
  }
  return checker.check(syntax.query);
}

}  // namespace clew::query
