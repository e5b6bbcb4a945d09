// SPDX-License-Identifier: Apache-2.0
// Test support: calls of functions as events of a query that joins, without a process that makes
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "aggregate/value.h"
#include "answer/row_batch.h"
#include "plan/evaluate.h"
#include "plan/joined.h"
#include "query/query.h"

namespace clew::answer {

// An event of entry("app!a"), b or c, in a process of one thread.
struct Call {
  char function = 'a';
  int64_t time = 0;
  std::vector<int64_t> arguments;
  int64_t tid = 1;
};

class CallBindings final : public plan::Bindings {
 public:
  CallBindings(const query::Source& source, const Call& call) : source_(source), call_(call) {}

  aggregate::Value field(const query::Expression& expression) override {
    if (expression.field == query::Field::Time) return call_.time;
    if (expression.field == query::Field::Tid || expression.field == query::Field::Pid)
      return call_.tid;
    if (expression.field == query::Field::Comm)
      return fmt::format("a thread with the number {}", call_.tid);
    return call_.arguments.at(expression.index);
  }
  aggregate::Value input(uint16_t index) override {
    return plan::evaluate(source_.inputs[index], *this);
  }
  aggregate::Value let(uint16_t) override { return {}; }
  aggregate::Value value(uint16_t) override { return {}; }
  aggregate::Value aggregate(uint16_t) override { return {}; }
  aggregate::Value memory(const query::Expression&, uint64_t) override { return {}; }

 private:
  const query::Source& source_;
  const Call& call_;
};

// The events that the probes of the joined query's sources make of a call.
inline void add_events(const plan::Joined& joined, const Call& call, RowBatch& events) {
  for (const query::Source& source : joined.events.sources) {
    if (source.function != std::string(1, call.function)) continue;
    CallBindings bindings(source, call);
    const std::vector<query::Expression>& conditions = joined.events.where;
    const bool passes = std::all_of(conditions.begin(), conditions.end(), [&](const auto& one) {
      return plan::is_true(plan::evaluate(one, bindings));
    });
    if (!passes) continue;
    const std::span<aggregate::Value> row = events.add();
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = plan::evaluate(joined.events.values[i].expression, bindings);
  }
}

// The values of a row, with blanks between them.
inline std::string line_of(const aggregate::Row& row) {
  std::vector<std::string> texts;
  for (const aggregate::Value& value : row) {
    if (const auto* const text = std::get_if<std::string>(&value)) {
      texts.push_back(*text);
    } else if (std::holds_alternative<std::monostate>(value)) {
      texts.emplace_back("null");
    } else {
      texts.push_back(fmt::format("{}", static_cast<int64_t>(plan::bits_of(value))));
    }
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace clew::answer
