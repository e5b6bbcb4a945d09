// SPDX-License-Identifier: Apache-2.0
// Where the kernel's functions are, as far as it lets them be probed: a name that several static
// functions have stands for all of them. A function whose parameters the compiler changed has a
// name with an ending (`finish_task_switch.isra.0`); its own name finds it, as that is what the
// kernel's types call it, if they describe it (those of Linux 6.12 do, those of 6.1 do not).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace clew::kernel {

struct FunctionPlace {
  std::string module;  // "vmlinux", or a module's name.
  std::string name;
  uint64_t cookie = 0;
};

struct FunctionAddress {
  uint64_t address = 0;
  uint64_t cookie = 0;
};

// Sorted by address. What the kernel has not, or lists as not traceable, is left out. Errors:
// Refused when the kernel hides its addresses.
Expected<std::vector<FunctionAddress>> find_functions(std::span<const FunctionPlace> places);

}  // namespace clew::kernel
