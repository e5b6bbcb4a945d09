// SPDX-License-Identifier: Apache-2.0
#include "inline/seize.h"

#include <atomic>
#include <cerrno>
#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::inline_ {

namespace {

constexpr int64_t kLookEveryNs = 20'000'000;

// What the handler may look at, while seize() waits.
struct Before {
  std::span<const pid_t> threads;
  pid_t process = 0;
};
std::atomic<const Before*> seizing_beside{nullptr};  // Read by a handler.

// A tracer is told of stops, too, whatever it has asked for (wait_task_stopped(), kernel/exit.c):
// these stay to be told.
bool has_ended(pid_t thread) {
  siginfo_t info{};
  const int done =
      waitid(P_PID, static_cast<id_t>(thread), &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
  return done == 0 && info.si_pid == thread &&
         (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
}

// Where these are told (PTRACE_O_TRACEEXIT), a thread stops once more before it ends.
void go_on_to_end(pid_t thread) {
  siginfo_t info{};
  const int done =
      waitid(P_PID, static_cast<id_t>(thread), &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL);
  if (done != 0 || info.si_pid != thread || info.si_status >> 8 != PTRACE_EVENT_EXIT) return;
  int status = 0;
  (void)waitpid(thread, &status, __WALL | WNOHANG);
  (void)ptrace(PTRACE_CONT, thread, nullptr, nullptr);
}

void take_ends(int) {
  const int error = errno;
  const Before* const before = seizing_beside.load();
  if (before != nullptr) {
    for (const pid_t thread : before->threads) {
      int status = 0;
      go_on_to_end(thread);
      if (thread != before->process && has_ended(thread))
        (void)waitpid(thread, &status, __WALL | WNOHANG);
    }
  }
  errno = error;
}

}  // namespace

Seizing::Seizing(pid_t process) : process_(process) {
  struct sigaction action {};
  action.sa_handler = take_ends;
  action.sa_flags = SA_RESTART;
  (void)sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  (void)sigemptyset(&alarm);
  (void)sigaddset(&alarm, SIGALRM);
  (void)pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGALRM;
  event._sigev_un._tid = gettid();
  has_timer_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  const itimerspec times = {.it_interval = {0, kLookEveryNs}, .it_value = {0, kLookEveryNs}};
  if (has_timer_) (void)timer_settime(timer_, 0, &times, nullptr);
}

Seizing::~Seizing() {
  if (has_timer_) (void)timer_delete(timer_);
}

int64_t Seizing::seize(pid_t thread, uint64_t options, std::span<const pid_t> before) const {
  const Before beside = {before, process_};
  seizing_beside.store(&beside);
  const int64_t done = ptrace(PTRACE_SEIZE, thread, nullptr, reinterpret_cast<void*>(options));
  const int error = errno;
  seizing_beside.store(nullptr);
  errno = error;
  return done;
}

}  // namespace clew::inline_
