// SPDX-License-Identifier: Apache-2.0
// What may follow what in a clause that speculates (fact 47 of the language).
#include <fmt/format.h>

#include "query/d/check_statement.h"

namespace clew::query::d::checking {
namespace {

Failure may_not_follow(const Statement& statement, std::string_view tag, std::string_view what,
                       std::string_view earlier) {
  return error_at(statement.expression, std::string(tag),
                  fmt::format("{} may not follow {}", what, earlier));
}

Compiled<void> note_speculate(Context& context, const Statement& statement) {
  Effects& effects = context.effects;
  const auto refused = [&](std::string_view tag, std::string_view earlier) {
    return may_not_follow(statement, tag, "speculate( )", earlier);
  };
  if (effects.speculates) return refused("D_SPEC_SPEC", "speculate( )");
  if (effects.commits) return refused("D_SPEC_COMM", "commit( )");
  if (effects.records) return refused("D_SPEC_DREC", "data-recording action(s)");
  effects.speculates = true;
  return {};
}

Compiled<void> note_commit(Context& context, const Statement& statement) {
  Effects& effects = context.effects;
  const auto refused = [&](std::string_view tag, std::string_view earlier) {
    return may_not_follow(statement, tag, "commit( )", earlier);
  };
  if (effects.records) return refused("D_COMM_DREC", "data-recording action(s)");
  effects.commits = true;
  return {};
}

Compiled<void> note_recording(Context& context, const Statement& statement) {
  if (context.effects.commits) {
    return may_not_follow(statement, "D_DREC_COMM", "data-recording actions", "commit( )");
  }
  context.effects.records = true;
  return {};
}

}  // namespace

Compiled<void> note_action(Context& context, const Statement& statement) {
  const Action action = statement.action;
  if (action == Action::Speculate) return note_speculate(context, statement);
  if (action == Action::Commit) return note_commit(context, statement);
  if (context.effects.speculates && action == Action::Exit) {
    return may_not_follow(statement, "D_EXIT_SPEC", "exit( )", "speculate( )");
  }
  if (context.effects.speculates && is_destructive(action)) {
    return may_not_follow(statement, "D_ACT_SPEC", "destructive actions", "speculate( )");
  }
  if (is_data_recording(action)) return note_recording(context, statement);
  return {};
}

Compiled<void> note_aggregate(Context& context, const Statement& statement) {
  const auto refused = [&](std::string_view tag, std::string_view earlier) {
    return may_not_follow(statement, tag, "aggregating actions", earlier);
  };
  if (context.effects.speculates) return refused("D_AGG_SPEC", "speculate( )");
  if (context.effects.commits) return refused("D_AGG_COMM", "commit( )");
  return {};
}

}  // namespace clew::query::d::checking
