// SPDX-License-Identifier: Apache-2.0
// StoppedTarget: a process with all its threads stopped, and what can be done to it then: read and
// write memory and registers, and have it make system calls for us.
//
// Threads are seized, not attached: no SIGSTOP is sent, blocked system calls go on afterwards as if
// nothing had happened, and a stopped (^Z) process stays stopped. Signals that arrive meanwhile are
// kept and delivered at resume.
//
// System calls run on one of the target's threads with all signals blocked, at a `syscall; ret` of
// the target's own code. Below the red zone of its stack we build a signal frame that holds the
// thread's true state, and have `ret` return into rt_sigreturn: a thread whose tracer dies in the
// middle restores itself. (When no such instructions exist the call is made without the net.)
//
// Processes made with CLONE_VM run on the target's memory: their threads are stopped with its own.
// The kernel's workers among a process's threads (of io_uring) are left alone: they run no code of
// the program, and have its thread pointer.
//
// All calls must come from the thread that called stop().
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "inline/brief_wait.h"
#include "target/process.h"

namespace clew::inline_ {

struct StoppedThread {
  pid_t tid = 0;
  user_regs_struct registers{};
  bool registers_changed = false;  // Written back at resume.
  // The thread is in signal delivery; resume delivers it. When it makes calls for us the signal
  // waits for their end in the kernel, and is none of ours any more.
  int pending_signal = 0;
  bool group_stopped = false;
};

struct RemoteCall {
  int64_t number = 0;
  std::array<uint64_t, 6> arguments{};
};

// Instructions of the target's own text that remote calls use.
struct Gadgets {
  uint64_t system_call = 0;  // syscall; ret — or only syscall, then `restorer` is 0.
  uint64_t restorer = 0;     // mov eax, 15; syscall
};
// Needs no stop. Refused when there is no system call instruction.
Expected<Gadgets> find_gadgets(pid_t pid);

// One of the kernel's threads in a process, as of io_uring.
bool is_worker(pid_t tid);

// Do two live processes run on one memory, as after vfork?
bool shares_memory(pid_t pid, pid_t other);

class StoppedTarget {
 public:
  // Errors: NotFound; Refused when we may not trace it; Io when not all threads stop in time (then
  // none is left stopped).
  static Expected<StoppedTarget> stop(pid_t pid, std::chrono::milliseconds timeout);
  // A process that the caller traces, with PTRACE_O_TRACESYSGOOD, and whose threads all stand, or
  // wait in vfork, and were asked to stop. They do so also after resume(): the caller lets them go,
  // and hears of their ends. Errors: NotFound;
  // Refused when a filter would judge the calls that it makes for us; Io.
  enum class Calls : uint8_t { Made, None };
  static Expected<StoppedTarget> of_held(pid_t pid, Calls calls = Calls::Made);

  StoppedTarget(StoppedTarget&& other) noexcept;
  StoppedTarget& operator=(StoppedTarget&&) = delete;
  ~StoppedTarget();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::span<StoppedThread> threads() { return threads_; }
  // False for a thread of another process on the same memory.
  [[nodiscard]] bool is_own(pid_t tid) const;

  // The whole span or an error.
  [[nodiscard]] Expected<void> read(uint64_t address, std::span<uint8_t> bytes) const;
  // Also to read-only pages, which become private copies.
  [[nodiscard]] Expected<void> write(uint64_t address, std::span<const uint8_t> bytes) const;

  // What find_gadgets said earlier; looked for again when it is not there any more.
  void use_gadgets(const Gadgets& gadgets) { gadgets_ = gadgets; }

  // The kernel's answer: negative values are -errno.
  Expected<int64_t> call(const RemoteCall& call);
  // The same; a negative answer is an Io error that names `what`.
  Expected<uint64_t> checked_call(const char* what, const RemoteCall& call);
  // The thread that makes the calls; after the first of them.
  [[nodiscard]] pid_t calling_thread() const { return threads_[caller_].tid; }
  // Address of a scratch area in the target for arguments of calls; kScratchBytes, valid until the
  // target runs again.
  Expected<uint64_t> scratch();

  // Puts the thread that made calls back to its true state. Also done by resume().
  Expected<void> end_calls();

  // Changed registers reach the threads now: what is done next needs them there, should we die.
  Expected<void> write_registers();

  // Lets the given threads (indices) run for a moment and stops them again; for threads that must
  // get out of code that is going away. A thread that gets no processor in that time runs nothing.
  Expected<void> run_briefly(std::span<const size_t> which, std::chrono::microseconds time);

  // A tracer that was killed may have left a thread in front of a system call for it. Lets such
  // threads make it, so that what it leaves behind (a descriptor, a mapping) can be seen.
  Expected<void> finish_calls_of_dead_tracers();

  // Threads run again. Idempotent.
  void resume();

  // From before the first thread was asked to stop until all ran again, or until now.
  [[nodiscard]] std::chrono::nanoseconds stood_still() const;
  // Threads that stood when resume() let them go.
  [[nodiscard]] size_t threads_let_go() const { return threads_let_go_; }

  static constexpr uint64_t kScratchBytes = 256;

 private:
  explicit StoppedTarget(pid_t pid) : pid_(pid) {}

  Expected<void> stop_threads(Patience& patience);
  Expected<bool> seize_new_threads(std::vector<pid_t>& waiting);
  Expected<void> wait_for(std::vector<pid_t>& waiting, Patience& patience);
  Expected<bool> poll_thread(pid_t tid);
  [[nodiscard]] Expected<StoppedThread> read_thread(pid_t tid) const;
  Expected<void> open_memory();
  [[nodiscard]] Expected<void> suspend_filters(pid_t tid) const;
  void forget_dead();
  pid_t look_at(pid_t tid, int& status) const;
  bool wait_for_stop(pid_t tid, int& status) const;
  void stand_before_restart(const StoppedThread& thread) const;
  [[nodiscard]] Expected<void> explain_refusal(pid_t tid, int error) const;
  [[nodiscard]] bool has_gadgets() const;
  [[nodiscard]] bool is_before_call(const StoppedThread& thread) const;
  Expected<void> begin_calls();
  Expected<void> begin_calls_on(size_t index);
  [[nodiscard]] bool has_own_filter(const StoppedThread& thread) const;
  Expected<int> wait_call_stop(pid_t tid);
  void remove_thread(pid_t tid);
  void let_go_of_stragglers();

  pid_t pid_;
  std::chrono::steady_clock::time_point stopped_at_;
  std::chrono::steady_clock::time_point resumed_at_;  // 0 before that.
  FileDescriptor memory_;
  size_t threads_let_go_ = 0;
  std::vector<StoppedThread> threads_;
  std::vector<pid_t> seized_;   // Everything we trace, stopped or not.
  std::vector<pid_t> sharers_;  // Processes that run on the same memory.
  std::vector<pid_t> workers_;  // Threads that are the kernel's.
  bool is_our_child_ = false;
  bool executed_ = false;  // Another program, by a thread that was not the first.
  bool filtered_ = false;  // By seccomp.
  bool is_held_ = false;   // By the caller.
  Gadgets gadgets_;

  // The thread that makes calls.
  bool calling_ = false;
  size_t caller_ = 0;
  uint64_t caller_mask_ = 0;
  uint64_t call_stack_ = 0;
  uint64_t scratch_ = 0;
  int deferred_signal_ = 0;
  std::vector<uint8_t> saved_stack_;
};

}  // namespace clew::inline_
