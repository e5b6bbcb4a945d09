// SPDX-License-Identifier: Apache-2.0
// What waitpid(2) tells of traced threads, one after the other, or with a limit of time; and that
// something else can be read meanwhile. SIGCHLD is blocked for that, and becomes readable; so are
// signals that ask us to end, since some processes cannot be left at any moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::engine {

struct Stop {
  pid_t thread = 0;
  int status = 0;  // Of waitpid(2): it may have ended, too.
};

// Whether it stands for what nobody has been told yet. SIGKILL takes a thread out of the stop that
// was, and it stops once more on its way out (PTRACE_O_TRACEEXIT): who let it go on from the first
// one would lose the second.
bool has_untold_stop(pid_t thread);

class Stops {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Which signals ask us to end. Those of a terminal are a started command's.
  enum class EndedBy : uint8_t { Kill, KillAndTerminal };

  // Errors: Io.
  static Expected<Stops> open(EndedBy ended_by = EndedBy::Kill);
  Stops(Stops&&) noexcept = default;
  Stops& operator=(Stops&&) = delete;
  // Threads whose stops nobody has asked for go on without us, with the signals that they stopped
  // for: the kernel gives back those alone that waitpid(2) has not told.
  ~Stops();

  static constexpr std::chrono::milliseconds kNoLimit{-1};

  // The next one, or nothing when `door` (-1: none) may be readable, or the time is over. Waits.
  // Errors: Io, as when no thread is left.
  Expected<std::optional<Stop>> next(int door, std::chrono::milliseconds limit);
  // That of a thread, unless it comes too late.
  std::optional<Stop> of(pid_t thread, Deadline deadline);

  // Came too early, and is to be told later; the thread stands meanwhile.
  void hold(const Stop& stop) { held_.push_back(stop); }
  [[nodiscard]] bool holds(pid_t thread) const;
  // Threads of the process go on that stand for one that came too early.
  void let_go(pid_t process);
  // Waits so long; whoever stops meanwhile goes on, with the signal that it stopped for. A new
  // process begins by a stop, and who waits for it in vfork(2) would wait for us.
  void let_all_go(std::chrono::milliseconds time);
  // The signal by which somebody ends us (SIGTERM, SIGHUP; SIGINT, SIGQUIT); 0: none.
  [[nodiscard]] int ended_by() const { return ended_by_; }
  // The same, after a look: for who does not wait for stops.
  [[nodiscard]] int look_ended_by() {
    read_signals();
    return ended_by_;
  }

 private:
  explicit Stops(FileDescriptor signals) : signals_(std::move(signals)) {}
  enum class Woken : uint8_t { ByChild, ByDoor, ByTime };
  Woken wait(int door, std::chrono::milliseconds limit);
  void read_signals();

  FileDescriptor signals_;
  std::vector<Stop> held_;
  int ended_by_ = 0;
  unsigned before_look_ = 0;  // Stops that are told before the door is looked at.
};

}  // namespace clew::engine
