// SPDX-License-Identifier: Apache-2.0
// The segment bases of a test's own thread, on any machine.
#pragma once

#include <cstdint>
#include <cstdlib>

#include <asm/prctl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/arena.h"

namespace clew::runtime {

inline void set_own_gs_base(uint64_t base) {
  (void)syscall(SYS_arch_prctl, ARCH_SET_GS, base);
}

inline uint64_t own_gs_base() {
  uint64_t base = 0;
  (void)syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
  return base;
}

// What arenas of this machine say, as CLEW_NO_FSGSBASE changes it.
inline abi::SegmentBases own_bases() {
  constexpr uint64_t kFsGsBase = 2;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets it.
  const bool is_told = std::getenv("CLEW_NO_FSGSBASE") != nullptr;
  const bool allowed = (getauxval(AT_HWCAP2) & kFsGsBase) != 0 && !is_told;
  return allowed ? abi::SegmentBases::Instructions : abi::SegmentBases::SystemCall;
}

}  // namespace clew::runtime
