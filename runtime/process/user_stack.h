// SPDX-License-Identifier: Apache-2.0
// Walks the stack of the thread that runs the firing, by the tables that the kernel's programs of
// the session have, too (abi/machine/unwind.h), from the registers that BeginWithRegisters noted.
// All of this is memory where others may write: nothing is read because it says that it is there.
// The page that this code's own stack is in can be read, which mostly is the program's; others by
// loads that cannot fault, or else by the kernel, each as a whole.
#pragma once

#include "abi/machine/unwind.h"
#include "runtime/kernel/bpf.h"
#include "runtime/load.h"

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

class UserStackHost {
 public:
  explicit UserStackHost(MachineWindow* w) : w_(w) {}

  [[nodiscard]] UserWalk& state() const {
    return *reinterpret_cast<UserWalk*>(w_->clock_stack + kUserWalkOffset);
  }

  // A walk that ends at unknown code notes nothing: it will be known.
  [[gnu::always_inline]] bool recall_rule(uint64_t code, uint64_t& rule) const {
    const abi::KnownRule& known = known_rule(code);
    rule = known.rule;
    return known.code == code;
  }
  [[gnu::always_inline]] void note_rule(uint64_t code, uint64_t rule) const {
    if (state().walk.is_stale != 0) return;
    known_rule(code).rule = rule;
    known_rule(code).code = code;
  }
  // Code that the tracer has not heard of yet: nothing is known of its frames, so that the walk
  // ends there.
  [[gnu::always_inline]] bool find_mapping(uint64_t) const {
    count(target_page().unknown_code[process().session % abi::kSessionsMax]);
    state().walk.segment = {};
    return true;
  }
  [[gnu::noinline]] bool read(uint64_t address, uint64_t& word) const {
    if (address % 8 != 0 || state().walk.is_stale != 0) return false;
    if (page_of(address) == page_of(stack_pointer())) {
      word = *reinterpret_cast<const volatile uint64_t*>(address);
      return true;
    }
    if (const uint64_t place = load_for(address, kWordBytes)) {
      return runtime::load_word(place, address, word);
    }
    return read_by_page(address, word);
  }
  [[gnu::always_inline]] static const abi::MachineUnwindSegment& segment(uint64_t index) {
    return table<abi::MachineUnwindSegment>(
        process().unwind_segments)[index & (abi::kMachineUnwindSegments - 1)];
  }
  [[gnu::always_inline]] static const abi::MachineUnwindRow& row(uint64_t index) {
    return table<abi::MachineUnwindRow>(
        process().unwind_rows)[index < process().unwind_row_count ? index : 0];
  }
  [[gnu::always_inline]] static const abi::MachineUnwindRule& rule(uint64_t index) {
    return table<abi::MachineUnwindRule>(
        process().unwind_rules)[index & (abi::kMachineUnwindRules - 1)];
  }
  // DWARF's numbers in the order of struct pt_regs, four bits each: rax rdx rcx rbx rsi rdi rbp rsp
  // r8 … r15. (rsp's place is beyond: no rule asks for it so.)
  [[gnu::always_inline]] uint64_t leaf_register(uint64_t dwarf) const {
    constexpr uint64_t kFirst = 0x0123'6789'04ed'5bcaULL;
    return registers_of(w_)[kFirst >> (4 * (dwarf & 15)) & 15];
  }
  [[gnu::always_inline]] static uint64_t hidden_return(uint64_t) { return 0; }
  [[gnu::always_inline]] void put(uint64_t index, uint64_t pc) const {
    user_frames(w_)[index % kUserFramesMax] = pc;
  }
  [[gnu::always_inline]] static uint64_t zero() { return 0; }

  // False when the tracer knows nothing of the process.
  [[nodiscard]] bool begin() {
    if (process().unwind_processes == 0) return false;
    for (uint64_t turn = 0; turn < abi::kMachineUnwindSlotsMax; ++turn) {
      const abi::MachineUnwindProcess& one =
          table<abi::MachineUnwindProcess>(process().unwind_processes)[abi::unwind_slot(
              process().pid, turn, abi::kMachineUnwindProcesses)];
      const uint64_t pid = abi::load_word(one.pid);
      if (pid == 0) break;
      if (pid != process().pid) continue;
      process_ = &one;
      version_ = abi::load_word(one.version);
      if (state().known_version != version_) forget_rules();
      state().walk.first_segment = one.first_segment;
      state().walk.segment_count = one.segment_count;
      return true;
    }
    return false;
  }
  // Whether the tables were the same all the time.
  [[nodiscard]] bool is_right() const {
    return (version_ & 1) == 0 && abi::load_word(process_->version) == version_;
  }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t page_of(uint64_t address) { return address & ~(kPageBytes - 1); }
  template <typename Row>
  [[nodiscard]] static const Row* table(uint64_t address) {
    return reinterpret_cast<const Row*>(address);
  }
  [[nodiscard]] abi::KnownRule& known_rule(uint64_t code) const {
    return state().known[(code ^ code >> 7) & (abi::kKnownRules - 1)];
  }
  [[gnu::noinline]] void forget_rules() const {
    for (uint64_t i = 0; i < abi::kKnownRules; ++i)
      *const_cast<volatile uint64_t*>(&state().known[i].code) = 0;
    state().known_version = version_;
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

  MachineWindow* w_;
  const abi::MachineUnwindProcess* process_ = nullptr;
  uint64_t version_ = 0;
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
