// SPDX-License-Identifier: Apache-2.0
// How code in a process reads the clock that the kernel's programs read.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace clew::engine {

// Address of the vDSO's clock_gettime in the process; 0 when its vDSO is not ours.
uint64_t find_process_clock(pid_t pid);

// What is to be added to CLOCK_MONOTONIC as the process sees it: other than 0 in a time name space.
uint64_t clock_offset_ns(pid_t pid);

// Whether the kernel makes its clock of the counter that rdtsc reads.
bool counter_is_the_clock();

}  // namespace clew::engine
