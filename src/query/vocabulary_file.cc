// SPDX-License-Identifier: Apache-2.0
#include "query/vocabulary_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/settings_file.h"
#include "query/diagnostic.h"
#include "query/parser.h"
#include "query/resolve_source.h"
#include "query/token.h"

namespace clew::query {
namespace {

constexpr size_t kExportsMax = 64;
constexpr size_t kPlacesMax = 64;

// The span of a value in the text of its file. Positions of toml++ count from 1.
Span span_of(const toml::source_region& region, std::string_view text) {
  size_t begin = 0;
  for (uint32_t line = 1; line < region.begin.line; ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;
    begin = end + 1;
  }
  const size_t column = region.begin.column == 0 ? 0 : region.begin.column - 1U;
  const size_t offset = std::min(begin + column, text.size());
  return {static_cast<uint32_t>(offset), static_cast<uint32_t>(offset)};
}

// Names as a query writes them.
SyntaxSource source_named(const std::string& name) {
  SyntaxSource source;
  source.name = name;
  return source;
}

SyntaxEquals key_named(const std::string& name) {
  SyntaxExpression written;
  written.kind = SyntaxKind::Name;
  written.text = name;
  SyntaxEquals key;
  key.left.expression = written;
  key.right.expression = std::move(written);
  return key;
}

class Reader {
 public:
  Reader(const Text& text, const Reporter& report) : text_(text), report_(report) {}

  Expected<VocabularyFile> run() {
    const toml::parse_result parsed = toml::parse(std::string_view(text_.text), text_.name);
    if (!parsed) {
      const Span span = span_of(parsed.error().source(), text_.text);
      return report_.fail(span, toml_problem(parsed.error()));
    }
    VocabularyFile result;
    for (const auto& [key, node] : parsed.table()) {
      constexpr std::array<std::string_view, 4> kTables = {"tracepoint", "program", "outstanding",
                                                           "value"};
      if (std::find(kTables.begin(), kTables.end(), key.str()) == kTables.end()) {
        return fail_at(node, fmt::format("unknown table '{}'; a vocabulary is [[tracepoint]]s, "
                                         "[[program]]s, [[outstanding]]s and [[value]]s",
                                         key.str()));
      }
      CLEW_TRY(add_all(node, key.str(), result));
    }
    return result;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> fail_at(const toml::node& node,
                                              std::string_view message) const {
    return report_.fail(span_of(node.source(), text_.text), message);
  }

  // Of [[tracepoint]], [[program]], [[outstanding]] or [[value]].
  Expected<void> add_all(const toml::node& node, std::string_view key,
                         VocabularyFile& result) const {
    const toml::array* entries = node.as_array();
    if (entries == nullptr)
      return fail_at(node, fmt::format("expected [[{}]], an array of tables", key));
    for (const toml::node& entry : *entries) {
      const toml::table* table = entry.as_table();
      if (table == nullptr)
        return fail_at(entry, fmt::format("expected a table behind [[{}]]", key));
      if (key == "tracepoint") {
        CLEW_TRY(add(*table, result.tracepoints));
      } else if (key == "outstanding") {
        result.outstandings.push_back(CLEW_TRY(outstanding_of(*table)));
      } else if (key == "value") {
        result.values.push_back(CLEW_TRY(value_of(*table)));
      } else {
        result.programs.push_back(CLEW_TRY(program_of(*table)));
      }
    }
    return {};
  }

  Expected<void> add(const toml::table& table, std::vector<TracepointDefinition>& result) const {
    constexpr std::array<std::string_view, 9> kKeys = {
        "name", "doc", "function", "line", "syscall", "at", "exports", "cause", "how"};
    CLEW_TRY(check_keys(table, kKeys));
    TracepointDefinition definition;
    definition.file = text_.name;
    definition.name = CLEW_TRY(text_of(table, "name"));
    CLEW_TRY(check_name(table, definition.name));
    if (table.contains("doc")) definition.doc = CLEW_TRY(text_of(table, "doc"));
    const SourceKind kind = CLEW_TRY(weave_point(table));
    const std::vector<TracepointExport> exports = CLEW_TRY(exports_of(table));
    for (Source& source : CLEW_TRY(sources_of(table, kind))) {
      definition.places.push_back({.source = std::move(source), .exports = exports});
    }
    definition.cause = CLEW_TRY(cause_of(table, exports));
    return merge(table, std::move(definition), result);
  }

  [[nodiscard]] Expected<Program> program_of(const toml::table& table) const {
    constexpr std::array<std::string_view, 6> kKeys = {"name",  "doc", "onward",
                                                       "reply", "how", "pipes"};
    CLEW_TRY(check_keys(table, kKeys));
    Program program;
    program.file = text_.name;
    program.name = CLEW_TRY(text_of(table, "name"));
    if (table.contains("doc")) program.doc = CLEW_TRY(text_of(table, "doc"));
    const std::string onward = CLEW_TRY(text_of(table, "onward"));
    const std::string reply =
        table.contains("reply") ? CLEW_TRY(text_of(table, "reply")) : "alternating";
    const std::string how = table.contains("how") ? CLEW_TRY(text_of(table, "how")) : "recipe";
    const std::string pipes =
        table.contains("pipes") ? CLEW_TRY(text_of(table, "pipes")) : "ignored";
    auto profile = parse_profile({.onward = onward, .reply = reply, .how = how, .pipes = pipes});
    if (!profile) return fail_at(table, profile.error().message);
    program.profile = *profile;
    return program;
  }

  [[nodiscard]] Expected<OutstandingDefinition> outstanding_of(const toml::table& table) const {
    constexpr std::array<std::string_view, 5> kKeys = {"name", "doc", "opened", "until", "on"};
    CLEW_TRY(check_keys(table, kKeys));
    OutstandingDefinition made;
    made.file = text_.name;
    made.name = CLEW_TRY(text_of(table, "name"));
    CLEW_TRY(check_name(table, made.name));
    if (table.contains("doc")) made.doc = CLEW_TRY(text_of(table, "doc"));
    for (const std::string& name : CLEW_TRY(names_of(table, "opened")))
      made.what.opened.push_back(source_named(name));
    for (const std::string& name : CLEW_TRY(names_of(table, "until")))
      made.what.closed.push_back(source_named(name));
    for (const std::string& name : CLEW_TRY(names_of(table, "on")))
      made.what.keys.push_back(key_named(name));
    return made;
  }

  // One name, or a list of them.
  [[nodiscard]] Expected<std::vector<std::string>> names_of(const toml::table& table,
                                                            std::string_view key) const {
    const toml::node* const node = table.get(key);
    const toml::array* const list = node == nullptr ? nullptr : node->as_array();
    if (list == nullptr) return std::vector<std::string>{CLEW_TRY(text_of(table, key))};
    std::vector<std::string> names;
    for (const toml::node& element : *list) {
      const toml::value<std::string>* const name = element.as_string();
      if (name == nullptr || name->get().empty())
        return fail_at(element, fmt::format("'{}' is a name, or a list of them", key));
      names.push_back(name->get());
    }
    if (!names.empty() && names.size() <= kPlacesMax) return names;
    return fail_at(*node, fmt::format("'{}' lists from 1 to {} names", key, kPlacesMax));
  }

  [[nodiscard]] Expected<ValueDefinition> value_of(const toml::table& table) const {
    constexpr std::array<std::string_view, 5> kKeys = {"name", "doc", "of", "is", "members"};
    CLEW_TRY(check_keys(table, kKeys));
    ValueDefinition value;
    value.file = text_.name;
    value.name = CLEW_TRY(text_of(table, "name"));
    if (table.contains("doc")) value.doc = CLEW_TRY(text_of(table, "doc"));
    value.parameters = CLEW_TRY(names_if_any(table, "of"));
    value.members = CLEW_TRY(names_if_any(table, "members"));
    if (value.parameters.empty()) value.parameters.emplace_back("x");
    if (!value.members.empty() && value.parameters.size() != 1)
      return fail_at(table, "a value with 'members' has one parameter, the record");
    value.text = CLEW_TRY(text_of(table, "is"));
    value.expression = CLEW_TRY(expression_of(*table.get("is"), value.text));
    return value;
  }

  // None: there is no such key.
  [[nodiscard]] Expected<std::vector<std::string>> names_if_any(const toml::table& table,
                                                                std::string_view key) const {
    if (!table.contains(key)) return std::vector<std::string>();
    return names_of(table, key);
  }

  [[nodiscard]] Expected<void> check_keys(const toml::table& table,
                                          std::span<const std::string_view> keys) const {
    for (const auto& [key, node] : table) {
      if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
      return fail_at(node,
                     fmt::format("unknown key '{}'{}", key.str(), did_you_mean(key.str(), keys)));
    }
    return {};
  }

  Expected<std::string> text_of(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return fail_at(table, fmt::format("the table needs '{}'", key));
    const toml::value<std::string>* value = node->as_string();
    if (value == nullptr || value->get().empty()) {
      return fail_at(*node, fmt::format("'{}' must be a non-empty string", key));
    }
    return value->get();
  }

  // Queries write the name without quotes: names, with dots between.
  [[nodiscard]] Expected<void> check_name(const toml::table& table, std::string_view name) const {
    bool at_start = true;
    bool is_good = true;
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      const bool is_letter = std::isalpha(byte) != 0 || c == '_';
      is_good = is_good && (is_letter || (!at_start && (std::isdigit(byte) != 0 || c == '.')));
      at_start = c == '.';
    }
    if (is_good && !at_start) return {};
    return fail_at(*table.get("name"),
                   fmt::format("'{}' is not a dotted name, such as redis.command", name));
  }

  Expected<SourceKind> weave_point(const toml::table& table) const {
    if (table.contains("syscall")) return weave_point_of_call(table);
    if (!table.contains("at")) {
      return table.contains("line") ? SourceKind::Line : SourceKind::Entry;
    }
    const std::string at = CLEW_TRY(text_of(table, "at"));
    constexpr std::array<std::string_view, 4> kNames = {"entry", "return", "exception", "line"};
    constexpr std::array<SourceKind, 4> kKinds = {SourceKind::Entry, SourceKind::Return,
                                                  SourceKind::Exception, SourceKind::Line};
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (at == kNames[i]) return kKinds[i];
    }
    return fail_at(*table.get("at"), fmt::format("'at' is entry, return, exception or line, not "
                                                 "'{}'{}",
                                                 at, did_you_mean(at, kNames)));
  }

  [[nodiscard]] Expected<SourceKind> weave_point_of_call(const toml::table& table) const {
    for (const std::string_view other : {"function", "line"}) {
      if (table.contains(other))
        return fail_at(*table.get(other), "a tracepoint is at a system call or in a program");
    }
    const std::string at = table.contains("at") ? CLEW_TRY(text_of(table, "at")) : "entry";
    if (at == "entry") return SourceKind::Syscall;
    if (at == "return") return SourceKind::SyscallReturn;
    return fail_at(*table.get("at"), "'at' of a system call is entry or return");
  }

  Expected<std::vector<Source>> sources_of(const toml::table& table, SourceKind kind) const {
    const std::string_view key = is_kernel_source(kind)     ? "syscall"
                                 : kind == SourceKind::Line ? "line"
                                                            : "function";
    const toml::node* node = table.get(key);
    if (node == nullptr) return fail_at(table, fmt::format("a tracepoint needs '{}'", key));
    std::vector<Source> result;
    const toml::array* list = node->as_array();
    if (list == nullptr) {
      result.push_back(CLEW_TRY(source_of(*node, key, kind)));
      return result;
    }
    if (list->empty() || list->size() > kPlacesMax) {
      return fail_at(*node, fmt::format("'{}' lists from 1 to {} places", key, kPlacesMax));
    }
    for (const toml::node& element : *list) {
      result.push_back(CLEW_TRY(source_of(element, key, kind)));
    }
    return result;
  }

  // Goes through the syntax of queries, so that both mean the same.
  Expected<Source> source_of(const toml::node& node, std::string_view key, SourceKind kind) const {
    const toml::value<std::string>* value = node.as_string();
    if (value == nullptr || value->get().empty()) {
      return fail_at(node, fmt::format("'{}' must be a non-empty string, or a list of them", key));
    }
    Source source;
    source.kind = kind;
    const std::string& text = value->get();
    if (is_kernel_source(kind)) {
      source.function = text;
      return source;
    }
    if (kind != SourceKind::Line) {
      if (split_function(text, source)) return source;
      return fail_at(node, "'!' stands between a module and a function");
    }
    const size_t colon = text.rfind(':');
    const std::string_view digits =
        colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1);
    const char* const end_wanted = digits.data() + digits.size();
    const auto [end, code] = std::from_chars(digits.data(), end_wanted, source.line);
    if (code != std::errc() || end != end_wanted || source.line == 0 || colon == 0) {
      return fail_at(node, "expected a file and a line, as in server.c:120");
    }
    source.file = text.substr(0, colon);
    return source;
  }

  Expected<std::vector<TracepointExport>> exports_of(const toml::table& table) const {
    std::vector<TracepointExport> result;
    const toml::node* node = table.get("exports");
    if (node == nullptr) return result;
    const toml::table* exports = node->as_table();
    if (exports == nullptr) {
      return fail_at(*node, "'exports' is a table of names and expressions: { size = \"arg0\" }");
    }
    for (const auto& [key, value] : *exports) {
      const toml::value<std::string>* text = value.as_string();
      if (text == nullptr) return fail_at(value, "an export's expression is a string");
      if (result.size() == kExportsMax)
        return fail_at(value, "a tracepoint has at most 64 exports");
      TracepointExport exported;
      exported.name = key.str();
      exported.text = text->get();
      exported.expression = CLEW_TRY(expression_of(value, text->get()));
      result.push_back(std::move(exported));
    }
    return result;
  }

  [[nodiscard]] Expected<std::optional<Cause>> cause_of(
      const toml::table& table, const std::vector<TracepointExport>& exports) const {
    if (!table.contains("cause")) {
      if (table.contains("how")) return fail_at(*table.get("how"), "'how' belongs to a 'cause'");
      return std::nullopt;
    }
    const std::string text = CLEW_TRY(text_of(table, "cause"));
    const std::string how = table.contains("how") ? CLEW_TRY(text_of(table, "how")) : "recipe";
    Expected<Cause> cause = parse_cause(text, how);
    if (!cause) return fail_at(*table.get("cause"), cause.error().message);
    std::vector<std::string_view> names;
    names.reserve(exports.size());
    for (const TracepointExport& each : exports)
      names.push_back(each.name);
    for (const std::string& key : {cause->key, cause->low_key}) {
      if (key.empty() || std::find(names.begin(), names.end(), key) != names.end()) continue;
      return fail_at(*table.get("cause"),
                     fmt::format("no export '{}'{}", key, did_you_mean(key, names)));
    }
    return std::move(*cause);
  }

  // Parsed where it stands in the file, so that an error has its place there. A string with escapes
  // does not stand there as it is; then the place is that of the string.
  Expected<SyntaxExpression> expression_of(const toml::node& node, const std::string& value) const {
    const uint32_t begin = span_of(node.source(), text_.text).begin + 1;
    const bool is_verbatim = text_.text.compare(begin, value.size(), value) == 0;
    if (is_verbatim) {
      const Span span{begin, begin + static_cast<uint32_t>(value.size())};
      return Parser(report_, CLEW_TRY(lex(report_, span))).whole_expression();
    }
    const Text alone{.name = fmt::format("{}:{}", text_.name, node.source().begin.line),
                     .text = value};
    const Reporter report(alone);
    const Span span{0, static_cast<uint32_t>(value.size())};
    return Parser(report, CLEW_TRY(lex(report, span))).whole_expression();
  }

  // A repeated name is one more place of the same tracepoint.
  Expected<void> merge(const toml::table& table, TracepointDefinition definition,
                       std::vector<TracepointDefinition>& result) const {
    for (TracepointDefinition& other : result) {
      if (!same_word(other.name, definition.name)) continue;
      const std::vector<TracepointExport>& before = other.places[0].exports;
      const std::vector<TracepointExport>& now = definition.places[0].exports;
      bool agrees = before.size() == now.size();
      for (size_t i = 0; agrees && i < now.size(); ++i) {
        agrees = before[i].name == now[i].name;
      }
      if (!agrees) {
        return fail_at(
            table, fmt::format("all places of '{}' must export the same names", definition.name));
      }
      if (other.cause != definition.cause) {
        return fail_at(table,
                       fmt::format("all places of '{}' must have the same cause", definition.name));
      }
      for (TracepointPlace& place : definition.places) {
        if (other.places.size() == kPlacesMax) {
          return fail_at(table, fmt::format("a tracepoint has at most {} places", kPlacesMax));
        }
        other.places.push_back(std::move(place));
      }
      return {};
    }
    result.push_back(std::move(definition));
    return {};
  }

  const Text& text_;
  const Reporter& report_;
};

}  // namespace

Expected<VocabularyFile> read_vocabulary(const Text& text, const Reporter& report) {
  return Reader(text, report).run();
}

}  // namespace clew::query
