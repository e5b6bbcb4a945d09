// SPDX-License-Identifier: Apache-2.0
// The queries of a policy, which run beside the recording, and whom their rows are about. A text
// that is no such query is an error before anything is recorded; one that cannot run here, or runs
// no more, is told, and the recording goes on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "engine/query_beside.h"
#include "engine/run.h"
#include "recorder/policy.h"

namespace clew::engine {

class Conditions {
 public:
  // Borrows both.
  Conditions(const std::vector<recorder::Condition>& wanted, Notices& notices)
      : wanted_(wanted), notices_(notices) {}

  // What can be said without processes. Errors: InvalidQuery, with the place in the policy.
  [[nodiscard]] Expected<void> check() const;
  // All begin, about the process and what it forks. Errors: Io.
  Expected<void> start(pid_t process);
  // Until all see what happens, or will not; or `is_over`. Errors: of a text that is no query.
  Expected<void> wait(const std::function<bool()>& is_over);

  // Readable when something may be met; -1 without queries.
  [[nodiscard]] int descriptor() const { return waits_.get(); }
  // A process that rows are about.
  struct Met {
    const recorder::Condition* condition = nullptr;
    pid_t process = 0;
    pid_t thread = 0;   // Of the first row; 0: not known.
    unsigned rows = 0;  // Since the last look.
  };
  // Does not wait.
  std::vector<Met> met();

 private:
  struct Running {
    const recorder::Condition* condition;
    QueryBeside query;
    bool is_settled = false;  // It has armed, or failed.
  };
  void take_news(Running& running, std::vector<Met>& all);
  void note(Running& running, const QueryBeside::News& news, std::vector<Met>& all);

  const std::vector<recorder::Condition>& wanted_;
  Notices& notices_;
  pid_t process_ = 0;
  std::vector<Running> running_;
  FileDescriptor waits_;  // epoll(7)
  std::vector<Error> wrong_;
};

}  // namespace clew::engine
