// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/symbols.h"

#include <fstream>
#include <iterator>
#include <string>

namespace clew::engine {

using output::d::KernelSymbols;
using output::d::SymbolPlace;

std::optional<SymbolPlace> LiveSymbols::kernel(uint64_t address) const {
  if (!kernel_) {
    std::ifstream file("/proc/kallsyms");
    kernel_ = KernelSymbols::parse(std::string((std::istreambuf_iterator<char>(file)), {}));
  }
  return kernel_->find(address);
}

target::Catalog* LiveSymbols::catalog_of(uint64_t pid) const {
  const auto known = processes_.find(pid);
  if (known != processes_.end()) return known->second.get();
  auto catalog =
      target::Catalog::of_process(static_cast<pid_t>(pid), target::default_catalog_options());
  auto& kept = processes_[pid];
  if (catalog) kept = std::make_unique<target::Catalog>(std::move(*catalog));
  return kept.get();
}

std::optional<SymbolPlace> LiveSymbols::user(uint64_t pid, uint64_t address) const {
  target::Catalog* const catalog = catalog_of(pid);
  if (catalog == nullptr) return std::nullopt;
  auto found = catalog->symbolise(address);
  if (!found && catalog->refresh()) found = catalog->symbolise(address);  // Loaded since.
  if (!found) return std::nullopt;
  SymbolPlace place;
  place.module = catalog->modules()[found->module].display_name;
  place.offset_bytes = found->offset;
  if (!found->function) return place;
  const auto image = catalog->image(found->module);
  if (image) place.function = (*image)->functions()[*found->function].name;
  return place;
}

}  // namespace clew::engine
