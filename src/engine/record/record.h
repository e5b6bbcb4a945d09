// SPDX-License-Identifier: Apache-2.0
// clew record: a command runs on copies of its functions that record their control flow, and what
// is recorded becomes a file when a signal kills it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/run.h"

namespace clew::engine {

struct RecordRequest {
  std::vector<std::string> command;
  std::string directory = ".";  // Where snaps go.
  bool each_iteration = false;  // Also of loops without a decision.
};

struct RecordOutcome {
  int status = 0;  // The command's, of waitpid(2).
  std::vector<std::string> snaps;
};

// Until the command ends. Errors: those of starting it, and when nothing of it can be recorded.
Expected<RecordOutcome> record(const RecordRequest& request, Notices& notices);

}  // namespace clew::engine
