// SPDX-License-Identifier: Apache-2.0
// Which programs the children of traced processes begin. --follow goes with forks; a program that a
// child begins by exec has no probes, and the answer is to say so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "kernel/process_notices.h"

namespace clew::engine {

class ExecWatch {
 public:
  // Where the kernel does not tell us of processes, told() says that.
  static ExecWatch of(const std::vector<pid_t>& pids);
  // Takes what the kernel has told since the last look.
  void look();
  // What is not in the answer: sentences for collect::Losses::lost.
  [[nodiscard]] std::vector<std::string> told() const;

 private:
  void take(const kernel::ProcessNotice& notice);

  std::optional<kernel::ProcessNotices> notices_;
  std::set<pid_t> roots_;
  std::set<pid_t> children_;                  // And theirs.
  std::map<std::string, uint64_t> programs_;  // By the name that the kernel gives them.
  uint64_t count_ = 0;
  bool is_lossy_ = false;
};

}  // namespace clew::engine
