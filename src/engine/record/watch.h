// SPDX-License-Identifier: Apache-2.0
// Waits for a recorded process and what comes of it, and looks at each once more in front of the
// signal that kills it: all its threads are stopped then, and lobes and registers are of one
// moment. What one of them executes is stopped before anything of it runs but its loader.
//
// The process is seized (ptrace(2)), and so debuggers cannot trace it. Each signal that it gets
// stops the thread for some microseconds. When we end, or are killed, it runs on untraced.
#pragma once

#include <csignal>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <sys/types.h>

#include "base/error.h"
#include "engine/record/standstill.h"
#include "engine/record/stops.h"
#include "inline/loader_calls.h"
#include "recorder/policy.h"

namespace clew::engine {

// A signal that kills the process, as nothing catches, ignores or blocks it: one of those that are
// wanted (Watch::set_fatal).
struct Crash {
  pid_t process = 0;
  pid_t thread = 0;
  int signal = 0;
  int code = 0;  // siginfo_t's; without a signal the status by which the process ends itself.
  uint64_t address = 0;
};

// Which ends of processes the listener is told of, in front of them.
struct WatchedEnds {
  recorder::SignalSet fatal = 0;  // Signals whose default action it is to kill.
  recorder::Exits exits = recorder::Exits::None;

  // Are threads to stop as they exit? It costs as much as a stop at a signal.
  [[nodiscard]] bool at_exit() const {
    return (fatal & recorder::signal_bit(SIGKILL)) != 0 || exits != recorder::Exits::None;
  }
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
  virtual void caught(pid_t process, const WatchedThread& thread, int signal) = 0;
  // It stands at a signal that is ours alone: it has none then.
  virtual bool gives_time(pid_t process, const WatchedThread& thread) = 0;
  // It was forked by one that is watched, and has not run.
  virtual void appeared(pid_t process) = 0;
  // The process runs another program, by one thread. Whether that is watched, too.
  virtual bool executes(pid_t process) = 0;
  // Nothing of that has run but its loader.
  virtual void begins(pid_t process) = 0;
  // Or it could not be stopped there.
  virtual void cannot_begin(pid_t process, const Error& reason) = 0;
  // Processes whose loaders wait for us, with what they have loaded or unloaded; may_load():
  // whether there may be some later, so that we look from time to time.
  [[nodiscard]] virtual bool may_load() const = 0;
  virtual std::vector<pid_t> loading() = 0;
  // Whether all threads of it stand.
  virtual void loaded(pid_t process, bool stands) = 0;
  // Nobody runs as this thread any more; nor as the process, when it was the first one.
  virtual void ended(pid_t process, pid_t thread) = 0;
  // Readable when somebody wants something; that is done while no thread stands for us.
  [[nodiscard]] virtual int door() const = 0;
  virtual void knocked(Stops& stops) = 0;
};

class Watch {
 public:
  // The process, with one thread, stands still. SIGKILL is seen as threads exit. Errors: Refused
  // when it may not be traced.
  static Expected<Watch> seize(pid_t pid, const WatchedEnds& ends);
  // It runs, with all threads that it has and makes meanwhile. Errors also: NotFound when it is
  // gone.
  static Expected<Watch> seize_running(pid_t pid, Stops stops, const WatchedEnds& ends);

  // Until the process has ended: its status of waitpid(2), or that of a signal by which somebody
  // ends us. Others run on, untraced as soon as we end.
  Expected<int> run(WatchListener& listener);
  [[nodiscard]] Stops& stops() { return stops_; }

 private:
  Watch(pid_t pid, Stops stops, const WatchedEnds& ends)
      : pid_(pid), ends_(ends), process_of_({{pid, pid}}), stops_(std::move(stops)) {}
  void handle(const Stop& stop, WatchListener& listener);
  void handle_signal(const Stop& stop, WatchListener& listener);
  void leave_to_die(pid_t thread, WatchListener& listener);
  void handle_exec(pid_t process, WatchListener& listener);
  void handle_call(pid_t process, WatchListener& listener);
  void handle_exit(pid_t thread, WatchListener& listener);
  [[nodiscard]] bool is_told(int status) const;
  void tell_exit(Crash crash, int status, WatchListener& listener);
  void handle_end(pid_t thread, WatchListener& listener);
  void meet(pid_t thread, WatchListener& listener);
  void go_on(pid_t thread, int signal);
  [[nodiscard]] bool is_gone() const;
  void let_all_go();
  void look_at_loaders(WatchListener& listener);

  pid_t pid_;
  WatchedEnds ends_;
  std::unordered_map<pid_t, pid_t> process_of_;  // Of each thread that we have met.
  std::map<pid_t, inline_::LoaderCalls> beginning_;
  std::set<pid_t> ending_;     // Processes of whose exit the listener was told,
  std::set<pid_t> executing_;  // and those whose threads end since one executes a program.
  bool is_child_ = true;       // Of ours, whose end we are told in any case.
  // Not a child, and untraced: it runs a program that nobody wants to hear of, or dies.
  bool is_left_ = false;
  Stops stops_;
};

}  // namespace clew::engine
