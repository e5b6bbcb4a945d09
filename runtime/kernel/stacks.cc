// SPDX-License-Identifier: Apache-2.0
// stack(), ustack() and how deep they are.
#include "runtime/kernel/stack.h"

namespace clew::runtime::kernel {

extern "C" {

uint64_t d_stack(DWindow* w, uint64_t dst, uint64_t frames, uint64_t kind) {
  uint64_t out = dst;
  if (kind == kUserStack) {
    *reinterpret_cast<uint64_t*>(at(w, out)) = process_and_thread() >> 32;
    out += 8;
  }
  const uint64_t limit = frames < kFramesMax ? frames : kFramesMax;
  const Frames taken = capture(w, limit, kind);
  copy_kernel(at(w, out), taken.count * 8, w->scratch + masked(taken.first * 8, 0xFF8));
  uint64_t round = zero(w);
  for (uint64_t i = zero(w) + taken.count; i <= limit && go_on(round, kFramesMax + 1); ++i) {
    *reinterpret_cast<uint64_t*>(at(w, out + 8 * i)) = 0;
  }
  return 0;
}

uint64_t d_stack_depth(DWindow* w, uint64_t kind) {
  return capture(w, kFramesMax, kind).count;
}

}  // extern "C"

}  // namespace clew::runtime::kernel
