// SPDX-License-Identifier: Apache-2.0
// What a query computes of an event, as a whole: the expressions, and what their lets and inputs
// stand for.
#pragma once

#include "query/query.h"
#include "query/walk.h"

namespace clew::query {

// As find_node(), for an event of one source: with what lets and inputs stand for.
template <typename Predicate>
const Expression* find_meaning(const Query& query, const Source& source, const Expression& root,
                               const Predicate& is_one) {
  const Expression* found = nullptr;
  const auto is_behind = [&](const Expression& node) {
    if (node.kind == ExpressionKind::Let) {
      found = find_meaning(query, source, query.lets[node.index].expression, is_one);
    } else if (node.kind == ExpressionKind::Input) {
      found = find_meaning(query, source, source.inputs[node.index], is_one);
    }
    return found != nullptr;
  };
  const Expression* node =
      find_node(root, [&](const Expression& each) { return is_one(each) || is_behind(each); });
  return found != nullptr ? found : node;
}

// What is computed of an event, but for lets: whether `is_one` holds for one of these expressions.
// `AnyQuery` may be const.
template <typename AnyQuery, typename Predicate>
bool any_at_event(AnyQuery& query, const Predicate& is_one) {
  for (auto& condition : query.where) {
    if (is_one(condition)) return true;
  }
  for (auto& value : query.values) {
    if (is_one(value.expression)) return true;
  }
  for (auto& aggregate : query.aggregates) {
    for (auto& argument : aggregate.arguments) {
      if (is_one(argument)) return true;
    }
  }
  return false;
}

template <typename AnyQuery, typename Visitor>
void visit_at_event(AnyQuery& query, const Visitor& visitor) {
  any_at_event(query, [&](auto& root) {
    visitor(root);
    return false;
  });
}

}  // namespace clew::query
