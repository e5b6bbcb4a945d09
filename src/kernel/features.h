// SPDX-License-Identifier: Apache-2.0
// What this kernel's BPF can do beyond what every session needs: found by trying, since versions
// say little about kernels that distributions and clouds changed.
#pragma once

#include <cstdint>

#include "target/btf.h"

namespace clew::kernel {

struct Features {
  // may_goto (Linux 6.9), and with it parameters that are marked as not null (6.8) and the
  // instructions of cpu v4 (6.6).
  bool has_open_loops = false;
  bool has_tracepoint_cookies = false;  // bpf_get_attach_cookie() at raw tracepoints, 6.10.
  bool has_user_probe_multi = false;    // One link for many uprobes, 6.6.
  bool has_kernel_probe_multi = false;  // One link for many kprobes, 5.18; needs CONFIG_FPROBE.
};

// What every session needs is of Linux 5.16, and was tried with 6.1 and later.
inline constexpr char kTooOld[] =
    "this kernel is too old: D and queries on the kernel need Linux 6.1";

// Whether the kernel does not know types that every program of ours has (declaration tags, 5.16).
// Not known without rights: false then. Tried at each call.
bool is_too_old();

// Tried once per process. Needs the rights that sessions need; without them everything is missing.
const Features& features();

// errno of loading a program that does nothing; 0 = the kernel takes programs from us.
int error_of_programs();

// errno of asking for a uprobe at no file: EACCES and EPERM say that we may set none. 0 = we may.
// Nothing is set.
int error_of_user_probes();

// errno of putting a program that does nothing at the exit of this function of the kernel (fexit;
// its type among the kernel's), and taking it away; 0 = it was there.
int error_of_trampoline(uint32_t function);

// bpf_rdonly_cast() (Linux 6.2) and a type that begins with a word of 64 bits, by their numbers
// among the kernel's types; 0 where the kernel takes no program that loads by them. Tried at each
// call.
struct UntrustedPointers {
  uint32_t function = 0;
  uint32_t type = 0;
};
UntrustedPointers untrusted_pointers(const target::Btf& kernel);

// Whether a program may be loaded for the tracepoint whose type among the kernel's has that number
// (Linux 5.5; some kernels refuse programs of that kind). Tried at each call.
bool takes_typed_tracepoint(uint32_t type);

}  // namespace clew::kernel
