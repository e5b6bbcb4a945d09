// SPDX-License-Identifier: Apache-2.0
#include "recorder/recorded_module.h"

#include <algorithm>
#include <span>
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

}  // namespace

Expected<std::unique_ptr<RecordedModule>> RecordedModule::make(const target::ModuleImage& image,
                                                               const Recipe& recipe) {
  std::unique_ptr<RecordedModule> module = std::make_unique<RecordedModule>(Key());
  module->recipe_ = recipe;
  module->facts_ = CLEW_TRY(copy::Facts::of(image));
  copy::Facts& facts = *module->facts_;
  module->proof_ = copy::prove_module(facts);
  module->copied_.emplace(facts, module->proof_, Imports(recipe.imports));
  module->tiling_ = tile_module(facts, module->proof_, *module->copied_, recipe.loops);
  if (uint64_t{recipe.first_id} + module->tiling_.dag_count > abi::kDagIdMax) {
    return fail(ErrorCode::Limit,
                fmt::format("{}: no ids are left for its functions", std::string(image.name())));
  }
  module->probes_ = make_probes({facts, module->proof_, *module->copied_, module->tiling_},
                                recipe.first_id, recipe.cursor);
  const copy::Insertions& insertions = module->probes_.insertions;
  copy::ModuleCopy copy =
      CLEW_TRY(copy::write_copy(facts, module->proof_.proved, insertions, place_behind(image)));
  target::Sha256 sum;
  sum.add(copy.bytes);
  module->digest_ = sum.finish();
  module->copy_ = CLEW_TRY(copy::check(facts, module->proof_.proved, insertions, std::move(copy)));
  return module;
}

bool RecordedModule::has_cursor_in_r11(uint64_t pc) const {
  const copy::ModuleCopy& copy = copy_->copy();
  const std::optional<uint64_t> original = copy.original_of(pc);
  const auto range = original ? facts_->code.range_at(*original) : std::nullopt;
  if (!range) return false;
  const uint32_t function = facts_->code.owner_of(*range);
  const auto proved = std::lower_bound(
      proof_.proved.begin(), proof_.proved.end(), function,
      [](const copy::Proved& one, uint32_t value) { return one.function < value; });
  if (proved == proof_.proved.end() || proved->function != function) return false;
  if (!probes_.carriers.carries[static_cast<size_t>(proved - proof_.proved.begin())]) return false;
  const auto left = std::span(copy.bytes).subspan(pc - copy.address);
  const std::vector<uint8_t> load = load_of_cursor(recipe_.cursor);
  return left.size() < load.size() || !std::equal(load.begin(), load.end(), left.begin());
}

}  // namespace clew::recorder
