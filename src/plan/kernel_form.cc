// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_form.h"

#include <algorithm>
#include <optional>

#include "plan/coder.h"
#include "plan/kernel_cells.h"
#include "plan/update.h"

namespace clew::plan {

using abi::QueryWord;
using query::Expression;
using query::ExpressionKind;
using query::Field;

namespace {

constexpr query::Type kAddressType{.is_signed = false, .unit = query::Unit::Address};
constexpr query::Type kTruth{.size_bytes = 4};

Expression word(QueryWord which, query::Type type) {
  Expression result;
  result.kind = ExpressionKind::Field;
  result.field = Field::Argument;
  result.index = static_cast<uint16_t>(which);
  result.type = type;
  return result;
}

Expression text(QueryWord address, const query::Type& type) {
  Expression result;
  result.kind = ExpressionKind::ReadString;
  result.type = type;
  result.operands.push_back(word(address, kAddressType));
  return result;
}

std::optional<Expression> as_argument(const Expression& field) {
  switch (field.field) {
    case Field::Pid:
      return word(QueryWord::Pid, field.type);
    case Field::Comm:
      return text(QueryWord::Comm, field.type);
    case Field::ProcName:
      return text(QueryWord::ProcessName, field.type);
    case Field::Elapsed:
      return word(QueryWord::Elapsed, field.type);
    case Field::EntryArgument: {
      const auto first = static_cast<unsigned>(QueryWord::EntryArgument0);
      return word(static_cast<QueryWord>(first + field.index), field.type);
    }
    case Field::Time:
    case Field::Tid:
    case Field::Cpu:
    case Field::Host:
    case Field::Function:
    case Field::Module:
    case Field::Probe:
    case Field::Caller:
    case Field::Stack:
    case Field::UserStack:
    case Field::KernelStack:
    case Field::Argument:
    case Field::ReturnValue:
      break;
  }
  return std::nullopt;
}

void rewrite(Expression& expression) {
  for (Expression& operand : expression.operands)
    rewrite(operand);
  if (expression.kind != ExpressionKind::Field) return;
  std::optional<Expression> argument = as_argument(expression);
  if (!argument) return;
  argument->span = expression.span;
  expression = std::move(*argument);
}

// One Select that programs can compute moves before the merge.
bool rewrite_kernel_select(Plan& plan) {
  const size_t merge = plan.merge_position();
  for (size_t i = merge + 1; i < plan.operators.size(); ++i) {
    Operator op = plan.operators[i];
    const bool can = op.kind == OperatorKind::Select &&
                     all_probes_can_store(plan.query, plan.query.values[op.index].expression);
    if (!can) continue;
    op.tier = Tier::Probe;
    plan.operators.erase(plan.operators.begin() + static_cast<ptrdiff_t>(i));
    plan.operators.insert(plan.operators.begin() + static_cast<ptrdiff_t>(merge), op);
    return true;
  }
  return false;
}

bool counts_in_kernel(const query::Query& query) {
  return !query.for_events && std::all_of(query.aggregates.begin(), query.aggregates.end(),
                                          [](const auto& a) { return has_kernel_cells(a); });
}

}  // namespace

query::Query kernel_form(query::Query query) {
  for (query::NamedExpression& let : query.lets)
    rewrite(let.expression);
  for (Expression& condition : query.where)
    rewrite(condition);
  for (query::NamedExpression& value : query.values)
    rewrite(value.expression);
  for (query::Aggregate& aggregate : query.aggregates) {
    for (Expression& argument : aggregate.arguments)
      rewrite(argument);
  }
  for (query::Source& source : query.sources) {
    for (Expression& input : source.inputs)
      rewrite(input);
  }
  return query;
}

Plan make_kernel_plan(query::Query query) {
  Plan plan = plain(kernel_form(std::move(query)));
  while (rewrite_filter(plan) || rewrite_kernel_select(plan)) {
  }
  if (counts_in_kernel(plan.query)) (void)(rewrite_group(plan) || rewrite_aggregate(plan));
  return plan;
}

bool KernelUse::entry() const {
  return std::any_of(words.begin(), words.end(),
                     [](QueryWord word) { return word >= QueryWord::Elapsed; });
}

void find_kernel_use(const query::Query& query, const query::Source& source,
                     const Expression& expression, KernelUse& use) {
  if (expression.kind == ExpressionKind::Let) {
    find_kernel_use(query, source, query.lets[expression.index].expression, use);
  }
  if (expression.kind == ExpressionKind::Input) {
    find_kernel_use(query, source, source.inputs[expression.index], use);
  }
  if (expression.kind == ExpressionKind::Field) {
    const bool is_word = expression.field == Field::Argument &&
                         expression.index >= static_cast<uint16_t>(QueryWord::Pid);
    if (is_word) use.words.insert(static_cast<QueryWord>(expression.index));
    if (expression.field == Field::Tid) use.tid = true;
    if (expression.field == Field::Caller) use.caller = true;
  }
  for (const Expression& operand : expression.operands)
    find_kernel_use(query, source, operand, use);
}

Expression pid_condition(const std::vector<int64_t>& pids, int64_t except) {
  const query::Type type{.size_bytes = 4};
  const auto number = [&](int64_t value) {
    Expression constant;
    constant.type = type;
    constant.integer = value;
    return constant;
  };
  Expression result;
  result.type = kTruth;
  result.operands.push_back(word(QueryWord::Pid, type));
  if (pids.empty()) {
    result.kind = ExpressionKind::Binary;
    result.binary = query::BinaryOperator::NotEqual;
    result.operands.push_back(number(except));
    return result;
  }
  result.kind = ExpressionKind::In;
  for (const int64_t pid : pids)
    result.operands.push_back(number(pid));
  return result;
}

}  // namespace clew::plan
