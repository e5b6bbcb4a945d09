// SPDX-License-Identifier: Apache-2.0
// Which processes have recorded nothing for a while. One that hangs has not, nor one that waits for
// a client: who asks for this has a program that always does something.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::engine {

class Heartbeats {
 public:
  // 0: no process is looked at.
  explicit Heartbeats(uint64_t limit_ns) : limit_(limit_ns) {}

  // Errors: Io.
  Expected<void> start();
  // Readable when it is time to look; -1 when nobody is looked at.
  [[nodiscard]] int descriptor() const { return timer_.get(); }
  [[nodiscard]] bool is_time() const;
  // `written`: whatever changes with what the process records. Nothing until the limit is over;
  // then once how long it has been so.
  std::chrono::nanoseconds lost(pid_t process, uint64_t written);
  void forget(pid_t process) { beats_.erase(process); }

 private:
  struct Beat {
    uint64_t written = 0;
    std::chrono::steady_clock::time_point since = {};
    bool is_told = false;
  };

  std::chrono::nanoseconds limit_;
  FileDescriptor timer_;
  std::unordered_map<pid_t, Beat> beats_;
};

}  // namespace clew::engine
