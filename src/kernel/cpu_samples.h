// SPDX-License-Identifier: Apache-2.0
// Where the processes of this machine are, many times a second of each CPU's time: samples of the
// clock of the CPUs by perf_event_open(2). A CPU's clock needs no counter of the hardware, which
// many virtual machines lack. What runs with interrupts switched off is seen behind that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "kernel/perf_buffer.h"

namespace clew::kernel {

struct CpuSample {
  pid_t pid = 0;         // Of the process, as the tracer's namespace numbers it.
  uint64_t address = 0;  // Of the next instruction.
  bool is_user = false;
  int64_t time_ns = 0;              // CLOCK_MONOTONIC.
  std::span<const uint64_t> stack;  // Words from the program's stack pointer on. Borrowed.
};

class CpuSamples {
 public:
  // From now on, `hz` times a second of each CPU; one that is idle is interrupted as well, and
  // gives no sample. Refused when the kernel does not let us see other processes.
  static Expected<CpuSamples> open(uint32_t hz);

  // All that wait, in no order.
  void read(const std::function<void(const CpuSample&)>& take);
  // For which there was no room.
  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  std::vector<PerfBuffer> buffers_;
  uint64_t lost_ = 0;
};

// Of a record's bytes, for tests: false when they are no sample. `words` takes the stack.
bool parse_cpu_sample(std::span<const uint8_t> body, CpuSample& sample,
                      std::vector<uint64_t>& words);

}  // namespace clew::kernel
