// SPDX-License-Identifier: Apache-2.0
// The program of a query's probe as a BPF function of the window of the D machine, by the table of
// abi/query_window.h: contexts, frames and regions become places in the window, accessors calls of
// the runtime's functions. Pointers into the window become real pointers, which the kernel's
// verifier follows.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "isa/program.h"
#include "kernel/bpf_object.h"
#include "kernel/extensions.h"

namespace clew::kernel {

// Of the kernel, for QueryAccessor::KernelMemory: a function (Symbol::Kind::Function), and the
// number of a type.
inline constexpr char kUntrustedPointer[] = "d_k_untrusted_pointer";
inline constexpr char kUntrustedType[] = "d_n_untrusted_type";

// Its name is that of a clause (to_bpf.h). Errors: Refused for what has no meaning in the kernel.
Expected<Function> probe_to_bpf(const isa::Program& program, uint32_t clause,
                                std::span<const MachineExtensionCall> calls = {});

}  // namespace clew::kernel
