// SPDX-License-Identifier: Apache-2.0
// Stopping and resuming all threads of a process. The theory is in stopped_target.h.
#include "inline/stopped_target.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "inline/brief_wait.h"
#include "inline/interrupted_call.h"
#include "inline/permission.h"
#include "inline/seize.h"

namespace clew::inline_ {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kPassesMax = 1000;  // A process that makes threads faster than that is refused.
constexpr std::chrono::microseconds kYieldFor{2000};  // Then sleep between looks.
constexpr std::chrono::microseconds kSeldomDead{
    2000};  // Who has not stopped by then may have ended.
constexpr std::chrono::microseconds kPauseOfStop{100};
// A thread that was asked to stop and got no processor in time is waited for so long.
constexpr std::chrono::seconds kStragglersMax{10};

int64_t trace(int request, pid_t tid, uint64_t data = 0) {
  return ptrace(static_cast<__ptrace_request>(request), tid, nullptr,
                reinterpret_cast<void*>(data));
}

// The state letter of a thread, 'X' when it is gone.
char thread_state(pid_t tid) {
  std::ifstream stat(fmt::format("/proc/{0}/task/{0}/stat", tid));
  // The name may have anything in it, newlines, too.
  std::string text;
  std::getline(stat, text, '\0');  // A thread that ends meanwhile is an error of the stream.
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? 'X' : text[name_end + 2];
}

bool is_dead(char state) {
  return state == 'Z' || state == 'X';
}

// Processes other than this one that run on its memory: made by vfork, or by clone with CLONE_VM.
std::vector<pid_t> sharers_of(pid_t pid) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    pid_t other = 0;
    (void)std::from_chars(name.data(), name.data() + name.size(), other);
    if (other > 0 && other != pid && shares_memory(pid, other)) found.push_back(other);
  }
  return found;
}

bool is_stop_signal(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// Does the thread stand still, and have we seen that?
bool is_held(pid_t tid) {
  siginfo_t unseen{};
  return thread_state(tid) == 't' &&
         waitid(P_PID, static_cast<id_t>(tid), &unseen, WSTOPPED | WNOHANG | WNOWAIT | __WALL) ==
             0 &&
         unseen.si_pid == 0;
}

// Lets running threads have the signals that come for them in that time, at once: one that waited
// for us with each signal of a fast timer would run nothing but the handler.
void deliver_signals(std::span<const pid_t> running, std::chrono::microseconds time) {
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point now = begin; now < begin + time; now = Clock::now()) {
    for (const pid_t tid : running) {
      siginfo_t stop{};
      const bool has_stopped = waitid(P_PID, static_cast<id_t>(tid), &stop,
                                      WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 &&
                               stop.si_pid == tid && stop.si_code == CLD_TRAPPED;
      // Other stops, which have the event's number above the signal's, are for poll_thread().
      const bool is_event = stop.si_status >> 8 != 0;
      if (!has_stopped || is_event || is_stop_signal(stop.si_status)) continue;
      int status = 0;
      if (waitpid(tid, &status, __WALL | WNOHANG) != tid || !WIFSTOPPED(status)) continue;
      mend_interrupted_call({tid, WSTOPSIG(status), false});
      (void)trace(PTRACE_CONT, tid, static_cast<uint64_t>(WSTOPSIG(status)));
    }
    if (now < begin + kYieldFor) {
      sched_yield();
    } else {
      wait_briefly(kPauseOfStop);
    }
  }
}

}  // namespace

// Flags of the thread (field 9 of proc(5)'s stat) say so of those of io_uring.
bool is_worker(pid_t tid) {
  constexpr uint64_t kIoWorker = 0x10;   // PF_IO_WORKER of linux/sched.h.
  constexpr unsigned kFieldsBefore = 6;  // Behind the name: state … tpgid.
  std::ifstream stat(fmt::format("/proc/{0}/task/{0}/stat", tid));
  std::string text;
  std::getline(stat, text, '\0');  // A thread that ends meanwhile is an error of the stream.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (unsigned i = 0; i < kFieldsBefore; ++i)
    fields >> field;
  uint64_t flags = 0;
  return static_cast<bool>(fields >> flags) && (flags & kIoWorker) != 0;
}

// The dead have no memory, and would all share that.
bool shares_memory(pid_t pid, pid_t other) {
  constexpr int kMemory = 1;  // KCMP_VM of linux/kcmp.h.
  return syscall(SYS_kcmp, pid, other, kMemory, 0, 0) == 0 && !is_dead(thread_state(pid)) &&
         !is_dead(thread_state(other));
}

Expected<StoppedTarget> StoppedTarget::stop(pid_t pid, std::chrono::milliseconds timeout) {
  StoppedTarget target(pid);
  Patience patience(timeout);
  const auto facts = target::read_facts(pid);
  // A filter could kill the target for the system calls that it makes for us.
  target.filtered_ = facts && facts->seccomp != target::ProcessFacts::Seccomp::Off;
  const auto process = target::read_process(pid);
  target.is_our_child_ = process && process->parent_pid == getpid();
  const std::vector<pid_t> sharers = sharers_of(pid);
  for (const pid_t tid : target::list_threads(pid).value_or(std::vector<pid_t>{})) {
    if (is_worker(tid)) target.workers_.push_back(tid);
  }
  target.stopped_at_ = Clock::now();
  CLEW_TRY(target.stop_threads(patience));
  // A thread that waits for its vfork child stops only when the child has left our memory.
  for (const pid_t sharer : sharers) {
    if (shares_memory(pid, sharer)) target.sharers_.push_back(sharer);
  }
  if (!target.sharers_.empty()) CLEW_TRY(target.stop_threads(patience));
  if (target.threads_.empty()) {
    return fail(ErrorCode::NotFound, fmt::format("process {} has exited", pid));
  }
  CLEW_TRY(target.open_memory());
  return target;
}

Expected<StoppedTarget> StoppedTarget::of_held(pid_t pid, Calls calls) {
  StoppedTarget target(pid);
  target.is_held_ = true;
  target.stopped_at_ = Clock::now();
  const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
  if (calls == Calls::Made && facts.seccomp != target::ProcessFacts::Seccomp::Off) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} filters its system calls [seccomp]", pid));
  }
  for (const pid_t tid : CLEW_TRY(target::list_threads(pid))) {
    if (is_worker(tid)) continue;
    auto thread = target.read_thread(tid);
    // The first one may have ended, and one in vfork stops as soon as it wakes up.
    const char state = thread ? 't' : thread_state(tid);
    if (is_dead(state) || state == 'D') continue;
    target.threads_.push_back(CLEW_TRY(std::move(thread)));
  }
  CLEW_TRY(target.open_memory());
  return target;
}

Expected<void> StoppedTarget::open_memory() {
  const std::string path = fmt::format("/proc/{}/mem", target::memory_holder(pid_));
  memory_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory_.valid()) return {};
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
}

// NotFound when it was killed meanwhile.
Expected<StoppedThread> StoppedTarget::read_thread(pid_t tid) const {
  constexpr uint64_t kGeneralRegisters = 1;  // NT_PRSTATUS
  StoppedThread thread;
  thread.tid = tid;
  iovec registers = {.iov_base = &thread.registers, .iov_len = sizeof thread.registers};
  if (ptrace(PTRACE_GETREGSET, tid, reinterpret_cast<void*>(kGeneralRegisters), &registers) == 0) {
    return thread;
  }
  return fail(errno == ESRCH ? ErrorCode::NotFound : ErrorCode::Io,
              fmt::format("registers of thread {}: {}", tid, error_text(errno)));
}

Expected<void> StoppedTarget::stop_threads(Patience& patience) {
  std::vector<pid_t> waiting;
  for (unsigned pass = 0; pass < kPassesMax; ++pass) {
    const bool found_new = CLEW_TRY(seize_new_threads(waiting));
    if (!found_new && waiting.empty() && pass > 0) break;
    CLEW_TRY(wait_for(waiting, patience));
    // Its thread has been given the number of the first one, and is asked to stop already.
    if (std::exchange(executed_, false) && !is_held(pid_)) {
      std::erase_if(threads_, [&](const StoppedThread& thread) { return thread.tid == pid_; });
      waiting.push_back(pid_);
    }
  }
  return {};
}

StoppedTarget::StoppedTarget(StoppedTarget&& other) noexcept
    : pid_(other.pid_),
      stopped_at_(other.stopped_at_),
      resumed_at_(other.resumed_at_),
      memory_(std::move(other.memory_)),
      threads_let_go_(other.threads_let_go_),
      threads_(std::exchange(other.threads_, {})),
      seized_(std::exchange(other.seized_, {})),
      sharers_(std::move(other.sharers_)),
      workers_(std::move(other.workers_)),
      is_our_child_(other.is_our_child_),
      filtered_(other.filtered_),
      is_held_(other.is_held_),
      gadgets_(other.gadgets_),
      calling_(std::exchange(other.calling_, false)),
      caller_(other.caller_),
      caller_mask_(other.caller_mask_),
      call_stack_(other.call_stack_),
      scratch_(other.scratch_),
      deferred_signal_(other.deferred_signal_),
      saved_stack_(std::move(other.saved_stack_)) {}

StoppedTarget::~StoppedTarget() {
  resume();
}

Expected<bool> StoppedTarget::seize_new_threads(std::vector<pid_t>& waiting) {
  auto tids = target::list_threads(pid_);
  if (!tids) return fail(ErrorCode::NotFound, fmt::format("no process {}", pid_));
  for (const pid_t sharer : sharers_) {
    const auto more = target::list_threads(sharer);
    if (more) tids->insert(tids->end(), more->begin(), more->end());
  }
  bool found = false;
  const Seizing seizing(pid_);
  for (const pid_t tid : *tids) {
    if (std::find(seized_.begin(), seized_.end(), tid) != seized_.end()) continue;
    if (std::find(workers_.begin(), workers_.end(), tid) != workers_.end()) continue;
    if (seizing.seize(tid, PTRACE_O_TRACESYSGOOD, seized_) != 0) {
      CLEW_TRY(explain_refusal(tid, errno));
      continue;
    }
    found = true;
    seized_.push_back(tid);
    waiting.push_back(tid);
    // Fails only when the thread is gone; then waiting finds that out.
    (void)trace(PTRACE_INTERRUPT, tid);
  }
  return found;
}

// Success: the thread is dead, and there is nothing to refuse.
Expected<void> StoppedTarget::explain_refusal(pid_t tid, int error) const {
  if (error == ESRCH || is_dead(thread_state(tid))) return {};
  const auto facts = target::read_facts(pid_);
  if (facts && facts->tracer_pid != 0) return traced_by(pid_, facts->tracer_pid);
  return no_permission(fmt::format("process {}", pid_));
}

Expected<void> StoppedTarget::wait_for(std::vector<pid_t>& waiting, Patience& patience) {
  const Clock::time_point soon = Clock::now() + kSeldomDead;
  const StopNews news;
  while (!waiting.empty()) {
    for (size_t i = waiting.size(); i-- > 0;) {
      if (CLEW_TRY(poll_thread(waiting[i])))
        waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(i));
    }
    if (waiting.empty()) return {};
    if (patience.is_over()) {
      return fail(
          ErrorCode::Io,
          fmt::format("thread {} of process {} does not stop (state {}); nothing was changed",
                      waiting.front(), pid_, thread_state(waiting.front())));
    }
    if (Clock::now() > soon) forget_dead();
    news.wait();
  }
  return {};
}

// A thread that executes another program ends those that we hold, and waits until we know of it.
void StoppedTarget::forget_dead() {
  for (size_t i = threads_.size(); i-- > 0;) {
    const pid_t tid = threads_[i].tid;
    int status = 0;
    // It takes the number of the first one, for which it does not wait.
    if (tid != pid_ && look_at(tid, status) != 0) remove_thread(tid);
  }
}

// As waitpid(2), without waiting. The end of a child of ours is left to who started it, and that of
// a thread that the caller holds to the caller.
pid_t StoppedTarget::look_at(pid_t tid, int& status) const {
  const bool has_other_waiter = is_held_ || (is_our_child_ && tid == pid_);
  if (!has_other_waiter) return waitpid(tid, &status, __WALL | WNOHANG);
  siginfo_t stop{};
  if (waitid(P_PID, static_cast<id_t>(tid), &stop, WSTOPPED | WNOHANG | __WALL) != 0) return -1;
  status = W_STOPCODE(stop.si_status);
  return stop.si_pid;
}

// Of a thread that runs, as long as it lives. waitpid(2) would not tell of the end of a first
// thread before we have waited for the others.
bool StoppedTarget::wait_for_stop(pid_t tid, int& status) const {
  const Clock::time_point soon = Clock::now() + kSeldomDead;
  const StopNews news;
  while (true) {
    const pid_t waited = look_at(tid, status);
    if (waited != 0) return waited == tid && WIFSTOPPED(status);
    if (Clock::now() > soon && is_dead(thread_state(tid))) return false;
    news.wait();
  }
}

// True when there is nothing more to wait for.
Expected<bool> StoppedTarget::poll_thread(pid_t tid) {
  int status = 0;
  const pid_t waited = look_at(tid, status);
  if (waited == 0) {
    // A leader that exited before its other threads never reports; it runs nothing any more.
    return is_dead(thread_state(tid)) && look_at(tid, status) <= 0;
  }
  if (waited < 0 || !WIFSTOPPED(status)) {
    // Others than the first never end unseen.
    executed_ = executed_ || (waited < 0 && tid != pid_);
    remove_thread(tid);
    return true;
  }
  const Expected<StoppedThread> stopped = read_thread(tid);
  if (!stopped) {
    if (stopped.error().code != ErrorCode::NotFound) return tl::unexpected(stopped.error());
    remove_thread(tid);
    return true;
  }
  StoppedThread thread = *stopped;
  const bool event = status >> 16 == PTRACE_EVENT_STOP;
  thread.group_stopped = event && is_stop_signal(WSTOPSIG(status));
  thread.pending_signal = event ? 0 : WSTOPSIG(status);
  // One that has come meanwhile (Linux, copy_thread: it has neither stack nor place).
  if (thread.registers.rip == 0 && thread.registers.rsp == 0) {
    (void)trace(PTRACE_DETACH, tid);
    std::erase(seized_, tid);
    workers_.push_back(tid);
    return true;
  }
  mend_interrupted_call({tid, thread.pending_signal, thread.group_stopped}, thread.registers);
  threads_.push_back(thread);
  CLEW_TRY(suspend_filters(tid));
  return true;
}

// For the calls that it makes for us. Only while it is held: its own are to be judged.
Expected<void> StoppedTarget::suspend_filters(pid_t tid) const {
  constexpr uint64_t kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP;
  const bool may_go_on =
      !filtered_ || trace(PTRACE_SETOPTIONS, tid, kOptions) == 0 || errno == ESRCH;
  if (may_go_on) return {};
  return fail(ErrorCode::Refused,
              fmt::format("process {} filters its system calls; to suspend that, Clew must be "
                          "root (CAP_SYS_ADMIN) and not run under a filter itself [seccomp]",
                          pid_));
}

void StoppedTarget::remove_thread(pid_t tid) {
  std::erase(seized_, tid);
  std::erase_if(threads_, [&](const StoppedThread& thread) { return thread.tid == tid; });
}

Expected<void> StoppedTarget::read(uint64_t address, std::span<uint8_t> bytes) const {
  const ssize_t done =
      pread(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
  if (done == static_cast<ssize_t>(bytes.size())) return {};
  return fail(ErrorCode::Io, fmt::format("cannot read {} bytes at {:#x} of process {}",
                                         bytes.size(), address, pid_));
}

Expected<void> StoppedTarget::write(uint64_t address, std::span<const uint8_t> bytes) const {
  const ssize_t done =
      pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
  if (done == static_cast<ssize_t>(bytes.size())) return {};
  return fail(ErrorCode::Io, fmt::format("cannot write {} bytes at {:#x} of process {}",
                                         bytes.size(), address, pid_));
}

Expected<void> StoppedTarget::write_registers() {
  CLEW_TRY(end_calls());
  for (const StoppedThread& thread : threads_) {
    if (!thread.registers_changed) continue;
    if (ptrace(PTRACE_SETREGS, thread.tid, nullptr, &thread.registers) != 0) {
      return fail(ErrorCode::Io,
                  fmt::format("registers of thread {}: {}", thread.tid, error_text(errno)));
    }
  }
  return {};
}

Expected<void> StoppedTarget::run_briefly(std::span<const size_t> which,
                                          std::chrono::microseconds time) {
  CLEW_TRY(end_calls());
  std::vector<pid_t> waiting;
  for (const size_t index : which) {
    StoppedThread& thread = threads_[index];
    const auto signal = static_cast<uint64_t>(thread.pending_signal);
    waiting.push_back(thread.tid);
    if (thread.registers_changed) {
      (void)ptrace(PTRACE_SETREGS, thread.tid, nullptr, &thread.registers);
    }
    stand_before_restart(thread);
    (void)trace(PTRACE_SETOPTIONS, thread.tid, PTRACE_O_TRACESYSGOOD);
    (void)trace(PTRACE_CONT, thread.tid, signal);
  }
  deliver_signals(waiting, time);
  std::vector<pid_t> running;
  for (const pid_t tid : waiting) {
    std::erase_if(threads_, [&](const StoppedThread& thread) { return thread.tid == tid; });
    // One that stopped for a signal is not asked as well: it would stop for that when it is to run.
    if (CLEW_TRY(poll_thread(tid))) continue;
    (void)trace(PTRACE_INTERRUPT, tid);
    running.push_back(tid);
  }
  Patience patience(std::chrono::seconds(1));
  CLEW_TRY(wait_for(running, patience));
  // Those that they have made meanwhile.
  return stop_threads(patience);
}

// A thread that has made a call for us stands at the end of that, where the kernel restarts nothing
// for who goes on. A detach makes it look; so does a request to stop.
void StoppedTarget::stand_before_restart(const StoppedThread& thread) const {
  if (thread.pending_signal != 0 || !is_to_restart(thread.registers)) return;
  (void)trace(PTRACE_INTERRUPT, thread.tid);
  (void)trace(PTRACE_CONT, thread.tid);
  int status = 0;
  (void)wait_for_stop(thread.tid, status);
}

void StoppedTarget::resume() {
  (void)end_calls();
  for (const StoppedThread& thread : threads_) {
    if (thread.registers_changed) {
      (void)ptrace(PTRACE_SETREGS, thread.tid, nullptr, &thread.registers);
    }
    if (is_held_) {
      const bool has_called = call_stack_ != 0 && thread.tid == threads_[caller_].tid;
      if (has_called) stand_before_restart(thread);
      continue;
    }
    const auto signal = static_cast<uint64_t>(thread.pending_signal);
    if (trace(PTRACE_DETACH, thread.tid, signal) == 0) std::erase(seized_, thread.tid);
  }
  threads_let_go_ = std::max(threads_let_go_, threads_.size());
  threads_.clear();
  let_go_of_stragglers();
  memory_.reset();
  if (resumed_at_ == Clock::time_point{}) resumed_at_ = Clock::now();
}

// Threads that never stopped: each would when it gets a processor, and then stay so while we live.
// And those that died while we held them, whose parent is told when we have waited for them.
void StoppedTarget::let_go_of_stragglers() {
  const Clock::time_point deadline = Clock::now() + kStragglersMax;
  const auto is_let_go = [this](pid_t tid) {
    int status = 0;
    const pid_t waited = look_at(tid, status);
    if (waited == tid && WIFSTOPPED(status)) {
      const bool event = status >> 16 == PTRACE_EVENT_STOP;
      const int signal = event ? 0 : WSTOPSIG(status);
      mend_interrupted_call({tid, signal, event && is_stop_signal(WSTOPSIG(status))});
      (void)trace(PTRACE_DETACH, tid, static_cast<uint64_t>(signal));
    }
    return waited != 0;
  };
  while (!seized_.empty() && Clock::now() < deadline) {
    const bool all_dead = std::all_of(seized_.begin(), seized_.end(),
                                      [](pid_t tid) { return is_dead(thread_state(tid)); });
    const size_t let_go = std::erase_if(seized_, is_let_go);
    // A first thread that has ended says so when there are no others.
    if (all_dead && let_go == 0) break;
    if (!seized_.empty()) wait_briefly(kPauseOfStop);
  }
  seized_.clear();
}

std::chrono::nanoseconds StoppedTarget::stood_still() const {
  const bool runs = resumed_at_ != Clock::time_point{};
  return (runs ? resumed_at_ : Clock::now()) - stopped_at_;
}

}  // namespace clew::inline_
