// SPDX-License-Identifier: Apache-2.0
// ProcessLock: who changes the text of a process, or has the kernel set uprobes in it, holds this
// while it looks, plans, arms and leaves. Between two looks of a holder no other session has put a
// jump or a uprobe of its own there.
//
// It is a lock by flock(2) of /proc/PID/mem. The kernel lets go of it with its holder, however that
// ends; a pid that is used again is another file. Who may open this file may trace the process
// (PTRACE_MODE_ATTACH), so that nobody else can keep sessions away: the process itself, its user's
// other processes, and who could stop or end it anyway. Users and mount name spaces agree on it:
// each mount of proc(5) has files of its own, so that the one which the process itself sees is
// taken, where it sees one.
//
// Strangers (gdb, bpftrace) know nothing of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::inline_ {

// How long those who go away wait for others, all of them together: the processes of one session
// have one, and who has waited for nothing once does not begin again.
class LeaveTime {
 public:
  explicit LeaveTime(std::chrono::nanoseconds time) : left_(time.count()) {}
  [[nodiscard]] std::chrono::nanoseconds left() const {
    return std::chrono::nanoseconds(std::max<int64_t>(left_.load(), 0));
  }
  void take(std::chrono::nanoseconds waited) { left_ -= waited.count(); }

  // Who cannot leave leaves probes: a session that loads thousands of uprobes is waited for.
  static constexpr std::chrono::minutes kUsual{5};

 private:
  std::atomic<int64_t> left_;
};

// How a holder is waited for.
struct LockWait {
  std::chrono::milliseconds timeout{30'000};
  int stop_descriptor = -1;  // Readable: no longer. Not when the session leaves.
  // Who is waited for, once, when it takes longer. May be empty.
  std::function<void(const std::string&)> tell = {};
  // Copies of this have the same.
  std::shared_ptr<LeaveTime> leave_time = std::make_shared<LeaveTime>(LeaveTime::kUsual);
};

class ProcessLock {
 public:
  explicit ProcessLock(pid_t pid, LockWait wait = {}) : pid_(pid), wait_(std::move(wait)) {}
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Must not outlive the lock. May be taken again by who has it; the last one lets go.
  class Hold {
   public:
    Hold(Hold&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (lock_ != nullptr) lock_->let_go();
    }

   private:
    friend class ProcessLock;
    explicit Hold(ProcessLock& lock) : lock_(&lock) {}
    ProcessLock* lock_;
  };

  // Errors: NotFound when the process is gone; Refused when it may not be traced; Io when a holder
  // does not let go in time, or the wait was stopped.
  Expected<Hold> hold();
  // None when somebody else has it for some milliseconds: for who has other things to do meanwhile,
  // and tries again.
  Expected<std::optional<Hold>> try_hold();
  // For who goes away: waits as long as the leave time says, and a signal that ends the session
  // does not end the wait.
  Expected<Hold> hold_to_leave();

 private:
  Expected<Hold> take(const LockWait& wait);
  Expected<std::optional<Hold>> try_for(const LockWait& wait);
  Expected<bool> wait_for_it(const LockWait& wait);
  Expected<bool> try_lock();
  void let_go();

  pid_t pid_;
  LockWait wait_;
  std::vector<FileDescriptor> files_;  // Locked.
  FileDescriptor in_the_way_;          // That another one had locked.
  unsigned holds_ = 0;
};

}  // namespace clew::inline_
