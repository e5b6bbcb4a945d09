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

Expected<void> RecordedProcess::record_guards(const Planned& planned) {
  const target::ProcessModule& module = planned.module;
  const auto guarded = CLEW_TRY(
      files_.read_guards(module, {.cursor = attachment_->geometry().window_address + kCursorOffset,
                                  .imports = known_.of(planned.file->names),
                                  .stamped = {},
                                  .taken = taken_ids()}));
  const recorder::RecordedModule& recorded = *guarded->recorded;
  if (recorded.guards().empty() || recorded.proof().proved.empty()) return {};
  const recorder::EntryPlan plan = CLEW_TRY(recorder::plan_guard_entries(recorded));
  std::vector<uint8_t> bytes = recorder::guard_probe(recorded, module.load_bias);
  bytes.resize((bytes.size() + kEntryAlignment - 1) / kEntryAlignment * kEntryAlignment);
  const inline_::CopyRoom room = CLEW_TRY(attachment_->take_copy_room(
      module.executable_ranges.front().start, module.executable_ranges.back().end,
      bytes.size() + recorder::entry_bytes_max(plan), 0));
  recorder::Entries entries = CLEW_TRY(recorder::write_entries(
      plan, places_of(room), {module.load_bias, room.address, room.address + bytes.size()}));
  bytes.insert(bytes.end(), entries.bytes.begin(), entries.bytes.end());
  CLEW_TRY(attachment_->write_copies(room, bytes));
  CLEW_TRY(attachment_->lead_to_copies(std::move(entries.windows),
                                       inline_::Attachment::Leads::ToCopies));
  const Extent code = extent_of(recorded.proof());
  recorder::SnapModule described = {.load_bias = module.load_bias,
                                    .copy_address = module.load_bias + code.begin,
                                    .code_size = code.end - code.begin,
                                    .recipe = recorded.recipe(),
                                    .id_count = recorded.tiling().dag_count + 1,
                                    .digest = recorded.digest(),
                                    .build_id = module.build_id,
                                    .path = module.path};
  log_step(attachment_->pid(), "{}: {} guards record, in {} functions", module.path,
           recorded.guards().size(), recorded.proof().proved.size());
  installed_.push_back({nullptr, std::move(described), room, planned});
  return {};
}

}  // namespace clew::engine
