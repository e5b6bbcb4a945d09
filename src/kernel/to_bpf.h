// SPDX-License-Identifier: Apache-2.0
// A clause's program as a BPF function of the window:
//
//     in the program              in the function
//     (its begin)                 r6 = r1
//     lddw window dst, offset     dst = r6 ; dst += offset
//     lddw global dst, offset     dst = address in the globals (the linker's to fill in)
//     call accessor               call of the accessor's function
//     call of an extension's      call of that name, for put_extension_calls()
//     lddw context                nothing, behind such a call
//
// Each form keeps its size, so that branches stay right. Pointers in the window are real pointers
// then, which the kernel's verifier follows.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "isa/program.h"
#include "kernel/bpf_object.h"
#include "kernel/extensions.h"

namespace clew::kernel {

// Errors: Refused for what no D program has: site constants, other accessors, r6.
Expected<Function> to_bpf(const isa::Program& program, uint32_t clause,
                          std::span<const MachineExtensionCall> calls = {});

// "dt_clause_3"
std::string clause_name(uint32_t clause);

// Which arguments of the probe a function may look at: bit i for arg<i>.
uint32_t arguments_read(const Function& function);

}  // namespace clew::kernel
