// SPDX-License-Identifier: Apache-2.0
// What an Attachment and a Layout consist of; shared by the files that implement them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "inline/arena.h"
#include "inline/attachment.h"
#include "inline/reading_way.h"
#include "inline/site_journal.h"
#include "inline/stopped_target.h"
#include "inline/trampoline.h"

namespace clew::inline_ {

// A body of an installed layer, for disarm().
struct InstalledBody {
  uint64_t address = 0;
  uint32_t size_bytes = 0;
  bool is_disarmed = false;
};

using AccessorEntries = std::vector<uint64_t>;  // By number.

struct Attachment::State {
  State(Arena a, std::shared_ptr<ProcessLock> l)
      : pid(l->pid()), lock(std::move(l)), arena(std::move(a)), journal(std::in_place, arena) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] abi::SessionEntry& session() const {
    return arena.header().sessions[geometry.session];
  }

  void note_stop(const StoppedTarget& target) {
    ++stops.count;
    stops.all += target.stood_still();
    stops.longest = std::max(stops.longest, target.stood_still());
  }

  pid_t pid;
  std::shared_ptr<ProcessLock> lock;  // See OpenOptions.
  Stops stops;
  bool time_is_readable = true;
  std::vector<pid_t> barred;
  FileDescriptor pid_file;
  OpenOptions options;
  Geometry geometry;
  Gadgets gadgets;
  Arena arena;
  std::optional<SiteJournal> journal;
  // By extent; nodes never move, so that spans of them stay valid.
  std::map<uint32_t, AccessorEntries> accessor_entries;
  std::vector<uint8_t> d_code;  // A session of D: its runtime; a copy lies in each extent.
  std::map<uint64_t, std::vector<InstalledBody>> bodies;  // By address of their layer.
  // As lead_to_copies() has led them.
  std::vector<code::LedWindow> led;
  std::vector<code::LedWindow> answering;
  uint32_t loader_seen = 0;  // The request that wait() reported last.
  bool loader_late = false;  // The loader went on without our answer.
  MappingsWatch mappings;
  bool attached = true;
  mutable TargetState last_state = TargetState::Running;
};

// A window of the layout that was not refused.
// Text that a trampoline has a copy of, besides its window.
struct TailText {
  uint64_t address = 0;  // Load time.
  code::Tail tail;
};

struct PlannedWindow {
  uint32_t module = 0;
  uint32_t first_point = 0;  // Of the plan; its points follow.
  uint32_t point_count = 0;
  uint32_t extent = 0;
  bool existing = false;  // Another layer is there already.
  bool loader_hook = false;
  abi::SiteRecord site{};  // Not yet in the journal when it is new.
  Trampoline trampoline;
  code::Window window;
  std::vector<TailText> tails = {};
  std::vector<bool> left_out;  // By point: refused, but others of the window are not.

  [[nodiscard]] uint32_t wanted_count() const {
    return static_cast<uint32_t>(std::count(left_out.begin(), left_out.end(), false));
  }
};

// Holds the arena's lock, which sessions on forked children share; taken when a ProcessLock is.
class ArenaLock {
 public:
  static Expected<ArenaLock> take(const Arena& arena);
  ArenaLock(ArenaLock&& other) noexcept : arena_(std::exchange(other.arena_, nullptr)) {}
  ArenaLock& operator=(ArenaLock&&) = delete;
  ~ArenaLock() {
    if (arena_ != nullptr) arena_->unlock();
  }

 private:
  explicit ArenaLock(const Arena& arena) : arena_(&arena) {}
  const Arena* arena_;
};

// The locks are held from lay_out to the end of install: what the layout says about other sessions'
// layers stays true.
struct Layout::State {
  State(ProcessLock::Hold h, ArenaLock l) : hold(std::move(h)), lock(std::move(l)) {}
  ProcessLock::Hold hold;
  ArenaLock lock;
  std::vector<PlannedWindow> windows;
  std::vector<PointRefusal> refusals;
  // (module, point) -> window index, and place among its points.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> window_of_point;
  const std::map<uint32_t, AccessorEntries>* accessor_entries = nullptr;
};

// Layers of lay_out and install (install.cc); the lock is held.
Expected<InstallReport> install_windows(Attachment::State& state,
                                        std::vector<PlannedWindow>& windows);

// One window whose only point calls the loader's hook.
Expected<InstallReport> install_hook(Attachment::State& state, const ModuleRequest& module);

// The loader goes on, and waits for us next time, also when it did not this time.
void answer_loader(Attachment::State& state);
// It goes on, and no loader waits for us again.
void let_loaders_go(Attachment::State& state);

// What became of the text of a process that was left, and of so many sites in it.
void log_detached(pid_t pid, const DetachReport& report, size_t sites);

// The line of a stop that is over: nobody stands any more.
void log_stop(const StoppedTarget& target, std::string_view why);

// Stops the process; waits, bounded, for another Clew that has it stopped.
Expected<StoppedTarget> stop_target(pid_t pid, std::chrono::milliseconds timeout);
// As the options say. One that is held stands already.
Expected<StoppedTarget> stop_target(pid_t pid, const OpenOptions& options);

// The arena of a process in which a recorder has been, alone; of what it had in the text nothing
// may be there. All sessions are free again. Errors: Refused.
Expected<std::optional<Arena>> adopt_arena(StoppedTarget& target, Arena arena);

// Is this, of a patch at most, what the process has there?
bool holds(pid_t pid, uint64_t address, std::span<const uint8_t> bytes);

// Does the process still have this arena, or does it run another program?
bool has_arena(pid_t pid, const Arena& arena);

// Descriptors of an arena that the target still has: its tracer died while it was being made.
std::vector<int> forgotten_descriptors(pid_t pid);
Expected<void> close_forgotten(StoppedTarget& target, std::span<const int> descriptors);

// Mapped, but its tracer died before it was complete, or when nearly all of it was gone again:
// nothing is installed in it.
bool is_unfinished(pid_t pid, const ArenaMapping& mapping);
Expected<void> remove_unfinished(pid_t pid);

// Refused when there are jumps of sessions in the text of a process without an arena: nothing is
// written to the text of a program before somebody has asked for that.
Expected<void> check_stray_jumps(pid_t pid);

// Sessions whose tracer does not live any more, as bits.
uint32_t dead_sessions(const Arena& arena);
uint32_t live_sessions(const Arena& arena);

}  // namespace clew::inline_
