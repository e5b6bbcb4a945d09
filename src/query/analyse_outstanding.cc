// SPDX-License-Identifier: Apache-2.0
// What was begun and has not ended: which events begin and end it, and the keys by which they are
// paired.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "query/analyse.h"
#include "query/arithmetic.h"
#include "query/fields.h"
#include "query/token.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

// By which the keys of either event are written.
constexpr std::string_view kKeyEvent = "e";

// Bare names are those of the event; functions have theirs. `span`: where all of it stands.
SyntaxExpression of_key_event(SyntaxExpression key, std::optional<Span> span) {
  if (span) key.span = key.name_span = *span;
  if (key.kind == SyntaxKind::Name) {
    SyntaxExpression event = key;
    event.text = kKeyEvent;
    key.kind = SyntaxKind::Member;
    key.name_span = key.span;
    key.kids.push_back(std::move(event));
    return key;
  }
  for (size_t i = 0; i < key.kids.size(); ++i) {
    const bool is_function = key.kind == SyntaxKind::Call && i == 0;
    if (!is_function) key.kids[i] = of_key_event(std::move(key.kids[i]), span);
  }
  return key;
}

bool is_pid(const Expression& key) {
  return key.kind == ExpressionKind::Field && key.field == Field::Pid;
}

}  // namespace

// By a call, or by a name of the vocabulary; then all of it stands at the name.
Expected<std::optional<SyntaxOutstanding>> Analyser::outstanding_of(
    const SyntaxQuery& query) const {
  const Vocabulary* const vocabulary = build_.environment.vocabulary;
  for (const SyntaxSource& source : query.sources) {
    const OutstandingDefinition* const named =
        source.is_call || vocabulary == nullptr ? nullptr : vocabulary->outstanding(source.name);
    if (source.outstanding.empty() && named == nullptr && source.one_in != 0) {
      return build_.report.fail(source.one_in_span,
                                "'one in' is of what is outstanding; events are sampled by 'where "
                                "sample(64)'");
    }
    if (source.outstanding.empty() && named == nullptr) continue;
    if (query.sources.size() > 1) {
      return build_.report.fail(source.span,
                                "what is outstanding is in no union with other sources; "
                                "outstanding(…) has unions in front of 'until' and behind it");
    }
    if (!source.label.empty() || !source.exports.empty()) {
      return build_.report.fail(source.span,
                                "a name and exports belong to the sources within outstanding(…)");
    }
    if (named == nullptr) return source.outstanding[0];
    SyntaxOutstanding what = named->what;
    for (std::vector<SyntaxSource>* sources : {&what.opened, &what.closed}) {
      for (SyntaxSource& each : *sources)
        each.span = each.name_span = source.span;
    }
    return what;
  }
  return std::nullopt;
}

// What ends it is joined with it, and stands for the moment at which it is asked for.
Expected<void> Analyser::add_end(const SyntaxQuery& query, const SyntaxOutstanding& what) {
  const Span span = query.sources[0].span;
  if (same_word(query.name, kAskedName)) {
    return build_.report.fail(query.name_span,
                              fmt::format("the name '{}' is taken: it is the moment that a row is "
                                          "of",
                                          kAskedName));
  }
  CLEW_TRY(add_stream(std::string(kAskedName), what.closed));
  Within made{.ends = true, .one_in = std::max<uint64_t>(query.sources[0].one_in, 1)};
  for (const SyntaxEquals& key : what.keys)
    CLEW_TRY(add_outstanding_key(key, query.sources[0].outstanding.empty(), made));
  const bool has_pid = std::any_of(made.other.begin(), made.other.end(), is_pid);
  if (!what.is_across && !has_pid) {
    made.other.insert(made.other.begin(), field_expression(Field::Pid, 0, 0, span));
    made.joined.insert(made.joined.begin(), field_expression(Field::Pid, 0, 1, span));
  }
  Join join;
  join.name = kAskedName;
  join.left = true;
  join.span = span;
  join.within = std::move(made);
  build_.query.joins.push_back(std::move(join));
  Value asked = value_of_kind(Value::Kind::Record);
  asked.members.push_back(
      {.name = "time", .value = scalar_value(field_expression(Field::Time, 0, 1, span))});
  scope_.push_back({.name = std::string(kAskedName), .value = std::move(asked)});
  return {};
}

Expected<void> Analyser::add_outstanding_key(const SyntaxEquals& key, bool is_named,
                                             Within& within) {
  std::vector<Expression> pair;
  Names names;
  Evaluator over_key(build_, names);
  std::optional<Span> place;
  if (is_named) place = row_span_;
  for (const uint16_t stream : {uint16_t{0}, uint16_t{1}}) {
    const SyntaxExpression& written = stream == 0 ? key.left.expression : key.right.expression;
    const SyntaxExpression syntax = of_key_event(written, place);
    Value event = value_of_kind(Value::Kind::Event);
    event.stream = stream;
    names = {{.name = std::string(kKeyEvent), .value = std::move(event)}};
    Expression part = CLEW_TRY(over_key.scalar(syntax));
    part.span = syntax.span;
    if (is_constant(part))
      return build_.report.fail(syntax.span, "a key is of an event, and this is of none");
    pair.push_back(std::move(part));
  }
  // One process is the first key already, whether it is named or not.
  if (is_pid(pair[0]) && is_pid(pair[1])) {
    within.other.insert(within.other.begin(), std::move(pair[0]));
    within.joined.insert(within.joined.begin(), std::move(pair[1]));
    return {};
  }
  return add_pair(std::move(pair), "a key", within);
}

// Rows are made where somebody asks, and not where something happens.
Expected<void> Analyser::check_outstanding(const Step& step, std::string_view instead) const {
  if (!is_outstanding(build_.query)) return {};
  return build_.report.fail(
      step.span, fmt::format("what is outstanding is so at a moment: at the end, or with 'every "
                             "10s' at the end of each interval{}",
                             instead));
}

}  // namespace clew::query
