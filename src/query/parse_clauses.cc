// SPDX-License-Identifier: Apache-2.0
// Clauses: Fay's comprehensions and Pivot Tracing's clause form, which differ in `group` only.
//
//     clauses := "from" NAME "in" sources { clause }
//     clause  := where | let | group | select | orderby | take | every | for | join | from
//                | with | including | window
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "query/parser.h"
#include "query/window.h"

namespace clew::query {

Expected<SyntaxQuery> Parser::clauses() {
  SyntaxQuery query;
  take();  // from
  const Token name = CLEW_TRY(expect_new_name("a name for the event after 'from'"));
  query.name = name.text;
  query.name_span = name.span;
  CLEW_TRY(expect_word("in", "after the event's name"));
  query.sources = CLEW_TRY(sources());
  while (CLEW_TRY(clause(query))) {
  }
  return query;
}

Expected<void> Parser::add_step(SyntaxQuery& query, Expected<Step> step) {
  Step made = CLEW_TRY(std::move(step));
  if (query.steps.size() == kStepsMax) {
    return fail_here(fmt::format("a query has at most {} clauses", kStepsMax));
  }
  query.steps.push_back(std::move(made));
  return {};
}

// Adds the step of the clause that begins here, if one does.
Expected<void> Parser::one_clause(SyntaxQuery& query) {
  if (at_word("where")) return add_step(query, where_step());
  if (at_word("let")) return add_step(query, let_step());
  if (at_word("group") || at_word("groupby")) return add_step(query, group_step());
  if (at_word("select")) return add_step(query, select_step());
  if (at_word("order") || at_word("orderby")) return add_step(query, order_step());
  if (at_word("take")) return add_step(query, take_step());
  if (at_word("every")) return add_step(query, every_step());
  if (at_word("window")) return add_step(query, window_step());
  if (at_word("for")) return add_step(query, for_step());
  if (at_word("join") || (at_word("left") && at_word("join", 1))) {
    return add_step(query, join_step());
  }
  if (at_word("from")) return add_step(query, from_step());
  if (at_word("with")) return add_step(query, with_step());
  if (at_word("including")) return add_step(query, including_step());
  return {};
}

// Parses one clause into `query`; false when none begins here.
Expected<bool> Parser::clause(SyntaxQuery& query) {
  const size_t before = query.steps.size();
  const uint32_t begin = peek().span.begin;
  CLEW_TRY(one_clause(query));
  if (query.steps.size() == before) return false;
  query.steps.back().span = span_from(begin);
  return true;
}

Expected<SyntaxItem> Parser::plain_item() {
  SyntaxItem item;
  item.expression = CLEW_TRY(expression());
  return item;
}

Expected<Step> Parser::where_step() {
  take();
  Step step{.kind = StepKind::Where};
  step.items.push_back(CLEW_TRY(plain_item()));
  return step;
}

Expected<Step> Parser::let_step() {
  take();
  Step step{.kind = StepKind::Let};
  const Token name = CLEW_TRY(expect_new_name("a name after 'let'"));
  step.name = name.text;
  step.name_span = name.span;
  CLEW_TRY(expect_symbol("=", "after the name"));
  step.items.push_back(CLEW_TRY(plain_item()));
  return step;
}

Expected<Step> Parser::group_step() {
  const bool is_one_word = at_word("groupby");
  take();
  Step step{.kind = StepKind::GroupBy};
  if (!is_one_word && !take_word("by")) return group_into(std::move(step));
  do {
    step.items.push_back(CLEW_TRY(select_item()));
  } while (take_symbol(","));
  return step;
}

Expected<Step> Parser::group_into(Step step) {
  step.kind = StepKind::Group;
  step.items.push_back(CLEW_TRY(plain_item()));
  CLEW_TRY(expect_word("by", "and the key after 'group' and what is grouped"));
  step.items.push_back(CLEW_TRY(plain_item()));
  CLEW_TRY(expect_word("into", "and a name for the group after its key"));
  const Token name = CLEW_TRY(expect_new_name("a name for the group after 'into'"));
  step.name = name.text;
  step.name_span = name.span;
  return step;
}

// item := [NAME "="] expression ["as" (NAME | STRING)]
Expected<SyntaxItem> Parser::select_item() {
  SyntaxItem item;
  if (peek().kind == TokenKind::Name && at_symbol("=", 1)) {
    const Token name = take();
    take();
    item.name = name.text;
    item.name_span = name.span;
  }
  item.expression = CLEW_TRY(expression());
  if (!item.name.empty() || !take_word("as")) return item;
  if (peek().kind != TokenKind::Name && peek().kind != TokenKind::String) {
    return fail_expected("a name after 'as'");
  }
  const Token name = take();
  item.name = name.kind == TokenKind::String ? name.value : std::string(name.text);
  item.name_span = name.span;
  if (item.name.empty()) return report_.fail(name.span, "a column's name cannot be empty");
  return item;
}

Expected<Step> Parser::select_step() {
  take();
  Step step{.kind = StepKind::Select};
  do {
    step.items.push_back(CLEW_TRY(select_item()));
  } while (take_symbol(","));
  return step;
}

Expected<Step> Parser::order_step() {
  const bool is_one_word = at_word("orderby");
  take();
  if (!is_one_word) CLEW_TRY(expect_word("by", "after 'order'"));
  Step step{.kind = StepKind::OrderBy};
  do {
    SyntaxItem item = CLEW_TRY(plain_item());
    item.descending = take_word("descending") || take_word("desc");
    if (!item.descending) static_cast<void>(take_word("ascending") || take_word("asc"));
    step.items.push_back(std::move(item));
  } while (take_symbol(","));
  return step;
}

Expected<uint64_t> Parser::positive_integer(std::string_view context) {
  if (peek().kind != TokenKind::Integer) {
    return fail_expected(fmt::format("a number {}", context));
  }
  if (peek().integer == 0) return fail_here(fmt::format("the number {} is at least 1", context));
  return take().integer;
}

Expected<uint64_t> Parser::positive_duration(std::string_view context) {
  if (peek().kind != TokenKind::Duration) {
    return fail_expected(fmt::format("a duration {}, such as 500ms or 10s", context));
  }
  if (peek().integer == 0) return fail_here(fmt::format("the duration {} is not 0", context));
  return take().integer;
}

Expected<Step> Parser::take_step() {
  take();
  Step step{.kind = StepKind::Take};
  step.number = CLEW_TRY(positive_integer("after 'take'"));
  return step;
}

Expected<Step> Parser::every_step() {
  take();
  Step step{.kind = StepKind::Every};
  step.number = CLEW_TRY(positive_duration("after 'every'"));
  return step;
}

// window := "window" ("tumbling" DURATION | "hopping" DURATION "by" DURATION | "session" DURATION)
//           ["late" DURATION]
Expected<Step> Parser::window_step() {
  constexpr std::array<std::string_view, 3> kKinds = {"tumbling", "hopping", "session"};
  take();
  Step step{.kind = StepKind::Window};
  TimeWindow& window = step.window;
  if (take_word("tumbling")) {
    window.size_ns = window.step_ns = CLEW_TRY(positive_duration("after 'tumbling'"));
  } else if (take_word("hopping")) {
    window.size_ns = CLEW_TRY(positive_duration("after 'hopping'"));
    CLEW_TRY(expect_word("by", "and how far apart windows begin, as 'hopping 60s by 10s'"));
    window.step_ns = CLEW_TRY(positive_duration("after 'by'"));
  } else if (take_word("session")) {
    window.kind = WindowKind::Session;
    window.size_ns = CLEW_TRY(positive_duration("after 'session': the gap that ends one"));
  } else {
    constexpr std::string_view kWhich = "'tumbling', 'hopping' or 'session' after 'window'";
    if (peek().kind != TokenKind::Name) return fail_expected(kWhich);
    return fail_here(fmt::format("expected {}, found '{}'{}", kWhich, peek().text,
                                 did_you_mean(peek().text, kKinds)));
  }
  window.late_ns = take_word("late") ? CLEW_TRY(late_duration()) : kLateUsualNs;
  return step;
}

// It may be 0.
Expected<uint64_t> Parser::late_duration() {
  if (peek().kind != TokenKind::Duration)
    return fail_expected("a duration after 'late', such as 0s or 5s");
  return take().integer;
}

Expected<Step> Parser::for_step() {
  take();
  Step step{.kind = StepKind::For};
  if (peek().kind != TokenKind::Integer) {
    step.number = CLEW_TRY(positive_duration("after 'for'"));
    return step;
  }
  step.kind = StepKind::ForEvents;
  step.number = CLEW_TRY(positive_integer("after 'for'"));
  const bool is_events = take_word("events") || take_word("event");
  if (!is_events) return fail_expected("'events' or a unit (ns, us, ms, s, m, h) after the number");
  return step;
}

// including := "including" "open"
Expected<Step> Parser::including_step() {
  take();
  CLEW_TRY(expect_word("open", "after 'including': the calls that are open at the end"));
  return Step{.kind = StepKind::IncludingOpen};
}

// join := ["left"] "join" NAME "in" [filter "("] sources [")"] "on" (NAME "->" NAME | by_time)
Expected<Step> Parser::join_step() {
  Step step{.kind = StepKind::Join};
  step.left = take_word("left");
  take();  // join
  const Token name = CLEW_TRY(expect_new_name("a name for the joined event after 'join'"));
  step.name = name.text;
  step.name_span = name.span;
  CLEW_TRY(expect_word("in", "after the event's name"));
  CLEW_TRY(join_sources(step));
  CLEW_TRY(expect_word("on", "and 'a -> b' after the joined source"));
  const bool is_name = peek().kind == TokenKind::Name;
  const bool is_by_cause = is_name && (at_symbol("->", 1) || peek(1).kind == TokenKind::End ||
                                       (peek(1).kind == TokenKind::Name && !at_word("equals", 1)));
  const bool is_by_time = !is_by_cause && !at_end();
  if (is_by_time) return join_by_time(std::move(step));
  const Token before = CLEW_TRY(expect_name("the event that happens first after 'on'"));
  CLEW_TRY(expect_symbol("->", "(happens before) between the two events"));
  const Token after = CLEW_TRY(expect_name("the event that happens later after '->'"));
  step.before = before.text;
  step.before_span = before.span;
  step.after = after.text;
  step.after_span = after.span;
  return step;
}

// by_time := key "equals" key { "and" key "equals" key } "within" DURATION ["before" | "after"]
Expected<Step> Parser::join_by_time(Step step) {
  do {
    SyntaxEquals equals;
    equals.left = CLEW_TRY(join_key());
    CLEW_TRY(expect_word("equals", "and the other event's key after a join's key"));
    equals.right = CLEW_TRY(join_key());
    step.equals.push_back(std::move(equals));
  } while (take_word("and") || take_symbol("&&"));
  CLEW_TRY(expect_word("within", "and a duration, such as 2s, after the keys of a join"));
  CLEW_TRY(join_times(step));
  return step;
}

// Without `and` and `==`, which some write between keys.
Expected<SyntaxItem> Parser::join_key() {
  SyntaxItem key;
  key.expression = CLEW_TRY(binary_expression(tighter(Precedence::Equality)));
  return key;
}

Expected<void> Parser::join_times(Step& step) {
  const Span span = peek().span;
  step.within_ns = CLEW_TRY(positive_duration("in which events are joined"));
  if (step.within_ns > kWithinMaxNs)
    return report_.fail(span, "events are held for a join; an hour is the most");
  if (take_word("before")) step.side = JoinSide::Before;
  if (step.side == JoinSide::Either && take_word("after")) step.side = JoinSide::After;
  return {};
}

Expected<void> Parser::join_sources(Step& step) {
  if (CLEW_TRY(filtered_sources(step))) return {};
  step.sources = CLEW_TRY(sources());
  return {};
}

// First(sources), FirstN(3, sources), …; false when none begins here.
Expected<bool> Parser::filtered_sources(Step& step) {
  const bool is_first = at_word("first") || at_word("firstn");
  const bool is_recent = at_word("mostrecent") || at_word("mostrecentn");
  if ((!is_first && !is_recent) || !at_symbol("(", 1)) return false;
  const bool is_counted = at_word("firstn") || at_word("mostrecentn");
  step.filter = is_first ? (is_counted ? JoinFilter::FirstN : JoinFilter::First)
                         : (is_counted ? JoinFilter::MostRecentN : JoinFilter::MostRecent);
  take();
  take();  // (
  step.number = 1;
  if (is_counted) {
    step.number = CLEW_TRY(positive_integer("of events to keep"));
    if (step.number > 1000) return fail_here("a join keeps at most 1000 events of a request");
    CLEW_TRY(expect_symbol(",", "after the number"));
  }
  step.sources = CLEW_TRY(sources());
  CLEW_TRY(expect_symbol(")", "after the joined source"));
  return true;
}

// with := "with" "cause" ">=" CLASS
Expected<Step> Parser::with_step() {
  take();
  CLEW_TRY(expect_word("cause", "after 'with': which causes joins believe"));
  CLEW_TRY(expect_symbol(">=", "after 'with cause'"));
  Step step{.kind = StepKind::WithCause};
  step.least = CLEW_TRY(cause_class("after 'with cause >='"));
  return step;
}

Expected<causal::EdgeClass> Parser::cause_class(std::string_view context) {
  constexpr std::string_view kNames = "explicit, sound, recipe or heuristic";
  const auto& names = causal::kEdgeClassNames;
  if (peek().kind != TokenKind::Name) return fail_expected(fmt::format("{} {}", kNames, context));
  const auto found =
      std::find_if(names.begin(), names.end(), [this](auto name) { return at_word(name); });
  if (found == names.end()) {
    return fail_here(fmt::format("'{}' says nothing of causes; they are known as {}{}", peek().text,
                                 kNames, did_you_mean(peek().text, names)));
  }
  take();
  return static_cast<causal::EdgeClass>(found - names.begin());
}

Expected<Step> Parser::from_step() {
  take();
  Step step{.kind = StepKind::From};
  const Token name = CLEW_TRY(expect_new_name("a name for the event after 'from'"));
  step.name = name.text;
  CLEW_TRY(expect_word("in", "after the event's name"));
  step.sources = CLEW_TRY(sources());
  return step;
}

}  // namespace clew::query
