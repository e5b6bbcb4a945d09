// SPDX-License-Identifier: Apache-2.0
// What happens to the address spaces of all processes, as the kernel tells it while it happens:
// fork, exec, executable mappings, the end. By perf_event_open(2), one buffer for each CPU. A busy
// machine has thousands of notices a second.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "kernel/perf_buffer.h"
#include "target/process.h"

namespace clew::kernel {

struct ProcessNotice {
  enum class Kind : uint8_t { Fork, Exec, Map, End };
  Kind kind = Kind::Fork;
  pid_t pid = 0;
  pid_t parent = 0;         // Fork
  target::Mapping mapping;  // Map
  std::string name{};       // Exec: the thread's, which is the program's file name.
  uint64_t time_ns = 0;     // CLOCK_MONOTONIC.
};

class ProcessNotices {
 public:
  enum class Wanted : uint8_t { All, Mappings, Tasks };  // Tasks: all but mappings.
  // Refused when the kernel does not let us.
  static Expected<ProcessNotices> open(Wanted wanted);

  // Readable when there are notices.
  [[nodiscard]] std::vector<int> descriptors() const;
  // All that wait, in order of time. `is_lossy`: some are missing.
  std::vector<ProcessNotice> read(bool& is_lossy);

 private:
  std::vector<PerfBuffer> buffers_;
};

}  // namespace clew::kernel
