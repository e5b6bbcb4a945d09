// SPDX-License-Identifier: Apache-2.0
// The list of what values are by other names.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "engine/inventory.h"
#include "query/number_sets.h"
#include "query/vocabulary.h"
#include "target/pattern.h"

namespace clew::engine {
namespace {

std::string dumped(const nlohmann::json& line) {
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string value_text(const query::ValueDefinition& value, bool json) {
  const bool is_called = value.members.empty();
  const auto& inside = is_called ? value.parameters : value.members;
  if (json) {
    return dumped({{"value", value.name},
                   {is_called ? "of" : "members", inside},
                   {"doc", value.doc},
                   {"is", value.text}});
  }
  const std::string shown =
      is_called ? fmt::format("{}({})", value.name, fmt::join(inside, ", ")) : value.name;
  const std::string doc = is_called || !value.doc.empty()
                              ? value.doc
                              : fmt::format("with members {}", fmt::join(inside, ", "));
  return fmt::format("{:<24} {}\n", shown, doc);
}

std::string numbers_text(const query::NumberSet& set, bool has_numbers, bool json) {
  const query::Enumeration& names = set.enumeration;
  if (json) {
    nlohmann::json object{{"numbers", set.name}, {"doc", set.doc}, {"flags", !names.masks.empty()}};
    for (const query::Enumerator& each : names.enumerators)
      object["names"][each.name] = each.value;
    return dumped(object);
  }
  std::string text = fmt::format("{:<24} {}\n", fmt::format("({})", set.name), set.doc);
  for (const query::Enumerator& each : names.enumerators) {
    if (has_numbers)
      text += names.masks.empty() ? fmt::format("  {:<22} {}\n", each.name, each.value)
                                  : fmt::format("  {:<22} 0x{:x}\n", each.name, each.value);
  }
  return text;
}

}  // namespace

Expected<std::string> list_values(const NameRequest& request,
                                  const std::vector<std::string>& vocabulary_paths) {
  const target::Pattern pattern = CLEW_TRY(target::Pattern::compile(request.pattern));
  query::Vocabulary vocabulary;
  for (const std::string& path : vocabulary_paths)
    CLEW_TRY(vocabulary.load(path));
  std::string text;
  std::vector<std::string_view> names;
  for (const query::ValueDefinition& value : vocabulary.values()) {
    names.push_back(value.name);
    if (pattern.matches(value.name)) text += value_text(value, request.json);
  }
  for (const query::NumberSet& set : query::number_sets()) {
    names.push_back(set.name);
    if (pattern.matches(set.name))
      text += numbers_text(set, !pattern.matches_everything(), request.json);
  }
  if (!text.empty()) return text;
  const std::string near = nearest_name(request.pattern, names);
  return fail(ErrorCode::NotFound,
              fmt::format("no value matches '{}'{}", request.pattern, did_you_mean(near)));
}

}  // namespace clew::engine
