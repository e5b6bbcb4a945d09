// SPDX-License-Identifier: Apache-2.0
// What the runtime needs from the machine and the kernel, without a libc: segment bases, raw system
// calls. All of it is async-signal-safe; errno does not exist here.
#pragma once

#include <cstdint>

namespace clew::runtime {

inline constexpr int64_t kSysFutex = 202;
inline constexpr int64_t kSysGetpid = 39;
inline constexpr int64_t kSysGetppid = 110;
inline constexpr int64_t kSysGettid = 186;
inline constexpr int64_t kSysGetcwd = 79;
inline constexpr int64_t kSysGetuid = 102;
inline constexpr int64_t kSysGetgid = 104;
inline constexpr int64_t kSysKill = 62;
inline constexpr int64_t kSysPrctl = 157;
inline constexpr int64_t kSysArchPrctl = 158;
inline constexpr int64_t kSysSigaltstack = 131;
inline constexpr int64_t kSysClockGettime = 228;
inline constexpr int64_t kSysProcessVmReadv = 310;
inline constexpr int64_t kSysProcessVmWritev = 311;

struct SystemCall {
  int64_t number;
  uint64_t arguments[6] = {};
};

inline int64_t call(const SystemCall& c) {
  int64_t result = c.number;
  register uint64_t r10 asm("r10") = c.arguments[3];
  register uint64_t r8 asm("r8") = c.arguments[4];
  register uint64_t r9 asm("r9") = c.arguments[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(c.arguments[0]), "S"(c.arguments[1]), "d"(c.arguments[2]), "r"(r10), "r"(r8),
                 "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// With two arguments at most, in few registers: a claim has none to spare.
inline int64_t call_short(int64_t number, uint64_t first = 0, uint64_t second = 0) {
  int64_t result = number;
  asm volatile("syscall" : "+a"(result) : "D"(first), "S"(second) : "rcx", "r11", "memory");
  return result;
}

inline uint64_t address_of(const void* p) {
  return reinterpret_cast<uint64_t>(p);
}

// The TCB's self pointer.
inline uint64_t fs_self() {
  uint64_t self = 0;
  asm volatile("mov %%fs:0, %0" : "=r"(self));
  return self;
}

// What arch_prctl(2) does, of asm/prctl.h.
inline constexpr uint64_t kArchSetGs = 0x1001;
inline constexpr uint64_t kArchGetFs = 0x1003;
inline constexpr uint64_t kArchGetGs = 0x1004;

// The bases by instructions, where these are allowed.
inline uint64_t read_gs_base() {
  uint64_t base = 0;
  asm volatile("rdgsbase %0" : "=r"(base));
  return base;
}
inline void write_gs_base(uint64_t base) {
  asm volatile("wrgsbase %0" : : "r"(base) : "memory");
}
inline uint64_t read_fs_base() {
  uint64_t base = 0;
  asm volatile("rdfsbase %0" : "=r"(base));
  return base;
}

// The same by the kernel; 0 when it does not answer.
inline uint64_t ask_base(uint64_t which) {
  uint64_t base = 0;
  return call_short(kSysArchPrctl, which, address_of(&base)) == 0 ? base : 0;
}

// The word of 32 bits at this address behind gs, and behind fs.
inline uint32_t gs_half(uint64_t address) {
  uint32_t value = 0;
  asm volatile("movl %%gs:(%1), %0" : "=r"(value) : "r"(address) : "memory");
  return value;
}
inline uint64_t gs_word(uint64_t address) {
  uint64_t value = 0;
  asm volatile("mov %%gs:(%1), %0" : "=r"(value) : "r"(address) : "memory");
  return value;
}
inline uint32_t fs_half(uint64_t address) {
  uint32_t value = 0;
  asm volatile("movl %%fs:(%1), %0" : "=r"(value) : "r"(address) : "memory");
  return value;
}

inline uint64_t stack_pointer() {
  uint64_t pointer = 0;
  asm volatile("mov %%rsp, %0" : "=r"(pointer));
  return pointer;
}

inline void pause() {
  asm volatile("pause");
}

}  // namespace clew::runtime
