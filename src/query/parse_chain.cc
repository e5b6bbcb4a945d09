// SPDX-License-Identifier: Apache-2.0
// Method chains: source.Where(e => …).GroupBy(e => …).Select(g => …), as Fay writes LINQ.
//
//     chain  := source { "." METHOD "(" arguments ")" } { clause }
//
// Each method becomes the step that the clause of the same meaning makes.
#include <array>

#include <fmt/format.h>

#include "query/parser.h"
#include "query/window.h"

namespace clew::query {
namespace {

struct Method {
  std::string_view name;
  StepKind kind;
};

constexpr std::array<Method, 30> kMethods = {{{"Where", StepKind::Where},
                                              {"Select", StepKind::Select},
                                              {"SelectMany", StepKind::From},
                                              {"GroupBy", StepKind::GroupBy},
                                              {"OrderBy", StepKind::OrderBy},
                                              {"OrderByDescending", StepKind::OrderBy},
                                              {"ThenBy", StepKind::OrderBy},
                                              {"ThenByDescending", StepKind::OrderBy},
                                              {"Take", StepKind::Take},
                                              {"Every", StepKind::Every},
                                              {"For", StepKind::For},
                                              {"Join", StepKind::Join},
                                              {"LeftJoin", StepKind::Join},
                                              {"After", StepKind::Join},
                                              {"LeftAfter", StepKind::Join},
                                              {"Distinct", StepKind::Distinct},
                                              {"Aggregate", StepKind::Aggregate},
                                              {"Count", StepKind::Aggregate},
                                              {"Sum", StepKind::Aggregate},
                                              {"Min", StepKind::Aggregate},
                                              {"Max", StepKind::Aggregate},
                                              {"Average", StepKind::Aggregate},
                                              {"Avg", StepKind::Aggregate},
                                              {"Stddev", StepKind::Aggregate},
                                              {"Quantize", StepKind::Aggregate},
                                              {"Quantile", StepKind::Aggregate},
                                              {"IncludingOpen", StepKind::IncludingOpen},
                                              {"WithCause", StepKind::WithCause},
                                              {"Window", StepKind::Window},
                                              {"SessionWindow", StepKind::Window}}};

const Method* find_method(std::string_view name) {
  for (const Method& method : kMethods) {
    if (same_word(method.name, name)) return &method;
  }
  return nullptr;
}

std::string method_hint(std::string_view name) {
  std::array<std::string_view, kMethods.size()> names;
  for (size_t i = 0; i < kMethods.size(); ++i) {
    names[i] = kMethods[i].name;
  }
  return did_you_mean(name, names);
}

}  // namespace

Expected<SyntaxQuery> Parser::chain() {
  SyntaxQuery query;
  query.sources.push_back(CLEW_TRY(source()));
  CLEW_TRY(chain_methods(query));
  while (CLEW_TRY(clause(query))) {
  }
  return query;
}

Expected<void> Parser::chain_methods(SyntaxQuery& query) {
  while (take_symbol(".")) {
    const uint32_t begin = peek().span.begin;
    if (at_clusters()) {
      CLEW_TRY(clusters_method(query));
      continue;
    }
    CLEW_TRY(add_step(query, method()));
    query.steps.back().span = span_from(begin);
  }
  return {};
}

Expected<Step> Parser::method() {
  const Token name = CLEW_TRY(expect_name("a method after '.'"));
  const Method* method = find_method(name.text);
  if (method == nullptr) {
    return report_.fail(name.span,
                        fmt::format("no method '{}'{}", name.text, method_hint(name.text)));
  }
  Step step{.kind = method->kind};
  step.name = method->name;
  step.name_span = name.span;
  step.span = name.span;
  if (!at_symbol("(")) return fail_expected(fmt::format("'(' after '{}'", method->name));
  return method_arguments(std::move(step));
}

Expected<Step> Parser::method_arguments(Step step) {
  switch (step.kind) {
    case StepKind::Take:
    case StepKind::Every:
    case StepKind::For:
    case StepKind::ForEvents:
    case StepKind::WithCause:
      return window_method(std::move(step));
    case StepKind::Window:
      return time_window_method(std::move(step));
    case StepKind::GroupBy:
      return group_method(std::move(step));
    case StepKind::Join:
      return join_method(std::move(step));
    case StepKind::From:
      return report_.fail(step.name_span, "SelectMany is not part of this version yet");
    case StepKind::Where:
    case StepKind::Let:
    case StepKind::Group:
    case StepKind::Select:
    case StepKind::OrderBy:
    case StepKind::Distinct:
    case StepKind::Aggregate:
    case StepKind::IncludingOpen:
      break;
  }
  std::vector<SyntaxExpression> given = CLEW_TRY(arguments());
  const bool is_empty = step.kind == StepKind::Distinct || step.kind == StepKind::IncludingOpen;
  if (given.empty() && (is_empty || step.kind == StepKind::Aggregate)) return step;
  if (is_empty || given.empty()) {
    return report_.fail(step.name_span, fmt::format("'{}' takes {}", step.name,
                                                    given.empty() ? "a lambda, such as e => e.arg0"
                                                                  : "no argument"));
  }
  SyntaxExpression lambda = std::move(given.front());
  given.erase(given.begin());
  step = CLEW_TRY(lambda_step(std::move(step), std::move(lambda)));
  for (SyntaxExpression& extra : given) {
    step.items.push_back({.expression = std::move(extra)});
  }
  if (step.kind != StepKind::Aggregate && step.items.size() > 1) {
    return report_.fail(step.items[1].expression.span,
                        fmt::format("'{}' takes one lambda", step.name));
  }
  return step;
}

// Take(10), Every(1s), For(10s), WithCause(sound)
Expected<Step> Parser::window_method(Step step) {
  take();  // (
  const std::string context = fmt::format("in {}(…)", step.name);
  if (step.kind == StepKind::WithCause) {
    step.least = CLEW_TRY(cause_class(context));
  } else if (step.kind == StepKind::Take) {
    step.number = CLEW_TRY(positive_integer(context));
  } else {
    step.number = CLEW_TRY(positive_duration(context));
  }
  CLEW_TRY(expect_symbol(")", context));
  return step;
}

// Window(10s), Window(60s, 10s), SessionWindow(5s), each with `late 5s` as its last argument.
Expected<Step> Parser::time_window_method(Step step) {
  take();  // (
  const std::string context = fmt::format("in {}(…)", step.name);
  TimeWindow& window = step.window;
  window.size_ns = window.step_ns = CLEW_TRY(positive_duration(context));
  window.late_ns = kLateUsualNs;
  bool has_more = take_symbol(",");
  if (step.name == "SessionWindow") {
    window.kind = WindowKind::Session;
    window.step_ns = 0;
  } else if (has_more && !at_word("late")) {
    window.step_ns = CLEW_TRY(positive_duration(context));
    has_more = take_symbol(",");
  }
  if (has_more) {
    CLEW_TRY(expect_word("late", fmt::format("and a duration {}", context)));
    window.late_ns = CLEW_TRY(late_duration());
  }
  CLEW_TRY(expect_symbol(")", context));
  return step;
}

Expected<Step> Parser::lambda_step(Step step, SyntaxExpression lambda) {
  const bool is_fold = same_word(step.name, "Aggregate");
  const size_t wanted = is_fold ? 2 : 1;
  if (lambda.kind != SyntaxKind::Lambda || lambda.names.size() != wanted) {
    return report_.fail(lambda.span, fmt::format("expected a lambda, such as {}",
                                                 is_fold ? "(x, y) => x + y" : "e => e.arg0"));
  }
  step.parameter = lambda.names.front();
  if (is_fold) step.before = lambda.names.back();
  SyntaxItem item;
  item.descending = step.kind == StepKind::OrderBy && step.name.ends_with("Descending");
  item.expression = std::move(lambda.kids.front());
  step.items.push_back(std::move(item));
  return step;
}

// GroupBy(e => key) or GroupBy(e => key, e => element): items are the key and maybe the element.
Expected<Step> Parser::group_method(Step step) {
  std::vector<SyntaxExpression> given = CLEW_TRY(arguments());
  if (given.empty() || given.size() > 2) {
    return report_.fail(step.name_span,
                        "'GroupBy' takes a key, such as e => e.arg0, and may take "
                        "an element, such as e => e.arg1");
  }
  step.kind = StepKind::Group;
  step.name.clear();
  const size_t count = given.size();
  step = CLEW_TRY(lambda_step(std::move(step), std::move(given[0])));
  if (count == 2) {
    if (given[1].kind != SyntaxKind::Lambda || given[1].names.size() != 1) {
      return report_.fail(given[1].span, "expected a lambda, such as e => e.arg1");
    }
    step.items.push_back({.name = given[1].names.front(), .expression = given[1].kids.front()});
  }
  return step;
}

// --- joins ---------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kJoinedRow = "what becomes of the two events, as (b, a) => new { … }";

}  // namespace

// After(sources, (b, a) => row), or After(sources, r => r.b, (r, a) => row)
Expected<Step> Parser::join_method(Step step) {
  if (same_word(step.name, "Join") || same_word(step.name, "LeftJoin"))
    return join_by_time_method(std::move(step));
  step.left = same_word(step.name, "LeftAfter");
  take();  // (
  CLEW_TRY(join_method_sources(step));
  SyntaxExpression row = CLEW_TRY(expression());
  if (row.kind == SyntaxKind::Lambda && row.names.size() == 1) {
    step.later.push_back({.name = row.names.front(), .expression = std::move(row.kids.front())});
    CLEW_TRY(expect_symbol(",", fmt::format("and {}", kJoinedRow)));
    row = CLEW_TRY(expression());
  }
  if (row.kind != SyntaxKind::Lambda || row.names.size() != 2) {
    return report_.fail(row.span, fmt::format("expected {}", kJoinedRow));
  }
  CLEW_TRY(expect_symbol(")", fmt::format("at the end of {}(…)", step.name)));
  if (row.names.front() == row.names.back()) {
    return report_.fail(row.span, fmt::format("both are named '{}'", row.names.front()));
  }
  step.parameter = row.names.front();
  step.name = row.names.back();
  step.items.push_back({.expression = std::move(row.kids.front())});
  return step;
}

// Join(sources, a => key, b => key, 2s [before | after], (a, b) => row)
Expected<Step> Parser::join_by_time_method(Step step) {
  const std::string method = step.name;
  step.left = same_word(method, "LeftJoin");
  take();  // (
  CLEW_TRY(join_method_sources(step));
  SyntaxEquals equals;
  equals.left = CLEW_TRY(key_lambda("the key of this event, as a => a.arg0"));
  equals.right = CLEW_TRY(key_lambda("the key of the joined event, as b => b.arg0"));
  step.equals.push_back(std::move(equals));
  CLEW_TRY(join_times(step));
  CLEW_TRY(expect_symbol(",", fmt::format("and {}", kJoinedRow)));
  SyntaxExpression row = CLEW_TRY(expression());
  if (row.kind != SyntaxKind::Lambda || row.names.size() != 2)
    return report_.fail(row.span, fmt::format("expected {}", kJoinedRow));
  CLEW_TRY(expect_symbol(")", fmt::format("at the end of {}(…)", method)));
  if (row.names.front() == row.names.back())
    return report_.fail(row.span, fmt::format("both are named '{}'", row.names.front()));
  step.parameter = row.names.front();
  step.name = row.names.back();
  step.items.push_back({.expression = std::move(row.kids.front())});
  return step;
}

Expected<SyntaxItem> Parser::key_lambda(std::string_view what) {
  SyntaxExpression lambda = CLEW_TRY(expression());
  if (lambda.kind != SyntaxKind::Lambda || lambda.names.size() != 1) {
    return report_.fail(lambda.span, fmt::format("expected {} (Join joins by time; After what "
                                                 "happened before)",
                                                 what));
  }
  CLEW_TRY(expect_symbol(",", fmt::format("after {}", what)));
  return SyntaxItem{.name = lambda.names.front(), .expression = std::move(lambda.kids.front())};
}

// Up to the comma in front of the first lambda.
Expected<void> Parser::join_method_sources(Step& step) {
  const std::string context = fmt::format("and {}", kJoinedRow);
  if (CLEW_TRY(filtered_sources(step))) return expect_symbol(",", context);
  do {
    CLEW_TRY(add_source(step.sources));
    CLEW_TRY(expect_symbol(",", context));
  } while (!at_lambda());
  return {};
}

}  // namespace clew::query
