// SPDX-License-Identifier: Apache-2.0
// What IFUNC resolvers chose in a live process: the loader has written it into slots, of the module
// itself and of those that import the symbol. Internal to target/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "target/module_image.h"
#include "target/process.h"

namespace clew::target {

// The distinct run-time addresses in the slots for `ifunc`, which belongs to `image` at `home`;
// only those in the code of `home`: a slot that is not bound yet leads to a PLT. `modules` are all
// of the process. May be empty.
std::vector<uint64_t> read_ifunc_values(pid_t pid, const ModuleImage& image, const Function& ifunc,
                                        const ProcessModule& home,
                                        std::span<const ProcessModule* const> modules);

// The functions that implement an IFUNC: by glibc's names (`__memcpy_avx_unaligned` for `memcpy`),
// else those whose address its resolver takes (`lea r, [rip + x]`). Nobody may have asked it yet.
std::vector<size_t> guess_ifunc_targets(const ModuleImage& image, const Function& ifunc);

}  // namespace clew::target
