// SPDX-License-Identifier: Apache-2.0
// stack() and how deep it is; user_stacks.cc has those of processes.
#include "runtime/kernel/stack.h"

namespace clew::runtime::kernel {

extern "C" {

uint64_t d_stack(MachineWindow* w, uint64_t dst, uint64_t frames) {
  const uint64_t limit = frames < kFramesMax ? frames : kFramesMax;
  const Frames taken = capture(w, limit);
  copy_kernel(at(w, dst), taken.count * 8, w->scratch + masked(taken.first * 8, 0xFF8));
  uint64_t round = zero(w);
  for (uint64_t i = zero(w) + taken.count; i <= limit && go_on(round, kFramesMax + 1); ++i) {
    *reinterpret_cast<uint64_t*>(at(w, dst + 8 * i)) = 0;
  }
  return 0;
}

uint64_t d_stack_depth(MachineWindow* w) {
  return capture(w, kFramesMax).count;
}

}  // extern "C"

}  // namespace clew::runtime::kernel
