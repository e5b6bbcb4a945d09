// SPDX-License-Identifier: Apache-2.0
#include "engine/record/watch.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/error_text.h"

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

struct ThreadStatus {
  pid_t process = 0;
  uint64_t caught = 0;  // Bit n - 1: signal n.
  uint64_t ignored = 0;
  uint64_t blocked = 0;
};

ThreadStatus status_of(pid_t thread) {
  std::ifstream file(fmt::format("/proc/{}/status", thread));
  ThreadStatus status;
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = line;
    const size_t colon = text.find(":\t");
    if (colon == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, colon);
    const std::string_view value = text.substr(colon + 2);
    const auto read = [&](auto& to, int base) {
      (void)std::from_chars(value.data(), value.data() + value.size(), to, base);
    };
    if (name == "Tgid") read(status.process, 10);
    if (name == "SigCgt") read(status.caught, 16);
    if (name == "SigIgn") read(status.ignored, 16);
    if (name == "SigBlk") read(status.blocked, 16);
  }
  return status;
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

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code error;
  const std::filesystem::directory_iterator all(fmt::format("/proc/{}/task", process), error);
  for (const auto& entry : all) {
    const std::string name = entry.path().filename();
    pid_t thread = 0;
    (void)std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread != 0) threads.push_back(thread);
  }
  return threads;
}

user_regs_struct registers_of(pid_t thread) {
  user_regs_struct registers{};
  (void)ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
  return registers;
}

void go_on(__ptrace_request how, pid_t thread, int signal) {
  (void)ptrace(how, thread, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
}

}  // namespace

Expected<Watch> Watch::seize(pid_t pid) {
  constexpr auto kOptions = static_cast<intptr_t>(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                                                  PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC);
  if (ptrace(PTRACE_SEIZE, pid, nullptr, reinterpret_cast<void*>(kOptions)) != 0) {
    return fail(ErrorCode::Refused,
                fmt::format("cannot watch process {}: {}", pid, error_text(errno)));
  }
  return Watch(pid);
}

Expected<Watch::Stop> Watch::next() {
  if (!held_.empty()) {
    const Stop stop = held_.front();
    held_.erase(held_.begin());
    return stop;
  }
  Stop stop;
  do {
    stop.thread = waitpid(-1, &stop.status, __WALL);
  } while (stop.thread < 0 && errno == EINTR);
  if (stop.thread < 0) return fail(ErrorCode::Io, fmt::format("waitpid: {}", error_text(errno)));
  return stop;
}

Expected<int> Watch::run(WatchListener& listener) {
  while (true) {
    const Stop stop = CLEW_TRY(next());
    if (WIFSTOPPED(stop.status)) {
      handle(stop, listener);
      continue;
    }
    if (stop.thread == pid_) return stop.status;
    listener.ended(stop.thread);
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
    const Crash crash = look_at(status.process, stop.thread, signal);
    listener.crashed(crash);
    for (const WatchedThread& other : crash.threads) {
      if (other.thread != stop.thread) go_on(PTRACE_CONT, other.thread, 0);
    }
  } else if ((status.caught & (uint64_t{1} << (signal - 1))) != 0) {
    listener.caught({stop.thread, registers_of(stop.thread)});
  }
  go_on(PTRACE_CONT, stop.thread, signal);
}

// Stops that are not ours are handled later; their threads stand meanwhile.
bool Watch::stop_thread(pid_t thread) {
  for (const Stop& stop : held_) {
    if (stop.thread == thread) return false;
  }
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return false;
  Stop stop{.thread = thread};
  pid_t waited = 0;
  do {
    waited = waitpid(thread, &stop.status, __WALL);
  } while (waited < 0 && errno == EINTR);
  if (waited != thread || !WIFSTOPPED(stop.status)) return false;
  const bool is_ours = stop.status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(stop.status) == SIGTRAP;
  if (!is_ours) held_.push_back(stop);
  return is_ours;
}

Crash Watch::look_at(pid_t process, pid_t thread, int signal) {
  Crash crash;
  crash.process = process;
  crash.thread = thread;
  crash.signal = signal;
  siginfo_t info{};
  if (ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0) {
    crash.code = info.si_code;
    crash.address = reinterpret_cast<uint64_t>(info.si_addr);
  }
  crash.threads.push_back({thread, registers_of(thread)});
  for (const pid_t other : threads_of(process)) {
    if (other == thread || !stop_thread(other)) continue;
    crash.threads.push_back({other, registers_of(other)});
  }
  return crash;
}

}  // namespace clew::engine
