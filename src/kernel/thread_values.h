// SPDX-License-Identifier: Apache-2.0
// What threads keep in a variable without keys (self->x), read by the tracer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/machine/process.h"

namespace clew::kernel {

struct ThreadValue {
  uint32_t thread = 0;          // As the kernel numbers it (runtime/kernel/variables.cc).
  std::vector<uint64_t> words;  // As many as the session's largest value has.
};

// `table`: the session's dynamic variables (abi/machine/dynamic.h), of the shape that `numbers`
// tell. A value that changes meanwhile is left out.
std::vector<ThreadValue> read_thread_values(const abi::MachineProcess& numbers,
                                            std::span<const uint8_t> table, uint32_t variable);

}  // namespace clew::kernel
