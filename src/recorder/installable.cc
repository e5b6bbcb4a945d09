// SPDX-License-Identifier: Apache-2.0
#include "recorder/installable.h"

#include <cstring>
#include <utility>

#include "abi/recorder.h"
#include "base/assert.h"
#include "recorder/id_words.h"

namespace clew::recorder {

namespace {

tl::unexpected<Error> unknown_ids() {
  return fail(ErrorCode::Refused,
              "a probe of the recorder has its record where none is looked for");
}

EntryProbe probe_of(const EntryProbes& probes) {
  return [&probes](uint64_t function, uint64_t at) { return probes.bytes(function, at); };
}

// At most one record each.
Expected<void> add_id(const EntryWay& way, const IdRange& ids, EntryId place,
                      std::vector<EntryId>& all) {
  const auto words = id_words(way.probe, ids);
  if (!words || words->size() > 1) return unknown_ids();
  if (words->empty()) return {};
  place.offset = static_cast<uint16_t>(words->front());
  all.push_back(place);
  return {};
}

Expected<std::vector<EntryId>> entry_ids(const EntryPlan& plan, const IdRange& ids) {
  std::vector<EntryId> all;
  for (uint32_t i = 0; i < plan.entries.size(); ++i) {
    CLEW_TRY(add_id(plan.entries[i].first, ids, {.entry = i, .second = 0}, all));
    CLEW_TRY(add_id(plan.entries[i].second, ids, {.entry = i, .second = 1}, all));
  }
  return all;
}

}  // namespace

Expected<Installable> Installable::of(std::unique_ptr<RecordedModule> module,
                                      copy::UnwindBytes unwind) {
  CLEW_ASSERT(module->recipe().first_id == 1);
  if (module->guards() != nullptr) return of_guards(std::move(module), std::move(unwind));
  const EntryProbes probes({module->facts(), module->proof(), module->copied(), module->tiling()},
                           module->probes(), module->recipe().first_id, module->recipe().cursor);
  EntryPlan plan = CLEW_TRY(plan_entries(module->facts(), module->copy().copy(), probe_of(probes)));
  const IdRange ids = {.first = 1, .count = module->tiling().dag_count};
  auto words = id_words(module->copy().copy(), ids);
  if (!words || words->size() != module->probes().counts.heads) return unknown_ids();
  Installable made(std::move(module->copy()));
  made.copy_.forget_places();
  made.unwind_ = std::move(unwind);
  made.ids_ = std::move(*words);
  made.cursor_map_ = module->cursor_map();
  made.entry_ids_ = CLEW_TRY(entry_ids(plan, ids));
  made.entries_ = std::move(plan);
  made.counts_ = {.ids = ids.count,
                  .functions = static_cast<uint32_t>(module->proof().proved.size()),
                  .refused = static_cast<uint32_t>(module->proof().refused.size()),
                  .heads = module->probes().counts.heads,
                  .bits = module->probes().counts.bits};
  return made;
}

Expected<Installable> Installable::of_guards(std::unique_ptr<RecordedModule> module,
                                             copy::UnwindBytes unwind) {
  EntryPlan plan = CLEW_TRY(plan_entries(module->facts(), module->copy().copy(), {}));
  // A thread behind the first instruction of one may have another word where the return address is.
  std::erase_if(plan.entries, [](const PlannedEntry& entry) {
    return entry.window.window_class == code::WindowClass::BothWays;
  });
  if (plan.entries.empty()) {
    return fail(ErrorCode::Refused,
                "what its guards call has no room for a jump (clew/guards.h has) [guards]");
  }
  Installable made(std::move(module->copy()));
  made.copy_.forget_places();
  made.unwind_ = std::move(unwind);
  made.entries_ = std::move(plan);
  made.counts_ = {.ids = module->guards()->ids(),
                  .functions = static_cast<uint32_t>(module->proof().proved.size()),
                  .refused = static_cast<uint32_t>(module->proof().refused.size())};
  made.guards_ = *module->guards();
  made.cursor_ = module->recipe().cursor;
  return made;
}

Digest Installable::number_from(uint32_t first_id) {
  first_id_ = first_id;
  const uint32_t step = abi::dag_record(first_id) - abi::dag_record(1);
  copy_.add_to_words(ids_, step);
  for (const EntryId& id : entry_ids_) {
    PlannedEntry& entry = entries_.entries[id.entry];
    std::vector<uint8_t>& probe = (id.second != 0 ? entry.second : entry.first).probe;
    uint32_t word = 0;
    std::memcpy(&word, probe.data() + id.offset, sizeof(word));
    word += step;
    std::memcpy(probe.data() + id.offset, &word, sizeof(word));
  }
  target::Sha256 sum;
  sum.add(copy_.copy().bytes);
  return sum.finish();
}

Expected<void> Installable::move_to(uint64_t load_bias, uint64_t address) {
  const uint64_t bias = load_bias - load_bias_;
  const uint64_t shift = address - copy_.copy().address;
  CLEW_TRY(unwind_.move_to(bias, shift));
  load_bias_ = load_bias;
  return copy_.move_to(bias, shift);
}

Expected<Entries> Installable::write_entries(const HeadPlaces& places,
                                             const EntryPlacement& placement) const {
  if (!guards_) return recorder::write_entries(entries_, places, placement);
  EntryPlan plan = entries_;
  for (PlannedEntry& entry : plan.entries)
    entry.first.probe = guards_->probe(placement.load_bias, first_id_, cursor_);
  HeadPlaces without_time = places;
  without_time.has_time = false;  // All records have an even number of words.
  return recorder::write_entries(plan, without_time, placement);
}

}  // namespace clew::recorder
