// SPDX-License-Identifier: Apache-2.0
// What a session takes of its processes' memory, and whether they have it. The pages of a thread's
// counts are made when the thread first touches them: where there are none left, the kernel kills
// the process, and nobody is asked.
#pragma once

#include <cstdint>
#include <span>

#include <sys/types.h>

#include "abi/region.h"
#include "base/error.h"

namespace clew::engine {

// What a session with these regions may take in all threads that the processes have now, at most.
struct MemoryNeed {
  uint64_t threads = 0;
  uint64_t bytes = 0;
};
MemoryNeed memory_need(std::span<const pid_t> pids, const abi::RegionLayout& region);

// Refused [memory] when a control group of the processes, or the machine, has less left than a
// session with these regions may take in all threads that they have now.
Expected<void> check_memory(std::span<const pid_t> pids, const abi::RegionLayout& region);

}  // namespace clew::engine
