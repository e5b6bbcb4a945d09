// SPDX-License-Identifier: Apache-2.0
// Waits for a recorded process and what it forks, and looks at it once more in front of the signal
// that kills it: all its threads are stopped then, and lobes and registers are of one moment.
//
// The process is seized (ptrace(2)), and so debuggers cannot trace it. Each signal that it gets
// stops the thread for some microseconds. When we end, or are killed, it runs on untraced.
#pragma once

#include <cstdint>
#include <utility>

#include <sys/types.h>

#include "base/error.h"
#include "engine/record/standstill.h"
#include "engine/record/stops.h"

namespace clew::engine {

// A signal whose default action it is to kill the process and to dump core, and that nothing
// catches, ignores or blocks.
struct Crash {
  pid_t process = 0;
  pid_t thread = 0;
  int signal = 0;
  int code = 0;  // siginfo_t's.
  uint64_t address = 0;
};

// Who is told what happens, while the threads that it is about stand.
class WatchListener {
 public:
  WatchListener() = default;
  WatchListener(const WatchListener&) = delete;
  WatchListener& operator=(const WatchListener&) = delete;
  virtual ~WatchListener() = default;
  // The crash's thread is the first.
  virtual void crashed(const Crash& crash, Standstill& threads) = 0;
  // A handler is going to run.
  virtual void caught(const WatchedThread& thread) = 0;
  // The process runs another program.
  virtual void left(pid_t process) = 0;
  // Nobody runs as this thread any more.
  virtual void ended(pid_t thread) = 0;
  // Readable when somebody wants something; that is done while no thread stands for us.
  [[nodiscard]] virtual int door() const = 0;
  virtual void knocked(Stops& stops) = 0;
};

class Watch {
 public:
  // The process, with one thread, stands still. Errors: Refused when it may not be traced.
  static Expected<Watch> seize(pid_t pid);

  // Until the process has ended: its status of waitpid(2). A process that runs another program is
  // left alone.
  Expected<int> run(WatchListener& listener);

 private:
  Watch(pid_t pid, Stops stops) : pid_(pid), stops_(std::move(stops)) {}
  void handle(const Stop& stop, WatchListener& listener);

  pid_t pid_;
  Stops stops_;
};

}  // namespace clew::engine
