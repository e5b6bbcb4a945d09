// SPDX-License-Identifier: Apache-2.0
#include "query/check_beside.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "query/parse.h"
#include "query/parser.h"
#include "query/resolve_source.h"
#include "query/token.h"

namespace clew::query {
namespace {

class CompanyChecker {
 public:
  CompanyChecker(const SyntaxText& text, const Reporter& report) : text_(text), report_(report) {}

  Expected<void> check(const SyntaxQuery& query) const {
    CLEW_TRY(check(query.sources));
    for (const Step& step : query.steps)
      CLEW_TRY(check(step.sources));
    return {};
  }

 private:
  [[nodiscard]] Expected<void> check(const std::vector<SyntaxSource>& sources) const {
    for (const SyntaxSource& source : sources) {
      CLEW_TRY(check(source));
      for (const SyntaxQuery& inner : source.query)
        CLEW_TRY(check(inner));
    }
    return {};
  }

  // What has another query's name is met there. A name that is no call is a tracepoint of a
  // vocabulary, all of which are in processes, or of the tracer.
  [[nodiscard]] Expected<void> check(const SyntaxSource& source) const {
    const bool is_query =
        !source.query.empty() ||
        std::any_of(text_.definitions.begin(), text_.definitions.end(),
                    [&](const SyntaxDefinition& one) { return one.name == source.name; });
    if (!source.is_call && is_query) return {};
    if (!source.outstanding.empty()) {
      CLEW_TRY(check(source.outstanding[0].opened));
      return check(source.outstanding[0].closed);
    }
    if (source.is_call && is_kernel_source(CLEW_TRY(kind_of(source, report_)))) return {};
    return report_.fail(
        source.name_span,
        fmt::format("'{}' is no source of the kernel; the recorder holds the processes, so a query "
                    "beside it has sources that change nothing in them: syscall, syscall_return, "
                    "tracepoint, kernel, kernel_return, profile",
                    source.name));
  }

  const SyntaxText& text_;
  const Reporter& report_;
};

}  // namespace

Expected<Beside> check_beside(const Text& text) {
  CLEW_TRY(check_syntax(text));
  const Reporter report(text);
  std::vector<Token> tokens = CLEW_TRY(lex(report, {0, static_cast<uint32_t>(text.text.size())}));
  const SyntaxText syntax = CLEW_TRY(Parser(report, std::move(tokens)).text());
  const CompanyChecker checker(syntax, report);
  for (const SyntaxDefinition& definition : syntax.definitions) {
    for (const SyntaxQuery& query : definition.query)
      CLEW_TRY(checker.check(query));
  }
  CLEW_TRY(checker.check(syntax.query));
  const std::vector<Step>& steps = syntax.query.steps;
  return Beside{.has_intervals = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
                  return step.kind == StepKind::Every;
                })};
}

}  // namespace clew::query
