// SPDX-License-Identifier: Apache-2.0
// Joins by time: which keys are whose, and in what type they are compared.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "query/analyse.h"
#include "query/arithmetic.h"
#include "query/fields.h"
#include "query/walk.h"

namespace clew::query {

// Lets stand in front of joins where a query is read, and behind them in its normal form.
Expected<void> Analyser::expand_lets(Expression& key) {
  while (key.kind == ExpressionKind::Let) {
    Expression meaning = build_.query.lets[key.index].expression;
    const size_t nodes = count_nodes(meaning);
    if (nodes > build_.limits.nodes) {
      return build_.report.fail(key.span,
                                fmt::format("this query has more than {} operations", kNodesMax));
    }
    build_.limits.nodes -= nodes;
    key = std::move(meaning);
  }
  for (Expression& operand : key.operands)
    CLEW_TRY(expand_lets(operand));
  return {};
}

Expected<void> Analyser::join_by_time(const Step& step) {
  Join join;
  join.name = free_name(step.name);
  join.left = step.left;
  join.filter = step.filter;
  join.count = static_cast<uint32_t>(std::max<uint64_t>(step.number, 1));
  join.span = step.span;
  CLEW_TRY(join_sources(step, join));
  const auto joined = static_cast<uint16_t>(build_.query.joins.size());
  uint16_t other = 0;
  Within made = CLEW_TRY(within(step, joined, other));
  Join& added = build_.query.joins.back();
  added.within = std::move(made);
  added.after = other;
  return step.parameter.empty() ? Expected<void>{} : select(step);
}

Expected<Within> Analyser::within(const Step& step, uint16_t joined, uint16_t& other) {
  Within made{.ns = step.within_ns, .side = step.side};
  std::optional<uint16_t> of;
  for (const SyntaxEquals& equals : step.equals) {
    std::vector<Expression> left = CLEW_TRY(join_key(step, equals.left, false));
    std::vector<Expression> right = CLEW_TRY(join_key(step, equals.right, true));
    if (left.size() != right.size()) {
      return build_.report.fail(equals.right.expression.span,
                                fmt::format("of the parts that a key has, this one has {}, and "
                                            "the other one {}",
                                            right.size(), left.size()));
    }
    for (size_t i = 0; i < left.size(); ++i) {
      std::vector<Expression> pair;
      pair.push_back(std::move(left[i]));
      pair.push_back(std::move(right[i]));
      CLEW_TRY(add_equal(step, std::move(pair), joined, made, of));
    }
  }
  other = of.value_or(0);
  return made;
}

// The parts of `new { … }`, or the one. A lambda sees its parameter alone.
Expected<std::vector<Expression>> Analyser::join_key(const Step& step, const SyntaxItem& key,
                                                     bool is_joined) {
  const Names outer = scope_;
  if (!step.parameter.empty()) {
    NamedValue joined = scope_.back();
    scope_.resize(scope_.size() - 2);
    scope_.push_back(is_joined ? std::move(joined) : NamedValue{.name = "", .value = row_});
    scope_.back().name = key.name;
  }
  const SyntaxExpression& syntax = key.expression;
  std::vector<Expression> parts;
  Value value = CLEW_TRY(evaluator_.evaluate(syntax));
  if (value.kind == Value::Kind::Record && syntax.kind == SyntaxKind::New) {
    for (NamedValue& member : value.members)
      parts.push_back(CLEW_TRY(evaluator_.to_scalar(std::move(member.value), syntax.span)));
  } else {
    parts.push_back(CLEW_TRY(evaluator_.to_scalar(std::move(value), syntax.span)));
  }
  scope_ = outer;
  for (Expression& part : parts) {
    part.span = part.span.end == 0 ? syntax.span : part.span;
    CLEW_TRY(expand_lets(part));
  }
  return parts;
}

Expected<std::optional<uint16_t>> Analyser::stream_of_key(const Expression& key) {
  std::optional<uint16_t> only;
  bool is_mixed = false;
  visit(key, [&](const Expression& node) {
    const bool is_of_event = node.kind == ExpressionKind::Field ||
                             node.kind == ExpressionKind::Input ||
                             node.kind == ExpressionKind::JoinColumn;
    if (!is_of_event) return;
    is_mixed = is_mixed || (only && *only != node.stream);
    only = node.stream;
  });
  if (is_mixed) {
    return build_.report.fail(key.span, "a key of a join is of one event, and this is of several");
  }
  return only;
}

// One pair of keys: of the joined event and of an earlier one, in any order.
Expected<void> Analyser::add_equal(const Step& step, std::vector<Expression> pair, uint16_t joined,
                                   Within& within, std::optional<uint16_t>& other) {
  std::optional<uint16_t> first = CLEW_TRY(stream_of_key(pair[0]));
  std::optional<uint16_t> second = CLEW_TRY(stream_of_key(pair[1]));
  for (const size_t side : {size_t{0}, size_t{1}}) {
    if (side == 0 ? first : second) continue;
    return build_.report.fail(pair[side].span, "a key of a join is of an event, and this of none");
  }
  const bool is_first = *first == joined;
  if (is_first == (*second == joined)) {
    return build_.report.fail(
        pair[1].span,
        fmt::format("one of the two keys is of '{}', the other one of an event "
                    "before it: both are of {}",
                    step.name, is_first ? fmt::format("'{}'", step.name) : "events before it"));
  }
  if (is_first) std::swap(pair[0], pair[1]);
  const uint16_t of = is_first ? *second : *first;
  if (other && *other != of) {
    return build_.report.fail(pair[0].span,
                              "the keys of a join are of two events, and this is of a third one");
  }
  other = of;
  return add_pair(std::move(pair), "a key of a join", within);
}

Expected<void> Analyser::add_pair(std::vector<Expression> pair, std::string_view what,
                                  Within& within) {
  for (const Expression& key : pair) {
    const TypeKind kind = key.type.kind;
    if (kind == TypeKind::Integer || kind == TypeKind::String) continue;
    return build_.report.fail(
        key.span, fmt::format("{} is an integer or text, not {}", what, name_of(key.type)));
  }
  if (pair[0].type.kind != pair[1].type.kind) {
    return build_.report.fail(pair[1].span,
                              fmt::format("the keys cannot be equal: this is {}, the other one {}",
                                          name_of(pair[1].type), name_of(pair[0].type)));
  }
  const Span span = pair[1].span;
  Expression equal =
      CLEW_TRY(make_binary(build_.report, BinaryOperator::Equal, std::move(pair), span));
  within.other.push_back(std::move(equal.operands[0]));
  within.joined.push_back(std::move(equal.operands[1]));
  return {};
}

}  // namespace clew::query
