// SPDX-License-Identifier: Apache-2.0
// Walks the stack of the thread that runs the firing, from the registers that BeginWithRegisters
// noted. They and the notes of the walk are in the window, where others may write.
#pragma once

#include "runtime/kernel/bpf.h"
#include "runtime/table_walk.h"

namespace clew::runtime::kernel {

inline constexpr uint64_t kUserFramesMax = 512;
// Visits of FrameVisitor at which no frame is put are counted, too.
inline constexpr uint64_t kVisitsPerFrame = 2;

// The frames lie in the first half of the window's scratch room, the page of the stack that was
// read last in the second.
[[gnu::always_inline]] inline uint64_t* user_frames(MachineWindow* w) {
  return reinterpret_cast<uint64_t*>(w->scratch);
}

// Behind the registers: a process needs no room for a clock's stack.
struct UserWalk {
  abi::MachineWalk walk;
  uint64_t page;  // Address of the one that was read last.
  uint64_t known_version;
  abi::KnownRule known[abi::kKnownRules];
};
inline constexpr uint64_t kUserWalkOffset = 256;
static_assert(kUserWalkOffset >= kRegisterWords * 8);
static_assert(kUserWalkOffset + sizeof(UserWalk) <= sizeof(MachineWindow::clock_stack));

class UserStackHost : public TableWalk<UserStackHost> {
 public:
  explicit UserStackHost(MachineWindow* w)
      : TableWalk(static_cast<uint32_t>(process().session)), w_(w) {}

  [[nodiscard]] UserWalk& state() const {
    return *reinterpret_cast<UserWalk*>(w_->clock_stack + kUserWalkOffset);
  }
  [[nodiscard]] WalkNotes notes() const {
    UserWalk& state = this->state();
    return {.walk = state.walk, .known_version = state.known_version, .known = state.known};
  }
  // DWARF's numbers in the order of struct pt_regs, four bits each: rax rdx rcx rbx rsi rdi rbp rsp
  // r8 … r15. (rsp's place is beyond: no rule asks for it so.)
  [[gnu::always_inline]] uint64_t leaf_register(uint64_t dwarf) const {
    constexpr uint64_t kFirst = 0x0123'6789'04ed'5bcaULL;
    return registers_of(w_)[kFirst >> (4 * (dwarf & 15)) & 15];
  }
  [[gnu::always_inline]] void put(uint64_t index, uint64_t pc) const {
    user_frames(w_)[index % kUserFramesMax] = pc;
  }
  [[gnu::noinline]] bool read_by_page(uint64_t address, uint64_t& word) const {
    uint8_t* const bytes = w_->scratch + kPageBytes;
    const uint64_t page = page_of(address);
    if (state().page != page) {
      state().page = ~uint64_t{0};
      if (copy_user(bytes, kPageBytes, pointer(page)) != 0) return false;
      state().page = page;
    }
    word = *reinterpret_cast<const uint64_t*>(bytes + (address - page));
    return true;
  }

 private:
  MachineWindow* w_;
};
static_assert(sizeof(MachineWindow::scratch) == 2 * 4096);
static_assert(kUserFramesMax * 8 <= 4096);

// False: the tables have changed meanwhile. (Of C: check_stack knows it by name.)
extern "C" [[gnu::noinline, gnu::visibility("hidden")]] inline bool d_walk_once(MachineWindow* w,
                                                                                uint64_t limit,
                                                                                uint64_t& depth) {
  UserStackHost host(w);
  depth = 0;
  if (!host.begin()) return true;
  if (host.is_changing()) return false;
  const uint64_t* const registers = registers_of(w);
  abi::MachineWalk& walk = host.state().walk;
  host.state().page = ~uint64_t{0};
  walk.is_stale = 0;
  walk.depth = 0;
  walk.is_begun = 0;
  walk.frame = {.pc = registers[kRegisterIp],
                .sp = registers[kRegisterSp],
                .fp = registers[kRegisterBp],
                .bx = registers[kRegisterBx],
                .is_call = 0};
  abi::FrameVisitor<UserStackHost> visitor(host, walk);
  for (uint64_t turn = 0; turn < kVisitsPerFrame * limit && walk.depth < limit; ++turn) {
    if (!visitor.visit()) break;
  }
  depth = walk.depth < limit ? walk.depth : limit;
  return host.is_right();
}

// Up to `limit` program counters to user_frames(); how many.
inline uint64_t walk_user_stack(MachineWindow* w, uint64_t limit) {
  constexpr unsigned kTriesMax = 16;
  if (w->header.registers == 0 || limit == 0) return 0;
  uint64_t depth = 0;
  for (unsigned i = 0; i < kTriesMax; ++i) {
    if (d_walk_once(w, limit, depth)) return depth;
  }
  return 0;
}

}  // namespace clew::runtime::kernel
