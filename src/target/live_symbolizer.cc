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

// Null when there is none.
DebugInfo* LiveSymbolizer::debug_of(const CodeFile& file, const std::string& name) const {
  const auto [known, is_new] = debug_.try_emplace(&file);
  if (is_new) {
    const ModuleImage* const image = image_of(file, name);
    auto debug = image == nullptr ? fail(ErrorCode::NotFound, "no image")
                                  : DebugInfo::open(*image, default_catalog_options().read);
    if (debug) known->second.emplace(std::move(*debug));
  }
  return known->second ? &*known->second : nullptr;
}

// 0 for none.
pid_t LiveSymbolizer::process_of(uint64_t pid) const {
  if (!names_processes_) return 0;
  return pid == kTarget ? target_ : static_cast<pid_t>(pid);
}

std::vector<SourceCall> LiveSymbolizer::source(uint64_t pid, uint64_t address) const {
  const pid_t process = process_of(pid);
  const std::optional<Place> place = process == 0 ? std::nullopt : find(process, address);
  if (!place) return {};
  DebugInfo* const debug = debug_of(*place->file, place->space->name_of(*place->file));
  return debug == nullptr ? std::vector<SourceCall>() : debug->calls_at(place->address);
}

std::optional<SymbolPlace> LiveSymbolizer::user(uint64_t pid, uint64_t address) const {
  const pid_t process = process_of(pid);
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

std::optional<LiveSymbolizer::Place> LiveSymbolizer::find(pid_t process, uint64_t address) const {
  const AddressSpace* space = spaces_.find(process, address);
  if (space == nullptr && spaces_.look_at(process)) space = spaces_.find(process, address);
  if (space == nullptr) return std::nullopt;
  const CodeRange& range = *space->find(address);
  if (range.file == nullptr) return std::nullopt;
  return Place{.space = space, .file = range.file, .address = address - range.load_bias};
}

std::optional<SymbolPlace> LiveSymbolizer::in_file(pid_t process, uint64_t address) const {
  const std::optional<Place> found = find(process, address);
  if (!found) return std::nullopt;
  SymbolPlace place;
  place.module = found->space->name_of(*found->file);
  const uint64_t at = found->address;
  place.offset_bytes = at;
  const ModuleImage* const image = image_of(*found->file, place.module);
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
