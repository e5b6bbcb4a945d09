// SPDX-License-Identifier: Apache-2.0
// Which programs traced processes and their children begin by exec: --follow goes with forks by
// itself, and needs to be told of these (begun_programs.h). Where all processes of the machine are
// meant that have a module: which others get it, by exec or while they run.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "kernel/process_notices.h"
#include "target/pattern.h"
#include "target/process.h"

namespace clew::engine {

struct BegunProgram {
  pid_t pid = 0;
  uint64_t time_ns = 0;                       // CLOCK_MONOTONIC.
  std::string name;                           // By which the kernel calls its first thread.
  std::optional<target::Incarnation> life{};  // As it was seen first: others may get the pid.
  bool has_module = false;                    // One that is looked for; it may not be new.
  bool may_be_meant = true;                   // As it was when it was seen first.
};

class ExecWatch {
 public:
  // Where the kernel does not tell us of processes, told() says that. With `modules`: also whoever
  // gets one of these.
  static ExecWatch of(const std::vector<pid_t>& pids, std::vector<target::Pattern> modules = {});
  [[nodiscard]] bool is_told() const { return notices_.has_value(); }
  // Readable when there is something to look at.
  [[nodiscard]] std::vector<int> descriptors() const;
  // What the kernel has told since the last look.
  std::vector<BegunProgram> look();
  // What is not in the answer: sentences for collect::Losses::lost.
  [[nodiscard]] std::vector<std::string> told() const;

 private:
  void look_at(kernel::ProcessNotice& notice, std::vector<BegunProgram>& begun);
  [[nodiscard]] bool is_wanted(const kernel::ProcessNotice& notice) const;

  std::optional<kernel::ProcessNotices> notices_;
  std::set<pid_t> processes_;  // The traced ones, their children, and theirs.
  std::vector<target::Pattern> modules_;
  bool is_lossy_ = false;
};

}  // namespace clew::engine
