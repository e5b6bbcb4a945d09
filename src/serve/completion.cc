// SPDX-License-Identifier: Apache-2.0
#include "serve/completion.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "abi/aggregate.h"
#include "query/fields.h"
#include "query/parse.h"

namespace clew::serve {
namespace {

using output::Json;
using query::SourceKind;

constexpr uint32_t kSourceKinds = static_cast<uint32_t>(SourceKind::Recording) + 1;
constexpr size_t kItemsMax = 200;

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view name_before(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && is_name_char(text[begin - 1]))
    --begin;
  return text.substr(begin);
}

std::string_view trimmed_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\n") + 1);
}

// The opening quote that the end of `text` is behind, in its line; npos: none.
size_t open_quote(std::string_view text) {
  const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0.
  size_t quote = std::string_view::npos;
  for (size_t i = line; i < text.size(); ++i)
    if (text[i] == '"') quote = quote == std::string_view::npos ? i : std::string_view::npos;
  return quote;
}

// The source whose name is in front of the quote's parenthesis: entry("…
uint32_t kinds_called(std::string_view name) {
  for (uint32_t kind = 0; kind < kSourceKinds; ++kind)
    if (query::name_of(static_cast<SourceKind>(kind)) == name) return 1U << kind;
  return 0;
}

// Of an event that the text calls `name`: `from name in entry(…)`.
uint32_t kinds_of(std::string_view text, std::string_view name) {
  const std::string words = fmt::format(" {} in ", name);
  const size_t at = text.find(words);
  if (name.empty() || at == std::string_view::npos) return ~0U;
  const std::string_view rest = text.substr(at + words.size());
  const auto* const end = std::find_if_not(rest.begin(), rest.end(), is_name_char);
  const uint32_t kinds =
      kinds_called(rest.substr(0, static_cast<size_t>(std::distance(rest.begin(), end))));
  return kinds == 0 ? ~0U : kinds;
}

Json item(std::string_view label, std::string_view kind, std::string_view detail,
          std::string_view insert) {
  return {{"label", label}, {"kind", kind}, {"detail", detail}, {"insert", insert}};
}

class Items {
 public:
  explicit Items(std::string_view typed) : typed_(typed) {}
  void add(std::string_view label, std::string_view kind, std::string_view detail,
           std::string_view behind = {}) {
    const bool fits = label.starts_with(typed_) && items_.size() < kItemsMax;
    if (fits && seen_.insert(std::string(label)).second)
      items_.push_back(item(label, kind, detail, std::string(label) + std::string(behind)));
  }
  Json take() { return std::move(items_); }

 private:
  std::string_view typed_;
  std::set<std::string> seen_;
  Json items_ = Json::array();
};

void add_fields(Items& items, uint32_t kinds) {
  for (const query::FieldInfo& field : query::fields())
    if ((field.kinds & kinds) != 0) items.add(field.name, "field", field.doc);
}

// Names that the text gives to events.
void add_names(Items& items, std::string_view text) {
  constexpr std::string_view kIn = " in ";
  for (size_t at = text.find(kIn); at != std::string_view::npos; at = text.find(kIn, at + 1)) {
    const std::string_view name = name_before(text.substr(0, at));
    if (!name.empty()) items.add(name, "name", "an event of this query", ".");
  }
}

}  // namespace

CompletionPlace place_in(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  CompletionPlace place;
  if (const size_t quote = open_quote(before); quote != std::string_view::npos) {
    place.kind = CompletionPlace::Kind::Function;
    std::string_view typed = before.substr(quote + 1);
    if (const size_t bang = typed.find('!'); bang != std::string_view::npos) {
      place.module = typed.substr(0, bang);
      typed.remove_prefix(bang + 1);
    }
    place.from = before.size() - typed.size();
    place.typed = typed;
    std::string_view source = trimmed_end(before.substr(0, quote));
    if (source.ends_with('(')) source.remove_suffix(1);
    place.kinds = kinds_called(name_before(source));
    return place;
  }
  place.typed = name_before(before);
  place.from = before.size() - place.typed.size();
  const std::string_view front = before.substr(0, place.from);
  if (!front.ends_with('.')) return place;
  place.kind = CompletionPlace::Kind::Field;
  place.kinds = kinds_of(text, name_before(front.substr(0, front.size() - 1)));
  return place;
}

Json word_items(const CompletionPlace& place, std::string_view text) {
  Items items(place.typed);
  if (place.kind == CompletionPlace::Kind::Field) add_fields(items, place.kinds);
  if (place.kind != CompletionPlace::Kind::Word) return items.take();
  add_names(items, text);
  for (uint32_t kind = 0; kind < kSourceKinds; ++kind)
    items.add(query::name_of(static_cast<SourceKind>(kind)), "provider", "a source of events", "(");
  for (const abi::AggregateRow& row : abi::kAggregateRows)
    items.add(row.name, "aggregate", "over a group", "(");
  for (const std::string_view word : query::clause_words())
    items.add(word, "keyword", "", " ");
  return items.take();
}

Json function_items(const CompletionPlace& place, std::string_view lines) {
  Items items(place.typed);
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const Json line = Json::parse(lines.substr(0, end), nullptr, false);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const bool is_function = line.is_object() && line.value("function", Json()).is_string() &&
                             line.value("module", Json()).is_string();
    if (is_function) {
      items.add(line["function"].get<std::string>(), "function", line["module"].get<std::string>());
    }
  }
  return items.take();
}

}  // namespace clew::serve
