// SPDX-License-Identifier: Apache-2.0
// Streams: the sources of `from` and of joins, and joins with other queries.
#include <algorithm>

#include <fmt/format.h>

#include "query/analyse.h"
#include "query/arithmetic.h"
#include "query/normalise.h"
#include "query/resolve_source.h"
#include "query/token.h"

namespace clew::query {

const SyntaxDefinition* Analyser::find_definition(std::string_view name) const {
  for (const SyntaxDefinition& definition : visible_) {
    if (definition.name == name) return &definition;
  }
  return nullptr;
}

std::vector<std::string_view> Analyser::definition_names() const {
  std::vector<std::string_view> names;
  names.reserve(visible_.size());
  for (const SyntaxDefinition& definition : visible_) {
    names.push_back(definition.name);
  }
  return names;
}

Expected<void> Analyser::add_stream(const std::string& name,
                                    const std::vector<SyntaxSource>& sources) {
  Stream stream;
  stream.name = name;
  const std::vector<std::string_view> names = definition_names();
  for (const SyntaxSource& source : sources) {
    if (!source.query.empty()) {
      return build_.report.fail(source.span, "a query cannot be in a union with other sources");
    }
    if (!source.outstanding.empty()) {
      return build_.report.fail(source.name_span,
                                "outstanding(…) is what a query is about: it stands behind 'from "
                                "e in', and alone");
    }
    for (ResolvedSource& resolved : CLEW_TRY(resolve_source(source, build_, names))) {
      if (stream.sources.size() == kSourcesMax) {
        return build_.report.fail(source.span,
                                  fmt::format("a union has at most {} sources", kSourcesMax));
      }
      stream.sources.push_back(std::move(resolved));
    }
  }
  build_.streams.push_back(std::move(stream));
  return {};
}

Expected<void> Analyser::check_join(const Step& step) const {
  const bool is_method = !step.parameter.empty();
  if (is_method && !result_.is_grouped) return check_before_order(step, "a join");
  if (result_.is_grouped || has_row_) {
    return build_.report.fail(step.span, is_method ? "a join goes before a group"
                                                   : "a join goes before 'select' and 'group'");
  }
  for (const NamedValue& other : scope_) {
    if (other.name != step.name) continue;
    return build_.report.fail(step.name_span, fmt::format("the name '{}' is taken", step.name));
  }
  if (step.before == step.name || !step.equals.empty()) return {};
  return build_.report.fail(step.before_span,
                            fmt::format("the joined event happens first: on {} -> …", step.name));
}

// Its own, and those of queries that it joins.
Expected<void> Analyser::check_kind(const Step& step, bool is_by_cause) const {
  if (build_.query.joins.empty()) return {};
  if (joins_by_cause(build_.query) == is_by_cause) return {};
  return build_.report.fail(step.span, fmt::format("a query joins by cause, or by time: the joins "
                                                   "before this one are by {}",
                                                   is_by_cause ? "time" : "cause"));
}

// The stream whose event happens later.
Expected<uint16_t> Analyser::later_stream(const Step& step) {
  if (!step.parameter.empty()) return later_in_row(step);
  const Value* later = nullptr;
  std::vector<std::string_view> names;
  for (const NamedValue& candidate : scope_) {
    names.push_back(candidate.name);
    if (same_word(candidate.name, step.after)) later = &candidate.value;
  }
  if (later == nullptr || later->kind != Value::Kind::Event) {
    return build_.report.fail(step.after_span, fmt::format("no event '{}'{}", step.after,
                                                           did_you_mean(step.after, names)));
  }
  return later->stream;
}

// In a chain: the row, or the event of it that a lambda chooses.
Expected<uint16_t> Analyser::later_in_row(const Step& step) {
  Value later = row_;
  Span span = step.span;
  if (!step.later.empty()) {
    const SyntaxExpression& chosen = step.later[0].expression;
    span = chosen.span;
    Names outer = scope_;
    scope_.back().name = step.later[0].name;
    later = CLEW_TRY(evaluator_.evaluate(chosen));
    scope_ = std::move(outer);
  }
  if (later.kind == Value::Kind::Event) return later.stream;
  const auto event = std::find_if(
      row_.members.begin(), row_.members.end(),
      [](const NamedValue& member) { return member.value.kind == Value::Kind::Event; });
  if (event == row_.members.end()) {
    return build_.report.fail(span,
                              "the row has no event that something could happen before; keep it "
                              "until then: (b, a) => new { b, a }");
  }
  if (!step.later.empty()) {
    return build_.report.fail(
        span, fmt::format("this is no event; 'r => r.{}' chooses one", event->name));
  }
  return build_.report.fail(span, fmt::format("which event of the row happens later? In front of "
                                              "the other lambda: 'r => r.{}'",
                                              event->name));
}

Expected<void> Analyser::join(const Step& step) {
  CLEW_TRY(check_outstanding(step, ", when nothing happens that it could be joined with"));
  CLEW_TRY(check_join(step));
  CLEW_TRY(check_kind(step, step.equals.empty()));
  if (!step.equals.empty()) return join_by_time(step);
  Join join;
  join.after = CLEW_TRY(later_stream(step));
  join.name = free_name(step.name);
  join.left = step.left;
  join.filter = step.filter;
  join.count = static_cast<uint32_t>(std::max<uint64_t>(step.number, 1));
  join.span = step.span;
  CLEW_TRY(join_sources(step, join));
  return step.parameter.empty() ? Expected<void>{} : select(step);
}

// Sources, or a query; the name stands for their event, or its row.
Expected<void> Analyser::join_sources(const Step& step, Join& join) {
  const SyntaxSource& source = step.sources[0];
  if (!source.clusters.empty())
    return build_.report.fail(source.span, "k-means comes last: its rows are joined with nothing");
  const SyntaxDefinition* definition = source.is_call ? nullptr : find_definition(source.name);
  const bool is_alone = step.sources.size() == 1;
  if (is_alone && definition != nullptr && !definition->query.empty()) {
    const auto index = static_cast<size_t>(definition - visible_.data());
    return join_query(step, join, definition->query[0], index);
  }
  if (is_alone && !source.query.empty()) {
    return join_query(step, join, source.query[0], visible_.size());
  }
  CLEW_TRY(add_stream(step.name, step.sources));
  Value event = value_of_kind(Value::Kind::Event);
  event.stream = static_cast<uint16_t>(build_.streams.size() - 1);
  scope_.push_back({.name = step.name, .value = std::move(event)});
  build_.query.joins.push_back(std::move(join));
  return {};
}

Expected<void> Analyser::with_cause(const Step& step) {
  std::optional<causal::EdgeClass>& least = build_.query.least_cause;
  if (least && *least != step.least) {
    return build_.report.fail(step.span, fmt::format("causes have one least class, which is {} "
                                                     "already",
                                                     causal::name_of(*least)));
  }
  least = step.least;
  cause_span_ = step.span;
  return {};
}

Expected<void> Analyser::check_cause() const {
  if (!build_.query.least_cause || joins_by_cause(build_.query)) return {};
  if (joins_by_time(build_.query) && !is_outstanding(build_.query))
    return build_.report.fail(cause_span_, "joins by time ask for no cause");
  return build_.report.fail(cause_span_, "nothing is joined here, so no cause is asked for");
}

// The joined query is a query of its own; its columns are what the name stands for.
Expected<void> Analyser::join_query(const Step& step, Join& join, const SyntaxQuery& query,
                                    size_t visible) {
  Query inner = CLEW_TRY(analyse_query(query, visible_.first(visible), build_.report,
                                       build_.environment, build_.limits));
  if (is_outstanding(inner))
    return build_.report.fail(step.span, "what is outstanding is joined with nothing");
  if (!inner.joins.empty() && joins_by_cause(inner) != step.equals.empty()) {
    return build_.report.fail(step.span,
                              "a query joins by cause, or by time, with all that it "
                              "joins: the joined query has joins of the other kind");
  }
  if (inner.clustering)
    return build_.report.fail(step.span, "k-means comes last: its rows are joined with nothing");
  Stream stream;
  stream.name = step.name;
  build_.streams.push_back(std::move(stream));
  Value record = value_of_kind(Value::Kind::Record);
  for (size_t i = 0; i < inner.columns.size(); ++i) {
    Expression column;
    column.kind = ExpressionKind::JoinColumn;
    column.type = inner.columns[i].expression.type;
    column.type.enumeration = 0;
    column.index = static_cast<uint16_t>(i);
    column.stream = static_cast<uint16_t>(build_.streams.size() - 1);
    record.members.push_back(
        {.name = inner.columns[i].name, .value = scalar_value(std::move(column))});
  }
  scope_.push_back({.name = step.name, .value = std::move(record)});
  join.subquery.push_back(std::move(inner));
  build_.query.joins.push_back(std::move(join));
  return {};
}

}  // namespace clew::query
