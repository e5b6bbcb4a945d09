// SPDX-License-Identifier: Apache-2.0
// The asker's side of snap_requests.h: which recorders there are, a question, and its answer. Names
// and answers are anybody's: the kernel says who listens, and what comes is parsed as a strange
// file.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "recorder/snap.h"

namespace clew::engine {

struct RecorderSocket {
  std::string name;
  pid_t recorder = 0;  // As its name says.
  std::string group;
};

// Of all names that look like a recorder's, in this network name space, those that are wanted; no
// more than a limit.
std::vector<RecorderSocket> recorder_sockets(
    const std::function<bool(const RecorderSocket&)>& is_wanted);

class SnapConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Nothing when it is not the recorder who listens there, or another user's and we are not root.
  // Whoever has too many askers is waited for until the deadline, which is one for all that are
  // tried: anybody can have such a name.
  static std::optional<SnapConnection> open(const RecorderSocket& socket, Deadline deadline);
  static Deadline new_deadline() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(1);
  }

  [[nodiscard]] pid_t recorder() const { return recorder_; }
  // `process`: one, or kAllProcesses. Does not wait for the answer.
  Expected<void> ask(pid_t process);
  // Nothing: none of them is recorded.
  Expected<std::vector<recorder::Snap>> answer();

 private:
  SnapConnection(FileDescriptor socket, pid_t recorder)
      : socket_(std::move(socket)), recorder_(recorder) {}

  FileDescriptor socket_;
  pid_t recorder_;
};

}  // namespace clew::engine
