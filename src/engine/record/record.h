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

// Until the command ends: its status of waitpid(2). Snaps are told as they are written. Errors:
// those of starting it, and when nothing of it can be recorded.
Expected<int> record(const RecordRequest& request, Notices& notices);

}  // namespace clew::engine
