// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/probes.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/nearest.h"
#include "kernel/glob.h"

namespace clew::engine {

using query::d::ProbeArguments;
using query::d::ProbeDescription;
using query::d::Tag;
using query::d::TypeId;
using query::d::TypeTable;

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text = trim(text.substr(word.size()));
  return true;
}

using Arguments = std::vector<kernel::Catalogue::Argument>;

bool agree(const Arguments& a, const Arguments& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.native_type == y.native_type && x.translated_type == y.translated_type &&
           x.mapping == y.mapping;
  });
}

void take_types(TypeTable& table, const Arguments& from, ProbeArguments& into) {
  for (const auto& argument : from) {
    into.types.push_back(type_by_text(table, argument.translated_type));
    into.native_types.push_back(type_by_text(table, argument.native_type));
    into.mapping.push_back(argument.mapping);
    into.is_userland = into.is_userland || argument.is_userland;
  }
}

}  // namespace

TypeId type_by_text(TypeTable& table, std::string_view text) {
  text = trim(text);
  size_t stars = 0;
  while (!text.empty() && text.back() == '*') {
    ++stars;
    text = trim(text.substr(0, text.size() - 1));
  }
  while (take_word(text, "const ") || take_word(text, "volatile ")) {
  }
  Tag tag = Tag::None;
  if (take_word(text, "struct ")) tag = Tag::Struct;
  if (take_word(text, "union ")) tag = Tag::Union;
  if (take_word(text, "enum ")) tag = Tag::Enum;
  TypeId type = tag == Tag::None ? table.find_base(text) : query::d::kNoType;
  if (type == query::d::kNoType) type = table.find("", tag, text);
  if (type == query::d::kNoType && tag != Tag::None) type = table.declare(tag, std::string(text));
  for (; stars != 0 && type != query::d::kNoType; --stars) {
    type = table.pointer_to(type);
  }
  return type;
}

Expected<std::vector<uint32_t>> CatalogueProbes::match(const ProbeDescription& description) {
  if (description.id) {
    const auto id = static_cast<uint32_t>(*description.id);
    if (*description.id != id || catalogue_.find(id) == nullptr) return std::vector<uint32_t>{};
    return std::vector<uint32_t>{id};
  }
  return catalogue_.match({.provider = description.provider,
                           .module = description.module,
                           .function = description.function,
                           .name = description.name});
}

Expected<ProbeArguments> CatalogueProbes::arguments(TypeTable& table,
                                                    const ProbeDescription& description) {
  // Beyond that many, nobody asks for arguments that all of them have.
  constexpr size_t kComparedMax = 64;
  const std::vector<uint32_t> ids = CLEW_TRY(match(description));
  ProbeArguments arguments;
  arguments.matched = ids.size();
  if (ids.empty()) return arguments;
  const auto first = catalogue_.arguments(ids.front());
  if (!first) return arguments;
  for (size_t i = 1; i < ids.size() && !arguments.disagree; ++i) {
    const auto other = i < kComparedMax ? catalogue_.arguments(ids[i]) : first;
    arguments.disagree = !other || !agree(*first, *other);
  }
  if (!arguments.disagree) take_types(table, *first, arguments);
  return arguments;
}

namespace {

using Pattern = kernel::ProbePattern;

// A field of a description, and the same field of a probe.
struct Field {
  std::string Pattern::*of_pattern;
  std::string kernel::Probe::*of_probe;
};
constexpr std::array kFields = {Field{&Pattern::function, &kernel::Probe::function},
                                Field{&Pattern::name, &kernel::Probe::name},
                                Field{&Pattern::module, &kernel::Probe::module},
                                Field{&Pattern::provider, &kernel::Probe::provider}};

// Of a function in a process each instruction is a probe by its offset: too many to look at.
bool means_all_offsets(const Pattern& pattern) {
  return pattern.name.empty() && pattern.function.empty() && pattern.provider.starts_with("pid");
}

}  // namespace

std::string CatalogueProbes::nearest(const ProbeDescription& description) {
  if (description.id) return "";
  const Pattern wanted = {.provider = description.provider,
                          .module = description.module,
                          .function = description.function,
                          .name = description.name};
  for (const Field& field : kFields) {
    const std::string& written = wanted.*field.of_pattern;
    if (written.empty() || !kernel::Glob(written).is_literal()) continue;
    Pattern wider = wanted;
    (wider.*field.of_pattern).clear();
    if (means_all_offsets(wider)) continue;
    const auto ids = catalogue_.match(wider);
    if (!ids) continue;
    std::set<std::string_view> names;
    for (const uint32_t id : *ids)
      names.insert(catalogue_.find(id)->*field.of_probe);
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    wider.*field.of_pattern = nearest_name(written, candidates);
    if ((wider.*field.of_pattern).empty()) continue;
    constexpr std::string_view kTarget = "pid$target";  // A command has another pid each time.
    if (description.text.starts_with(kTarget)) wider.provider = kTarget;
    const std::string near =
        fmt::format("{}:{}:{}:{}", wider.provider, wider.module, wider.function, wider.name);
    return near.substr(near.find_first_not_of(':'));
  }
  return "";
}

}  // namespace clew::engine
