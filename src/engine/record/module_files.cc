// SPDX-License-Identifier: Apache-2.0
#include "engine/record/module_files.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "abi/recorder.h"
#include "copy/unwind.h"
#include "engine/stack_maps.h"
#include "recorder/snap.h"
#include "target/frame_tables.h"
#include "target/module_image.h"

namespace clew::engine {

namespace {

// Modules that stay as they are, by the beginnings of their names: the loader calls itself in its
// own ways, and the C library looks at who calls it.
constexpr std::array<std::string_view, 5> kLeftOut = {"ld-linux", "libc.so", "libm.so", "libgcc_s",
                                                      "libstdc++.so"};

constexpr size_t kModuleFilesMax = 512;
constexpr size_t kKeptBytesMax = 32U << 20;  // Of copies.

bool is_left_out(std::string_view path) {
  return std::any_of(kLeftOut.begin(), kLeftOut.end(), [&](std::string_view prefix) {
    return recorder::file_of(path).starts_with(prefix);
  });
}

bool imports_any(const target::LinkedNames& names, std::span<const std::string_view> wanted) {
  return std::any_of(names.imports.begin(), names.imports.end(),
                     [&](const target::ImportSlot& slot) {
                       return std::find(wanted.begin(), wanted.end(), slot.symbol) != wanted.end();
                     });
}

bool is_equal(const std::vector<recorder::KnownImport>& left,
              const std::vector<recorder::KnownImport>& right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(),
      [](const auto& a, const auto& b) { return a.slot == b.slot && a.own == b.own; });
}

bool is_free(const std::vector<IdRange>& taken, const IdRange& wanted) {
  return std::none_of(taken.begin(), taken.end(), [&](const IdRange& one) {
    return wanted.first < one.first + one.count && one.first < wanted.first + wanted.count;
  });
}

Expected<copy::UnwindBytes> unwinding_of(const target::ModuleFile& file,
                                         recorder::RecordedModule& recorded) {
  const auto tables = CLEW_TRY(file.frame_tables());
  return copy::write_unwind({.tables = tables,
                             .insertions = recorded.probes().insertions,
                             .copy = recorded.copy().copy(),
                             .is_position_independent = recorded.facts().is_position_independent});
}

}  // namespace

Expected<void> SharedModule::move_to(uint64_t load_bias, uint64_t address) {
  Expected<void> moved = module_.move_to(load_bias, address);
  is_broken_ = is_broken_ || !moved;
  return moved;
}

// Without a build-id a file may have become another one.
std::optional<ModuleFiles::Key> ModuleFiles::key_of(const target::ProcessModule& module) {
  if (module.build_id.empty()) return std::nullopt;
  return Key(uint64_t{module.device_major} << 32 | module.device_minor, module.inode,
             module.build_id);
}

Expected<std::shared_ptr<const ModuleFile>> ModuleFiles::read(const target::ProcessModule& module) {
  const auto key = key_of(module);
  if (key) {
    const auto known = files_.find(*key);
    if (known != files_.end()) return known->second;
  }
  constexpr auto kOpening = std::to_array<std::string_view>({"dlopen", "dlmopen"});
  auto file = std::make_shared<ModuleFile>();
  file->is_left_out = is_left_out(module.path);
  if (file->is_left_out) {
    file->names = CLEW_TRY(target::read_linked_names(module.open_path));
  } else {
    auto whole = CLEW_TRY(target::ModuleFile::read(module.open_path));
    file->names = CLEW_TRY(whole.names());
    if (front_end_ == recorder::FrontEnd::Guards) {
      file->has_guards = recorder::Guards::are_in(CLEW_TRY(whole.image()));
    } else {
      CLEW_TRY(check_stack_maps(module, file->names));
    }
    file->digest = whole.digest();
  }
  file->opens_libraries = imports_any(file->names, kOpening);
  if (files_.size() >= kModuleFilesMax) files_.clear();
  if (key) files_[*key] = file;
  return file;
}

Expected<bool> ModuleFiles::unwinds(const target::ProcessModule& module, const ModuleFile& file) {
  constexpr auto kThrowing =
      std::to_array<std::string_view>({"__cxa_throw", "_Unwind_Resume", "_Unwind_RaiseException"});
  if (imports_any(file.names, kThrowing)) return true;
  const auto tables = CLEW_TRY(target::read_frame_tables(module.open_path));
  return std::any_of(tables.entries.begin(), tables.entries.end(),
                     [](const target::FrameEntry& entry) {
                       return entry.exceptions != target::kNoExceptionTable;
                     });
}

Expected<std::shared_ptr<SharedModule>> ModuleFiles::analyse(const target::ProcessModule& module,
                                                             const ModuleFile& file,
                                                             Wanted wanted) {
  const auto key = key_of(module);
  if (key) {
    if (auto known = find(*key, wanted)) return known;
  }
  recorder::Recipe recipe = {.cursor = wanted.cursor,
                             .loops = loops_,
                             .imports = std::move(wanted.imports),
                             .stamped = std::move(wanted.stamped),
                             .front_end = front_end_};
  auto made_module = CLEW_TRY(find_or_make(module, file, recipe));
  recipe.first_id = first_id(wanted);
  const uint64_t end = uint64_t{recipe.first_id} + made_module.counts().ids;
  if (end > abi::kDagIdMax) {
    return fail(ErrorCode::Limit, fmt::format("{}: no ids are left for its functions",
                                              recorder::file_of(module.path)));
  }
  next_id_ = std::max(next_id_, static_cast<uint32_t>(end));
  auto made = std::make_shared<SharedModule>(std::move(made_module), std::move(recipe));
  if (key) keep(*key, made);
  return made;
}

Expected<std::shared_ptr<SharedModule>> ModuleFiles::analyse_again(
    const target::ProcessModule& module, const ModuleFile& file, const recorder::Recipe& recipe) {
  recorder::Recipe as_kept = recipe;
  as_kept.first_id = recorder::Recipe().first_id;
  auto made = CLEW_TRY(find_or_make(module, file, as_kept));
  const uint64_t end = uint64_t{recipe.first_id} + made.counts().ids;
  if (recipe.first_id == 0 || end > abi::kDagIdMax)
    return fail(ErrorCode::Refused, "its ids are out of range");
  next_id_ = std::max(next_id_, static_cast<uint32_t>(end));
  return std::make_shared<SharedModule>(std::move(made), recipe);
}

Expected<recorder::Installable> ModuleFiles::find_or_make(const target::ProcessModule& module,
                                                          const ModuleFile& file,
                                                          const recorder::Recipe& recipe) const {
  const auto key = recorder::sidecar_key(file.digest, recipe);
  auto kept = key ? sidecars_.find(*key, recorder::file_of(module.path)) : std::nullopt;
  if (kept) return std::move(*kept);
  return make(module, recipe);
}

Expected<recorder::Installable> ModuleFiles::make(const target::ProcessModule& module,
                                                  const recorder::Recipe& recipe) const {
  auto file = CLEW_TRY(target::ModuleFile::read(module.open_path));
  const auto image = CLEW_TRY(file.image());
  auto recorded = CLEW_TRY(recorder::RecordedModule::make(image, recipe));
  copy::UnwindBytes unwind = CLEW_TRY(unwinding_of(file, *recorded));
  auto made = CLEW_TRY(recorder::Installable::of(std::move(recorded), std::move(unwind)));
  const auto key = recorder::sidecar_key(file.digest(), recipe);
  if (key) sidecars_.store(*key, made);
  return made;
}

std::shared_ptr<SharedModule> ModuleFiles::find(const Key& key, const Wanted& wanted) {
  for (auto at = analysed_.begin(); at != analysed_.end(); ++at) {
    const SharedModule& module = *at->module;
    const recorder::Recipe& recipe = module.recipe();
    const bool is_wanted =
        at->key == key && !module.is_broken() && recipe.cursor == wanted.cursor &&
        is_equal(recipe.imports, wanted.imports) && recipe.stamped == wanted.stamped &&
        is_free(wanted.taken, {recipe.first_id, module.module().counts().ids});
    if (!is_wanted) continue;
    analysed_.splice(analysed_.begin(), analysed_, at);
    return analysed_.front().module;
  }
  return nullptr;
}

void ModuleFiles::keep(Key key, std::shared_ptr<SharedModule> module) {
  size_t size = module->copy().bytes.size();
  analysed_.push_front({std::move(key), std::move(module)});
  for (auto at = std::next(analysed_.begin()); at != analysed_.end();) {
    size += at->module->copy().bytes.size();
    at = size > kKeptBytesMax ? analysed_.erase(at) : std::next(at);
  }
}

// Ids are a process's own; one that no file has makes it likely that another process can have the
// same. One process alone may need half of them.
uint32_t ModuleFiles::first_id(const Wanted& wanted) const {
  if (next_id_ < abi::kDagIdMax / 2) return next_id_;
  uint32_t first = 1;
  for (const IdRange& one : wanted.taken)
    first = std::max(first, one.first + one.count);
  return first;
}

}  // namespace clew::engine
