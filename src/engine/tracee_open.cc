// SPDX-License-Identifier: Apache-2.0
// The calls of a process that are open when the session ends.
#include <algorithm>

#include "engine/open_calls.h"
#include "engine/tracee.h"

namespace clew::engine {

ProcessIds Tracee::live_processes() const {
  ProcessIds ids = children_;
  std::erase_if(ids, [](const auto& one) { return incarnation_of(one.second.pid) != one.second; });
  const auto first = gone() ? std::nullopt : incarnation_of(pid_);
  if (first) ids[0] = *first;
  return ids;
}

// Of several sites with one number, those of one function, any names it.
const Site* Tracee::site_numbered(uint64_t function_number) const {
  const auto found = std::find_if(sites_.sites.begin(), sites_.sites.end(), [&](const Site& site) {
    return site.function_number == function_number && site.group;
  });
  return found == sites_.sites.end() ? nullptr : &*found;
}

void Tracee::take_open_calls(uint64_t end_ticks, answer::RowBatch& rows) {
  const std::vector<collect::OpenRecord> records = reader_->read_open_records();
  const plan::RecordShape& shape = lowered_->records;
  if (records.empty()) return;
  meet_children();
  const ProcessIds processes = live_processes();
  OpenRecordCheck check(processes);
  ReadMemory memory(processes);
  for (const collect::OpenRecord& record : records) {
    const uint64_t entry_ticks = shape.has_time ? record.payload[0] : end_ticks;
    const Site* const site = site_numbered(record.function_number);
    if (site == nullptr || entry_ticks > end_ticks || !check.is_open(record, shape)) continue;
    ++open_.count;
    const plan::Clock& clock = lowered_->clock;
    const uint64_t age_ns = clock.monotonic_ns(end_ticks) - clock.monotonic_ns(entry_ticks);
    open_.oldest_ns = std::max(open_.oldest_ns, age_ns);
    if (!shape.caller_word || !includes_open_) continue;
    const answer::OpenCall call{.source = site->source,
                                .names = site->names,
                                .process = record.process,
                                .tid = record.tid,
                                .end_ticks = end_ticks,
                                .entry_ticks = entry_ticks,
                                .caller = record.payload[*shape.caller_word],
                                .payload = record.payload};
    if (!intake_->take_open(intake_->query(), call, memory, rows))
      collect::count_cause(open_missed_, collect::kMissedUnreadable, 1);
  }
}

}  // namespace clew::engine
