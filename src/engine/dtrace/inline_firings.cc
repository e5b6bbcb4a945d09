// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/inline_firings.h"

#include <algorithm>

#include "plan/d/clause_uses.h"

namespace clew::engine {

using plan::d::Firing;
using plan::d::FiringClause;
using plan::d::FiringPoint;
using query::d::Action;

InlineFirings::InlineFirings(const CompiledScript& compiled)
    : compiled_(compiled), error_clauses_(steps_of(compiled.error_clauses)) {}

std::vector<FiringClause> InlineFirings::steps_of(const Clauses& clauses) const {
  std::vector<FiringClause> steps;
  for (const uint32_t clause : clauses) {
    steps.push_back({.program = &compiled_.generated.clauses[clause],
                     .clause = clause,
                     .scratch_begin = compiled_.generated.scratch_begin[clause]});
  }
  return steps;
}

bool InlineFirings::commands_tracer(uint32_t clause) const {
  const auto& actions = compiled_.generated.records[clause].actions;
  return std::any_of(actions.begin(), actions.end(), [](const query::d::RecordedAction& one) {
    return one.action == Action::System || one.action == Action::Freopen ||
           one.action == Action::Ftruncate;
  });
}

bool InlineFirings::can_run(const Clauses& clauses) const {
  const bool commands = std::any_of(clauses.begin(), clauses.end(),
                                    [this](uint32_t clause) { return commands_tracer(clause); });
  return !commands && plan::d::runs_in_process(steps_of(clauses), error_clauses_);
}

bool InlineFirings::reads_result(const Clauses& clauses) const {
  return std::any_of(clauses.begin(), clauses.end(), [this](uint32_t clause) {
    return (plan::d::uses_of(compiled_.generated.clauses[clause]).arguments & 2U) != 0;
  });
}

const Firing* InlineFirings::find(FiringPoint point, const Clauses& clauses,
                                  const std::string& static_arguments) {
  const auto [place, is_new] = firings_.try_emplace({point, clauses, static_arguments});
  if (is_new) {
    auto firing = plan::d::compose(point, steps_of(clauses), error_clauses_, static_arguments);
    if (firing) place->second = std::make_unique<Firing>(std::move(*firing));
  }
  return place->second.get();
}

}  // namespace clew::engine
