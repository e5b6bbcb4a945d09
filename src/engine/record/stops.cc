// SPDX-License-Identifier: Apache-2.0
#include "engine/record/stops.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/error_text.h"
#include "engine/record/thread_status.h"
#include "inline/brief_wait.h"
#include "inline/interrupted_call.h"
#include "recorder/policy.h"

namespace clew::engine {

namespace {

// Where threads stop faster than they can be told of, the door is looked at all the same.
constexpr unsigned kStopsBetweenLooks = 64;

pid_t wait_without_waiting(pid_t thread, int& status) {
  pid_t waited = 0;
  do {
    waited = waitpid(thread, &status, __WALL | WNOHANG);
  } while (waited < 0 && errno == EINTR);
  return waited;
}

bool is_group_stop(const Stop& stop) {
  return stop.status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(stop.status) != SIGTRAP;
}

// What the thread gets as it goes on; events, and stops at system calls, have no signal.
intptr_t signal_of(const Stop& stop) {
  const int signal = WSTOPSIG(stop.status);
  return stop.status >> 16 == 0 && signal != (SIGTRAP | 0x80) ? signal : 0;
}

// A signal that is ignored ends no call.
void go_on(const Stop& stop) {
  if (!WIFSTOPPED(stop.status) || has_untold_stop(stop.thread)) return;
  const auto signal = static_cast<int>(signal_of(stop));
  if (signal != 0 && (status_of(stop.thread).caught & recorder::signal_bit(signal)) == 0)
    inline_::mend_interrupted_call({stop.thread, signal, false});
  (void)ptrace(is_group_stop(stop) ? PTRACE_LISTEN : PTRACE_CONT, stop.thread, nullptr,
               reinterpret_cast<void*>(signal_of(stop)));
}

}  // namespace

bool has_untold_stop(pid_t thread) {
  siginfo_t info{};
  constexpr int kLook = WSTOPPED | WNOHANG | WNOWAIT | __WALL;
  return waitid(P_PID, static_cast<id_t>(thread), &info, kLook) == 0 && info.si_pid == thread;
}

Stops::~Stops() {
  for (const Stop& stop : held_) {
    if (WIFSTOPPED(stop.status))
      (void)ptrace(PTRACE_DETACH, stop.thread, nullptr, reinterpret_cast<void*>(signal_of(stop)));
  }
}

void Stops::let_go(pid_t process) {
  std::erase_if(held_, [process](const Stop& stop) {
    if (status_of(stop.thread).process != process) return false;
    go_on(stop);
    return true;
  });
}

void Stops::let_all_go(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    const auto stop = next(-1, left);
    if (!stop) return inline_::wait_briefly(left);  // Nobody is left that could stop.
    if (*stop) go_on(**stop);
  }
}

// An ignored SIGCHLD, which we may have been started with, would never become readable. That nobody
// reads what we say is no reason to end.
Expected<Stops> Stops::open(EndedBy ended_by) {
  (void)std::signal(SIGCHLD, SIG_DFL);
  (void)std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  (void)sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP})
    (void)sigaddset(&signals, signal);
  if (ended_by == EndedBy::KillAndTerminal) {
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGQUIT);
  }
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
    return fail(ErrorCode::Io, fmt::format("pthread_sigmask: {}", error_text(error)));
  }
  FileDescriptor descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.valid()) {
    return fail(ErrorCode::Io, fmt::format("signalfd: {}", error_text(errno)));
  }
  return Stops(std::move(descriptor));
}

Stops::Woken Stops::wait(int door, std::chrono::milliseconds limit) {
  std::array<pollfd, 2> all = {{{signals_.get(), POLLIN, 0}, {door, POLLIN, 0}}};
  if (poll(all.data(), all.size(), static_cast<int>(limit.count())) <= 0) return Woken::ByTime;
  read_signals();
  return all[1].revents != 0 || ended_by_ != 0 ? Woken::ByDoor : Woken::ByChild;
}

void Stops::read_signals() {
  signalfd_siginfo signal{};
  while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
    if (signal.ssi_signo != SIGCHLD) ended_by_ = static_cast<int>(signal.ssi_signo);
  }
}

// Who handled the last one may have taken a SIGCHLD (inline/brief_wait.h), so threads are asked
// first.
Expected<std::optional<Stop>> Stops::next(int door, std::chrono::milliseconds limit) {
  if (!held_.empty()) {
    const Stop stop = held_.front();
    held_.erase(held_.begin());
    return stop;
  }
  if (++before_look_ % kStopsBetweenLooks == 0) return std::nullopt;
  while (true) {
    Stop stop;
    stop.thread = wait_without_waiting(-1, stop.status);
    if (stop.thread > 0) return stop;
    if (stop.thread < 0) return fail(ErrorCode::Io, fmt::format("waitpid: {}", error_text(errno)));
    if (wait(door, limit) != Woken::ByChild) return std::nullopt;
  }
}

std::optional<Stop> Stops::of(pid_t thread, Deadline deadline) {
  Stop stop{.thread = thread};
  while (true) {
    const pid_t waited = wait_without_waiting(thread, stop.status);
    if (waited != 0) return waited == thread ? std::optional(stop) : std::nullopt;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    (void)wait(-1, left);
  }
}

bool Stops::holds(pid_t thread) const {
  return std::any_of(held_.begin(), held_.end(),
                     [thread](const Stop& stop) { return stop.thread == thread; });
}

}  // namespace clew::engine
