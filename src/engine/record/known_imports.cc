// SPDX-License-Identifier: Apache-2.0
#include "engine/record/known_imports.h"

#include <set>
#include <utility>

namespace clew::engine {

Expected<ModuleNames> ModuleNames::of(const target::ModuleImage& image) {
  ModuleNames all;
  std::set<std::string_view> functions;
  for (const target::Function& function : image.functions()) {
    for (const target::FunctionName& name : function.names) {
      if (name.binding != target::SymbolBinding::Local) functions.insert(name.linkage);
    }
  }
  all.functions.assign(functions.begin(), functions.end());
  std::unordered_map<uint64_t, std::string> symbols;
  for (const target::ImportSlot& slot : CLEW_TRY(image.import_slots())) {
    symbols.emplace(slot.slot_address, slot.symbol);
    if (slot.symbol == "dlopen" || slot.symbol == "dlmopen") all.opens_libraries = true;
  }
  const recorder::Imports known = CLEW_TRY(recorder::Imports::of(image));
  for (const recorder::KnownImport& import : known.known())
    all.imports.push_back({import, symbols[import.slot]});
  return all;
}

void KnownImports::add(const ModuleNames& module, bool is_silent) {
  for (const std::string& name : module.functions) {
    Exporters& exporters = by_name_[name];
    ++(is_silent ? exporters.silent : exporters.recorded);
  }
}

std::vector<recorder::KnownImport> KnownImports::of(const ModuleNames& module) const {
  std::vector<recorder::KnownImport> known;
  if (has_unread_) return known;
  for (const ModuleNames::Import& one : module.imports) {
    const auto exporters = by_name_.find(one.symbol);
    if (exporters == by_name_.end()) continue;
    const Exporters& who = exporters->second;
    const bool is_sure = one.import.own == 0 ? who.recorded == 0 && who.silent != 0
                                             : who.recorded == 1 && who.silent == 0;
    if (is_sure) known.push_back(one.import);
  }
  return known;
}

}  // namespace clew::engine
