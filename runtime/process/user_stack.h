// SPDX-License-Identifier: Apache-2.0
// Walks the stack of the thread that runs the firing, from the registers that BeginWithRegisters
// noted. They are in the window, where others may write: nothing is read because they say that it
// is there. The page that this code's own stack is in can be read, which mostly is the program's;
// all others by the kernel, each as a whole.
#pragma once

#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

inline constexpr uint64_t kUserFramesMax = 512;

// The frames lie in the first half of the window's scratch room, the page of the stack that was
// read last in the second.
[[gnu::always_inline]] inline uint64_t* user_frames(MachineWindow* w) {
  return reinterpret_cast<uint64_t*>(w->scratch);
}

class StackReader {
 public:
  explicit StackReader(MachineWindow* w)
      : page_bytes_(w->scratch + kPageBytes), own_page_(page_of(stack_pointer())) {}

  // False when the word cannot be read.
  bool read(uint64_t address, uint64_t& word) {
    if (address % 8 != 0) return false;
    const uint64_t page = page_of(address);
    if (page == own_page_) {
      word = *reinterpret_cast<const volatile uint64_t*>(address);
      return true;
    }
    if (page != page_ && copy_user(page_bytes_, kPageBytes, pointer(page)) != 0) return false;
    page_ = page;
    word = *reinterpret_cast<const uint64_t*>(page_bytes_ + (address - page));
    return true;
  }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t page_of(uint64_t address) { return address & ~(kPageBytes - 1); }

  uint8_t* page_bytes_;
  uint64_t own_page_;
  uint64_t page_ = ~uint64_t{0};
};
static_assert(sizeof(MachineWindow::scratch) == 2 * 4096);
static_assert(kUserFramesMax * 8 <= 4096);

// Up to `limit` program counters to user_frames(): where the probe is, its caller where rsp points
// to that, then along the frame pointers. Returns how many.
inline uint64_t walk_user_stack(MachineWindow* w, uint64_t limit) {
  const uint64_t* const registers = registers_of(w);
  uint64_t* const frames = user_frames(w);
  uint64_t count = 0;
  if (w->header.registers == 0 || limit == 0) return 0;
  StackReader stack(w);
  frames[count++] = registers[kRegisterIp];
  uint64_t pc = 0;
  if (w->header.registers == kRegistersAtFrame && count < limit) {
    if (!stack.read(registers[kRegisterSp], pc)) return count;
    frames[count++] = pc;
  }
  uint64_t frame = registers[kRegisterBp];
  while (count < limit) {
    uint64_t outer = 0;
    if (!stack.read(frame, outer) || !stack.read(frame + 8, pc) || pc == 0) break;
    frames[count++] = pc;
    if (outer == frame) break;
    frame = outer;
  }
  return count;
}

}  // namespace clew::runtime::kernel
