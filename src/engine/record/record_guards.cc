// SPDX-License-Identifier: Apache-2.0
// Modules whose compiler has put guards into them: they run as they are, with a probe that the
// guards' callback is led to.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/record/recorded_process.h"
#include "recorder/guard_probe.h"

namespace clew::engine {

namespace {

constexpr uint64_t kEntryAlignment = 64;

struct Extent {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
};

// Of all blocks of functions that record.
Extent extent_of(const copy::ModuleProof& proof) {
  Extent extent;
  for (const copy::Proved& proved : proof.proved) {
    extent.begin = std::min(extent.begin, proved.blocks.blocks().front().begin);
    extent.end = std::max(extent.end, proved.blocks.blocks().back().end);
  }
  return extent;
}

}  // namespace

const recorder::SnapModule* RecordedProcess::guarded_before(
    const target::ProcessModule& module) const {
  const auto is_it = [&module](const recorder::SnapModule& one) {
    return one.recipe.is_guarded && one.path == module.path && one.load_bias == module.load_bias &&
           one.build_id == module.build_id && !module.build_id.empty();
  };
  for (const Installed& one : installed_) {
    if (one.is_gone && is_it(one.described)) return &one.described;
  }
  const auto found = std::find_if(before_.begin(), before_.end(), is_it);
  return found == before_.end() ? nullptr : &*found;
}

// Where it was recorded before, the same probe stands there, and threads may be in it.
Expected<void> RecordedProcess::record_guards(const Planned& planned) {
  const target::ProcessModule& module = planned.module;
  const recorder::SnapModule* const before = guarded_before(module);
  const Wanted wanted = {.cursor = places_of({}).cursor,
                         .imports = known_.of(planned.file->names),
                         .stamped = {},
                         .taken = taken_ids()};
  const auto guarded = CLEW_TRY(files_.read_guards(
      module, before == nullptr ? files_.recipe_of_guards(wanted) : before->recipe));
  const recorder::RecordedModule& recorded = *guarded->recorded;
  if (recorded.guards().empty() || recorded.proof().proved.empty()) return {};
  const recorder::EntryPlan plan = CLEW_TRY(recorder::plan_guard_entries(recorded));
  std::vector<uint8_t> bytes = recorder::guard_probe(recorded, module.load_bias);
  const uint64_t probe_bytes = bytes.size();
  bytes.resize((bytes.size() + kEntryAlignment - 1) / kEntryAlignment * kEntryAlignment);
  const uint64_t size = bytes.size() + recorder::entry_bytes_max(plan);
  const inline_::CopyRoom room =
      CLEW_TRY(before != nullptr
                   ? attachment_->room_at(before->copy_address, size)
                   : attachment_->take_copy_room(module.executable_ranges.front().start,
                                                 module.executable_ranges.back().end, size, 0));
  recorder::Entries entries = CLEW_TRY(recorder::write_entries(
      plan, places_of(room), {module.load_bias, room.address, room.address + bytes.size()}));
  bytes.insert(bytes.end(), entries.bytes.begin(), entries.bytes.end());
  recorder::SnapModule described = {.load_bias = module.load_bias,
                                    .copy_address = room.address,
                                    .code_size = probe_bytes,
                                    .recipe = recorded.recipe(),
                                    .id_count = recorded.tiling().dag_count + 1,
                                    .digest = recorded.digest(),
                                    .build_id = module.build_id,
                                    .path = module.path};
  if (before == nullptr) {
    CLEW_TRY(attachment_->write_copies(room, bytes));
    write_manifest(&described);
  } else {
    CLEW_TRY(check_same(room.address, bytes));
    std::erase_if(before_, [&](const auto& one) { return &one == before; });
    std::erase_if(installed_, [&](const auto& one) { return &one.described == before; });
  }
  CLEW_TRY(attachment_->lead_to_copies(std::move(entries.windows),
                                       inline_::Attachment::Leads::ToCopies));
  log_step(attachment_->pid(), "{}: {} guards record, in {} functions", module.path,
           recorded.guards().size(), recorded.proof().proved.size());
  const Extent code = extent_of(recorded.proof());
  installed_.push_back({.module = nullptr,
                        .described = std::move(described),
                        .room = room,
                        .planned = planned,
                        .guarded_address = module.load_bias + code.begin,
                        .guarded_bytes = code.end - code.begin});
  return {};
}

}  // namespace clew::engine
