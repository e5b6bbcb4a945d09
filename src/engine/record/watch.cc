// SPDX-License-Identifier: Apache-2.0
#include "engine/record/watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"
#include "engine/record/thread_status.h"
#include "inline/interrupted_call.h"
#include "inline/seize.h"
#include "inline/stopped_target.h"

namespace clew::engine {

namespace {

constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
constexpr std::array kStopSignals = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
constexpr int kCall = SIGTRAP | 0x80;  // A stop at a system call (PTRACE_O_TRACESYSGOOD).

template <size_t Count>
bool is_among(const std::array<int, Count>& all, int signal) {
  for (const int one : all) {
    if (one == signal) return true;
  }
  return false;
}

// What a thread has done itself cannot be blocked or ignored: the kernel kills for it all the same.
// It has taken the signal by now, so whether it is blocked says what was before. One that somebody
// has sent is as any other.
bool kills_itself(const ThreadStatus& status, const siginfo_t& info) {
  const recorder::SignalSet bit = recorder::signal_bit(info.si_signo);
  const bool is_forced = info.si_code > 0 && is_among(kFaults, info.si_signo);
  return is_forced && ((status.caught & bit) == 0 || (status.blocked & bit) != 0);
}

// One that is sent to an init does nothing, if nobody catches it.
bool kills(const ThreadStatus& status, const siginfo_t& info, recorder::SignalSet fatal) {
  const recorder::SignalSet bit = recorder::signal_bit(info.si_signo);
  if ((fatal & bit) == 0) return false;
  if (kills_itself(status, info)) return true;
  return !status.is_init && ((status.caught | status.ignored) & bit) == 0;
}

constexpr uint64_t kOptions = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                              PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;

uint64_t options_of(const WatchedEnds& ends) {
  return ends.at_exit() ? kOptions | PTRACE_O_TRACEEXIT : kOptions;
}

tl::unexpected<Error> cannot_watch(pid_t pid, int error) {
  return fail(ErrorCode::Refused,
              fmt::format("cannot watch process {}: {}", pid, error_text(error)));
}

void let_go(__ptrace_request how, pid_t thread, int signal) {
  if (has_untold_stop(thread)) return;
  (void)ptrace(how, thread, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
}

}  // namespace

Expected<Watch> Watch::seize(pid_t pid, const WatchedEnds& ends) {
  Stops stops = CLEW_TRY(Stops::open());
  if (inline_::Seizing(pid).seize(pid, options_of(ends), {}) != 0) return cannot_watch(pid, errno);
  return Watch(pid, std::move(stops), ends);
}

// One that a thread of ours makes comes to us by itself, and cannot be seized.
Expected<Watch> Watch::seize_running(pid_t pid, Stops stops, const WatchedEnds& ends) {
  Watch watch(pid, std::move(stops), ends);
  watch.process_of_.clear();
  watch.is_child_ = false;
  const inline_::Seizing seizing(pid);
  std::vector<pid_t> seized;
  for (bool finds_more = true; finds_more;) {
    finds_more = false;
    for (const pid_t thread : threads_of(pid)) {
      if (watch.process_of_.contains(thread) || inline_::is_worker(thread)) continue;
      const bool is_seized = seizing.seize(thread, options_of(ends), seized) == 0;
      const int error = errno;
      const ThreadStatus status = status_of(thread);
      if (status.process != pid || status.has_ended()) continue;
      if (!is_seized && status.tracer != getpid()) {
        watch.let_all_go();
        return cannot_watch(pid, error);
      }
      watch.process_of_.emplace(thread, pid);
      seized.push_back(thread);
      finds_more = true;
    }
  }
  // Whose ends were taken there.
  std::erase_if(watch.process_of_,
                [](const auto& one) { return status_of(one.first).process == 0; });
  if (!watch.process_of_.empty()) return watch;
  return fail(ErrorCode::NotFound, fmt::format("process {} has exited", pid));
}

// They are detached with their stops.
void Watch::let_all_go() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (const auto& [thread, process] : process_of_) {
    if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) continue;
    const auto stop = stops_.of(thread, deadline);
    if (!stop) continue;
    inline_::mend_interrupted_call({thread, 0, false});
    stops_.hold(*stop);
  }
}

// What it waits for is done by the time that it goes on.
void Watch::look_at_loaders(WatchListener& listener) {
  for (const pid_t process : listener.loading()) {
    const Standstill threads(stops_, process, 0, Standstill::Calls::Stopped);
    listener.loaded(process, threads.is_complete());
  }
}

Expected<int> Watch::run(WatchListener& listener) {
  constexpr std::chrono::milliseconds kLookEvery{5};  // At what loaders want.
  while (true) {
    const auto limit = listener.may_load() ? kLookEvery : Stops::kNoLimit;
    const std::optional<Stop> stop = CLEW_TRY(stops_.next(listener.door(), limit));
    if (!stop) {
      // Not before a stop that was told is handled: nobody would be told again.
      if (stops_.look_ended_by() != 0) return stops_.ended_by();  // As a status of waitpid(2).
      listener.knocked(stops_);
      look_at_loaders(listener);
      continue;
    }
    if (WIFSTOPPED(stop->status)) {
      handle(*stop, listener);
      if (is_left_) return 0;
      continue;
    }
    handle_end(stop->thread, listener);
    if (stop->thread == pid_ || is_gone()) return stop->status;
  }
}

void Watch::handle(const Stop& stop, WatchListener& listener) {
  const int signal = WSTOPSIG(stop.status);
  const int event = stop.status >> 16;
  meet(stop.thread, listener);
  if (event == PTRACE_EVENT_EXEC) return handle_exec(stop.thread, listener);
  if (event == PTRACE_EVENT_STOP && is_among(kStopSignals, signal)) {
    return let_go(PTRACE_LISTEN, stop.thread, 0);  // Stays stopped, as it would be without us.
  }
  if (event == PTRACE_EVENT_EXIT) return handle_exit(stop.thread, listener);
  if (event != 0) return go_on(stop.thread, 0);
  if (signal == kCall) return handle_call(stop.thread, listener);
  handle_signal(stop, listener);
}

namespace {

bool is_stopped(pid_t thread) {
  user_regs_struct registers{};
  return ptrace(PTRACE_GETREGS, thread, nullptr, &registers) == 0;
}

}  // namespace

void Watch::handle_signal(const Stop& stop, WatchListener& listener) {
  const int signal = WSTOPSIG(stop.status);
  const ThreadStatus status = status_of(stop.thread);
  siginfo_t info{};
  if (ptrace(PTRACE_GETSIGINFO, stop.thread, nullptr, &info) != 0) {
    if (errno == ESRCH) return;
    info.si_signo = signal;
  }
  if (signal == SIGSEGV && info.si_code == SI_KERNEL &&
      listener.gives_time(status.process, {stop.thread, registers_of(stop.thread)})) {
    return go_on(stop.thread, 0);
  }
  if (kills(status, info, ends_.fatal)) {
    if (!is_stopped(stop.thread)) return;  // Another one's signal is killing all of them.
    if (beginning_.erase(status.process) != 0) {
      listener.cannot_begin(
          status.process,
          {ErrorCode::Refused, "it was killed before its loader was seen to be done"});
    }
    Standstill threads(stops_, status.process, stop.thread);
    listener.crashed({.process = status.process,
                      .thread = stop.thread,
                      .signal = signal,
                      .code = info.si_code,
                      .address = reinterpret_cast<uint64_t>(info.si_addr)},
                     threads);
  } else if ((status.caught & recorder::signal_bit(signal)) != 0) {
    listener.caught(status.process, {stop.thread, registers_of(stop.thread)}, signal);
  } else {
    // A traced thread stops for what it ignores, too, and its call has ended for nothing.
    inline_::mend_interrupted_call({stop.thread, signal, false});
  }
  if (status.is_init && kills_itself(status, info)) return leave_to_die(stop.thread, listener);
  go_on(stop.thread, signal);
}

// While an init is traced the kernel takes no fault for a reason to kill it (Linux,
// force_sig_info_to_task()): it would come to the same instruction again, for ever.
void Watch::leave_to_die(pid_t thread, WatchListener& listener) {
  let_go(PTRACE_DETACH, thread, 0);
  handle_end(thread, listener);
  is_left_ = is_gone();
}

// A new thread comes to us by its first stop, before or after its maker's.
void Watch::meet(pid_t thread, WatchListener& listener) {
  if (process_of_.contains(thread)) return;
  const pid_t process = status_of(thread).process;
  if (process == 0) return;  // It is being killed.
  process_of_.emplace(thread, process);
  if (process == thread) listener.appeared(process);
}

// All other threads have ended. The one that goes on has the number of the first one.
void Watch::handle_exec(pid_t process, WatchListener& listener) {
  uint64_t before = 0;
  (void)ptrace(PTRACE_GETEVENTMSG, process, nullptr, &before);
  const auto executor = static_cast<pid_t>(before);
  if (executor != process) handle_end(executor, listener);
  executing_.erase(process);
  beginning_.erase(process);
  if (!listener.executes(process)) {
    process_of_.erase(process);
    is_left_ = process == pid_ && !is_child_;
    return let_go(PTRACE_DETACH, process, 0);
  }
  inline_::LoaderCalls calls(process);
  const Expected<void> begun = calls.begin();
  if (begun) {
    beginning_.emplace(process, calls);
  } else {
    listener.cannot_begin(process, begun.error());
  }
  go_on(process, 0);
}

void Watch::handle_call(pid_t process, WatchListener& listener) {
  const auto beginning = beginning_.find(process);
  if (beginning == beginning_.end()) return go_on(process, 0);
  const Expected<bool> begun = beginning->second.stopped();
  if (begun && !*begun) return go_on(process, 0);
  beginning_.erase(beginning);
  if (begun) {
    listener.begins(process);
  } else {
    listener.cannot_begin(process, begun.error());
  }
  go_on(process, 0);
}

// SIGKILL itself is not seen, and all threads that it kills are: the first one tells. The others
// exit, too, or stand where they were seen to stop, as far as they get.
// Other signals are seen as they come.
bool Watch::is_told(int status) const {
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGKILL && (ends_.fatal & recorder::signal_bit(SIGKILL)) != 0;
  return ends_.exits == recorder::Exits::All ||
         (ends_.exits == recorder::Exits::Failures && WEXITSTATUS(status) != 0);
}

void Watch::handle_exit(pid_t thread, WatchListener& listener) {
  uint64_t message = 0;
  (void)ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &message);
  const auto status = static_cast<int>(message);
  const auto known = process_of_.find(thread);
  if (known != process_of_.end() && is_told(status) && !ending_.contains(known->second))
    tell_exit({.process = known->second, .thread = thread}, status, listener);
  go_on(thread, 0);
}

// All threads of a process that ends stop at their exits, and any of them may be the first. One
// that ends alone has a status, too, and so have those that an exec ends: then no thread has asked
// for the end of all.
void Watch::tell_exit(Crash crash, int status, WatchListener& listener) {
  crash.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool is_alone =
      executing_.contains(crash.process) || registers_of(crash.thread).orig_rax == SYS_exit;
  if (crash.signal == 0 && is_alone) return;
  Standstill threads(stops_, crash.process, crash.thread);
  if (crash.signal == 0) {
    const auto all = threads.threads();
    const auto ends = std::find_if(all.begin(), all.end(), [](const WatchedThread& one) {
      return one.registers.orig_rax == SYS_exit_group;
    });
    if (ends == all.end()) {
      executing_.insert(crash.process);
      return;
    }
    crash.thread = ends->thread;
    crash.code = WEXITSTATUS(status);
  }
  ending_.insert(crash.process);
  listener.crashed(crash, threads);
}

void Watch::handle_end(pid_t thread, WatchListener& listener) {
  const auto known = process_of_.find(thread);
  if (known == process_of_.end()) return;
  const pid_t process = known->second;
  process_of_.erase(known);
  beginning_.erase(thread);
  ending_.erase(thread);
  executing_.erase(thread);
  listener.ended(process, thread);
}

// Of a first thread that had ended before we came, nobody tells us more.
bool Watch::is_gone() const {
  return !is_child_ && std::none_of(process_of_.begin(), process_of_.end(),
                                    [this](const auto& one) { return one.second == pid_; });
}

void Watch::go_on(pid_t thread, int signal) {
  let_go(beginning_.contains(thread) ? PTRACE_SYSCALL : PTRACE_CONT, thread, signal);
}

}  // namespace clew::engine
