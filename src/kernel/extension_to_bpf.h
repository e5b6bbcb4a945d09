// SPDX-License-Identifier: Apache-2.0
// A function of an extension as a BPF function of the window, which the kernel's verifier takes
// whatever the function does: it has no pointers. Its addresses are numbers, offsets in the
// thread's area (abi/machine/extension.h); each access masks one and adds the area's real address.
//
//     in the function                in the kernel's
//     (its begin)                    the thread's memory; refused when it is busy, or exhausted
//     r1 … r5                        from the window
//     lddw window, r10               a number
//     access [rX + offset]           a = rX + offset ; a &= mask ; a += area ; access [a]
//     branch back                    fuel -= cost ; if fuel s< 0 goto out ; may_goto out ; branch
//     call accessor                  call of the runtime's function
//
// In a function with loops the verifier is kept from knowing any value: else it would walk through
// the rounds of each loop instead of finding that the second one is as the first. So numbers begin
// with a 0 that is loaded, and addresses go through a word of memory. The masks keep their bounds.
//
// Two registers more are needed than a function has: one for the area, one for the address of a
// store. Where it does not use all of its own, those are taken; else one is saved for a moment.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "kernel/extensions.h"

namespace clew::kernel {

// `can_loop`: the kernel has may_goto (Linux 6.9). Errors: Refused, with the function's name and
// the reason.
Expected<Function> extension_to_bpf(const MachineExtensionFunction& function,
                                    const MachineExtensions& extensions, bool can_loop);

}  // namespace clew::kernel
