// SPDX-License-Identifier: Apache-2.0
#include "query/open_calls.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "query/at_event.h"

namespace clew::query {
namespace {

// What an open call does not have yet, and what only a probe can compute; empty when it is known.
std::string_view unknown_part(const Expression& node) {
  if (node.kind == ExpressionKind::Field && node.field == Field::ReturnValue) return "result";
  if (node.kind == ExpressionKind::Field && node.field == Field::Cpu) return "processor";
  if (node.kind != ExpressionKind::Call) return "";
  if (node.function == Function::Sample) return "turn of sample()";
  return node.function == Function::Extension ? "value of an extension" : "";
}

Expected<void> check_calls(const Query& query, const Source& source, const Reporter& report) {
  const Expression* unknown = nullptr;
  any_at_event(query, [&](const Expression& root) {
    unknown = find_meaning(query, source, root,
                           [](const Expression& node) { return !unknown_part(node).empty(); });
    return unknown != nullptr;
  });
  if (unknown == nullptr) return {};
  return report.fail(unknown->span, fmt::format("an open call has no {} yet; leave this out, or "
                                                "'including open'",
                                                unknown_part(*unknown)));
}

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
    CLEW_TRY(check_calls(query, source, report));
  }
  if (is_any) return {};
  return report.fail(query.sources[0].span,
                     "'including open' is for calls: return(…), syscall_return(…)");
}

}  // namespace clew::query
