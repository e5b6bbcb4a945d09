// SPDX-License-Identifier: Apache-2.0
// The system calls that are open when the session ends, from what their recorders keep.
#include <algorithm>

#include "engine/kernel/kernel_tracee.h"
#include "engine/kernel/open_syscalls.h"
#include "engine/open_calls.h"

namespace clew::engine {
namespace {

// Of a recorder's value (kernel_lower.h): time, arguments, id of the probe.
constexpr size_t kProbeWord = 7;

}  // namespace

void KernelTracee::take_open_calls(uint64_t /*end_ticks*/, answer::RowBatch& rows) {
  if (!session_ || !ended_) return;
  if (counter_) counter_->note(*ended_);
  for (const plan::KernelCalls& calls : lowered_.calls) {
    for (const kernel::ThreadValue& value : session_->thread_values(calls.variable))
      take_open_call(calls.source, value, rows);
  }
}

void KernelTracee::take_open_call(uint16_t source, const kernel::ThreadValue& value,
                                  answer::RowBatch& rows) {
  const auto end_ns = static_cast<uint64_t>(ended_->monotonic_ns);
  const uint64_t entry_ns = value.words.at(0);
  const uint64_t place = value.words.at(kProbeWord) - kFirstProbe;
  if (place >= sites_.size() || entry_ns > end_ns) return;
  const auto tid = static_cast<pid_t>(value.thread);
  const auto pid = process_in_call(tid, sites_[place].probe.number, entry_ns);
  if (!pid) return;
  ++open_.count;
  open_.oldest_ns = std::max(open_.oldest_ns, end_ns - entry_ns);
  if (!query_.including_open) return;
  const auto process = static_cast<uint64_t>(*pid);
  const auto enabling = std::find(enabled_sites_.begin(), enabled_sites_.end(), place);
  const answer::OpenCall call{
      .source = source,
      .names = static_cast<uint64_t>(enabling - enabled_sites_.begin()),
      .process = process,
      .tid = value.thread,
      .end_ticks = event_time(end_ns),
      .entry_ticks = event_time(entry_ns),
      .payload = value.words,
  };
  const auto life = incarnation_of(*pid);
  ReadMemory memory(life ? ProcessIds{{process, *life}} : ProcessIds{});
  if (!intake_->take_open(query_, call, memory, rows))
    collect::count_cause(open_missed_, collect::kMissedUnreadable, 1);
}

}  // namespace clew::engine
