// SPDX-License-Identifier: Apache-2.0
// Follows pointers in the kernel's memory; a bad address reads as 0.
#pragma once

#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

template <typename Value>
[[gnu::always_inline]] inline void read_kernel(Value* to, uint64_t size, uint64_t address) {
  helper<113>(to, size, pointer(address));
}

[[gnu::always_inline]] inline uint64_t read_pointer(uint64_t address) {
  uint64_t value = 0;
  helper<113>(&value, uint64_t{8}, pointer(address));
  return value;
}

}  // namespace clew::runtime::kernel
