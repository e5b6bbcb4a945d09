// SPDX-License-Identifier: Apache-2.0
// The begin of a firing in a process (abi/machine/process.h). The stub has claimed the slot and
// marked it busy, so the window is this firing's; d_after_clause and the rest are shared with the
// kernel.
#include <cstddef>

#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

extern "C" {
uint64_t d_clear_local(MachineWindow* w);
}

namespace {

// What a thunk pushed, from the last push on, then what the stub did (entry.S, abi/stub.h).
struct ThunkFrame {
  uint64_t rbp;
  uint64_t inside[8];  // r11 to rcx, as the body has them.
  uint64_t return_address;
  abi::AllSaved saved;
};

constexpr uint64_t kUserCode = 0x33;  // Selectors of 64-bit processes.
constexpr uint64_t kUserData = 0x2B;

// The first firing of a thread in this session.
[[gnu::noinline]] void make_ready(MachineWindow* w) {
  __builtin_memset(&w->header, 0, sizeof w->header);
  const auto* const literals = reinterpret_cast<const uint8_t*>(process().literals);
  const uint64_t bytes = process().literals_bytes;
  if (bytes <= abi::kMachineWindowBytes - abi::kMachineLocalOffset) {
    __builtin_memcpy(reinterpret_cast<uint8_t*>(w) + abi::kMachineLocalOffset, literals, bytes);
  }
  w->header.ready = process().stamp;
}

[[gnu::always_inline]] inline uint64_t begin(MachineWindow* w, uint64_t cookie, uint64_t run_when) {
  if (abi::load_word(shared().activity) != run_when) return 0;
  if (w->header.ready != process().stamp) make_ready(w);
  w->header.probe = static_cast<uint32_t>(cookie >> 32);
  w->header.enabling = cookie & 0xFFFF'FFFF;
  w->header.timestamp = 0;
  w->header.vtimestamp = 0;
  w->header.run_when = run_when;
  w->header.exit_pending = 0;
  w->header.in_error = 0;
  w->header.registers = 0;
  if (number(d_n_local_bytes) != 0) d_clear_local(w);
  return 1;
}

}  // namespace

extern "C" {

uint64_t d_begin(MachineWindow* w, uint64_t cookie, uint64_t run_when) {
  return begin(w, cookie, run_when);
}

// The registers come in the order of struct pt_regs (arch/x86/include/asm/ptrace.h).
uint64_t d_begin_with_registers(MachineWindow* w, uint64_t cookie, uint64_t when_and_where,
                                uint64_t pc, uint64_t, const ThunkFrame* f) {
  if (begin(w, cookie, when_and_where & 0xFF) == 0) return 0;
  const bool at_offset = (when_and_where & abi::kMachineAtOffset) != 0;
  const bool at_return = (when_and_where & abi::kMachineAtReturn) != 0;
  const uint64_t top = address_of(&f->saved.above);
  const uint64_t ip = at_return ? f->saved.above : pc;
  uint64_t* next = registers_of(w);
  *next++ = f->saved.r15;
  *next++ = f->saved.r14;
  *next++ = f->saved.r13;
  *next++ = f->saved.r12;
  *next++ = f->rbp;
  *next++ = f->saved.rbx;
  *next++ = f->saved.r11;
  *next++ = f->saved.r10;
  *next++ = f->saved.r9;
  *next++ = f->saved.r8;
  *next++ = f->saved.rax;
  *next++ = f->saved.rcx;
  *next++ = f->saved.rdx;
  *next++ = f->saved.rsi;
  *next++ = f->saved.rdi;
  *next++ = ~uint64_t{0};  // No system call.
  *next++ = ip;
  *next++ = kUserCode;
  *next++ = at_offset ? f->saved.above : 0;  // Flags are dead elsewhere.
  *next++ = at_offset ? top + 8 + abi::kRedZoneBytes : at_return ? top + 8 : top;
  *next++ = kUserData;
  w->header.registers = 1;
  w->header.user_pc = ip;
  return 1;
}

uint64_t d_thread(MachineWindow*) {
  return process_and_thread();
}

// Anybody may have made the numbers.
uint64_t d_clear(MachineWindow* w, uint64_t offset, uint64_t size) {
  if (offset > abi::kMachineWindowBytes || size > abi::kMachineWindowBytes - offset) return 0;
  __builtin_memset(reinterpret_cast<uint8_t*>(w) + offset, 0, size);
  return 0;
}

// The words above the return address of a function's entry.
uint64_t d_stack_arguments(MachineWindow* w) {
  constexpr uint32_t kInRegisters = 6;
  constexpr uint32_t kAll = 10;
  const uint64_t first = registers_of(w)[kRegisterSp] + 8;
  for (uint32_t i = kInRegisters; i < kAll; ++i) {
    copy_user(&w->header.arguments[i], 8, pointer(first + 8 * (i - kInRegisters)));
  }
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel
