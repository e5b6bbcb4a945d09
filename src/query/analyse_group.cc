// SPDX-License-Identifier: Apache-2.0
// Grouping in its spellings: group … by … into, groupby, GroupBy, and the methods that end a chain.
#include <fmt/format.h>

#include "base/assert.h"
#include "query/analyse.h"
#include "query/arithmetic.h"
#include "query/token.h"

namespace clew::query {

Expected<void> Analyser::add_key(const std::string& name, const Value& value, Span span) {
  if (value.kind == Value::Kind::Record) {
    for (const NamedValue& member : value.members) {
      CLEW_TRY(add_key(member.name, member.value, span));
    }
    return {};
  }
  Expression key = CLEW_TRY(evaluator_.to_scalar(value, span));
  CLEW_ASSERT(!has_aggregate(key));  // Only what is grouped already has aggregates.
  for (const NamedExpression& other : result_.keys) {
    if (other.expression == key) return {};
  }
  if (result_.keys.size() == kColumnsMax) {
    return build_.report.fail(span, fmt::format("a group has at most {} keys", kColumnsMax));
  }
  result_.keys.push_back({.name = name, .expression = std::move(key)});
  return {};
}

// group ELEMENT by KEY into NAME, and GroupBy(e => KEY, e => ELEMENT), whose items are in the other
// order.
Expected<void> Analyser::group(const Step& step) {
  CLEW_TRY(check_before_order(step, "a group"));
  if (result_.is_grouped) {
    return build_.report.fail(step.span, "a group of groups is not part of this version yet");
  }
  const bool is_method = !step.parameter.empty();
  const SyntaxExpression& key_syntax = step.items[is_method ? 0 : 1].expression;
  Value key = CLEW_TRY(evaluator_.evaluate(key_syntax));
  if (key.kind == Value::Kind::Event) {
    return build_.report.fail(key_syntax.span, "an event is no key; choose a field, such as .pid");
  }
  Value element = row_;
  if (!is_method) element = CLEW_TRY(evaluator_.evaluate(step.items[0].expression));
  if (is_method && step.items.size() == 2) {
    scope_.push_back({.name = step.items[1].name, .value = row_});
    element = CLEW_TRY(evaluator_.evaluate(step.items[1].expression));
    scope_.pop_back();
  }
  const std::string name = derived_name(key_syntax, build_.report.text().text);
  if (key.kind == Value::Kind::Place) {
    key = scalar_value(CLEW_TRY(evaluator_.to_scalar(std::move(key), key_syntax.span)));
  }
  CLEW_TRY(add_key(name, key, key_syntax.span));
  result_.is_grouped = true;
  Value group = value_of_kind(Value::Kind::Group);
  group.members.push_back({.name = "Key", .value = std::move(key)});
  group.members.push_back({.name = "", .value = std::move(element)});
  row_ = group;
  row_span_ = step.span;
  has_row_ = false;
  // LINQ: behind `into` only the group is in reach.
  if (is_method) return {};
  scope_ = window_names();
  scope_.push_back({.name = step.name, .value = std::move(group)});
  return {};
}

// groupby KEY, …: events stay in reach, for keys and aggregates.
Expected<void> Analyser::group_by(const Step& step) {
  CLEW_TRY(check_before_order(step, "a group"));
  if (result_.is_grouped) {
    return build_.report.fail(step.span, "a group of groups is not part of this version yet");
  }
  Names names;
  for (const SyntaxItem& item : step.items) {
    std::string name = item.name;
    if (name.empty()) name = derived_name(item.expression, build_.report.text().text);
    Value key = CLEW_TRY(evaluator_.evaluate(item.expression));
    CLEW_TRY(add_key(name, key, item.expression.span));
    if (!item.name.empty()) names.push_back({.name = item.name, .value = std::move(key)});
  }
  result_.is_grouped = true;
  row_span_ = step.span;
  has_row_ = false;
  names.insert(names.end(), scope_.begin(), scope_.end());
  scope_ = std::move(names);
  return {};
}

// Count(e => …), Sum(e => …) at the end of a chain: one row, or Count of what is grouped.
Expected<void> Analyser::aggregate_chain(const Step& step) {
  CLEW_TRY(check_before_order(step, "an aggregate"));
  if (result_.is_grouped) {
    return build_.report.fail(step.name_span, fmt::format("'{}' of groups is not part of this "
                                                          "version yet; write Select(g => "
                                                          "g.{}(…))",
                                                          step.name, step.name));
  }
  if (same_word(step.name, "Aggregate")) return fold(step);
  const bool is_count = same_word(step.name, "Count");
  std::vector<Expression> arguments;
  if (is_count && !step.items.empty()) {
    CLEW_TRY(where_conjunct(step.items[0].expression));
  } else {
    for (const SyntaxItem& item : step.items) {
      arguments.push_back(CLEW_TRY(evaluator_.scalar(item.expression)));
    }
  }
  if (arguments.empty() && !is_count) {
    arguments.push_back(CLEW_TRY(evaluator_.to_scalar(row_, step.name_span)));
  }
  std::string name;
  for (const char c : step.name) {
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  Expression total = CLEW_TRY(evaluator_.aggregate(name, std::move(arguments), step.name_span));
  result_.is_grouped = true;
  Value record = value_of_kind(Value::Kind::Record);
  record.members.push_back({.name = std::move(name), .value = scalar_value(std::move(total))});
  row_span_ = step.span;
  set_row(std::move(record));
  return {};
}

// Aggregate((x, y) => x + y) over numbers: sum, min and max are known.
Expected<void> Analyser::fold(const Step& step) {
  if (step.items.empty()) {
    return build_.report.fail(step.name_span, "expected a lambda, such as (x, y) => x + y");
  }
  const SyntaxExpression& body = step.items[0].expression;
  const auto is_name = [](const SyntaxExpression& side, std::string_view name) {
    return side.kind == SyntaxKind::Name && side.text == name;
  };
  const bool is_sum = body.kind == SyntaxKind::Binary && body.binary == BinaryOperator::Add;
  const bool is_call = body.kind == SyntaxKind::Call && body.kids.size() == 3 &&
                       body.kids[0].kind == SyntaxKind::Name;
  const size_t first = is_call ? 1 : 0;
  const bool is_over_both =
      (is_sum || is_call) &&
      ((is_name(body.kids[first], step.parameter) && is_name(body.kids[first + 1], step.before)) ||
       (is_name(body.kids[first], step.before) && is_name(body.kids[first + 1], step.parameter)));
  std::string_view name;
  if (is_over_both && is_sum) name = "sum";
  if (is_over_both && is_call && same_word(body.kids[0].text, "min")) name = "min";
  if (is_over_both && is_call && same_word(body.kids[0].text, "max")) name = "max";
  if (name.empty()) {
    return build_.report.fail(body.span,
                              "Aggregate with this function is not part of this version "
                              "yet; it knows x + y, min(x, y) and max(x, y)");
  }
  Expression argument = CLEW_TRY(evaluator_.to_scalar(row_, step.name_span));
  Expression total = CLEW_TRY(evaluator_.aggregate(name, {std::move(argument)}, step.name_span));
  result_.is_grouped = true;
  Value record = value_of_kind(Value::Kind::Record);
  record.members.push_back({.name = std::string(name), .value = scalar_value(std::move(total))});
  row_span_ = step.span;
  set_row(std::move(record));
  return {};
}

}  // namespace clew::query
