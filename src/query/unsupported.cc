// SPDX-License-Identifier: Apache-2.0
#include "query/unsupported.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "query/evaluator.h"
#include "query/fields.h"
#include "query/open_calls.h"
#include "query/print.h"

namespace clew::query {
namespace {

struct Refusal {
  Span span;
  std::string_view what;
};

std::optional<std::string_view> refusal_of(const Source& source) {
  const bool has_module = !source.module.empty() || source.kind == SourceKind::Line;
  if (is_kernel_source(source.kind) || !is_everywhere(source.scope) || has_module)
    return std::nullopt;
  return "a function of all processes without its module";
}

tl::unexpected<Error> fail(const Reporter& report, const Refusal& refusal) {
  return report.fail(refusal.span, fmt::format("{} is not part of this version yet", refusal.what));
}

// Keys, and the buckets of histograms, are integers, text and stacks.
Expected<void> check_cell(const Expression& expression, const Reporter& report,
                          std::string_view what) {
  if (expression.type.kind != TypeKind::Float) return {};
  return fail(report, {expression.span, what});
}

bool is_recording(const Source& source) {
  return source.kind == SourceKind::Recording;
}

// What is over has no end, and nothing happens beside it.
Expected<void> check_recordings(const Query& query, const Reporter& report) {
  const auto& sources = query.sources;
  if (std::none_of(sources.begin(), sources.end(), is_recording)) return {};
  const auto live = std::find_if_not(sources.begin(), sources.end(), is_recording);
  if (live == sources.end()) return {};
  return report.fail(live->span,
                     fmt::format("a query asks recordings alone; {} happens now", print(*live)));
}

Expected<void> check_outstanding_sources(const Query& query, const Reporter& report) {
  for (const std::vector<Source>* sources : {&query.sources, &query.joins[0].sources}) {
    for (const Source& source : *sources) {
      if (is_unsupported(source)) return fail_unsupported(report, source);
      if (is_recording(source))
        return fail(report, {source.span, "what is outstanding of a recording"});
      if (has_field(source.kind, Field::Tid)) continue;
      return report.fail(source.span, fmt::format("{} happens in the tracer: it begins and ends "
                                                  "nothing",
                                                  print(source)));
    }
  }
  if (!query.including_open) return {};
  return report.fail(query.joins[0].span,
                     "calls that are open begin and end nothing: leave out 'including open'");
}

// What has no thread has no cause, and happens in the tracer.
Expected<void> check_causes(const std::vector<Source>& sources, const Reporter& report,
                            bool is_by_time) {
  for (const Source& source : sources) {
    if (is_unsupported(source)) return fail_unsupported(report, source);
    if (has_field(source.kind, Field::Tid) && !is_recording(source)) continue;
    if (is_by_time && is_recording(source))
      return fail(report, {source.span, "a join of recordings"});
    if (is_by_time) {
      return report.fail(source.span, fmt::format("{} happens in the tracer: it is joined with "
                                                  "nothing",
                                                  print(source)));
    }
    return report.fail(source.span, fmt::format("{} happens in no request: it cannot be joined by "
                                                "cause",
                                                print(source)));
  }
  return {};
}

tl::unexpected<Error> fail_open(const Reporter& report, Span span) {
  return report.fail(span,
                     "calls that are open are joined with nothing: leave out 'including open'");
}

Expected<void> check_joined_query(const Join& join, const Reporter& report);

Expected<void> check_joins(const Query& query, const Reporter& report) {
  if (query.joins.empty()) return {};
  if (is_outstanding(query)) return check_outstanding_sources(query, report);
  CLEW_TRY(check_causes(query.sources, report, joins_by_time(query)));
  if (query.including_open) return fail_open(report, query.joins[0].span);
  for (const Join& join : query.joins) {
    if (join.subquery.empty()) {
      CLEW_TRY(check_causes(join.sources, report, join.within.has_value()));
    } else {
      CLEW_TRY(check_joined_query(join, report));
    }
  }
  return {};
}

// What becomes a column of a joined row is one value.
Expected<void> check_joined_groups(const Join& join, const Reporter& report) {
  if (join.within) {
    return report.fail(join.span,
                       "groups have no time: a join by time joins events, and rows of "
                       "queries without groups");
  }
  if (join.filter != JoinFilter::All)
    return fail(report, {join.span, "the first or the most recent of groups"});
  for (const Aggregate& aggregate : join.subquery[0].aggregates) {
    if (!is_histogram_kind(aggregate.function)) continue;
    return fail(report, {join.span, fmt::format("a join with '{}'", name_of(aggregate.function))});
  }
  return {};
}

Expected<void> check_joined_query(const Join& join, const Reporter& report) {
  const Query& query = join.subquery[0];
  const Span span = join.span;
  CLEW_TRY(check_causes(query.sources, report, join.within.has_value()));
  if (query.including_open) return fail_open(report, span);
  if (query.shape == Shape::Groups) CLEW_TRY(check_joined_groups(join, report));
  if (query.least_cause) {
    return report.fail(span,
                       "which causes are believed is said once, in the query that joins this one");
  }
  if (query.window) return report.fail(span, "a query that is joined has no windows of its own");
  const bool has_end = query.every_ns || query.for_ns || query.for_events;
  if (query.take || has_end || !query.order.empty()) {
    return report.fail(span, "a query that is joined has no order and no end of its own");
  }
  return check_joins(query, report);
}

}  // namespace

bool runs_in_tracer_only(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::Call:
      return is_format(expression.function) || expression.type.kind == TypeKind::Float;
    case ExpressionKind::Convert:
    case ExpressionKind::Unary:
    case ExpressionKind::Binary:
    case ExpressionKind::Conditional:
      for (const Expression& operand : expression.operands) {
        if (operand.type.kind == TypeKind::Float) return true;
      }
      return expression.type.kind == TypeKind::Float;
    case ExpressionKind::Float:
      return true;
    case ExpressionKind::Integer:
    case ExpressionKind::String:
    case ExpressionKind::Field:
    case ExpressionKind::Input:
    case ExpressionKind::Let:
    case ExpressionKind::Value:
    case ExpressionKind::Aggregate:
    case ExpressionKind::JoinColumn:
    case ExpressionKind::Load:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
    case ExpressionKind::In:
      return false;
  }
  return false;
}

bool is_unsupported(const Source& source) {
  return refusal_of(source).has_value();
}

tl::unexpected<Error> fail_unsupported(const Reporter& report, const Source& source) {
  const std::string_view what = refusal_of(source).value_or("this source");
  return fail(report, {source.span, what});
}

Expected<void> check_supported(const Query& query, const Reporter& report) {
  for (const Source& source : query.sources) {
    if (is_unsupported(source)) return fail_unsupported(report, source);
  }
  CLEW_TRY(check_recordings(query, report));
  CLEW_TRY(check_joins(query, report));
  if (query.shape == Shape::Events && !query.order.empty() && !is_outstanding(query)) {
    return fail(report,
                {query.order[0].expression.span, "'orderby' of single events, not of groups,"});
  }
  for (const NamedExpression& value : query.values) {
    if (query.shape == Shape::Groups)
      CLEW_TRY(check_cell(value.expression, report, "a floating-point key"));
  }
  for (const Aggregate& aggregate : query.aggregates) {
    if (row_of(aggregate.function).takes == abi::ValueKind::Number) continue;
    for (const Expression& argument : aggregate.arguments) {
      CLEW_TRY(
          check_cell(argument, report,
                     fmt::format("'{}' of floating-point values", name_of(aggregate.function))));
    }
  }
  return check_open_calls(query, report);
}

}  // namespace clew::query
