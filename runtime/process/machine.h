// SPDX-License-Identifier: Apache-2.0
// What the D accessors need of the machine, in a process: runtime/kernel/bpf.h for code that is no
// BPF program. The session's memory and numbers come from its MachineProcess, whose address is a
// constant of this copy of the code; system calls only where the process allows them.
//
// Interrupted by: signal handlers, whose own probes are counted and not run (the slot is busy);
// other threads, which share everything but the window and the ring.
#pragma once

#include <cstdint>

#include "abi/machine/loop.h"
#include "abi/machine/process.h"
#include "abi/machine/tables.h"
#include "abi/machine/window.h"
#include "runtime/raw.h"
#include "runtime/state.h"

// Lies in the blob; the tracer sets it when it copies the blob.
extern "C" __attribute__((visibility("hidden"))) const clew::abi::MachinePlace clew_d_place;

namespace clew::runtime::kernel {

using abi::go_on;
using abi::MachineFault;
using abi::MachineWindow;

// --- the session's memory
// ------------------------------------------------------------------------------------------

[[gnu::always_inline]] inline const abi::MachineProcess& process() {
  return *reinterpret_cast<const abi::MachineProcess*>(clew_d_place.process);
}

[[gnu::always_inline]] inline abi::MachineShared& shared() {
  return *reinterpret_cast<abi::MachineShared*>(process().shared);
}
[[gnu::always_inline]] inline uint8_t* globals() {
  return reinterpret_cast<uint8_t*>(process().globals);
}
[[gnu::always_inline]] inline uint8_t* dynamic() {
  return reinterpret_cast<uint8_t*>(process().dynamic);
}
[[gnu::always_inline]] inline uint8_t* aggregates() {
  return reinterpret_cast<uint8_t*>(process().aggregates);
}
[[gnu::always_inline]] inline const abi::MachineVariable* variables() {
  return reinterpret_cast<const abi::MachineVariable*>(process().variables);
}
[[gnu::always_inline]] inline const abi::MachineAggregationTable* aggregations() {
  return reinterpret_cast<const abi::MachineAggregationTable*>(process().aggregations);
}
[[gnu::always_inline]] inline const abi::MachineEnabled* enabled_probes() {
  return reinterpret_cast<const abi::MachineEnabled*>(process().enabled);
}
[[gnu::always_inline]] inline const uint8_t* names() {
  return reinterpret_cast<const uint8_t*>(process().names);
}

// --- numbers
// ---------------------------------------------------------------------------------------

using Number = uint64_t abi::MachineProcess::*;

[[gnu::always_inline]] inline uint64_t number(Number which) {
  return process().*which;
}

inline constexpr Number d_n_cpus = &abi::MachineProcess::cpus;
inline constexpr Number d_n_string_bytes = &abi::MachineProcess::string_bytes;
inline constexpr Number d_n_variables = &abi::MachineProcess::variable_count;
inline constexpr Number d_n_aggregations = &abi::MachineProcess::aggregation_count;
inline constexpr Number d_n_enabled = &abi::MachineProcess::enabled_count;
inline constexpr Number d_n_names_bytes = &abi::MachineProcess::names_bytes;
inline constexpr Number d_n_globals_bytes = &abi::MachineProcess::globals_bytes;
inline constexpr Number d_n_dynamic_buckets = &abi::MachineProcess::dynamic_buckets;
inline constexpr Number d_n_dynamic_entry_bytes = &abi::MachineProcess::dynamic_entry_bytes;
inline constexpr Number d_n_dynamic_key_bytes = &abi::MachineProcess::dynamic_key_bytes;
inline constexpr Number d_n_aggregates_cpu_bytes = &abi::MachineProcess::aggregates_cpu_bytes;
inline constexpr Number d_n_speculations = &abi::MachineProcess::speculations;
inline constexpr Number d_n_speculation_bytes = &abi::MachineProcess::speculation_bytes;
inline constexpr Number d_n_may_write_user = &abi::MachineProcess::may_write_user;
inline constexpr Number d_n_local_begin = &abi::MachineProcess::local_begin;
inline constexpr Number d_n_local_bytes = &abi::MachineProcess::local_bytes;
inline constexpr Number d_n_error_enabling = &abi::MachineProcess::error_enabling;
inline constexpr Number d_n_token_variable = &abi::MachineProcess::token_variable;

// --- plain arithmetic: there is no verifier to be told
// ---------------------------------------------------------------------------------------

[[gnu::always_inline]] inline uint64_t masked(uint64_t value, uint64_t mask) {
  return value & mask;
}
[[gnu::always_inline]] inline uint64_t zero(const MachineWindow*) {
  return 0;
}
[[gnu::always_inline]] inline uint64_t times(uint64_t value, uint64_t count) {
  return value * count;
}
[[gnu::always_inline]] inline uint64_t forgotten(MachineWindow*, uint64_t value) {
  return value;
}

// --- the thread and its process
// ---------------------------------------------------------------------------------------

inline bool may_call() {
  return header().system_calls_allowed != 0;
}
// In the process's own name space; what signals and reads of memory take.
uint32_t own_pid();
uint64_t monotonic_ns();
uint64_t thread_ns();  // How long the thread ran.
// Above the thread's number, in the first name space.
uint64_t process_and_thread();
uint64_t group_and_user();
uint64_t random_word(MachineWindow* w);
uint64_t send_signal(uint64_t signal);

// Linux: the CPU's number is in IA32_TSC_AUX, and the limit of a segment (__CPUNODE_SEG,
// asm/segment.h); the node above it. Where there is no rdpid there may be no rdtscp either.
[[gnu::always_inline]] inline uint64_t processor() {
  constexpr uint64_t kCpuMask = 0xFFF;
  uint64_t value = 0;
  if (process().has_rdpid != 0) {
    asm volatile("rdpid %0" : "=r"(value));
  } else {
    constexpr uint64_t kNumberSegment = 15 * 8 + 3;
    asm volatile("lsl %1, %0" : "+r"(value) : "r"(kNumberSegment) : "cc");
  }
  return value & kCpuMask;
}

// --- records
// ---------------------------------------------------------------------------------------

// Into the thread's ring. False when there is no room.
bool put_record(MachineWindow* w, const void* record, uint64_t size);

// --- copies; `size` is masked
// ---------------------------------------------------------------------------------------

inline constexpr int64_t kBadAddress = -14;  // -EFAULT

// Of memory of the session.
int64_t copy_own(void* to, uint64_t size, const void* from);
int64_t copy_own_text(void* to, uint64_t size, const void* from);
void zero_bytes(void* to, uint64_t size);
// Of the process: by the kernel, so that a bad address is an error number.
int64_t copy_user(void* to, uint64_t size, const void* from);
int64_t copy_user_text(void* to, uint64_t size, const void* from);
int64_t write_user(uint64_t to, const void* from, uint64_t size);
// Nobody here can read the kernel's.
[[gnu::always_inline]] inline int64_t copy_kernel(void* to, uint64_t size, const void*) {
  zero_bytes(to, size);
  return kBadAddress;
}
[[gnu::always_inline]] inline int64_t copy_kernel_text(void* to, uint64_t size, const void*) {
  zero_bytes(to, size);
  return kBadAddress;
}

// The program's registers as BeginWithRegisters found them, in the order of struct pt_regs. A
// process needs no room for a clock's stack. The header's `registers` says whether they are there.
inline constexpr uint32_t kRegisterWords = 21;
inline constexpr uint32_t kRegisterBp = 4;
inline constexpr uint32_t kRegisterBx = 5;
inline constexpr uint32_t kRegisterIp = 16;
inline constexpr uint32_t kRegisterSp = 19;
[[gnu::always_inline]] inline uint64_t* registers_of(MachineWindow* w) {
  return reinterpret_cast<uint64_t*>(w->clock_stack);
}

}  // namespace clew::runtime::kernel
