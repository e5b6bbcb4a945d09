// SPDX-License-Identifier: Apache-2.0
#include "target/live_symbolizer.h"

#include <string>

#include "target/catalog.h"

namespace clew::target {

std::optional<SymbolPlace> LiveSymbolizer::kernel(uint64_t address) const {
  if (!kernel_) {
    kernel_ = KernelSymbols::parse(read_kernel_symbols());
  }
  return kernel_->find(address);
}

// Null when it cannot be read; that is remembered, too.
const ModuleImage* LiveSymbolizer::image_of(const CodeFile& file, const std::string& name) const {
  const auto known = images_.find(&file);
  if (known != images_.end()) return known->second.get();
  ReadOptions options = default_catalog_options().read;
  options.name = name;
  auto read = ModuleImage::read(file.open_path, options);
  auto& kept = images_[&file];
  if (read) kept = std::make_unique<ModuleImage>(std::move(*read));
  return kept.get();
}

std::optional<SymbolPlace> LiveSymbolizer::user(uint64_t pid, uint64_t address) const {
  if (!names_processes_) return std::nullopt;
  const pid_t process = pid == kTarget ? target_ : static_cast<pid_t>(pid);
  if (process == 0) return std::nullopt;
  std::optional<SymbolPlace> place = in_file(process, address);
  return place ? place : in_made_code(process, address);
}

std::optional<SymbolPlace> LiveSymbolizer::in_made_code(pid_t process, uint64_t address) const {
  auto place = made_code_.try_emplace(process, process).first->second.find(address);
  if (!place) return std::nullopt;
  return SymbolPlace{.module = kMadeCode,
                     .function = std::move(place->function),
                     .offset_bytes = place->offset_bytes};
}

std::optional<SymbolPlace> LiveSymbolizer::in_file(pid_t process, uint64_t address) const {
  const AddressSpace* space = spaces_.find(process, address);
  if (space == nullptr && spaces_.look_at(process)) space = spaces_.find(process, address);
  if (space == nullptr) return std::nullopt;
  const CodeRange& range = *space->find(address);
  if (range.file == nullptr) return std::nullopt;
  SymbolPlace place;
  place.module = space->name_of(*range.file);
  const uint64_t at = address - range.load_bias;
  place.offset_bytes = at;
  const ModuleImage* const image = image_of(*range.file, place.module);
  const Function* const function = image == nullptr ? nullptr : image->function_covering(at);
  if (function == nullptr) return place;
  place.function = function->name;
  place.offset_bytes = at - function->address;
  for (const AddressRange& part : function->cold) {
    if (part.contains(at) && !function->range().contains(at)) {
      place.offset_bytes = at - part.address;
    }
  }
  return place;
}

}  // namespace clew::target
