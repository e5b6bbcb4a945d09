// SPDX-License-Identifier: Apache-2.0
#include "query/parse.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "query/evaluator.h"
#include "query/fields.h"
#include "query/normalise.h"
#include "query/parser.h"
#include "query/resolve_source.h"
#include "query/token.h"
#include "query/unsupported.h"
#include "query/vocabulary.h"
#include "query/window.h"

namespace clew::query {
namespace {

Expected<void> check_definitions(const SyntaxText& syntax, const Reporter& report) {
  for (size_t i = 0; i < syntax.definitions.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (syntax.definitions[i].name != syntax.definitions[j].name) continue;
      return report.fail(syntax.definitions[i].name_span,
                         fmt::format("'{}' is defined twice", syntax.definitions[i].name));
    }
  }
  return {};
}

Expected<std::vector<Token>> tokens_of(const Text& text, const Reporter& report) {
  return lex(report, {0, static_cast<uint32_t>(text.text.size())});
}

Expected<SyntaxText> syntax_of(const Text& text, const Reporter& report) {
  if (text.text.size() > kTextMaxBytes) {
    return fail(ErrorCode::Limit,
                fmt::format("{}: error: a query has at most {} bytes", text.name, kTextMaxBytes));
  }
  std::vector<Token> tokens = CLEW_TRY(tokens_of(text, report));
  SyntaxText syntax = CLEW_TRY(Parser(report, std::move(tokens)).text());
  CLEW_TRY(check_definitions(syntax, report));
  return syntax;
}

// Of "module!function".
std::string module_of(const SyntaxSource& source) {
  if (source.arguments.empty()) return {};
  const std::string& text = source.arguments[0].text;
  const size_t end = text.find('!');
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

// What a name in a text can mean.
struct PlacesOf {
  const SyntaxText& syntax;
  const Vocabulary* vocabulary;
};

void find_place(const TracepointDefinition& tracepoint, SourcePlaces& places) {
  for (const TracepointPlace& place : tracepoint.places) {
    places.kernel = places.kernel || is_kernel_source(place.source.kind);
    if (!is_process_source(place.source.kind)) continue;
    places.process = true;
    places.modules.push_back(place.source.module);
  }
}

// A name that is no call is a tracepoint of a vocabulary; or begin, end, or a query whose own
// sources are met.
void find_place(const SyntaxSource& source, const PlacesOf& text, const Reporter& report,
                SourcePlaces& places) {
  if (source.is_call) {
    const Expected<SourceKind> kind = kind_of(source, report);
    if (!kind) return;  // check_sources() says it.
    const bool is_of_process = is_process_source(*kind);
    places.kernel = places.kernel || is_kernel_source(*kind);
    places.profile = places.profile || *kind == SourceKind::Profile;
    places.recording = places.recording || *kind == SourceKind::Recording;
    places.process = places.process || is_of_process;
    if (!is_of_process) return;
    places.modules.push_back(module_of(source));
    if (is_everywhere(source.scope)) places.everywhere.push_back(module_of(source));
    return;
  }
  const bool is_of_tracer = same_word(source.name, "begin") || same_word(source.name, "end");
  const bool is_definition =
      std::any_of(text.syntax.definitions.begin(), text.syntax.definitions.end(),
                  [&](const SyntaxDefinition& each) { return each.name == source.name; });
  if (!source.query.empty() || !source.outstanding.empty() || is_definition) return;
  const TracepointDefinition* const tracepoint =
      text.vocabulary == nullptr ? nullptr : text.vocabulary->find(source.name);
  if (tracepoint != nullptr) return find_place(*tracepoint, places);
  if (!is_of_tracer) places.process = true;
}

void find_places(const SyntaxQuery& query, const PlacesOf& text, const Reporter& report,
                 SourcePlaces& places);

void find_places(const SyntaxOutstanding& what, const PlacesOf& text, const Reporter& report,
                 SourcePlaces& places) {
  SyntaxQuery begun;
  begun.sources = what.opened;
  find_places(begun, text, report, places);
  SyntaxQuery ended;
  ended.sources = what.closed;
  find_places(ended, text, report, places);
}

void find_each(const std::vector<SyntaxSource>& sources, const PlacesOf& text,
               const Reporter& report, SourcePlaces& places) {
  for (const SyntaxSource& each : sources)
    find_place(each, text, report, places);
}

void find_places(const SyntaxQuery& query, const PlacesOf& text, const Reporter& report,
                 SourcePlaces& places) {
  const auto visit = [&](const std::vector<SyntaxSource>& sources) {
    for (const SyntaxSource& source : sources) {
      const OutstandingDefinition* const named = text.vocabulary == nullptr || source.is_call
                                                     ? nullptr
                                                     : text.vocabulary->outstanding(source.name);
      if (named != nullptr) {
        find_each(named->what.opened, text, report, places);
        find_each(named->what.closed, text, report, places);
        continue;
      }
      for (const SyntaxOutstanding& what : source.outstanding)
        find_places(what, text, report, places);
      find_place(source, text, report, places);
      for (const SyntaxQuery& inner : source.query)
        find_places(inner, text, report, places);
    }
  };
  visit(query.sources);
  for (const Step& step : query.steps)
    visit(step.sources);
}

}  // namespace

namespace {

// Its own, or those of a query that it goes on from, by name or in parentheses.
bool has_join(const SyntaxQuery& query, const std::set<std::string_view>& joining) {
  const auto is_join = [](const Step& step) {
    return step.kind == StepKind::Join && step.equals.empty();
  };
  const auto goes_on_from_one = [&joining](const SyntaxSource& source) {
    return joining.contains(source.name) ||
           std::any_of(source.query.begin(), source.query.end(),
                       [&joining](const SyntaxQuery& inner) { return has_join(inner, joining); });
  };
  return std::any_of(query.steps.begin(), query.steps.end(), is_join) ||
         std::any_of(query.sources.begin(), query.sources.end(), goes_on_from_one);
}

// A query can name those before it.
bool has_join(const SyntaxText& text) {
  std::set<std::string_view> joining;
  for (const SyntaxDefinition& definition : text.definitions) {
    if (!definition.query.empty() && has_join(definition.query[0], joining))
      joining.insert(definition.name);
  }
  return has_join(text.query, joining);
}

}  // namespace

namespace {

// Of a query and those that it goes on from, of which the first `visible` definitions are some.
void find_ends(const SyntaxQuery& query, const SyntaxText& text, size_t visible,
               SourcePlaces& places) {
  for (const SyntaxSource& source : query.sources) {
    places.clusters = places.clusters || !source.clusters.empty();
    for (const SyntaxQuery& inner : source.query)
      find_ends(inner, text, visible, places);
    for (size_t i = 0; i < visible; ++i) {
      const SyntaxDefinition& definition = text.definitions[i];
      if (source.is_call || definition.name != source.name || definition.query.empty()) continue;
      find_ends(definition.query[0], text, i, places);
    }
  }
  for (const Step& step : query.steps) {
    if (step.kind == StepKind::Every) places.every_ns = step.number;
    if (step.kind == StepKind::For) places.for_ns = step.number;
    // Whether it makes sense is said by whoever understands the rest.
    if (step.kind == StepKind::Window) places.pane_ns = std::max(pane_ns(step.window), uint64_t{1});
  }
}

// A word that is something else there makes no more of it than a guess.
bool has_groups(const std::vector<Token>& tokens) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::string_view word = tokens[i].text;
    if (same_word(word, "group") || same_word(word, "groupby")) return true;
    if (is_aggregate_name(word) && tokens[i + 1].text == "(") return true;
  }
  return false;
}

}  // namespace

Expected<SourcePlaces> places_of_sources(const Text& text, const Vocabulary* vocabulary) {
  const Reporter report(text);
  const SyntaxText syntax = CLEW_TRY(syntax_of(text, report));
  SourcePlaces places;
  const std::vector<Token> tokens = CLEW_TRY(tokens_of(text, report));
  places.stacks = std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    const FieldInfo* const field = find_field(token.text);
    return field != nullptr && field->field == Field::UserStack;
  });
  places.joins = has_join(syntax);
  places.groups = has_groups(tokens);
  const PlacesOf names{.syntax = syntax, .vocabulary = vocabulary};
  find_places(syntax.query, names, report, places);
  find_ends(syntax.query, syntax, syntax.definitions.size(), places);
  for (const SyntaxDefinition& definition : syntax.definitions) {
    for (const SyntaxQuery& query : definition.query)
      find_places(query, names, report, places);
  }
  return places;
}

Expected<void> check_syntax(const Text& text) {
  CLEW_TRY(syntax_of(text, Reporter(text)));
  return {};
}

Expected<Query> parse_any(const Text& text, const Environment& environment) {
  const Reporter report(text);
  const SyntaxText syntax = CLEW_TRY(syntax_of(text, report));
  Limits limits;
  Query query =
      CLEW_TRY(analyse_query(syntax.query, syntax.definitions, report, environment, limits));
  if (query.shape == Shape::Groups || !limits.text.are_used) return query;
  // Keys take their whole size at each hit, events what the text has: once more with more of it.
  limits = {.text = {.usual_bytes = kEventStringDefaultBytes, .array_bytes_max = kStringMaxBytes}};
  return analyse_query(syntax.query, syntax.definitions, report, environment, limits);
}

Expected<Query> parse(const Text& text, const Environment& environment) {
  Query query = CLEW_TRY(parse_any(text, environment));
  CLEW_TRY(check_supported(query, Reporter(text)));
  return query;
}

}  // namespace clew::query
