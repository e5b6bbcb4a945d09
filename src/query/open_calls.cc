// SPDX-License-Identifier: Apache-2.0
#include "query/open_calls.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace clew::query {
namespace {

// What an open call does not have yet, and what only a probe can compute; empty when it is known.
std::string_view unknown_part(const Expression& node) {
  if (node.kind == ExpressionKind::Field && node.field == Field::ReturnValue) return "a result";
  if (node.kind == ExpressionKind::Field && node.field == Field::Cpu) return "a processor";
  if (node.kind != ExpressionKind::Call) return "";
  if (node.function == Function::Sample) return "a turn of sample()";
  return node.function == Function::Extension ? "a value of an extension" : "";
}

class Checker {
 public:
  Checker(const Query& query, const Reporter& report) : query_(query), report_(report) {}

  Expected<void> check(const Source& source, const Expression& expression) const {
    const std::string_view unknown = unknown_part(expression);
    if (!unknown.empty()) {
      return report_.fail(expression.span,
                          fmt::format("a call that is open has not {} yet; leave this out, or "
                                      "'including open'",
                                      unknown));
    }
    if (expression.kind == ExpressionKind::Let)
      CLEW_TRY(check(source, query_.lets[expression.index].expression));
    if (expression.kind == ExpressionKind::Input)
      CLEW_TRY(check(source, source.inputs[expression.index]));
    for (const Expression& operand : expression.operands)
      CLEW_TRY(check(source, operand));
    return {};
  }

  Expected<void> check_all(const Source& source) const {
    for (const Expression& condition : query_.where)
      CLEW_TRY(check(source, condition));
    for (const NamedExpression& value : query_.values)
      CLEW_TRY(check(source, value.expression));
    for (const Aggregate& aggregate : query_.aggregates) {
      for (const Expression& argument : aggregate.arguments)
        CLEW_TRY(check(source, argument));
    }
    return {};
  }

 private:
  const Query& query_;
  const Reporter& report_;
};

}  // namespace

Expected<void> check_open_calls(const Query& query, const Reporter& report) {
  if (!query.including_open) return {};
  bool is_any = false;
  for (const Source& source : query.sources) {
    if (source.kind == SourceKind::KernelReturn) {
      return report.fail(source.span,
                         "'including open' is for functions of processes and for system calls; "
                         "which functions of the kernel are open is not known");
    }
    if (source.kind != SourceKind::Return && source.kind != SourceKind::SyscallReturn) continue;
    is_any = true;
    CLEW_TRY(Checker(query, report).check_all(source));
  }
  if (is_any) return {};
  return report.fail(query.sources[0].span,
                     "'including open' is for calls: return(…), syscall_return(…)");
}

}  // namespace clew::query
