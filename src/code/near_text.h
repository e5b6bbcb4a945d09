// SPDX-License-Identifier: Apache-2.0
// For tests: memory for code that jumps of 32 bits reach from this process's own text.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace clew::code {

// `size_bytes` that may be run and written, within 1 GiB behind the page-aligned address `text`, or
// MAP_FAILED. The heap begins at a random place in just that range, so one address will not do.
inline void* map_near(uint64_t text, size_t size_bytes) {
  constexpr uint64_t kStep = uint64_t{64} << 20;
  constexpr uint64_t kReach = uint64_t{1} << 30;
  for (uint64_t distance = kStep; distance <= kReach; distance += kStep) {
    void* const place = reinterpret_cast<void*>(text + distance);
    void* const got = mmap(place, size_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == place) return got;
    if (got != MAP_FAILED) munmap(got, size_bytes);  // Kernels before 4.17 take it for a hint.
  }
  return MAP_FAILED;
}

}  // namespace clew::code
