// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/probes.h"

#include <fmt/format.h>

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

}  // namespace clew::engine
