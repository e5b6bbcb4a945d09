// SPDX-License-Identifier: Apache-2.0
// Whether what a query reads is a role's to read.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cluster/pattern_within.h"
#include "cluster/roles.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/walk.h"

namespace clew::cluster {
namespace {

using query::Expression;
using query::ExpressionKind;
using query::Source;
using query::SourceKind;

// What is compared with Role::sources; nothing: the tracer's own, which read nothing.
std::optional<std::string> name_of_source(const Source& source) {
  switch (source.kind) {
    case SourceKind::Tick:
    case SourceKind::Begin:
    case SourceKind::End:
      return std::nullopt;
    case SourceKind::Entry:
    case SourceKind::Return:
    case SourceKind::Exception:
    case SourceKind::Offset:
      return fmt::format("{}!{}", source.module.empty() ? "*" : source.module, source.function);
    case SourceKind::Line:
      // Any function of the module may be there.
      return fmt::format("{}!*", source.module.empty() ? "*" : source.module);
    case SourceKind::Usdt:
      return "usdt:" + source.function;
    case SourceKind::Syscall:
    case SourceKind::SyscallReturn:
      return "syscall:" + source.function;
    case SourceKind::Kernel:
    case SourceKind::KernelReturn:
      return "kernel:" + source.function;
    case SourceKind::Tracepoint:
      return "tracepoint:" + source.function;
    case SourceKind::Profile:
      return "profile";
    case SourceKind::Recording:
      return "recording:" + source.file;
  }
  return "";
}

bool reads_memory(const Expression& node) {
  const bool is_read = node.kind == ExpressionKind::Load ||
                       node.kind == ExpressionKind::ReadString ||
                       node.kind == ExpressionKind::ReadBytes;
  // What is written in C reads what it likes.
  return is_read ||
         (node.kind == ExpressionKind::Call && node.function == query::Function::Extension);
}

constexpr size_t kNone = std::string_view::npos;

// Where the '!' of "module!function" is, which begins no set as in "[!a]"; kNone: it is no such
// name.
size_t end_of_module(std::string_view name) {
  size_t at = name.find('!');
  while (at != kNone && at > 0 && name[at - 1] == '[')
    at = name.find('!', at + 1);
  return at;
}

class RoleCheck {
 public:
  RoleCheck(const Role& role, const query::Text& text, const std::vector<std::string>& patterns)
      : role_(role), report_(text), patterns_(patterns) {}

  Expected<void> processes() const {
    for (const std::string& pattern : patterns_) {
      if (is_allowed(role_.processes, pattern)) continue;
      return fail(ErrorCode::Refused, fmt::format("role '{}' may not trace processes called '{}'",
                                                  role_.name, pattern));
    }
    return {};
  }

  Expected<void> query(const query::Query& query) const {
    for (const Source& source : query.sources)
      CLEW_TRY(this->source(source));
    for (const query::Join& join : query.joins) {
      if (!join.within && !role_.cause) return refuse(join.span, "join by cause");
      for (const Source& source : join.sources)
        CLEW_TRY(this->source(source));
      if (join.within) CLEW_TRY(expressions(join.within->joined));
      if (join.within) CLEW_TRY(expressions(join.within->other));
      for (const query::Query& each : join.subquery)
        CLEW_TRY(this->query(each));
    }
    for (const auto* named : {&query.lets, &query.values, &query.columns}) {
      for (const query::NamedExpression& each : *named)
        CLEW_TRY(expression(each.expression));
    }
    for (const query::Aggregate& each : query.aggregates)
      CLEW_TRY(expressions(each.arguments));
    CLEW_TRY(expressions(query.where));
    return expressions(query.having);
  }

 private:
  static bool is_allowed(const std::vector<std::string>& allowed, std::string_view wanted) {
    return std::any_of(allowed.begin(), allowed.end(),
                       [wanted](const std::string& each) { return is_within(wanted, each); });
  }

  // Module and function apart: no '*' of one reaches into the other, nor does "usdt:*" into a
  // module that somebody has called so. "*" alone is all.
  [[nodiscard]] bool is_source_allowed(std::string_view wanted, bool is_function) const {
    const auto allows = [wanted, is_function](const std::string& each) {
      const std::string_view allowed(each);
      const size_t end = end_of_module(allowed);
      if (allowed == "*") return true;
      if (!is_function) return end == kNone && is_within(wanted, allowed);
      const size_t wanted_end = end_of_module(wanted);
      return end != kNone && wanted_end != kNone &&
             is_within(wanted.substr(0, wanted_end), allowed.substr(0, end)) &&
             is_within(wanted.substr(wanted_end + 1), allowed.substr(end + 1));
    };
    return std::any_of(role_.sources.begin(), role_.sources.end(), allows);
  }

  [[nodiscard]] tl::unexpected<Error> refuse(query::Span span, std::string_view what) const {
    Error error = report_.fail(span, fmt::format("role '{}' may not {}", role_.name, what)).value();
    error.code = ErrorCode::Refused;
    return tl::unexpected(std::move(error));
  }

  Expected<void> source(const Source& source) const {
    CLEW_TRY(expressions(source.inputs));
    const std::optional<std::string> name = name_of_source(source);
    if (!name) return {};
    const bool is_kernels = query::is_kernel_source(source.kind);
    if (is_kernels && !role_.kernel) return refuse(source.span, "ask the kernel");
    const bool is_function = !is_kernels && source.kind != SourceKind::Usdt;
    if (!is_source_allowed(*name, is_function))
      return refuse(source.span, fmt::format("trace '{}'", *name));
    // The kernel is asked about all processes, unless some are named, which are the role's.
    const bool is_about_all = is_kernels && patterns_.empty();
    const std::string process = source.process.empty() ? "*" : source.process;
    const bool is_of_one = source.scope == query::Scope::Process && !source.process.empty();
    if ((is_about_all || is_of_one) && !is_allowed(role_.processes, process)) {
      return refuse(source.span, is_of_one ? fmt::format("trace processes called '{}'", process)
                                           : "ask the kernel about all processes");
    }
    return {};
  }

  Expected<void> expressions(const std::vector<Expression>& all) const {
    for (const Expression& each : all)
      CLEW_TRY(expression(each));
    return {};
  }

  Expected<void> expression(const Expression& expression) const {
    if (role_.memory) return {};
    const Expression* const read = query::find_node(expression, reads_memory);
    if (read == nullptr) return {};
    return refuse(read->span, "read memory of processes");
  }

  const Role& role_;
  query::Reporter report_;
  const std::vector<std::string>& patterns_;
};

}  // namespace

Expected<void> check_limits(const Role& role, size_t queries, int64_t interval_ns) {
  constexpr int64_t kMillisecond = 1'000'000;
  if (role.queries != 0 && queries >= role.queries) {
    return fail(ErrorCode::Limit,
                fmt::format("role '{}' may ask {} {} at once, and {} of this key {}", role.name,
                            role.queries, role.queries == 1 ? "query" : "queries", queries,
                            queries == 1 ? "runs" : "run"));
  }
  if (interval_ns >= role.interval_ns) return {};
  return fail(ErrorCode::Limit,
              fmt::format("role '{}' may ask for intervals of {} ms and longer, and not of {} ms",
                          role.name, role.interval_ns / kMillisecond,
                          static_cast<double>(interval_ns) / static_cast<double>(kMillisecond)));
}

Expected<void> check_text(const Role& role, const query::Text& text,
                          const std::vector<std::string>& name_patterns) {
  const RoleCheck check(role, text, name_patterns);
  CLEW_TRY(check.processes());
  if (const auto alone = query::parse_any(text, {})) return check.query(*alone);
  // Types of programs, or a vocabulary, are needed; what the words alone say:
  const query::SourcePlaces places = CLEW_TRY(query::places_of_sources(text));
  if (places.joins && !role.cause)
    return fail(ErrorCode::Refused, fmt::format("role '{}' may not join by cause", role.name));
  if (places.kernel && !role.kernel)
    return fail(ErrorCode::Refused, fmt::format("role '{}' may not ask the kernel", role.name));
  return {};
}

Expected<void> check_query(const Role& role, const query::Query& query, const query::Text& text,
                           const std::vector<std::string>& name_patterns) {
  const RoleCheck check(role, text, name_patterns);
  CLEW_TRY(check.processes());
  return check.query(query);
}

}  // namespace clew::cluster
