// SPDX-License-Identifier: Apache-2.0
// Windows of time: which ones there can be, and what rows know of theirs.
#include <fmt/format.h>

#include "query/analyse.h"
#include "query/arithmetic.h"
#include "query/print.h"
#include "query/window.h"

namespace clew::query {
namespace {

Expected<void> check_sizes(const Reporter& report, const TimeWindow& window, Span span) {
  for (const uint64_t ns : {window.size_ns, window.step_ns, window.late_ns}) {
    if (ns <= kWindowMaxNs) continue;
    return report.fail(span, "a window lasts, and waits, at most 366 days");
  }
  if (window.kind == WindowKind::Hopping && window.step_ns > window.size_ns) {
    return report.fail(
        span, fmt::format("windows of {} that begin {} apart leave out what is between them; 'by' "
                          "is at most their size",
                          print_duration(window.size_ns), print_duration(window.step_ns)));
  }
  const uint64_t pane = pane_ns(window);
  if (pane < kPaneMinNs) {
    return report.fail(span, fmt::format("these windows are put together from panes of {}; the "
                                         "shortest are of {}",
                                         print_duration(pane), print_duration(kPaneMinNs)));
  }
  if (window.size_ns / pane <= kPanesMax) return {};
  return report.fail(
      span, fmt::format("one of these windows is put together from {} panes of {}; {} are possible",
                        window.size_ns / pane, print_duration(pane), kPanesMax));
}

}  // namespace

Expected<void> Analyser::check_window(const Step& step) const {
  const Query& query = build_.query;
  if (query.window) return build_.report.fail(step.span, "this is given twice");
  const bool is_late = !query.aggregates.empty() || (result_.is_grouped && has_row_);
  if (is_late) {
    return build_.report.fail(step.span,
                              "'window' stands in front of what is counted: behind 'groupby', "
                              "before 'select'");
  }
  for (const ResolvedSource& source : build_.streams[0].sources) {
    if (source.source.kind != SourceKind::Recording) continue;
    return build_.report.fail(step.span, "events of a recording have no times");
  }
  return check_sizes(build_.report, step.window, step.span);
}

// window NAME: what rows know of theirs; the events know the number of their pane.
Expected<void> Analyser::time_window(const Step& step) {
  CLEW_TRY(check_window(step));
  const TimeWindow& window = step.window;
  window_span_ = step.span;
  result_.keys.insert(result_.keys.begin(),
                      {.name = "pane", .expression = pane_number(pane_ns(window), 0, step.span)});
  Expression start = window_start(step.span);
  Expression end;
  if (window.kind == WindowKind::Session) {
    const Expression time = field_expression(Field::Time, 0, 0, step.span);
    CLEW_TRY(evaluator_.aggregate("min", {time}, step.span));
    end = CLEW_TRY(evaluator_.aggregate("max", {time}, step.span));
  } else {
    const auto size = static_cast<int64_t>(window.size_ns);
    end = CLEW_TRY(make_binary(build_.report, BinaryOperator::Add,
                               {start, integer_constant(size, kInt64, step.span)}, step.span));
  }
  build_.query.window = window;
  Value value = value_of_kind(Value::Kind::Record);
  value.members.push_back({.name = "start", .value = scalar_value(std::move(start))});
  value.members.push_back({.name = "end", .value = scalar_value(std::move(end))});
  scope_.push_back({.name = std::string(kWindowName), .value = std::move(value)});
  return {};
}

// What stays in reach behind `into`.
Names Analyser::window_names() const {
  Names names;
  for (const NamedValue& each : scope_) {
    if (build_.query.window && each.name == kWindowName) names.push_back(each);
  }
  return names;
}

Expected<void> Analyser::check_window_used() const {
  if (!build_.query.window) return {};
  if (!result_.is_grouped) {
    return build_.report.fail(window_span_,
                              "windows are of what is counted: this needs 'groupby', or an "
                              "aggregate, such as 'select count()'");
  }
  if (!build_.query.every_ns) return {};
  return build_.report.fail(window_span_,
                            "'every' and 'window' both say when there is an answer; choose one");
}

namespace {

bool shows_window_start(const Value& row) {
  if (row.kind != Value::Kind::Record) return uses_window(row.expression);
  for (const NamedValue& member : row.members) {
    if (shows_window_start(member.value)) return true;
  }
  return false;
}

}  // namespace

// Rows of different windows are told apart, also where the query does not ask for it.
Expected<void> Analyser::show_window() {
  if (!build_.query.window || shows_window_start(row_)) return {};
  return add_columns("window.start", scalar_value(window_start(window_span_)));
}

}  // namespace clew::query
