// SPDX-License-Identifier: Apache-2.0
#include "engine/record/standstill.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/record/thread_status.h"
#include "inline/interrupted_call.h"

namespace clew::engine {

namespace {

// For all together. A thread that computes stops when its turn comes.
constexpr std::chrono::milliseconds kStopTimeMax{1000};

}  // namespace

user_regs_struct registers_of(pid_t thread) {
  user_regs_struct registers{};
  (void)ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
  return registers;
}

Standstill::Standstill(Stops& stops, pid_t process, pid_t standing, Calls calls)
    : stops_(stops), process_(process), calls_(calls) {
  if (standing != 0) threads_.push_back({.thread = standing, .registers = registers_of(standing)});
  // Those that run meanwhile may make others.
  while (look_for_others()) {
  }
}

// False when there are none.
bool Standstill::look_for_others() {
  const size_t known = threads_.size();
  for (const pid_t thread : threads_of(process_)) {
    const bool is_known =
        std::any_of(threads_.begin(), threads_.begin() + static_cast<ptrdiff_t>(known),
                    [thread](const Thread& one) { return one.thread == thread; });
    if (is_known) continue;
    if (auto found = look_at(thread)) threads_.push_back(*found);
  }
  std::vector<Thread*> running;
  for (size_t i = known; i < threads_.size(); ++i) {
    if (threads_[i].state == State::Asked) running.push_back(&threads_[i]);
  }
  stop(running);
  return threads_.size() > known;
}

Standstill::~Standstill() {
  for (const Thread& thread : threads_) {
    if (thread.state == State::Stopped && !has_untold_stop(thread.thread))
      (void)ptrace(PTRACE_CONT, thread.thread, nullptr, nullptr);
  }
}

std::optional<Standstill::Thread> Standstill::look_at(pid_t thread) const {
  Thread found{.thread = thread};
  if (stops_.holds(thread)) {
    found.registers = registers_of(thread);
    return found;
  }
  const ThreadStatus status = status_of(thread);
  if (status.process != process_ || status.has_ended()) return std::nullopt;
  if (status.tracer != getpid()) return std::nullopt;  // A thread of the kernel's, as of io_uring.
  const auto waits = calls_ == Calls::Left ? waiting(process_, thread) : std::nullopt;
  found.state = waits && waits->is_in_call ? State::InCall : State::Asked;
  found.switches = status.switches;  // From before it was seen to wait.
  if (waits) found.registers = waits->registers;
  return found;
}

// All are asked before the first is waited for.
void Standstill::stop(const std::vector<Thread*>& running) {
  for (Thread* const thread : running) {
    thread->state = ptrace(PTRACE_INTERRUPT, thread->thread, nullptr, nullptr) == 0
                        ? State::Asked
                        : State::Unwilling;
  }
  const auto deadline = std::chrono::steady_clock::now() + kStopTimeMax;
  for (Thread* const thread : running) {
    if (thread->state != State::Asked) continue;
    if (waits_for_vfork(process_, thread->thread)) {
      thread->state = State::InVfork;
    } else {
      take(*thread, deadline);
    }
  }
}

// When a stop comes that is not the one that we asked for, that one comes, too, and is of no event
// (Watch::handle).
void Standstill::take(Thread& thread, Stops::Deadline deadline) {
  const auto stop = stops_.of(thread.thread, deadline);
  if (!stop) {
    thread.state = State::Unwilling;
    return;
  }
  const bool is_ours = stop->status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(stop->status) == SIGTRAP;
  if (!is_ours) stops_.hold(*stop);
  thread.state = is_ours ? State::Stopped : State::Other;
  if (!WIFSTOPPED(stop->status)) return;
  thread.registers = registers_of(thread.thread);
  if (is_ours && calls_ == Calls::Stopped)
    inline_::mend_interrupted_call({thread.thread, 0, false}, *thread.registers);
}

bool Standstill::has_moved() {
  std::vector<Thread*> running;
  bool any = false;
  for (Thread& thread : threads_) {
    if (thread.state != State::InCall) continue;
    const auto now = look_at(thread.thread);
    const bool stands = now && now->state == State::InCall && now->switches == thread.switches;
    if (stands) continue;
    any = true;
    if (now) {
      thread = *now;
      if (thread.state == State::Asked) running.push_back(&thread);
    } else {
      thread.state = State::Unwilling;  // It has ended.
    }
  }
  stop(running);
  return any;
}

std::vector<WatchedThread> Standstill::threads() const {
  std::vector<WatchedThread> all;
  for (const Thread& thread : threads_) {
    if (thread.registers) all.push_back({thread.thread, *thread.registers});
  }
  return all;
}

bool Standstill::is_complete() const {
  return std::none_of(threads_.begin(), threads_.end(), [](const Thread& thread) {
    return thread.state == State::InCall || thread.state == State::Unwilling;
  });
}

bool Standstill::has_vforked() const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const Thread& thread) { return thread.state == State::InVfork; });
}

size_t Standstill::stopped_count() const {
  return static_cast<size_t>(
      std::count_if(threads_.begin(), threads_.end(),
                    [](const Thread& thread) { return thread.state == State::Stopped; }));
}

}  // namespace clew::engine
