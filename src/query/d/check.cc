// SPDX-License-Identifier: Apache-2.0
#include "query/d/check.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_statement.h"
#include "query/d/check_variables.h"
#include "query/d/functions.h"
#include "query/d/print.h"
#include "query/walk.h"

namespace clew::query::d {
namespace checking {
namespace {

// Walks that look for the types of variables that are loaded above their first store. One usually
// is enough; stores of such variables into others take more.
constexpr int kSearchesMax = 4;

Compiled<ProbeArguments> arguments_of(Context& context, const ProbeDescription& description) {
  const bool may_be_unmatched =
      context.options.allow_unmatched_probes || context.script.options.is_set("zdefs");
  auto found = context.probes.arguments(context.types(), description);
  const bool is_missing = found ? found->matched == 0 : found.error().code == ErrorCode::NotFound;
  if (description.id && is_missing) {
    return compile_error(
        "D_PDESC_INVAL",
        fmt::format("invalid probe identifier {}: Unknown probe identifier", *description.id),
        description.line, description.span);
  }
  if (!found && found.error().code == ErrorCode::NotFound && may_be_unmatched) {
    return ProbeArguments{};
  }
  const bool is_wrong = !found || (is_missing && !may_be_unmatched);
  const auto problem = is_wrong ? context.probes.problem(description) : std::nullopt;
  if (problem) {
    const bool is_name = problem->tag == "D_PROC_FUNC" || problem->tag == "D_PROC_NAME";
    return with_nearest(
        compile_error(problem->tag, problem->message, description.line, description.span),
        is_name ? context.probes.nearest(description) : "");
  }
  if (!found) {
    const bool is_unmatched = found.error().code == ErrorCode::NotFound;
    return compile_error(is_unmatched ? "D_PDESC_ZERO" : "D_PDESC_INVAL", found.error().message,
                         description.line, description.span);
  }
  if (found->matched != 0 || may_be_unmatched) return std::move(*found);
  return with_nearest(compile_error("D_PDESC_ZERO",
                                    fmt::format("probe description {} does not match any probes",
                                                print(description)),
                                    description.line, description.span),
                      context.probes.nearest(description));
}

Compiled<void> check_condition(Context& context, Node& condition) {
  CLEW_TRY(check_value(context, condition));
  const bool is_plain =
      condition.kind != NodeKind::Aggregation &&
      (is_scalar(context.types(), condition.type) || is_array(context.types(), condition.type));
  if (!is_plain) {
    return error_at(condition, "D_PRED_SCALAR", "predicate result must be of scalar type");
  }
  decay(context.types(), condition);
  return {};
}

Compiled<void> check_statements(Context& context, std::vector<Statement>& statements);

Effects united(const Effects& a, const Effects& b) {
  return {a.speculates || b.speculates, a.commits || b.commits, a.records || b.records};
}

Compiled<void> check_branches(Context& context, Statement& statement) {
  CLEW_TRY(check_condition(context, statement.expression));
  const Effects before = context.effects;
  CLEW_TRY(check_statements(context, statement.then_part));
  const Effects after_then = std::exchange(context.effects, before);
  CLEW_TRY(check_statements(context, statement.else_part));
  context.effects = united(after_then, context.effects);
  return {};
}

// What an aggregating function gives is nothing that an expression can use, though the types of a
// comma or a cast to void let it pass.
Compiled<void> refuse_aggregating(const Node& node) {
  const Node* aggregating = find_node(node, [](const Node& each) {
    return each.kind == NodeKind::Call && each.subroutine == Subroutine::None &&
           !each.is_extension && find_aggregate(each.name);
  });
  if (aggregating == nullptr) return {};
  return error_at(*aggregating, "D_CG_EXPR",
                  fmt::format("aggregating function {}( ) may not be called from a D expression "
                              "(D program context required)",
                              aggregating->name));
}

Compiled<void> check_statement(Context& context, Statement& statement) {
  if (statement.kind == StatementKind::If) return check_branches(context, statement);
  Node& node = statement.expression;
  const bool is_assignment = node.kind == NodeKind::Assign;
  if (is_assignment && node.operands[0].kind == NodeKind::Aggregation) {
    return check_aggregate(context, statement);
  }
  if (node.kind == NodeKind::Aggregation) {
    return error_at(node, "D_AGG_NULL", "expression has null effect: @" + node.name);
  }
  const bool is_call = node.kind == NodeKind::Call && !find_subroutine(node.name);
  const auto action = is_call ? find_action(node.name) : std::nullopt;
  if (action && *action != Action::None) return check_action(context, statement, *action);
  CLEW_TRY(check_value(context, node));
  CLEW_TRY(refuse_aggregating(node));
  if (node.kind == NodeKind::Translate) {
    return error_at(node, "D_CG_DYN", "expression cannot evaluate to result of a translated type");
  }
  return {};
}

// A walk that only searches goes on behind errors: what is wrong is found by the one after it.
Compiled<void> check_statements(Context& context, std::vector<Statement>& statements) {
  for (Statement& statement : statements) {
    auto checked = check_statement(context, statement);
    if (!checked && !context.is_searching) return checked;
  }
  return {};
}

Compiled<void> find_arguments(Context& context, const Clause& clause) {
  const auto known = context.arguments_of_clauses.find(&clause);
  if (known != context.arguments_of_clauses.end()) {
    context.arguments = known->second;
    return {};
  }
  context.arguments.clear();
  for (const ProbeDescription& description : clause.probes) {
    context.arguments.push_back(CLEW_TRY(arguments_of(context, description)));
  }
  context.arguments_of_clauses[&clause] = context.arguments;
  return {};
}

bool names(const Node& root, const std::string& name) {
  return contains(root, [&](const Node& node) {
    return node.kind == NodeKind::Identifier && node.module.empty() && node.name == name;
  });
}

// A predicate may name a variable that its own clause's body is the first to assign.
void know_assigned(Context& context, const Node& predicate, const Node& node) {
  const bool is_assigning = node.kind == NodeKind::Assign || is_increment(node);
  if (!is_assigning || node.operands[0].kind != NodeKind::Identifier ||
      !node.operands[0].module.empty()) {
    return;
  }
  const std::string& name = node.operands[0].name;
  const VariableKey key{VariableScope::Global, name};
  const bool is_other = context.variables.contains(key) || context.inlines.contains(name) ||
                        find_builtin(name).has_value();
  if (!is_other && names(predicate, name)) load_unknown(context, key);
}

void know_assigned(Context& context, const Node& predicate, const std::vector<Statement>& body) {
  visit_statements(body, [&](const Statement& statement) {
    visit(statement.expression, [&](const Node& node) { know_assigned(context, predicate, node); });
  });
}

// `written` is the clause as it was parsed, `clause` the copy that is checked.
Compiled<void> check_clause(Context& context, const Clause& written, Clause& clause) {
  CLEW_TRY(find_arguments(context, written));
  context.clause = &clause;
  context.effects = {};
  context.stability = {};
  if (clause.predicate) {
    know_assigned(context, *clause.predicate, clause.body);
    auto checked = in_region(Region::Predicate, check_condition(context, *clause.predicate));
    if (!checked && !context.is_searching) return checked;
  }
  CLEW_TRY(in_region(Region::Actions, check_statements(context, clause.body)));
  clause.stability = context.stability;
  context.clause = nullptr;
  return {};
}

Compiled<void> check_item(Context& context, const Program& program, Program::Item item,
                          uint32_t index) {
  switch (item) {
    case Program::Item::Clause: {
      Clause clause = program.clauses[index];
      CLEW_TRY(check_clause(context, program.clauses[index], clause));
      context.script.clauses.push_back(std::move(clause));
      return {};
    }
    case Program::Item::Variable:
      return declare_variable(context, program.variables[index]);
    case Program::Item::Inline:
      return define_inline(context, program.inlines[index]);
    case Program::Item::Translator:
      return define_translator(context, program.translators[index]);
    case Program::Item::Option:
      return {};  // Applied before everything else.
  }
  return {};
}

// What self->x and this->x are, of which nothing is ever stored, cannot be said.
Compiled<void> check_loaded(const Context& context) {
  if (context.is_searching) return {};
  for (const auto& [index, load] : context.first_loads) {
    const auto only_loaded = context.is_only_loaded.find(index);
    if (only_loaded == context.is_only_loaded.end() || !only_loaded->second) continue;
    const Variable& variable = context.script.variables[index];
    const bool is_thread = variable.scope == VariableScope::Thread;
    return compile_error("D_VAR_UNDEF",
                         fmt::format("{}{} has not yet been declared or assigned",
                                     is_thread ? "self->" : "this->", variable.name),
                         load.line, load.span);
  }
  return {};
}

// Pragmas about names: the program's own, which must be there at its end.
Compiled<void> check_pragmas(const Context& context, const Program& program) {
  if (context.is_searching) return {};
  for (const AttributesPragma& pragma : program.attributes) {
    if (pragma.line == 0) continue;
    const auto known = context.inlines.find(pragma.name);
    const bool is_inline = known != context.inlines.end();
    const bool is_own = (is_inline && !known->second.is_of_library) ||
                        context.variables.contains({VariableScope::Global, pragma.name}) ||
                        context.aggregations.contains(pragma.name);
    if (is_own) continue;
    if (is_inline || find_builtin(pragma.name) || is_d_function(pragma.name)) {
      return compile_error("D_PRAGMA_SCOPE",
                           fmt::format("#pragma {} cannot modify entity defined outside program "
                                       "scope",
                                       pragma.pragma),
                           pragma.line);
    }
    return compile_error("D_PRAGMA_UNUSED", fmt::format("unused #pragma {}", pragma.pragma),
                         pragma.line);
  }
  return {};
}

bool is_of_form(const PragmaOption& option) {
  return option.name == "format" || option.name == "json";
}

// Who runs a program says how its answer is written; what the program says counts without that.
bool is_overruled(const Program& program, const PragmaOption& option) {
  return option.line != 0 && is_of_form(option) &&
         std::any_of(program.options.begin(), program.options.end(),
                     [](const PragmaOption& each) { return each.line == 0 && is_of_form(each); });
}

Compiled<void> walk(Context& context, const Program& program) {
  for (const PragmaOption& option : program.options) {
    if (!is_overruled(program, option)) CLEW_TRY(apply_option(context, option));
  }
  for (const AttributesPragma& pragma : program.attributes)
    if (pragma.pragma == "attributes") context.attributes[pragma.name] = pragma.stability;
  for (const auto& [item, index] : program.order) {
    CLEW_TRY(check_item(context, program, item, index));
  }
  CLEW_TRY(check_loaded(context));
  return check_pragmas(context, program);
}

KnownVariables stored_types(const Context& context) {
  KnownVariables known;
  for (const auto& [key, index] : context.variables) {
    const auto only_loaded = context.is_only_loaded.find(index);
    if (only_loaded != context.is_only_loaded.end() && only_loaded->second) continue;
    const Variable& variable = context.script.variables[index];
    known[key] = {variable.type, variable.is_associative};
  }
  return known;
}

// Everything of a walk but the types and the answers of the probes is forgotten.
void restart(Context& context, KnownVariables known) {
  Script fresh;
  fresh.types = std::move(context.script.types);
  fresh.string_size_bytes = context.script.string_size_bytes;
  context.script = std::move(fresh);
  context.variables.clear();
  context.aggregations.clear();
  context.aggregation_lines.clear();
  context.inlines.clear();
  context.translators.clear();
  context.is_only_loaded.clear();
  context.first_loads.clear();
  context.pointer_sources.clear();
  context.loads_precede_stores = false;
  context.known_types = std::move(known);
  context.clause = nullptr;
  context.parameters.clear();
  context.expansion_depth = 0;
  context.expanded_nodes = 0;
}

// A load above the first store has that store's type (`return` clauses often stand above those of
// `entry`), so the types are searched for first, and the program is checked with them again.
Compiled<void> walk_knowing(Context& context, const Program& program) {
  KnownVariables known;
  for (int i = 0; i < kSearchesMax; ++i) {
    restart(context, known);
    context.is_searching = true;
    const auto searched = walk(context, program);
    context.is_searching = false;
    KnownVariables found = stored_types(context);
    if (found == known || !searched) break;
    known = std::move(found);
  }
  restart(context, std::move(known));
  return walk(context, program);
}

Compiled<void> check_program(Context& context, const Program& program) {
  auto walked = walk(context, program);
  const bool may_be_wrong = !walked && !context.is_only_loaded.empty();
  if (context.loads_precede_stores || may_be_wrong) return walk_knowing(context, program);
  return walked;
}

}  // namespace

// The library's own definitions have no line: they are as stable as what the guide says of their
// names, whatever they are made of.
Compiled<void> note_stability(Context& context, const Node& node, const Stability& stability,
                              std::string_view what) {
  if (node.line == 0) return {};
  context.stability = least_stable(context.stability, stability);
  const auto& options = context.script.options.values;
  const auto minimum = options.find("amin");
  if (minimum == options.end()) return {};
  if (!is_less_stable(stability, parse_stability(minimum->second).value_or(Stability{}))) return {};
  return error_at(node, "D_ATTR_MIN",
                  fmt::format("attributes for {} ({}) are less than predefined minimum", what,
                              text_of(stability)));
}

}  // namespace checking

Compiled<Script> check(const Program& program, TypeTable types, ProbeSource& probes,
                       const CompileOptions& options) {
  Script script;
  script.string_size_bytes = types.size_of(types.string_type());
  script.types = std::move(types);
  checking::Context context{script, probes, options};
  CLEW_TRY(checking::check_program(context, program));
  return script;
}

}  // namespace clew::query::d
