// SPDX-License-Identifier: Apache-2.0
#include "plan/capture.h"

#include <algorithm>

#include "plan/coder.h"
#include "query/arithmetic.h"
#include "query/walk.h"

namespace clew::plan {

using query::Expression;
using query::ExpressionKind;

namespace {

bool is_time(const Expression& expression) {
  return expression.kind == ExpressionKind::Field && expression.field == query::Field::Time;
}

class Capturer {
 public:
  explicit Capturer(const Plan& plan) : query_(plan.query) {}

  Expected<Expression> rewrite(const Expression& expression) {
    if (query::is_constant(expression)) return expression;
    if (const Expression* time = as_time(expression)) return take(*time);
    // The pane is that of the time which the event is shown with.
    const bool is_pane = query_.window && is_of_time_alone(expression);
    if (!is_pane && all_probes_can_store(query_, expression)) return take(expression);
    if (expression.kind == ExpressionKind::Let) {
      return rewrite(query_.lets[expression.index].expression);
    }
    if (expression.operands.empty()) {
      return fail(ErrorCode::InvalidQuery,
                  "part of the query can be computed neither in the probe nor from its events");
    }
    Expression result = expression;
    for (Expression& operand : result.operands) {
      operand = CLEW_TRY(rewrite(operand));
    }
    return result;
  }

  std::vector<Expression> captures;

 private:
  // The time of the hit, under whatever name.
  [[nodiscard]] const Expression* as_time(const Expression& expression) const {
    if (is_time(expression)) return &expression;
    if (expression.kind != ExpressionKind::Let) return nullptr;
    return as_time(query_.lets[expression.index].expression);
  }

  static bool is_of_time_alone(const Expression& expression) {
    return !query::contains(expression, [](const Expression& node) {
      return node.operands.empty() && !is_time(node) && !query::is_constant(node);
    });
  }

  Expression take(const Expression& expression) {
    auto found = std::find(captures.begin(), captures.end(), expression);
    if (found == captures.end()) found = captures.insert(captures.end(), expression);
    Expression reference;
    reference.kind = ExpressionKind::Input;
    reference.type = expression.type;
    reference.span = expression.span;
    reference.index = static_cast<uint16_t>(found - captures.begin());
    return reference;
  }

  const query::Query& query_;
};

}  // namespace

Expected<Captured> capture(const Plan& plan) {
  Captured result;
  Capturer capturer(plan);
  for (size_t i = 0; i < plan.query.where.size(); ++i) {
    if (plan.pushed(OperatorKind::Filter, static_cast<uint16_t>(i))) continue;
    result.filters.push_back(CLEW_TRY(capturer.rewrite(plan.query.where[i])));
  }
  for (const query::NamedExpression& value : plan.query.values) {
    result.values.push_back(CLEW_TRY(capturer.rewrite(value.expression)));
  }
  for (const query::Aggregate& aggregate : plan.query.aggregates) {
    for (const Expression& argument : aggregate.arguments) {
      result.arguments.push_back(CLEW_TRY(capturer.rewrite(argument)));
    }
  }
  result.captures = std::move(capturer.captures);
  return result;
}

collect::EventWords words_in_event(const Expression& capture) {
  if (is_time(capture)) return {};
  const uint32_t most = stored_words(capture);
  if (has_own_length(capture)) return {.least = 1, .most = 1 + most};
  return {.least = most, .most = most};
}

collect::EventWords words_of_event(const std::vector<Expression>& captures) {
  collect::EventWords all;
  for (const Expression& capture : captures) {
    const collect::EventWords one = words_in_event(capture);
    all.least += one.least;
    all.most += one.most;
  }
  return all;
}

namespace {

// As a text that has its own length: all of it, or nothing where the source has none.
Expected<void> store_sized_stack(Coder& coder, const Expression& capture, int32_t at,
                                 const StoreCapture& store) {
  const bool is_there = coder.meaning(capture).kind == ExpressionKind::Field;
  const auto size = static_cast<int32_t>(is_there ? 8 * stored_words(capture) : 0);
  if (is_there) CLEW_TRY(store(capture, at + 8));
  coder.builder()
      .move(isa::Register::R0, size)
      .store(isa::Size::Double, isa::Register::R9, at, isa::Register::R0);
  if (is_there) coder.builder().alu(isa::Alu::Add, isa::Register::R9, isa::Register::R0);
  return {};
}

}  // namespace

Expected<int32_t> store_captures(Coder& coder, const std::vector<Expression>& captures, int32_t at,
                                 const StoreCapture& store) {
  for (const Expression& capture : captures) {
    const collect::EventWords words = words_in_event(capture);
    if (words.most == 0) continue;
    if (is_own_stack(capture)) {
      CLEW_TRY(store_sized_stack(coder, capture, at, store));
    } else if (has_own_length(capture)) {
      CLEW_TRY(coder.store_sized_text(capture, at));
      coder.builder().alu(isa::Alu::Add, isa::Register::R9, isa::Register::R0);
    } else {
      CLEW_TRY(store(capture, at));
    }
    at += static_cast<int32_t>(8 * words.least);
  }
  return at;
}

}  // namespace clew::plan
