// SPDX-License-Identifier: Apache-2.0
#include "recorder/recorded_module.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "abi/recorder.h"
#include "target/sha256.h"

namespace clew::recorder {

namespace {

// Where the bytes are written for: the module's end is near, and they are moved anyway.
constexpr uint64_t kPage = 4096;
uint64_t place_behind(const target::ModuleImage& image) {
  const uint64_t end = image.sections().empty() ? 0 : image.sections().back().end();
  return (end + kPage) / kPage * kPage;
}

// A call that writes a Time record is not silent.
std::vector<KnownImport> silent_or_own(const Recipe& recipe) {
  std::vector<KnownImport> known = recipe.imports;
  std::erase_if(known, [&recipe](const KnownImport& one) {
    return one.own == 0 &&
           std::any_of(recipe.stamped.begin(), recipe.stamped.end(),
                       [&one](const StampedImport& stamped) { return stamped.slot == one.slot; });
  });
  return known;
}

}  // namespace

Expected<std::unique_ptr<RecordedModule>> RecordedModule::make(const target::ModuleImage& image,
                                                               const Recipe& recipe,
                                                               const Digest* recorded) {
  std::unique_ptr<RecordedModule> module = std::make_unique<RecordedModule>(Key());
  module->recipe_ = recipe;
  module->facts_ = CLEW_TRY(copy::Facts::of(image));
  copy::Facts& facts = *module->facts_;
  module->proof_ = copy::prove_module(facts);
  module->copied_.emplace(facts, module->proof_, Imports(silent_or_own(recipe)));
  const bool has_guards = recipe.front_end == FrontEnd::Guards;
  copy::ModuleCopy copy =
      CLEW_TRY(has_guards ? module->write_guards(image) : module->write_probes(image));
  const std::vector<copy::Proved>& proved = has_guards ? module->in_copy_ : module->proof_.proved;
  const copy::Insertions& insertions = module->probes_.insertions;
  target::Sha256 sum;
  sum.add(copy.bytes);
  module->digest_ = sum.finish();
  if (recorded != nullptr && *recorded == module->digest_) {
    module->copy_ = copy::CheckedCopy::known(std::move(copy));
  } else {
    module->copy_ = CLEW_TRY(copy::check(facts, proved, insertions, std::move(copy)));
  }
  if (has_guards) return module;
  const RecordedParts parts = {facts, module->proof_, *module->copied_, module->tiling_,
                               recipe.stamped};
  module->cursor_map_ = CursorMap(parts, module->probes_, module->copy_->copy());
  return module;
}

Expected<copy::ModuleCopy> RecordedModule::write_probes(const target::ModuleImage& image) {
  tiling_ = tile_module(*facts_, proof_, *copied_, recipe_.loops);
  CLEW_TRY(check_ids(image));
  const RecordedParts parts = {*facts_, proof_, *copied_, tiling_, recipe_.stamped};
  probes_ = make_probes(parts, recipe_.first_id, recipe_.cursor);
  return copy::write_copy(*facts_, proof_.proved, probes_.insertions, place_behind(image));
}

Expected<copy::ModuleCopy> RecordedModule::write_guards(const target::ModuleImage& image) {
  guards_ = CLEW_TRY(Guards::of(image));
  tiling_.functions.resize(proof_.proved.size());
  tiling_.first_dag.resize(proof_.proved.size());
  tiling_.dag_count = guards_->ids();
  CLEW_TRY(check_ids(image));
  for (const copy::Proved& one : proof_.proved) {
    const uint64_t start = facts_->code.functions()[one.function].address;
    if (guards_->calls(start)) in_copy_.push_back(one);
  }
  return copy::write_copy(*facts_, in_copy_, {}, place_behind(image));
}

Expected<void> RecordedModule::check_ids(const target::ModuleImage& image) const {
  if (uint64_t{recipe_.first_id} + tiling_.dag_count <= abi::kDagIdMax) return {};
  return fail(ErrorCode::Limit,
              fmt::format("{}: no ids are left for its functions", std::string(image.name())));
}

std::optional<uint64_t> RecordedModule::cursor_in(const user_regs_struct& registers) const {
  return cursor_map_.cursor_in(registers, copy_->copy());
}

}  // namespace clew::recorder
