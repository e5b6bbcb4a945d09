// SPDX-License-Identifier: Apache-2.0
#include "engine/d_user_types.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "engine/d_conversion.h"

namespace clew::engine {

using query::d::kNoType;
using query::d::Tag;
using query::d::TypeEnumerator;
using query::d::TypeId;
using query::d::TypeTable;

namespace {

constexpr std::string_view kMain = "a.out";

// "pid12`libc" -> 12, and "libc" is left; 0 when no process is named.
pid_t take_pid(std::string_view& module) {
  constexpr std::string_view kWord = "pid";
  if (!module.starts_with(kWord)) return 0;
  const std::string_view digits = module.substr(kWord.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  const auto length = static_cast<size_t>(end - digits.data());
  const bool is_whole = length == digits.size() || digits[length] == '`';
  if (error != std::errc() || pid <= 0 || !is_whole) return 0;
  module = digits.substr(std::min(length + 1, digits.size()));
  return pid;
}

}  // namespace

void UserTypes::add_process(pid_t pid) {
  pids_.push_back(pid);
}

target::Catalog* UserTypes::catalog_of(pid_t pid) {
  auto found = catalogs_.find(pid);
  if (found == catalogs_.end()) {
    auto read = target::Catalog::of_process(pid, target::default_catalog_options());
    std::optional<target::Catalog> catalog;
    if (read) catalog.emplace(std::move(*read));
    found = catalogs_.emplace(pid, std::move(catalog)).first;
  }
  return found->second ? &*found->second : nullptr;
}

void UserTypes::add_modules(pid_t pid, std::string_view name, std::vector<Module>& found) {
  target::Catalog* const catalog = catalog_of(pid);
  if (catalog == nullptr) return;
  std::vector<size_t> wanted;
  if (name.empty() || name == " " || name == kMain) {
    const size_t count = name == kMain ? 1 : catalog->modules().size();
    for (size_t i = 0; i < std::min(count, catalog->modules().size()); ++i)
      wanted.push_back(i);
  } else if (auto matching = catalog->find_modules(name)) {
    wanted = std::move(*matching);
  }
  for (const size_t module : wanted) {
    auto types = catalog->debug_info(module);
    if (!types) continue;
    const std::string& shown = catalog->modules()[module].display_name;
    found.push_back({*types, fmt::format("pid{}`{}`", pid, module == 0 ? kMain : shown)});
  }
}

std::vector<UserTypes::Module> UserTypes::modules(std::string_view name) {
  std::vector<Module> found;
  if (const pid_t pid = take_pid(name); pid != 0) {
    add_modules(pid, name, found);
    return found;
  }
  for (const pid_t pid : pids_)
    add_modules(pid, name, found);
  return found;
}

TypeId UserTypes::find(TypeTable& table, std::string_view module, Tag tag, std::string_view name) {
  for (const Module& each : modules(module)) {
    // A typedef of C, or a class of C++, stands without a tag.
    for (const std::string& spelling : {spelled(tag, name), std::string(name)}) {
      const target::TypeId found = each.types->find_type(spelling);
      if (found != target::kVoidType) return convert_type(*each.types, found, table, each.prefix);
    }
  }
  return kNoType;
}

std::optional<TypeEnumerator> UserTypes::find_enumerator(std::string_view name) {
  for (const Module& each : modules("")) {
    if (auto found = each.types->find_enumerator(name)) return found;
  }
  return std::nullopt;
}

}  // namespace clew::engine
