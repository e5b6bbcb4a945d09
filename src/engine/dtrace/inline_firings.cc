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
    : compiled_(compiled),
      room_(cell_room(compiled.generated, compiled.enablings)),
      error_clauses_(steps_of(compiled.error_clauses, FiringForm::Shared)) {}

std::vector<FiringClause> InlineFirings::steps_of(const Clauses& clauses, FiringForm form) const {
  const plan::d::Generated& generated = compiled_.generated;
  const auto& in_window =
      form == FiringForm::Private ? generated.private_clauses : generated.cell_clauses;
  std::vector<FiringClause> steps;
  for (const uint32_t clause : clauses) {
    FiringClause& step = steps.emplace_back();
    step.clause = clause;
    step.scratch_begin = std::max(generated.scratch_begin[clause], room_.end);
    step.program = &generated.clauses[clause];
    step.calls = generated.calls[clause];
    if (form == FiringForm::Shared) continue;
    step.program = &in_window[clause].program;
    step.updates = in_window[clause].updates;
    step.calls = in_window[clause].calls;
    step.has_privates = form == FiringForm::Private && generated.privates.clauses.contains(clause);
  }
  return steps;
}

bool InlineFirings::names_privates(const Clauses& clauses) const {
  return std::any_of(clauses.begin(), clauses.end(), [this](uint32_t clause) {
    return compiled_.generated.privates.clauses.contains(clause);
  });
}

uint64_t InlineFirings::tick() {
  if (compiled_.generated.privates.times.empty()) return 0;
  if (!tick_) tick_ = Clock(begin_).multiplier(plan::d::kTickShift);
  return *tick_;
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
  return !commands && !calls_kernel(clauses) &&
         plan::d::runs_in_process(steps_of(clauses, FiringForm::Shared), error_clauses_);
}

bool InlineFirings::walk_stacks() const {
  const auto& clauses = compiled_.generated.clauses;
  return std::any_of(clauses.begin(), clauses.end(),
                     [](const auto& one) { return plan::d::uses_of(one).walks_user_stack; });
}

// A fault in a process would run the ERROR clauses there.
bool InlineFirings::calls_kernel(const Clauses& clauses) const {
  if (!compiled_.extensions_in_kernel) return false;
  const auto calls = [this](uint32_t clause) { return compiled_.calls_extension(clause); };
  const auto& errors = compiled_.error_clauses;
  return std::any_of(clauses.begin(), clauses.end(), calls) ||
         std::any_of(errors.begin(), errors.end(), calls);
}

bool InlineFirings::could_be_led_astray(pid_t pid) const {
  plan::d::ClauseUses uses;
  const auto is_led = [&](uint32_t clause) {
    uses = plan::d::uses_of(compiled_.generated.clauses[clause]);
    return uses.reads_variables && (uses.follows_pointers || uses.follows_user_pointers);
  };
  const auto& errors = compiled_.error_clauses;
  return std::any_of(errors.begin(), errors.end(), is_led) ||
         std::any_of(compiled_.enablings.begin(), compiled_.enablings.end(),
                     [&](const kernel::MachineEnabling& one) {
                       return one.probe.pid != pid &&
                              std::any_of(one.clauses.begin(), one.clauses.end(), is_led);
                     });
}

bool InlineFirings::reads_result(const Clauses& clauses) const {
  return std::any_of(clauses.begin(), clauses.end(), [this](uint32_t clause) {
    return (plan::d::uses_of(compiled_.generated.clauses[clause]).arguments & 2U) != 0;
  });
}

const Firing* InlineFirings::find(FiringPoint point, const Clauses& clauses,
                                  const std::string& static_arguments, FiringForm form) {
  const auto [place, is_new] = firings_.try_emplace({point, clauses, static_arguments, form});
  if (is_new) {
    const plan::d::FiringState state{.privates = compiled_.generated.private_area,
                                     .extensions = &compiled_.generated.extensions,
                                     .left_alone_offset = room_.begin};
    auto firing =
        plan::d::compose(point, steps_of(clauses, form), error_clauses_, static_arguments, state);
    if (firing) place->second = std::make_unique<Firing>(std::move(*firing));
  }
  return place->second.get();
}

}  // namespace clew::engine
