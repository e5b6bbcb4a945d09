// SPDX-License-Identifier: Apache-2.0
// The table of system calls, by number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace clew::kernel {

struct SystemCall {
  uint32_t number = 0;
  std::string_view name;      // As the kernel defines it, and as probes are called: "newfstat".
  std::string_view abi_name;  // As programs and manuals call it: "fstat".
};

std::span<const SystemCall> system_calls();

}  // namespace clew::kernel
