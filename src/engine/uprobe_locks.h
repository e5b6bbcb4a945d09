// SPDX-License-Identifier: Apache-2.0
// The locks of all processes in whose text a script's uprobes are to be set, or its jumps: while
// they are held, no other session puts a jump where the kernel is about to put a breakpoint.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "inline/process_lock.h"
#include "kernel/machine_session.h"

namespace clew::engine {

class UprobeLocks {
 public:
  explicit UprobeLocks(inline_::LockWait wait) : wait_(std::move(wait)) {}

  // Those of the processes that the probes name, and of those that have a file mapped whose probes
  // are of all processes. Ascending by pid, so that two sessions do not wait for each other.
  // Errors: of ProcessLock::hold(), but that a process is gone, or may not be traced: nobody has
  // jumps in it then that we could see.
  Expected<void> hold(std::span<const kernel::MachineEnabling> enablings);
  // The same for who has waited so long already, and tries again: false when a session has one of
  // them, and none is held then.
  Expected<bool> try_hold(std::span<const kernel::MachineEnabling> enablings,
                          std::chrono::steady_clock::duration waited);
  void let_go() { holds_.clear(); }

  // Of a process, held or not; also for what works on it later.
  [[nodiscard]] std::shared_ptr<inline_::ProcessLock> of(pid_t pid) const;
  [[nodiscard]] std::shared_ptr<inline_::ProcessLock> passing(
      pid_t pid, std::chrono::milliseconds timeout) const;

 private:
  inline_::LockWait wait_;
  mutable std::map<pid_t, std::shared_ptr<inline_::ProcessLock>> locks_;
  std::vector<inline_::ProcessLock::Hold> holds_;  // Before the locks.
};

}  // namespace clew::engine
