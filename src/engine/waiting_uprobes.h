// SPDX-License-Identifier: Apache-2.0
// Uprobes that a running session wants to add. They wait until no other session changes the
// processes that they are set in, turn by turn: what is traced already goes on meanwhile.
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include "base/error.h"
#include "inline/process_lock.h"
#include "kernel/machine_session.h"

namespace clew::engine {

class WaitingUprobes {
 public:
  // How other sessions are waited for.
  void set_wait(inline_::LockWait wait) { wait_ = std::move(wait); }
  void add(std::vector<kernel::MachineEnabling> enablings);
  // Sets them, if that can be now. Errors: why they will not be there, though their processes are.
  Expected<void> set(kernel::MachineSession& session);
  // Nothing becomes readable when another session lets go of a process.
  [[nodiscard]] std::chrono::nanoseconds patience() const;

 private:
  inline_::LockWait wait_;
  std::vector<kernel::MachineEnabling> enablings_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace clew::engine
