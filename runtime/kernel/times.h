// SPDX-License-Identifier: Apache-2.0
// The time of a firing: asked once, the same for all its clauses.
#pragma once

#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

[[gnu::always_inline]] inline uint64_t timestamp(MachineWindow* w) {
  if (w->header.timestamp == 0) w->header.timestamp = monotonic_ns();
  return w->header.timestamp;
}

}  // namespace clew::runtime::kernel
