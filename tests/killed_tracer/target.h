// SPDX-License-Identifier: Apache-2.0
// The program whose tracers are killed, and what must hold of it afterwards.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "live/child.h"
#include "live/process_state.h"

namespace clew::killed_tracer {

class Target {
 public:
  // With so many threads that work, besides others that wait; 0 = one thread, which does both.
  explicit Target(unsigned workers);

  [[nodiscard]] pid_t pid() const { return child_.pid(); }
  std::map<std::string, uint64_t> ask(const std::string& command);

  // No thread is stopped, the results are those of the untraced program, and since the last call of
  // forget_waits() no wait has ended early but one of epoll, of a thread of `stopping`; without
  // that list anyone's may.
  void expect_unharmed(const std::optional<std::set<pid_t>>& stopping);
  void forget_waits();

  // Text equals the file, and nothing is there that was not there at the beginning. But for so many
  // sockets.
  void expect_clean(size_t sockets_left);

 private:
  void await_uprobes_gone() const;
  void expect_running() const;

  live::Child child_;
  std::map<std::string, uint64_t> first_;  // Its answer before the tracer that is killed now.
  live::ProcessState state_;
};

}  // namespace clew::killed_tracer
