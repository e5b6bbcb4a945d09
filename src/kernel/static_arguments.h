// SPDX-License-Identifier: Apache-2.0
// The arguments of a static probe of a process (USDT): the text that its note has for them ("8@%rdi
// -4@-20(%rbp) 8@$5"), read and compiled for the kernel.
#pragma once

#include <string_view>

#include "base/error.h"
#include "kernel/bpf_object.h"

namespace clew::kernel {

// d_static_arguments(window): takes the registers from the scratch room (a struct pt_regs) and
// writes the arguments; memory that cannot be read is 0. Errors: Refused for a form that is not
// known.
Expected<Function> make_static_arguments(std::string_view text);

}  // namespace clew::kernel
