// SPDX-License-Identifier: Apache-2.0
// Whether a uprobe at a function means what it says, and where in the file it is set.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

#include "target/catalog.h"

namespace clew::kernel {

// Where an address of the file is in it; nothing for what is not there (.bss).
std::optional<uint64_t> file_offset(const target::ModuleImage& image, uint64_t address);

// A part of a function that is jumped to has a frame already: what the kernel takes for its return
// address is something else.
bool is_entered_by_call(const target::ModuleImage& image, const target::Function& function,
                        std::string_view name);

// The kernel puts an address of its own in the place of the return address. Why that would do harm;
// empty when it does none.
std::string_view return_problem(const target::ModuleImage& image, const target::Function& function);

// Whether the process is known to itself by the numbers by which the kernel's programs know it and
// its threads: those of the first pid name space.
bool has_kernels_pids(pid_t pid);

}  // namespace clew::kernel
