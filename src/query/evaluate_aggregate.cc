// SPDX-License-Identifier: Apache-2.0
// Aggregates: as functions over the grouped events (clauses), and as methods of a group (LINQ).
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "abi/buckets.h"
#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/token.h"

namespace clew::query {
namespace {

// Names besides that of the function itself.
struct Alias {
  std::string_view name;
  AggregateFunction function;
  double fraction = 0;  // Of a quantile, which then has no parameter.
};

constexpr Alias kAliases[] = {
    {"average", AggregateFunction::Average},     {"median", AggregateFunction::Quantile, 0.5},
    {"p50", AggregateFunction::Quantile, 0.5},   {"p90", AggregateFunction::Quantile, 0.9},
    {"p95", AggregateFunction::Quantile, 0.95},  {"p99", AggregateFunction::Quantile, 0.99},
    {"p999", AggregateFunction::Quantile, 0.999}};

constexpr int64_t kTopMax = 1000;
constexpr int64_t kLinearLevelsMax = 1000;

std::optional<Alias> find_aggregate(std::string_view name) {
  for (uint32_t i = 0; i < abi::kAggregateFunctions; ++i) {
    const abi::AggregateRow& row = abi::kAggregateRows[i];
    if (same_word(row.name, name)) return Alias{row.name, static_cast<AggregateFunction>(i)};
  }
  for (const Alias& alias : kAliases) {
    if (same_word(alias.name, name)) return alias;
  }
  return std::nullopt;
}

std::vector<std::string_view> aggregate_names() {
  std::vector<std::string_view> names;
  for (const abi::AggregateRow& row : abi::kAggregateRows)
    names.emplace_back(row.name);
  for (const Alias& alias : kAliases)
    names.push_back(alias.name);
  return names;
}

}  // namespace

bool is_histogram_kind(AggregateFunction kind) {
  return kind == AggregateFunction::Quantize || kind == AggregateFunction::Lquantize ||
         kind == AggregateFunction::Llquantize || kind == AggregateFunction::TopK;
}

bool is_aggregate_name(std::string_view name) {
  return find_aggregate(name).has_value();
}

bool Evaluator::is_histogram(const Expression& expression) const {
  return expression.kind == ExpressionKind::Aggregate &&
         is_histogram_kind(build_.query.aggregates[expression.index].function);
}

// --- as functions --------------------------------------------------------------------------------

Expected<Value> Evaluator::aggregate_call(const SyntaxExpression& syntax, std::string_view name) {
  if (inside_aggregate_) return fail(syntax.span, "an aggregate cannot hold another aggregate");
  if (!aggregates_allowed_) {
    return fail(syntax.span, fmt::format("'{}' is an aggregate; it goes behind 'select' or, after "
                                         "'groupby', behind 'where' and 'orderby'",
                                         name));
  }
  std::vector<Expression> arguments;
  inside_aggregate_ = true;
  for (size_t i = 1; i < syntax.kids.size(); ++i) {
    Expected<Value> value = evaluate(syntax.kids[i]);
    if (!value) {
      inside_aggregate_ = false;
      return tl::unexpected<Error>(value.error());
    }
    // COUNT(e) counts events.
    const bool is_event = value->kind == Value::Kind::Event && same_word(name, "count");
    if (is_event) continue;
    Expected<Expression> argument = to_scalar(*std::move(value), syntax.kids[i].span);
    inside_aggregate_ = argument.has_value();
    arguments.push_back(CLEW_TRY(std::move(argument)));
  }
  inside_aggregate_ = false;
  return scalar_value(CLEW_TRY(aggregate(name, std::move(arguments), syntax.span)));
}

Expected<Expression> Evaluator::aggregate(std::string_view name, std::vector<Expression> arguments,
                                          Span span) {
  const std::optional<Alias> info = find_aggregate(name);
  CLEW_ASSERT(info.has_value());
  Aggregate made;
  made.function = info->function;
  made.fraction = info->fraction;
  made.span = at(span);
  if (info->function == AggregateFunction::Count) {
    if (arguments.empty()) return add_aggregate(std::move(made));
    return fail(span, "'count' takes no argument; count what holds with sum(condition != 0)");
  }
  const abi::AggregateRow& row = row_of(info->function);
  const size_t least = 1U + (info->fraction > 0 ? 0U : row.parameters_min);
  const size_t most = 1U + (info->fraction > 0 ? 0U : row.parameters_max);
  if (arguments.size() < least || arguments.size() > most) {
    const std::string wanted =
        least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
    return fail(span, fmt::format("'{}' takes {} argument{}, not {}", info->name, wanted,
                                  wanted == "1" ? "" : "s", arguments.size()));
  }
  if (has_aggregate(arguments[0])) return fail(span, "an aggregate cannot hold another aggregate");
  std::vector<Expression> extra(std::make_move_iterator(arguments.begin() + 1),
                                std::make_move_iterator(arguments.end()));
  arguments.resize(1);
  made.arguments = std::move(arguments);
  CLEW_TRY(set_parameters(made, std::move(extra)));
  CLEW_TRY(set_argument_type(made));
  return add_aggregate(std::move(made));
}

Expected<void> Evaluator::set_parameters(Aggregate& aggregate, std::vector<Expression> extra) {
  if (aggregate.function == AggregateFunction::Quantile && !extra.empty()) {
    const Expression& fraction = extra[0];
    const bool fits =
        fraction.kind == ExpressionKind::Float && fraction.real > 0 && fraction.real < 1;
    if (!fits) return fail(fraction.span, "the fraction of a quantile is between 0 and 1, as .99");
    aggregate.fraction = fraction.real;
    return {};
  }
  for (const Expression& parameter : extra) {
    if (parameter.kind != ExpressionKind::Integer) {
      return fail(parameter.span, fmt::format("the parameters of '{}' are constant integers",
                                              name_of(aggregate.function)));
    }
    aggregate.parameters.push_back(parameter.integer);
  }
  std::vector<int64_t>& values = aggregate.parameters;
  if (aggregate.function == AggregateFunction::TopK && (values[0] < 1 || values[0] > kTopMax)) {
    return fail(extra[0].span, fmt::format("'topk' keeps from 1 to {} values", kTopMax));
  }
  if (aggregate.function == AggregateFunction::Lquantize) {
    if (values.size() == 2) values.push_back(1);
    const bool is_range = values[0] < values[1] && values[2] > 0;
    const auto width = static_cast<uint64_t>(values[1]) - static_cast<uint64_t>(values[0]);
    if (!is_range || width / static_cast<uint64_t>(values[2]) > kLinearLevelsMax) {
      return fail(aggregate.span, fmt::format("'lquantize' takes (x, base, limit, step): base < "
                                              "limit, step > 0, at most {} steps",
                                              kLinearLevelsMax));
    }
  }
  if (aggregate.function == AggregateFunction::Llquantize) {
    const int64_t factor = values[0];
    const int64_t steps = values[3];
    const bool is_range = factor >= 2 && values[1] >= 0 && values[1] < values[2] &&
                          values[2] <= 19 && steps >= factor && steps % factor == 0 &&
                          steps <= kLinearLevelsMax;
    if (!is_range) {
      return fail(aggregate.span,
                  "'llquantize' takes (x, factor, low, high, steps): factor >= 2, "
                  "0 <= low < high <= 19, steps a multiple of factor");
    }
    return check_orders(aggregate);
  }
  return {};
}

// That what counts can do so: its powers are words, and its buckets are whole.
Expected<void> Evaluator::check_orders(const Aggregate& aggregate) const {
  const std::vector<int64_t>& values = aggregate.parameters;
  const abi::LogLinearBuckets orders = {.factor = static_cast<uint64_t>(values[0]),
                                        .low = static_cast<uint64_t>(values[1]),
                                        .high = static_cast<uint64_t>(values[2]),
                                        .steps = static_cast<uint64_t>(values[3])};
  if (!abi::powers_fit(orders)) {
    return fail(aggregate.span,
                fmt::format("'llquantize': {} to the power of {} does not fit 64 bits",
                            orders.factor, orders.high + 1));
  }
  if (abi::cuts_evenly(orders)) return {};
  return fail(aggregate.span,
              fmt::format("'llquantize': {0} steps do not divide the powers of {1}; use a multiple "
                          "of {1} that divides one of its powers",
                          orders.steps, orders.factor));
}

Expected<void> Evaluator::set_argument_type(Aggregate& aggregate) {
  const Type type = aggregate.arguments[0].type;
  const bool is_numeric = type.kind == TypeKind::Integer || type.kind == TypeKind::Float;
  const bool is_countable = type.kind != TypeKind::Stack;
  if (!is_numeric && !(row_of(aggregate.function).takes == abi::ValueKind::Any && is_countable)) {
    return fail(
        aggregate.arguments[0].span,
        fmt::format("'{}' needs a number, not {}", name_of(aggregate.function), name_of(type)));
  }
  aggregate.type = type;
  switch (aggregate.function) {
    case AggregateFunction::Sum:
      if (type.kind == TypeKind::Integer) {
        aggregate.type = type.is_signed ? kInt64 : kUint64;
      } else {
        aggregate.type = kFloat64;
      }
      break;
    case AggregateFunction::Average:
    case AggregateFunction::StandardDeviation:
      aggregate.type = kFloat64;
      break;
    case AggregateFunction::Variance:  // Of durations: their squares, which are none.
      aggregate.type = kFloat64;
      return {};
    case AggregateFunction::Count:
    case AggregateFunction::Distinct:
      aggregate.type = kInt64;
      return {};
    case AggregateFunction::Min:
    case AggregateFunction::Max:
    case AggregateFunction::Quantize:
    case AggregateFunction::Lquantize:
    case AggregateFunction::Llquantize:
    case AggregateFunction::TopK:
    case AggregateFunction::Quantile:
      return {};
  }
  // A sum or mean of durations is a duration; of times or addresses it is just a number.
  if (type.unit == Unit::Nanoseconds) aggregate.type.unit = Unit::Nanoseconds;
  return {};
}

// Two uses of the same aggregate are one cell.
Expected<Expression> Evaluator::add_aggregate(Aggregate aggregate) {
  // Signed, so that a negative sum divided by a count stays negative.
  if (aggregate.function == AggregateFunction::Count) aggregate.type = kInt64;
  std::vector<Aggregate>& all = build_.query.aggregates;
  size_t index = 0;
  while (index < all.size() && !(all[index] == aggregate))
    ++index;
  if (index == kAggregatesMax) {
    return fail(aggregate.span, fmt::format("a query has at most {} aggregates", kAggregatesMax));
  }
  Expression result;
  result.kind = ExpressionKind::Aggregate;
  result.type = aggregate.type;
  result.index = static_cast<uint16_t>(index);
  result.span = aggregate.span;
  if (index == all.size()) all.push_back(std::move(aggregate));
  return result;
}

// --- as methods of a group -----------------------------------------------------------------------

Expected<Expression> Evaluator::lambda_scalar(const SyntaxExpression& lambda,
                                              const Value& element) {
  const bool is_lambda = lambda.kind == SyntaxKind::Lambda && lambda.names.size() == 1;
  if (!is_lambda) return fail(lambda.span, "expected a lambda, such as e => e.arg0");
  if (inside_aggregate_) return fail(lambda.span, "an aggregate cannot hold another aggregate");
  scope_.push_back({.name = lambda.names[0], .value = element});
  inside_aggregate_ = true;
  Expected<Expression> result = scalar(lambda.kids[0]);
  inside_aggregate_ = false;
  scope_.pop_back();
  return result;
}

// g.Sum(e => e.size), g.Quantile(e => e.elapsed, .99), g.Count()
Expected<Value> Evaluator::group_method(const Value& group, const SyntaxExpression& syntax) {
  const SyntaxExpression& callee = syntax.kids[0];
  const std::optional<Alias> info = find_aggregate(callee.text);
  if (!info) {
    return fail(callee.name_span, fmt::format("a group has no method '{}'{}", callee.text,
                                              did_you_mean(callee.text, aggregate_names())));
  }
  const Value* element = find_member(group.members, "");
  if (info->function == AggregateFunction::Count && syntax.kids.size() == 2) {
    return count_where(group, syntax.kids[1], syntax.span);
  }
  std::vector<Expression> arguments;
  for (size_t i = 1; i < syntax.kids.size(); ++i) {
    const SyntaxExpression& kid = syntax.kids[i];
    const bool is_parameter = i > 1 && kid.kind != SyntaxKind::Lambda;
    arguments.push_back(is_parameter ? CLEW_TRY(scalar(kid))
                                     : CLEW_TRY(lambda_scalar(kid, *element)));
  }
  const bool needs_element = arguments.empty() && info->function != AggregateFunction::Count;
  if (needs_element) arguments.push_back(CLEW_TRY(to_scalar(*element, syntax.span)));
  return scalar_value(CLEW_TRY(aggregate(callee.text, std::move(arguments), syntax.span)));
}

// g.Count(e => e.size > 10) is the sum of the condition as 0 or 1.
Expected<Value> Evaluator::count_where(const Value& group, const SyntaxExpression& lambda,
                                       Span span) {
  const Value* element = find_member(group.members, "");
  Expression condition = CLEW_TRY(lambda_scalar(lambda, *element));
  if (!is_integer(condition)) return fail(lambda.span, "a condition is an integer");
  Expression zero = integer_constant(0, condition.type, at(span));
  std::vector<Expression> operands{std::move(condition), std::move(zero)};
  Expression holds =
      CLEW_TRY(make_binary(build_.report, BinaryOperator::NotEqual, std::move(operands), at(span)));
  Expression count = CLEW_TRY(aggregate("sum", {convert(std::move(holds), kInt64)}, span));
  return scalar_value(std::move(count));
}

}  // namespace clew::query
