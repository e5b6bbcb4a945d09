// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_form.h"

#include <algorithm>
#include <optional>

#include "plan/coder.h"
#include "plan/kernel_cells.h"
#include "plan/update.h"
#include "query/at_event.h"

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
    case Field::NodeName:
      return text(QueryWord::NodeName, field.type);
    case Field::Uid:
      return word(QueryWord::Uid, field.type);
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
    case Field::Container:  // What they are made of is a word: word_of_owner().
    case Field::Unit:
    case Field::ControlGroup:
    case Field::User:
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

void rewrite(Expression& root) {
  query::visit(root, [](Expression& node) {
    if (node.kind != ExpressionKind::Field) return;
    std::optional<Expression> argument = as_argument(node);
    if (!argument) return;
    argument->span = node.span;
    node = std::move(*argument);
  });
}

// One Select that programs can compute moves before the merge.
bool rewrite_kernel_select(Plan& plan) {
  return push_first(plan, OperatorKind::Select, [&plan](const Operator& op) {
    return all_probes_can_store(plan.query, plan.query.values[op.index].expression);
  });
}

bool counts_in_kernel(const query::Query& query) {
  return !query.for_events && std::all_of(query.aggregates.begin(), query.aggregates.end(),
                                          [](const auto& a) { return has_kernel_cells(a); });
}

}  // namespace

query::Query kernel_form(query::Query query) {
  for (query::NamedExpression& let : query.lets)
    rewrite(let.expression);
  query::visit_at_event(query, rewrite);
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
  if (!counts_in_kernel(plan.query)) return plan;
  while (rewrite_owners(plan)) {
  }
  (void)(rewrite_group(plan) || rewrite_aggregate(plan));
  return plan;
}

bool KernelUse::entry() const {
  return std::any_of(words.begin(), words.end(), [](QueryWord word) {
    return word >= QueryWord::Elapsed && word <= QueryWord::EntryArgument5;
  });
}

QueryWord word_of_owner(Field field) {
  const bool is_user = field == Field::User || field == Field::Uid;
  return is_user ? QueryWord::Uid : QueryWord::ControlGroup;
}

void find_kernel_use(const query::Query& query, const query::Source& source,
                     const Expression& expression, KernelUse& use) {
  query::find_meaning(query, source, expression, [&use](const Expression& node) {
    if (node.kind != ExpressionKind::Field) return false;
    const bool is_word =
        node.field == Field::Argument && node.index >= static_cast<uint16_t>(QueryWord::Pid);
    if (is_word) use.words.insert(static_cast<QueryWord>(node.index));
    if (query::is_of_owner(node.field)) use.words.insert(word_of_owner(node.field));
    if (node.field == Field::Tid) use.tid = true;
    if (node.field == Field::Caller) use.caller = true;
    return false;
  });
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
