// SPDX-License-Identifier: Apache-2.0
#include "recorder/recorded_module.h"

#include <algorithm>
#include <array>
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

Expected<void> check_ids(const target::ModuleImage& image, const Recipe& recipe, uint32_t count) {
  if (uint64_t{recipe.first_id} + count <= abi::kDagIdMax) return {};
  return fail(ErrorCode::Limit,
              fmt::format("{}: no ids are left for its functions", std::string(image.name())));
}

}  // namespace

Expected<std::unique_ptr<RecordedModule>> RecordedModule::make(const target::ModuleImage& image,
                                                               const Recipe& recipe) {
  std::unique_ptr<RecordedModule> module = std::make_unique<RecordedModule>(Key());
  module->recipe_ = recipe;
  CLEW_TRY(recipe.is_guarded ? module->find_guards(image) : module->make_copy(image));
  return module;
}

Expected<void> RecordedModule::make_copy(const target::ModuleImage& image) {
  facts_ = CLEW_TRY(copy::Facts::of(image));
  copy::Facts& facts = *facts_;
  proof_ = copy::prove_module(facts);
  copied_.emplace(facts, proof_, Imports(silent_or_own(recipe_)));
  tiling_ = tile_module(facts, proof_, *copied_, recipe_.loops);
  CLEW_TRY(check_ids(image, recipe_, tiling_.dag_count));
  const RecordedParts parts = {facts, proof_, *copied_, tiling_, recipe_.stamped};
  probes_ = make_probes(parts, recipe_.first_id, recipe_.cursor);
  const copy::Insertions& insertions = probes_.insertions;
  copy::ModuleCopy copy =
      CLEW_TRY(copy::write_copy(facts, proof_.proved, insertions, place_behind(image)));
  target::Sha256 sum;
  sum.add(copy.bytes);
  digest_ = sum.finish();
  copy_ = CLEW_TRY(copy::check(facts, proof_.proved, insertions, std::move(copy)));
  cursor_map_ = CursorMap(parts, probes_, copy_->copy());
  return {};
}

// One id more than there are DAGs: of guards in functions whose ways are not known.
Expected<void> RecordedModule::find_guards(const target::ModuleImage& image) {
  callbacks_ = guard_callbacks(image);
  if (callbacks_.empty()) {
    return fail(ErrorCode::Refused, fmt::format("{}: it has no guards", std::string(image.name())));
  }
  facts_ = CLEW_TRY(copy::Facts::of(image));
  const copy::Facts& facts = *facts_;
  proof_ = guarded_functions(facts, callbacks_);
  copied_.emplace(facts, proof_, Imports(recipe_.imports, callbacks_));
  tiling_ = tile_guards(facts, callbacks_, proof_);
  CLEW_TRY(check_ids(image, recipe_, tiling_.dag_count + 1));
  guards_ = guard_calls(facts, callbacks_, proof_, tiling_);
  target::Sha256 sum;
  for (const GuardCall& call : guards_) {
    const std::array<uint64_t, 2> words = {call.behind, call.dag};
    sum.add({reinterpret_cast<const uint8_t*>(words.data()), sizeof(words)});
  }
  digest_ = sum.finish();
  return {};
}

std::optional<uint64_t> RecordedModule::cursor_in(const user_regs_struct& registers) const {
  if (recipe_.is_guarded) return std::nullopt;
  return cursor_map_.cursor_in(registers, copy_->copy());
}

std::optional<uint64_t> RecordedModule::original_of(uint64_t pc, uint64_t load_bias) const {
  if (!recipe_.is_guarded) return copy_->copy().original_of(pc);
  const uint64_t address = pc - load_bias;
  const auto range = facts_->code.range_at(address);
  if (!range) return std::nullopt;
  const uint32_t function = facts_->code.owner_of(*range);
  const auto found = std::lower_bound(
      proof_.proved.begin(), proof_.proved.end(), function,
      [](const copy::Proved& one, uint32_t value) { return one.function < value; });
  const bool records = found != proof_.proved.end() && found->function == function;
  return records ? std::optional(address) : std::nullopt;
}

}  // namespace clew::recorder
