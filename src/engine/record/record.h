// SPDX-License-Identifier: Apache-2.0
// clew record: a command, and what it and its children execute, run on copies of their functions
// that record their control flow, and what is recorded becomes a file when a signal kills one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/run.h"

namespace clew::engine {

struct RecordRequest {
  std::vector<std::string> command;
  std::string directory = ".";  // Where snaps go.
  bool each_iteration = false;  // Also of loops without a decision.
  bool follows = true;          // Also what the command and its children execute.
  std::string cache_directory;  // Of side files (recorder/sidecar.h); empty: none is used.
};

// Why nothing was recorded.
struct NotRecorded {
  Error error;
  // When it is that the command did not begin: see LaunchOptions::failed_with.
  std::optional<int> status;
};

// Until the command ends: its status of waitpid(2). Snaps are told as they are written. What has
// not ended by then runs on, and nobody reads what it records. Errors also when nothing of the
// command can be recorded; then nothing of it has run.
tl::expected<int, NotRecorded> record(const RecordRequest& request, Notices& notices);

}  // namespace clew::engine
