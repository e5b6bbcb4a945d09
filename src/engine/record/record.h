// SPDX-License-Identifier: Apache-2.0
// clew record: a command or a process that runs, and what it and its children execute, run on
// copies of their functions that record their control flow, and what is recorded becomes a file
// when a signal kills one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/run.h"
#include "recorder/policy.h"
#include "recorder/snap_limits.h"

namespace clew::engine {

struct RecordRequest {
  std::vector<std::string> command;  // Without `process`.
  pid_t process = 0;
  std::string directory = ".";  // Where snaps go.
  bool each_iteration = false;  // Also of loops without a decision.
  bool by_guards = false;       // Programs and libraries that have them, and no others.
  bool follows = true;          // Also what the command and its children execute.
  std::string cache_directory;  // Of side files (recorder/sidecar.h); empty: none is used.
  std::string group;            // Recorders of one name are asked together; empty: none.
  recorder::SignalSet signals = recorder::core_signals();  // Those of a snap, where they kill.
  recorder::Exits exits = recorder::Exits::None;
  uint64_t heartbeat_ns = 0;  // See recorder::Policy.
  recorder::SnapLimits limits;
  std::vector<recorder::Condition> conditions;
};

// Why nothing was recorded.
struct NotRecorded {
  Error error;
  // When it is that the command did not begin: see LaunchOptions::failed_with.
  std::optional<int> status;
};

// Until the command ends: its status of waitpid(2). Snaps are told as they are written. What has
// not ended by then runs on, and nobody reads what it records. Errors: those of starting it, and
// when nothing of it can be recorded.
//
// Of a process: 0, when it has ended, or when a signal has asked us to (SIGINT, SIGQUIT, SIGTERM,
// SIGHUP); then all calls come to its own functions again. Errors also: when that cannot be had.
tl::expected<int, NotRecorded> record(const RecordRequest& request, Notices& notices);

}  // namespace clew::engine
