// SPDX-License-Identifier: Apache-2.0
#include "engine/record/known_imports.h"

namespace clew::engine {

void KnownImports::add(const target::LinkedNames& names, bool is_silent) {
  for (const target::ExportedFunction& function : names.exports) {
    Exporters& exporters = by_name_[function.name];
    ++(is_silent ? exporters.silent : exporters.recorded);
  }
}

std::vector<recorder::KnownImport> KnownImports::of(const target::LinkedNames& names) const {
  std::vector<recorder::KnownImport> known;
  if (has_unread_) return known;
  std::unordered_map<uint64_t, std::string_view> symbols;
  for (const target::ImportSlot& slot : names.imports)
    symbols.emplace(slot.slot_address, slot.symbol);
  const recorder::Imports all = recorder::Imports::of(names);
  for (const recorder::KnownImport& import : all.known()) {
    const auto exporters = by_name_.find(std::string(symbols[import.slot]));
    if (exporters == by_name_.end()) continue;
    const Exporters& who = exporters->second;
    const bool is_sure = import.own == 0 ? who.recorded == 0 && who.silent != 0
                                         : who.recorded == 1 && who.silent == 0;
    if (is_sure) known.push_back(import);
  }
  return known;
}

}  // namespace clew::engine
