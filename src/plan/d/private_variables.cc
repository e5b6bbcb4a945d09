// SPDX-License-Identifier: Apache-2.0
#include "plan/d/private_variables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "plan/d/one_of.h"
#include "plan/d/storage.h"

namespace clew::plan::d {

using query::d::BinaryOperator;
using query::d::Clause;
using query::d::Node;
using query::d::NodeKind;
using query::d::ProbeDescription;
using query::d::Script;
using query::d::Statement;
using query::d::StatementKind;
using query::d::UnaryOperator;

namespace {

bool is_glob(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

// pid123 with its module: no library that is loaded later has probes that it matches.
bool names_one_place(const ProbeDescription& description) {
  constexpr size_t kPrefix = 3;
  const std::string& provider = description.provider;
  const bool is_pid = !description.id && provider.size() > kPrefix && provider.starts_with("pid") &&
                      std::all_of(provider.begin() + kPrefix, provider.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  return is_pid && !description.module.empty() && !is_glob(description.module);
}

bool is_number(const Node& node, uint64_t number) {
  return node.kind == NodeKind::Integer && node.integer == number;
}

bool is_logical(const Node& node) {
  return node.kind == NodeKind::Binary &&
         is_one_of(node.binary, BinaryOperator::LogicalAnd, BinaryOperator::LogicalOr,
                   BinaryOperator::LogicalXor);
}

// self->ts == 0, self->ts != 0
bool is_asked_for_zero(const Node& node) {
  return node.kind == NodeKind::Binary &&
         is_one_of(node.binary, BinaryOperator::Equal, BinaryOperator::NotEqual) &&
         is_number(node.operands[1], 0);
}

// What one clause does with thread-local variables and the clock.
struct ClauseTimes {
  std::set<uint32_t> named;    // All thread-local variables.
  std::set<uint32_t> ticks;    // Those of self->ts = timestamp, timestamp - self->ts
  std::set<uint32_t> other;    // Those that are used in any other way than as times.
  uint32_t reads = 0;          // Of the clock, for `ticks`.
  bool has_timestamp = false;  // Read for something else.
};

class Reader {
 public:
  explicit Reader(const Script& script) : script_(script) {}

  ClauseTimes read(const Clause& clause) {
    if (clause.predicate) condition(*clause.predicate);
    body(clause.body);
    return std::move(times_);
  }

 private:
  void body(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      if (statement.kind == StatementKind::If) {
        condition(statement.expression);
        body(statement.then_part);
        body(statement.else_part);
      } else if (statement.kind != StatementKind::Expression ||
                 !assigns_time(statement.expression)) {
        value(statement.expression);
      }
    }
  }

  // self->ts = timestamp; self->ts = 0;
  bool assigns_time(const Node& node) {
    if (node.kind != NodeKind::Assign || node.is_compound) return false;
    const auto variable = thread_variable(script_, node.operands[0]);
    if (!variable) return false;
    if (is_number(node.operands[1], 0)) {
      times_.named.insert(*variable);
      return true;
    }
    return is_timestamp(node.operands[1]) && uses_ticks(*variable);
  }

  bool uses_ticks(uint32_t variable) {
    constexpr uint32_t kTimeBytes = 8;
    if (script_.types.size_of(script_.variables[variable].type) != kTimeBytes) return false;
    times_.named.insert(variable);
    times_.ticks.insert(variable);
    ++times_.reads;
    return true;
  }

  // Where only zero or not zero matters.
  void condition(const Node& node) {
    const auto variable = thread_variable(script_, node);
    if (variable) {
      times_.named.insert(*variable);
    } else if (is_logical(node)) {
      condition(node.operands[0]);
      condition(node.operands[1]);
    } else if (is_asked_for_zero(node) ||
               (node.kind == NodeKind::Unary && node.unary == UnaryOperator::Not)) {
      condition(node.operands[0]);
    } else {
      value(node);
    }
  }

  void value(const Node& node) {
    if (is_logical(node) || is_asked_for_zero(node)) return condition(node);
    if (const auto variable = thread_variable(script_, node)) {
      times_.named.insert(*variable);
      times_.other.insert(*variable);
      return;
    }
    if (is_timestamp(node)) {
      times_.has_timestamp = true;
      return;
    }
    const bool is_difference =
        node.kind == NodeKind::Binary && node.binary == BinaryOperator::Subtract;
    if (is_difference && is_timestamp(node.operands[0])) {
      const auto since = thread_variable(script_, node.operands[1]);
      if (since && uses_ticks(*since)) return;
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const bool is_condition = node.kind == NodeKind::Conditional && i == 0;
      is_condition ? condition(node.operands[i]) : value(node.operands[i]);
    }
  }

  const Script& script_;
  ClauseTimes times_;
};

std::set<uint32_t> find_words(const Script& script, const std::vector<ClauseTimes>& clauses) {
  std::set<uint32_t> words;
  for (const ClauseTimes& one : clauses)
    words.insert(one.named.begin(), one.named.end());
  for (size_t i = 0; i < clauses.size(); ++i) {
    const auto& probes = script.clauses[i].probes;
    if (std::all_of(probes.begin(), probes.end(), names_one_place)) continue;
    for (const uint32_t variable : clauses[i].named)
      words.erase(variable);
  }
  return words;
}

// A clause reads one clock: where a time of the machine's is asked for, too, all are the machine's.
std::set<uint32_t> find_times(const std::vector<ClauseTimes>& clauses,
                              const std::set<uint32_t>& words) {
  std::set<uint32_t> times;
  for (const ClauseTimes& one : clauses)
    times.insert(one.ticks.begin(), one.ticks.end());
  const auto is_none = [&](uint32_t variable) {
    return !words.contains(variable) ||
           std::any_of(clauses.begin(), clauses.end(), [&](const ClauseTimes& one) {
             const bool reads_other =
                 one.has_timestamp || std::any_of(one.ticks.begin(), one.ticks.end(),
                                                  [&](uint32_t v) { return !times.contains(v); });
             return one.other.contains(variable) || (one.ticks.contains(variable) && reads_other);
           });
  };
  while (std::erase_if(times, is_none) != 0) {
  }
  return times;
}

}  // namespace

std::optional<uint32_t> thread_variable(const Script& script, const Node& node) {
  const bool is_variable =
      node.kind == NodeKind::Identifier && node.storage == query::d::Storage::Variable;
  if (!is_variable) return std::nullopt;
  const query::d::Variable& variable = script.variables[node.index];
  const bool is_scalar =
      !variable.is_associative && class_of(script.types, variable.type) == ValueClass::Scalar;
  if (variable.scope != query::d::VariableScope::Thread || !is_scalar) return std::nullopt;
  return node.index;
}

bool is_timestamp(const Node& node) {
  return node.kind == NodeKind::Identifier && node.storage == query::d::Storage::Builtin &&
         node.builtin == query::d::Builtin::Timestamp;
}

PrivateVariables find_private(const Script& script) {
  std::vector<ClauseTimes> clauses;
  clauses.reserve(script.clauses.size());
  for (const Clause& clause : script.clauses)
    clauses.push_back(Reader(script).read(clause));
  PrivateVariables found;
  found.words = find_words(script, clauses);
  found.times = find_times(clauses, found.words);
  const auto names_any = [](const ClauseTimes& clause, const std::set<uint32_t>& variables) {
    return std::any_of(clause.named.begin(), clause.named.end(),
                       [&](uint32_t v) { return variables.contains(v); });
  };
  for (uint32_t i = 0; i < clauses.size(); ++i) {
    if (names_any(clauses[i], found.words)) found.clauses.insert(i);
    if (names_any(clauses[i], found.times)) found.reads[i] = clauses[i].reads;
  }
  return found;
}

}  // namespace clew::plan::d
