// SPDX-License-Identifier: Apache-2.0
// ustack(), ustackdepth and ucaller.
#include "runtime/kernel/user_stack.h"

namespace clew::runtime::kernel {
namespace {

inline constexpr uint64_t kWalkOffset = 8 * kFramesMax;
inline constexpr uint64_t kMessageOffset = kWalkOffset + sizeof(abi::DWalk);

// The process's entry; null when it has none.
[[gnu::always_inline]] inline DUnwindProcess* find_process(DWindow* w, uint64_t pid) {
  for (uint64_t i = zero(w); i < abi::kDUnwindSlotsMax && go_on(); ++i) {
    DUnwindProcess* process =
        d_unwind_processes + masked(abi::unwind_slot(pid, i), abi::kDUnwindProcesses - 1);
    const uint64_t found = abi::load_word(process->pid);
    if (found == pid) return process;
    if (found == 0) return nullptr;
  }
  return nullptr;
}

// Behind the frames.
[[gnu::always_inline]] inline abi::DWalk& walk_of(DWindow* w) {
  return *reinterpret_cast<abi::DWalk*>(w->scratch + kWalkOffset);
}

[[gnu::always_inline]] inline void tell_tracer(DWindow* w, uint64_t pid) {
  auto* message = reinterpret_cast<uint64_t*>(w->scratch + kMessageOffset);
  *message = pid;
  helper<130>(&d_unwind_asked, message, uint64_t{8}, uint64_t{0});
}

// A new entry, without segments.
[[gnu::always_inline]] inline void add_process(DWindow* w, uint64_t pid) {
  for (uint64_t i = zero(w); i < abi::kDUnwindSlotsMax && go_on(); ++i) {
    DUnwindProcess* process =
        d_unwind_processes + masked(abi::unwind_slot(pid, i), abi::kDUnwindProcesses - 1);
    const uint64_t found = abi::load_word(process->pid);
    if (found != 0 && found != abi::kDUnwindRemoved) continue;
    if (!abi::swap_word(process->pid, found, pid)) continue;
    abi::store_word(process->asked, 1);
    return tell_tracer(w, pid);
  }
}

[[gnu::always_inline]] inline void ask_again(DWindow* w, DUnwindProcess* process, uint64_t pid) {
  if (abi::load_word(process->asked) != 0) return;
  if (abi::swap_word(process->asked, 0, 1)) tell_tracer(w, pid);
}

[[gnu::always_inline]] inline uint64_t follow_frame_pointers(DWindow* w, uint64_t limit) {
  const uint64_t size = masked(limit * 8, 0x1FF8);
  const int64_t bytes = helper<141>(current_task(), w->scratch, size, kUserFlag);
  return bytes <= 0 ? 0 : static_cast<uint64_t>(bytes) / 8;
}

}  // namespace

extern "C" {

// One frame of the walk in the scratch room; whether there are more.
uint64_t d_user_frame(DWindow* w) {
  UserStackHost host(w);
  return abi::FrameVisitor<UserStackHost>(host, walk_of(w)).visit() ? 1 : 0;
}

// Puts up to `wanted` frames at the start of the scratch room; how many.
uint64_t d_user_frames(DWindow* w, uint64_t wanted) {
  const uint64_t limit = wanted < kFramesMax ? wanted : kFramesMax;
  const uint64_t* registers = user_registers();
  const uint64_t code = registers[kUserCs];
  if ((code & 3) == 0) return 0;  // A thread of the kernel.
  const uint64_t pid = process_and_thread() >> 32;
  DUnwindProcess* process = code == kUserCode64 ? find_process(w, pid) : nullptr;
  if (process == nullptr) {
    if (code == kUserCode64) add_process(w, pid);
    return follow_frame_pointers(w, limit);
  }
  const uint64_t version = abi::load_word(process->version);
  const uint64_t count = process->segment_count;
  if (count == 0 || (version & 1) != 0) return follow_frame_pointers(w, limit);
  abi::DWalk& walk = walk_of(w);
  walk.frame = {registers[kUserIp], registers[kUserSp], registers[kUserBp], registers[kUserBx], 0};
  walk.first_segment = process->first_segment;
  walk.segment_count = count;
  walk.depth = 0;
  walk.is_begun = 0;
  walk.is_stale = 0;
  for (uint64_t turn = zero(w); turn < 2 * kFramesMax && walk.depth < limit && go_on(); ++turn) {
    if (d_user_frame(w) == 0) break;
  }
  if (walk.is_stale != 0) ask_again(w, process, pid);
  if (abi::load_word(process->version) != version) return follow_frame_pointers(w, limit);
  return walk.depth;
}

uint64_t d_user_stack(DWindow* w, uint64_t dst, uint64_t wanted) {
  *reinterpret_cast<uint64_t*>(at(w, dst)) = process_and_thread() >> 32;
  const uint64_t out = dst + 8;
  const uint64_t limit = wanted < kFramesMax ? wanted : kFramesMax;
  const uint64_t count = forgotten(w, d_user_frames(w, limit));
  const uint64_t taken = count < limit ? count : limit;
  copy_kernel(at(w, out), taken * 8, w->scratch);
  for (uint64_t i = zero(w) + taken; i <= limit && go_on(); ++i) {
    *reinterpret_cast<uint64_t*>(at(w, out + 8 * i)) = 0;
  }
  return 0;
}

uint64_t d_user_stack_depth(DWindow* w) {
  return d_user_frames(w, kFramesMax);
}

uint64_t d_builtin_ucaller(DWindow* w) {
  return d_user_frames(w, 2) > 1 ? frame_at(w, 1) : 0;
}
uint64_t d_builtin_ustackdepth(DWindow* w) {
  return d_user_frames(w, kFramesMax);
}

}  // extern "C"

}  // namespace clew::runtime::kernel
