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

inline uint64_t address_of(const void* p) {
  return reinterpret_cast<uint64_t>(p);
}

inline uint64_t gs_base() {
  uint64_t base = 0;
  asm volatile("rdgsbase %0" : "=r"(base));
  return base;
}

inline void set_gs_base(uint64_t base) {
  asm volatile("wrgsbase %0" : : "r"(base) : "memory");
}

inline uint64_t fs_base() {
  uint64_t base = 0;
  asm volatile("rdfsbase %0" : "=r"(base));
  return base;
}

// The TCB's self pointer.
inline uint64_t fs_self() {
  uint64_t self = 0;
  asm volatile("mov %%fs:0, %0" : "=r"(self));
  return self;
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
