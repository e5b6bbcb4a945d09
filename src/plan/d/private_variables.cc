// SPDX-License-Identifier: Apache-2.0
#include "plan/d/private_variables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.h"
#include "plan/d/one_of.h"
#include "plan/d/storage.h"

namespace clew::plan::d {

using query::d::BinaryOperator;
using query::d::Builtin;
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

// pid123 with its module. The probes that are there are all that there will be: of a library that
// comes later under the same name the tracer tells that they are missing.
bool names_one_place(const ProbeDescription& description) {
  constexpr size_t kPrefix = 3;
  const std::string& provider = description.provider;
  const bool is_pid = !description.id && provider.size() > kPrefix && provider.starts_with("pid") &&
                      std::all_of(provider.begin() + kPrefix, provider.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  return is_pid && !description.module.empty() && !is_glob(description.module);
}

// What BEGIN and END say of times is about the whole session.
bool is_begin_or_end(const ProbeDescription& description) {
  return (description.provider.empty() || description.provider == "dtrace") &&
         is_one_of(description.name, "BEGIN", "END");
}

bool is_number(const Node& node, uint64_t number) {
  return node.kind == NodeKind::Integer && node.integer == number;
}

bool is_builtin(const Node& node, Builtin builtin) {
  return node.kind == NodeKind::Identifier && node.storage == query::d::Storage::Builtin &&
         node.builtin == builtin;
}

bool is_binary(const Node& node, BinaryOperator operation) {
  return node.kind == NodeKind::Binary && node.binary == operation;
}

bool is_logical(const Node& node) {
  return node.kind == NodeKind::Binary && query::is_logical(node.binary);
}

// x == 0, x != 0, !x
bool asks_for_zero(const Node& node) {
  if (node.kind == NodeKind::Unary) return node.unary == UnaryOperator::Not;
  return node.kind == NodeKind::Binary && query::is_equality(node.binary) &&
         is_number(node.operands[1], 0);
}

// self->x, and nothing else: the index of the thread-local scalar.
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

// What one clause does with thread-local variables and clocks.
struct ClauseTimes {
  std::set<uint32_t> named;  // All thread-local scalars.
  std::set<uint32_t> ticks;  // Those that note a time, or that one is measured from.
  std::set<uint32_t> other;  // Those that are used in any other way.
  bool has_clock = false;    // A time is read that is no more than noted or measured from.
};

class ScriptReader {
 public:
  explicit ScriptReader(const Script& script) : script_(script) {}

  ClauseTimes read(const Clause& clause) {
    if (clause.predicate) {
      find_set(*clause.predicate);
      condition(*clause.predicate);
    }
    body(clause.body);
    return std::move(times_);
  }

 private:
  // Variables that are not 0 where the predicate holds.
  void find_set(const Node& node) {
    if (is_binary(node, BinaryOperator::LogicalAnd)) {
      find_set(node.operands[0]);
      find_set(node.operands[1]);
      return;
    }
    const bool is_not_zero =
        is_binary(node, BinaryOperator::NotEqual) && is_number(node.operands[1], 0);
    const auto variable = thread_variable(script_, is_not_zero ? node.operands[0] : node);
    if (variable) set_.insert(*variable);
  }

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
    set_.erase(*variable);
    if (is_number(node.operands[1], 0)) {
      times_.named.insert(*variable);
      return true;
    }
    return noted_time(script_, node) && uses_ticks(*variable);
  }

  bool uses_ticks(uint32_t variable) {
    constexpr uint32_t kTimeBytes = 8;
    if (script_.types.size_of(script_.variables[variable].type) != kTimeBytes) return false;
    times_.named.insert(variable);
    times_.ticks.insert(variable);
    return true;
  }

  // Where only zero or not zero matters.
  void condition(const Node& node) {
    if (const auto variable = thread_variable(script_, node)) {
      times_.named.insert(*variable);
    } else if (is_logical(node)) {
      condition(node.operands[0]);
      condition(node.operands[1]);
    } else if (asks_for_zero(node)) {
      condition(node.operands[0]);
    } else {
      value(node);
    }
  }

  void value(const Node& node) {
    if (is_logical(node) || asks_for_zero(node)) return condition(node);
    if (const auto variable = thread_variable(script_, node)) {
      times_.named.insert(*variable);
      times_.other.insert(*variable);
    }
    times_.has_clock |= is_builtin(node, Builtin::Timestamp) ||
                        is_builtin(node, Builtin::Vtimestamp) ||
                        is_builtin(node, Builtin::Walltimestamp);
    const auto since = elapsed_since(script_, node);
    if (since && set_.contains(*since) && uses_ticks(*since)) return;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const bool is_condition = node.kind == NodeKind::Conditional && i == 0;
      is_condition ? condition(node.operands[i]) : value(node.operands[i]);
    }
  }

  const Script& script_;
  std::set<uint32_t> set_;
  ClauseTimes times_;
};

std::set<uint32_t> find_words(const Script& script, const std::vector<ClauseTimes>& clauses) {
  CLEW_ASSERT(clauses.size() == script.clauses.size());
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

// All or none.
std::set<uint32_t> find_times(const Script& script, const std::vector<ClauseTimes>& clauses,
                              const std::set<uint32_t>& words) {
  std::set<uint32_t> times;
  std::set<uint32_t> other;
  bool has_clock = false;
  for (size_t i = 0; i < clauses.size(); ++i) {
    const auto& probes = script.clauses[i].probes;
    const bool is_outside = std::all_of(probes.begin(), probes.end(), is_begin_or_end);
    times.insert(clauses[i].ticks.begin(), clauses[i].ticks.end());
    other.insert(clauses[i].other.begin(), clauses[i].other.end());
    has_clock |= clauses[i].has_clock && !is_outside;
  }
  const bool are_ticks = !has_clock && std::all_of(times.begin(), times.end(), [&](uint32_t one) {
    return words.contains(one) && !other.contains(one);
  });
  return are_ticks ? times : std::set<uint32_t>{};
}

}  // namespace

std::optional<uint32_t> elapsed_since(const Script& script, const Node& node) {
  const bool is_difference =
      is_binary(node, BinaryOperator::Subtract) && is_builtin(node.operands[0], Builtin::Timestamp);
  return is_difference ? thread_variable(script, node.operands[1]) : std::nullopt;
}

std::optional<uint32_t> noted_time(const Script& script, const Node& node) {
  const bool is_note = node.kind == NodeKind::Assign && !node.is_compound &&
                       is_builtin(node.operands[1], Builtin::Timestamp);
  return is_note ? thread_variable(script, node.operands[0]) : std::nullopt;
}

PrivateVariables find_private(const Script& script) {
  std::vector<ClauseTimes> clauses;
  clauses.reserve(script.clauses.size());
  for (const Clause& clause : script.clauses)
    clauses.push_back(ScriptReader(script).read(clause));
  const std::set<uint32_t> words = find_words(script, clauses);
  if (words.size() > PrivateVariables::kWordsMax) return {};
  PrivateVariables found;
  for (const uint32_t variable : words)
    found.words.emplace(variable, found.words.size());
  found.times = find_times(script, clauses, words);
  for (uint32_t i = 0; i < clauses.size(); ++i) {
    const auto& named = clauses[i].named;
    if (std::any_of(named.begin(), named.end(), [&](uint32_t v) { return words.contains(v); }))
      found.clauses.insert(i);
  }
  return found;
}

}  // namespace clew::plan::d
