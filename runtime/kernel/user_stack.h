// SPDX-License-Identifier: Apache-2.0
// Walks the stack of the process by the tables of abi/machine/unwind.h, or, while the tracer has
// not looked at the process yet, lets the kernel follow its frame pointers and asks the tracer to.
#pragma once

#include "abi/machine/unwind.h"
#include "runtime/kernel/stack.h"
#include "runtime/kernel/walk.h"

namespace clew::runtime::kernel {

using abi::MachineUnwindProcess;

extern "C" {
extern MachineUnwindProcess d_unwind_processes[];
extern abi::MachineUnwindSegment d_unwind_segments[];
extern abi::MachineUnwindRow d_unwind_rows[];
extern abi::MachineUnwindRule d_unwind_rules[];
extern abi::MachineUnwindFile d_unwind_files[];
extern uint8_t d_unwind_asked;  // The ring of pids that the tracer is to look at.
extern const char d_n_unwind_rows;
extern const char d_n_task_utask;
extern const char d_n_utask_returns;
extern const char d_n_return_stack;
extern const char d_n_return_address;
extern const char d_n_return_next;
extern const char d_n_vma_start;
extern const char d_n_vma_end;
extern const char d_n_vma_offset;
extern const char d_n_vma_flags;
extern const char d_n_vma_file;
extern const char d_n_mm_program;
extern const char d_n_file_inode;
extern const char d_n_inode_number;
extern const char d_n_inode_super;
extern const char d_n_super_device;

[[gnu::always_inline]] inline uint64_t d_user_mapping(MachineWindow* w, uint64_t address);
}

// struct pt_regs, in words.
inline constexpr uint64_t kUserBp = 4;
inline constexpr uint64_t kUserBx = 5;
inline constexpr uint64_t kUserIp = 16;
inline constexpr uint64_t kUserCs = 17;
inline constexpr uint64_t kUserSp = 19;
inline constexpr uint64_t kUserCode64 = 0x33;  // __USER_CS
inline constexpr uint64_t kNestedReturnsMax = 64;

// Indices are forgotten: the verifier would have to know exactly what they were computed from.
class UserStackHost {
 public:
  [[gnu::always_inline]] explicit UserStackHost(MachineWindow* w) : w_(w) {}

  [[gnu::always_inline]] static bool read(uint64_t address, uint64_t& word) {
    return helper<112>(&word, uint64_t{8}, pointer(address)) == 0;
  }
  [[gnu::always_inline]] const abi::MachineUnwindSegment& segment(uint64_t index) const {
    return d_unwind_segments[masked(forgotten(w_, index), abi::kMachineUnwindSegments - 1)];
  }
  [[gnu::always_inline]] const abi::MachineUnwindRow& row(uint64_t index) const {
    uint64_t bounded_index = forgotten(w_, index);
    if (bounded_index >= number(d_n_unwind_rows)) bounded_index = 0;
    asm volatile("" : "+r"(bounded_index));
    return d_unwind_rows[bounded_index];
  }
  [[gnu::always_inline]] const abi::MachineUnwindRule& rule(uint64_t index) const {
    return d_unwind_rules[masked(forgotten(w_, index), abi::kMachineUnwindRules - 1)];
  }
  // DWARF's numbers in the order of struct pt_regs, four bits each: rax rdx rcx rbx rsi rdi rbp rsp
  // r8 … r15.
  [[gnu::always_inline]] static uint64_t leaf_register(uint64_t dwarf) {
    constexpr uint64_t kFirst = 0x0123'6789'04ed'5bcaULL;
    const uint64_t word = (kFirst >> (4 * masked(dwarf, 15))) & 15;
    uint64_t value = 0;
    helper<113>(&value, uint64_t{8}, user_registers() + word);
    return value;
  }
  [[gnu::always_inline]] uint64_t hidden_return(uint64_t slot) const {
    uint64_t utask = 0;
    read_kernel(&utask, 8, current_task_address() + number(d_n_task_utask));
    if (utask == 0 || number(d_n_utask_returns) == 0) return 0;
    uint64_t one = read_pointer(utask + number(d_n_utask_returns));
    for (uint64_t i = zero(); i < kNestedReturnsMax && one != 0 && go_on(); ++i) {
      if (read_pointer(one + number(d_n_return_stack)) == slot) {
        return read_pointer(one + number(d_n_return_address));
      }
      one = read_pointer(one + number(d_n_return_next));
    }
    return 0;
  }
  [[gnu::always_inline]] static bool recall_rule(uint64_t, uint64_t&) { return false; }
  [[gnu::always_inline]] static void note_rule(uint64_t, uint64_t) {}
  [[gnu::always_inline]] bool find_mapping(uint64_t address) const {
    return d_user_mapping(w_, address) != 0;
  }
  [[gnu::always_inline]] void put(uint64_t index, uint64_t pc) const {
    *reinterpret_cast<uint64_t*>(w_->scratch + masked(forgotten(w_, index) * 8, 0xFF8)) = pc;
  }
  [[gnu::always_inline]] uint64_t zero() const { return kernel::zero(w_); }

 private:
  MachineWindow* w_;
};

}  // namespace clew::runtime::kernel
