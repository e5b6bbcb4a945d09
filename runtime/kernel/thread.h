// SPDX-License-Identifier: Apache-2.0
// Who fires: asked once in a firing of the kernel, where the question is a call.
#pragma once

#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

// The process above the thread's number, in the first name space.
[[gnu::always_inline]] inline uint64_t firing_thread([[maybe_unused]] MachineWindow* w) {
#if defined(__bpf__)
  if (w->header.thread == 0) w->header.thread = process_and_thread();
  return w->header.thread;
#else
  return process_and_thread();
#endif
}

}  // namespace clew::runtime::kernel
