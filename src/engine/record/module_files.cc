// SPDX-License-Identifier: Apache-2.0
#include "engine/record/module_files.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "abi/recorder.h"
#include "recorder/snap.h"
#include "target/frame_tables.h"

namespace clew::engine {

namespace {

// Modules that stay as they are, by the beginnings of their names: the loader calls itself in its
// own ways, and the C library looks at who calls it.
constexpr std::array<std::string_view, 5> kLeftOut = {"ld-linux", "libc.so", "libm.so", "libgcc_s",
                                                      "libstdc++.so"};

constexpr size_t kFilesMax = 512;
// Of copies; what is known of them takes some 50 times as much.
constexpr size_t kKeptBytesMax = 8U << 20;

bool is_left_out(std::string_view path) {
  return std::any_of(kLeftOut.begin(), kLeftOut.end(), [&](std::string_view prefix) {
    return recorder::file_of(path).starts_with(prefix);
  });
}

bool unwinds(const target::ModuleImage& image) {
  const auto fdes = image.fdes();
  const bool has_tables =
      std::any_of(fdes.begin(), fdes.end(), [](const target::Fde& fde) { return fde.has_lsda; });
  if (has_tables) return true;
  for (const char* name : {"__cxa_throw", "_Unwind_Resume", "_Unwind_RaiseException"}) {
    const auto slots = image.import_slots(name);
    if (slots && !slots->empty()) return true;
  }
  return false;
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

Expected<copy::UnwindBytes> unwinding_of(const target::ProcessModule& module,
                                         recorder::RecordedModule& recorded) {
  const auto tables = CLEW_TRY(target::read_frame_tables(module.open_path));
  return copy::write_unwind({.tables = tables,
                             .insertions = recorded.probes().insertions,
                             .copy = recorded.copy().copy(),
                             .is_position_independent = recorded.facts().is_position_independent});
}

}  // namespace

Expected<void> SharedModule::move_to(uint64_t load_bias, uint64_t address) {
  copy::CheckedCopy& checked = module_->copy();
  const uint64_t bias = load_bias - load_bias_;
  const uint64_t shift = address - checked.copy().address;
  Expected<void> moved = unwind_.move_to(bias, shift);
  if (moved) moved = checked.move_to(bias, shift);
  is_broken_ = is_broken_ || !moved;
  load_bias_ = load_bias;
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
  const auto image = CLEW_TRY(target::ModuleImage::read(module.open_path));
  auto file = std::make_shared<ModuleFile>();
  file->is_left_out = is_left_out(module.path);
  file->unwinds = !file->is_left_out && unwinds(image);
  file->names = CLEW_TRY(ModuleNames::of(image));
  if (files_.size() >= kFilesMax) files_.clear();
  if (key) files_[*key] = file;
  return file;
}

Expected<std::shared_ptr<SharedModule>> ModuleFiles::analyse(const target::ProcessModule& module,
                                                             Wanted wanted) {
  const auto key = key_of(module);
  if (key) {
    if (auto known = find(*key, wanted)) return known;
  }
  auto image = std::make_unique<const target::ModuleImage>(
      CLEW_TRY(target::ModuleImage::read(module.open_path)));
  const recorder::Recipe recipe = {.first_id = first_id(wanted),
                                   .cursor = wanted.cursor,
                                   .loops = loops_,
                                   .imports = std::move(wanted.imports)};
  auto recorded = CLEW_TRY(recorder::RecordedModule::make(*image, recipe));
  copy::UnwindBytes unwind = CLEW_TRY(unwinding_of(module, *recorded));
  auto made =
      std::make_shared<SharedModule>(std::move(image), std::move(recorded), std::move(unwind));
  next_id_ = std::max(next_id_, recipe.first_id + made->module().tiling().dag_count);
  if (key) keep(*key, made);
  return made;
}

std::shared_ptr<SharedModule> ModuleFiles::find(const Key& key, const Wanted& wanted) {
  for (auto at = analysed_.begin(); at != analysed_.end(); ++at) {
    const recorder::RecordedModule& module = at->module->module();
    const recorder::Recipe& recipe = module.recipe();
    const bool is_wanted = at->key == key && !at->module->is_broken() &&
                           recipe.cursor == wanted.cursor &&
                           is_equal(recipe.imports, wanted.imports) &&
                           is_free(wanted.taken, {recipe.first_id, module.tiling().dag_count});
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
