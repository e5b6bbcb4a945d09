// SPDX-License-Identifier: Apache-2.0
// The processes of -c and -p: commands are started and held until the probes are on, and tracing
// ends when all have ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "engine/dtrace/request.h"
#include "inline/attachment.h"
#include "session/driven.h"

namespace clew::engine {

class Commands final : public session::Driven {
 public:
  // Those of -c, as the options say (evaltime, setenv, unsetenv). Each is split at blanks; quotes
  // keep them together.
  Expected<void> start(const DtraceRequest& request);
  Expected<void> watch(const std::vector<pid_t>& pids);
  // $target; 0 = none.
  [[nodiscard]] pid_t first_pid() const { return pids_.empty() ? 0 : pids_.front(); }

  [[nodiscard]] const std::vector<pid_t>& pids() const { return pids_; }

  void resume();
  // Readable when a process ends.
  void add_descriptors(std::vector<pollfd>& descriptors) override;
  std::chrono::nanoseconds patience() override { return std::chrono::nanoseconds::max(); }
  Expected<void> turn() override;
  // Those that ended since this was asked.
  struct Ended {
    pid_t pid = 0;
    std::optional<int> status;  // As of waitpid(2), where it is known.
  };
  std::vector<Ended> take_ended() { return std::exchange(untold_, {}); }
  // False when there are none to wait for.
  [[nodiscard]] bool all_ended() const { return !pids_.empty() && ended_ == pids_.size(); }
  // Commands that run get the signal that ended the session (stop_signal.h), and end before us if
  // they do so soon.
  void pass_on_signal(int stop_descriptor);
  // Commands that never ran go on.
  void leave() { resume(); }

 private:
  Expected<void> add(pid_t pid);
  [[nodiscard]] std::optional<int> status_of(size_t index) const;

  std::vector<inline_::Launched> launched_;
  std::vector<pid_t> pids_;
  std::vector<FileDescriptor> descriptors_;  // Of pidfd_open; closed when the process has ended.
  size_t ended_ = 0;
  std::vector<Ended> untold_;
  bool resumed_ = false;
};

}  // namespace clew::engine
