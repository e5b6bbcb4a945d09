// SPDX-License-Identifier: Apache-2.0
// What a snap has of a recorded process: its modules, its threads where they stand, and their
// lobes.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <time.h>

#include "abi/slot.h"
#include "base/clock_ns.h"
#include "base/log.h"
#include "engine/clock.h"
#include "engine/record/read_scripts.h"
#include "engine/record/recorded_process.h"
#include "engine/record/streams.h"
#include "engine/record/thread_status.h"

namespace clew::engine {

// Nothing where reading the counter is a signal in ourselves. The distance of two moments is that
// of the monotonic clock.
recorder::ClockPair RecordedProcess::read_clocks() {
  static const int64_t kEpoch = epoch_of_monotonic_ns();
  int mode = PR_TSC_ENABLE;
  if (prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_SIGSEGV) return {};
  const ClockSample now = sample_clock();
  return {now.ticks, static_cast<uint64_t>(kEpoch + now.monotonic_ns)};
}

recorder::Snap RecordedProcess::snap_of(const Crash& crash, Standstill& threads) {
  const Modules modules = modules_of(crash.process);
  recorder::Snap snap = new_snap(crash.process, modules);
  snap.reason.signal = crash.signal;
  snap.reason.code = crash.code;
  snap.reason.thread = crash.thread;
  snap.reason.address = crash.address;
  if (crash.signal == 0) snap.reason.trigger = recorder::SnapTrigger::Exit;
  copy_threads(threads, modules, snap);
  // Another one may have stopped first at its exit.
  std::stable_partition(
      snap.threads.begin(), snap.threads.end(),
      [&crash](const recorder::SnapThread& one) { return one.thread == crash.thread; });
  return snap;
}

recorder::Snap RecordedProcess::snap_of(pid_t process, Stops& stops) {
  const Modules modules = modules_of(process);
  recorder::Snap snap = new_snap(process, modules);
  const StepTime time;
  size_t stopped = 0;
  double stood_ms = 0;
  {
    Standstill threads(stops, process, 0);
    copy_threads(threads, modules, snap);
    stopped = threads.stopped_count();
    stood_ms = time.ms();
  }
  log_step(process, "was asked for a snap: {} of {} threads ran, and stood for {:.1f} ms", stopped,
           snap.threads.size(), stood_ms);
  return snap;
}

RecordedProcess::Modules RecordedProcess::modules_of(pid_t process) {
  auto modules = target::read_modules(process);
  if (!modules) return {};
  call_sites_.read(*modules);
  scripts_.read(*modules);
  return std::move(*modules);
}

recorder::Snap RecordedProcess::new_snap(pid_t process, const Modules& modules) const {
  recorder::Snap snap;
  snap.reason.time_ns = static_cast<uint64_t>(clock_ns(CLOCK_REALTIME));
  snap.began = began_;
  snap.forked = forked_;
  if (attachment_->time_is_readable()) snap.taken = read_clocks();
  snap.pid = process;
  snap.command = command_;
  add_modules(modules, snap);
  return snap;
}

// Once more, if one that waited has gone on meanwhile.
void RecordedProcess::copy_threads(Standstill& threads, const Modules& modules,
                                   recorder::Snap& snap) {
  constexpr unsigned kCopiesMax = 4;
  for (unsigned copies = 0; copies < kCopiesMax; ++copies) {
    snap.threads.clear();
    for (const WatchedThread& thread : threads.threads()) {
      const user_regs_struct registers = in_copy(snap.pid, thread.registers);
      snap.threads.push_back(
          {thread.thread, recorder::kNoSlot, registers, called_from(snap.pid, registers, modules)});
    }
    add_lobes(snap);
    if (threads.has_moved()) continue;
    scripts_.add_scripts(modules, snap);
    read_streams(snap.pid, snap);
    if (!threads.has_moved()) return;
  }
  // They would be of another moment than the lobes.
  snap.streams.clear();
  snap.scripts = {};
}

// Those that are not recorded are named, too: a thread may have stopped in them. Those that are
// gone are the last ones: others may have their addresses.
void RecordedProcess::add_modules(const Modules& modules, recorder::Snap& snap) const {
  std::vector<recorder::SnapModule> gone;
  for (const Installed& one : installed_)
    (one.is_mapped(modules) ? snap.modules : gone).push_back(one.described);
  for (const target::ProcessModule& module : modules) {
    if (is_recorded(module) || !module.problem.empty()) continue;
    recorder::SnapModule described;
    described.load_bias = module.load_bias;
    described.build_id = module.build_id;
    described.path = module.path;
    snap.modules.push_back(std::move(described));
  }
  snap.modules.insert(snap.modules.end(), gone.begin(), gone.end());
}

bool RecordedProcess::is_recorded(const target::ProcessModule& module) const {
  return std::any_of(installed_.begin(), installed_.end(), [&](const Installed& one) {
    return one.described.path == module.path && one.described.load_bias == module.load_bias;
  });
}

// A loop may have the cursor in a register all the time, so words count.
uint64_t RecordedProcess::written(pid_t process) const {
  constexpr uint64_t kMultiplier = 0x9e37'79b9'7f4a'7c15;
  uint64_t sum = 0;
  for (auto used = lobes_->next_used(0); used; used = lobes_->next_used(*used + 1)) {
    const uint32_t tid = __atomic_load_n(&control_of(*used).tid, __ATOMIC_ACQUIRE);
    if (tid == 0 || status_of(static_cast<pid_t>(tid)).process != process) continue;
    for (const uint32_t word : lobes_->words(*used))
      sum = (sum ^ word) * kMultiplier;
  }
  return sum;
}

// Those of its threads; other processes have theirs in the same file.
void RecordedProcess::add_lobes(recorder::Snap& snap) const {
  const inline_::ArenaView arena = attachment_->arena();
  snap.lobes.clear();
  for (auto used = lobes_->next_used(0); used; used = lobes_->next_used(*used + 1)) {
    const uint32_t slot = *used;
    abi::SlotControl control{};
    std::memcpy(&control, arena.slots + slot * arena.slot_stride_bytes, sizeof(control));
    const auto thread = static_cast<int32_t>(control.tid);
    const auto owner =
        std::find_if(snap.threads.begin(), snap.threads.end(),
                     [thread](const recorder::SnapThread& one) { return one.thread == thread; });
    if (owner == snap.threads.end()) continue;
    // Another thread of that number may have ended where nobody saw it.
    const bool is_its = slot_at(owner->registers.gs_base) == slot;
    if (is_its || owner->slot == recorder::kNoSlot) owner->slot = slot;
    uint64_t cursor = 0;
    std::memcpy(&cursor, cursor_place(slot), sizeof(cursor));
    const std::span<const uint32_t> words = lobes_->words(slot);
    snap.lobes.push_back({slot, thread, cursor, lobes_->lobe_of(slot),
                          std::vector<uint32_t>(words.begin(), words.end())});
  }
}

}  // namespace clew::engine
