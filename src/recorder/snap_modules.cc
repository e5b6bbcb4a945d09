// SPDX-License-Identifier: Apache-2.0
#include "recorder/snap_modules.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "recorder/bundle.h"

namespace clew::recorder {

namespace {

Expected<void> make_anew(ReadModule& module, const std::string& path) {
  const SnapModule& described = *module.described;
  module.file = CLEW_TRY(target::ModuleFile::read(path));
  module.bare = std::make_unique<target::ModuleImage>(CLEW_TRY(module.file->image()));
  module.recorded =
      CLEW_TRY(RecordedModule::make(*module.bare, described.recipe, &described.digest));
  copy::CheckedCopy& copy = module.recorded->copy();
  if (module.recorded->digest() != described.digest ||
      module.recorded->tiling().dag_count != described.id_count) {
    return fail(
        ErrorCode::Refused,
        fmt::format("{} is not as it was recorded: another file, or another Clew", described.path));
  }
  CLEW_TRY(copy.move_to(described.load_bias, described.copy_address - copy.copy().address));
  module.paths =
      std::make_unique<ModulePaths>(module.recorded->facts(), module.recorded->proof(),
                                    module.recorded->copied(), module.recorded->tiling());
  if (module.recorded->guards() != nullptr)
    module.guards = CLEW_TRY(GuardPaths::of(*module.recorded, *module.paths, *module.bare));
  return {};
}

Expected<ReadModule> read_module(const Snap& snap, const SnapModule& described) {
  ReadModule module;
  module.described = &described;
  const std::string path = file_in_bundle(snap, described.path);
  target::ReadOptions options;
  const std::string packed = debug_file_of(described.build_id);
  if (!packed.empty() && file_in_bundle(snap, packed) != packed)
    options.debug_directory = file_in_bundle(snap, options.debug_directory);
  module.image =
      std::make_unique<target::ModuleImage>(CLEW_TRY(target::ModuleImage::read(path, options)));
  if (module.image->build_id() != described.build_id) {
    return fail(ErrorCode::Refused, fmt::format("{} is another file now", described.path));
  }
  if (described.id_count != 0) CLEW_TRY(make_anew(module, path));
  if (auto debug = target::DebugInfo::open(*module.image, options))
    module.debug.emplace(std::move(*debug));
  return module;
}

}  // namespace

std::string_view ReadModule::name() const {
  return file_of(described->path);
}

std::optional<uint64_t> ReadModule::recorded_at(uint64_t pc) const {
  if (guards != nullptr) return original_at(pc);
  return recorded == nullptr ? std::nullopt : recorded->copy().copy().original_of(pc);
}

std::optional<uint64_t> ReadModule::original_at(uint64_t pc) const {
  const uint64_t address = pc - described->load_bias;
  for (const target::Section& section : image->sections()) {
    if (section.executable && section.contains(address)) return address;
  }
  return std::nullopt;
}

SnapModules::SnapModules(const Snap& snap, const Progress& progress) {
  for (const SnapModule& described : snap.modules) {
    if (progress) progress(fmt::format("reading {}", file_of(described.path)));
    auto module = read_module(snap, described);
    if (!module) {
      problems_.push_back(module.error().message);
      continue;
    }
    if (module->paths != nullptr) {
      walked_.push_back({.paths = module->paths.get(),
                         .first_id = described.recipe.first_id,
                         .guards = module->guards.get()});
      numbers_.push_back(modules_.size());
    }
    modules_.push_back(std::move(*module));
  }
  if (progress) progress("");
}

bool SnapModules::has_guards() const {
  return std::any_of(walked_.begin(), walked_.end(),
                     [](const WalkedModule& one) { return one.guards != nullptr; });
}

std::optional<uint32_t> SnapModules::recorded_in(uint64_t pc) const {
  for (uint32_t i = 0; i < numbers_.size(); ++i) {
    if (modules_[numbers_[i]].recorded_at(pc)) return i;
  }
  return std::nullopt;
}

std::optional<uint64_t> SnapModules::cursor_in(const user_regs_struct& registers) const {
  for (const ReadModule& module : modules_) {
    const auto cursor =
        module.recorded == nullptr ? std::nullopt : module.recorded->cursor_in(registers);
    if (cursor) return cursor;
  }
  return std::nullopt;
}

}  // namespace clew::recorder
