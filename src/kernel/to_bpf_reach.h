// SPDX-License-Identifier: Apache-2.0
// Removes the instructions of a function that no path reaches: the kernel refuses a program that
// has any. Internal to to_bpf.
#pragma once

#include "kernel/bpf_object.h"

namespace clew::kernel {

void remove_unreachable(Function& function);

}  // namespace clew::kernel
