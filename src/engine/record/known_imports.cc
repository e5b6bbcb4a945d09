// SPDX-License-Identifier: Apache-2.0
#include "engine/record/known_imports.h"

#include <set>

namespace clew::engine {

void KnownImports::add(const target::ProcessModule& module, bool is_silent) {
  const auto image = target::ModuleImage::read(module.open_path);
  if (!image) {
    has_unread_ = true;
    return;
  }
  std::set<std::string_view> names;
  for (const target::Function& function : image->functions()) {
    for (const target::FunctionName& name : function.names) {
      if (name.binding != target::SymbolBinding::Local) names.insert(name.linkage);
    }
  }
  for (const std::string_view name : names) {
    Exporters& exporters = by_name_[std::string(name)];
    ++(is_silent ? exporters.silent : exporters.recorded);
  }
}

Expected<std::vector<recorder::KnownImport>> KnownImports::of(
    const target::ModuleImage& image) const {
  std::vector<recorder::KnownImport> known;
  if (has_unread_) return known;
  std::unordered_map<uint64_t, std::string> names;
  for (const target::ImportSlot& slot : CLEW_TRY(image.import_slots()))
    names.emplace(slot.slot_address, slot.symbol);
  const recorder::Imports all = CLEW_TRY(recorder::Imports::of(image));
  for (const recorder::KnownImport& import : all.known()) {
    const auto exporters = by_name_.find(names[import.slot]);
    if (exporters == by_name_.end()) continue;
    const Exporters& who = exporters->second;
    const bool is_sure = import.own == 0 ? who.recorded == 0 && who.silent != 0
                                         : who.recorded == 1 && who.silent == 0;
    if (is_sure) known.push_back(import);
  }
  return known;
}

}  // namespace clew::engine
