// SPDX-License-Identifier: Apache-2.0
// A function in the words of kernels before Linux 6.9: without the instructions that came with cpu
// v4 (6.6), and with a check of its window, of which those kernels cannot be told that it is not
// null.
#pragma once

#include "base/error.h"
#include "kernel/bpf_object.h"

namespace clew::kernel {

// Errors: Limit when a jump is too far for an instruction of such a kernel.
Expected<Function> for_older_kernel(const Function& function);

}  // namespace clew::kernel
