// SPDX-License-Identifier: Apache-2.0
// The load without a fault (runtime/load.h): eight bytes from any address, or "no", without a
// signal, a handler or a system call.
//
// Before the kernel makes a signal of a fault in user mode (#PF, #GP, and what becomes SIGBUS), it
// looks the instruction up in the exception table of the process's vDSO. An instruction that is
// there goes on at its landing, with the trap's number in rdi, its error code in rsi and the
// address in rdx (fixup_vdso_exception(), arch/x86/entry/vdso/extable.c, Linux 5.11). Kernels with
// CONFIG_X86_SGX have one entry: the ENCLU of __vdso_sgx_enter_enclave(). It is as long as
// `mov (%rdi), %rax`, which is written over it in the process's own copy of the page:
//
//     load:     mov (%rdi), %rax; clc; ret
//     landing:  stc; ret
//
// Processes do not see the table itself. So the places are found in the code, and tried in a child
// of the tracer before any other process has them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <sys/types.h>

#include "abi/journal.h"
#include "base/error.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

struct LoadPlaces {
  uint64_t load = 0;  // From the vDSO's first byte.
  uint64_t landing = 0;
};

inline constexpr std::array<uint8_t, 5> kLoadCode = {0x48, 0x8B, 0x07, 0xF8, 0xC3};
inline constexpr std::array<uint8_t, 2> kLandingCode = {0xF9, 0xC3};

// NotFound, with the reason, where the image has none or is not understood.
Expected<LoadPlaces> find_load_places(std::span<const uint8_t> vdso);

// Of this machine: found and tried at the first call, which starts a child. Safe from any thread.
// The environment's CLEW_NO_FAULT_FREE_LOAD=1 makes it none.
const Expected<LoadPlaces>& load_places_here();

// What to write into a process, and what it has there now; else why it cannot have the load. Of the
// process as it is: what it maps later is not known. Takes what /proc says; needs no stop.
Expected<abi::LoadRecord> find_load(pid_t pid, std::span<const target::Mapping> maps);

// Are both places in the process's vDSO?
bool is_in_vdso(const abi::LoadRecord& record, std::span<const target::Mapping> maps);

// Into the stopped process, and out again. What is neither the record's nor ours stays as it is:
// then write_load() is refused. Both may be done again.
Expected<void> write_load(const StoppedTarget& target, const abi::LoadRecord& record);
Expected<void> remove_load(const StoppedTarget& target, const abi::LoadRecord& record);

}  // namespace clew::inline_
