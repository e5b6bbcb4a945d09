// SPDX-License-Identifier: Apache-2.0
#include "engine/record/watch.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/error_text.h"
#include "engine/record/thread_status.h"

namespace clew::engine {

namespace {

// signal(7), "Core".
constexpr std::array kCoreSignals = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                     SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
constexpr std::array kStopSignals = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};

template <size_t Count>
bool is_among(const std::array<int, Count>& all, int signal) {
  for (const int one : all) {
    if (one == signal) return true;
  }
  return false;
}

// A fault cannot be blocked or ignored: the kernel kills for it all the same. It has taken the
// signal by now, so whether it is blocked says what was before.
bool kills(const ThreadStatus& status, int signal) {
  if (!is_among(kCoreSignals, signal)) return false;
  const uint64_t bit = uint64_t{1} << (signal - 1);
  const bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
                        signal == SIGFPE || signal == SIGTRAP || signal == SIGSYS;
  if ((status.caught & bit) != 0) return is_fault && (status.blocked & bit) != 0;
  return is_fault || (status.ignored & bit) == 0;
}

void go_on(__ptrace_request how, pid_t thread, int signal) {
  (void)ptrace(how, thread, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
}

Crash crash_of(pid_t process, pid_t thread, int signal) {
  Crash crash{.process = process, .thread = thread, .signal = signal};
  siginfo_t info{};
  if (ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0) {
    crash.code = info.si_code;
    crash.address = reinterpret_cast<uint64_t>(info.si_addr);
  }
  return crash;
}

}  // namespace

Expected<Watch> Watch::seize(pid_t pid) {
  Stops stops = CLEW_TRY(Stops::open());
  constexpr auto kOptions = static_cast<intptr_t>(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                                                  PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC);
  if (ptrace(PTRACE_SEIZE, pid, nullptr, reinterpret_cast<void*>(kOptions)) != 0) {
    return fail(ErrorCode::Refused,
                fmt::format("cannot watch process {}: {}", pid, error_text(errno)));
  }
  return Watch(pid, std::move(stops));
}

Expected<int> Watch::run(WatchListener& listener) {
  while (true) {
    const std::optional<Stop> stop = CLEW_TRY(stops_.next(listener.door()));
    if (!stop) {
      listener.knocked(stops_);
      continue;
    }
    if (WIFSTOPPED(stop->status)) {
      handle(*stop, listener);
      continue;
    }
    if (stop->thread == pid_) return stop->status;
    listener.ended(stop->thread);
  }
}

void Watch::handle(const Stop& stop, WatchListener& listener) {
  const int signal = WSTOPSIG(stop.status);
  const int event = stop.status >> 16;
  if (event == PTRACE_EVENT_EXEC) {
    listener.left(stop.thread);
    return go_on(PTRACE_DETACH, stop.thread, 0);
  }
  if (event == PTRACE_EVENT_STOP && is_among(kStopSignals, signal)) {
    return go_on(PTRACE_LISTEN, stop.thread, 0);  // Stays stopped, as it would be without us.
  }
  if (event != 0) return go_on(PTRACE_CONT, stop.thread, 0);
  const ThreadStatus status = status_of(stop.thread);
  if (kills(status, signal)) {
    Standstill threads(stops_, status.process, stop.thread);
    listener.crashed(crash_of(status.process, stop.thread, signal), threads);
  } else if ((status.caught & (uint64_t{1} << (signal - 1))) != 0) {
    listener.caught({stop.thread, registers_of(stop.thread)});
  }
  go_on(PTRACE_CONT, stop.thread, signal);
}

}  // namespace clew::engine
