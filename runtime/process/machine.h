// SPDX-License-Identifier: Apache-2.0
// What the D accessors need of the machine, in a process: runtime/kernel/bpf.h for code that is no
// BPF program. The session's memory and numbers come from its DProcess, whose address is a
// constant of this copy of the code; system calls only where the process allows them.
//
// Interrupted by: signal handlers, whose own probes are counted and not run (the slot is busy);
// other threads, which share everything but the window and the ring.
#pragma once

#include <cstdint>

#include "abi/d_loop.h"
#include "abi/d_process.h"
#include "abi/d_tables.h"
#include "abi/d_window.h"
#include "runtime/raw.h"
#include "runtime/state.h"

// Lies in the blob; the tracer sets it when it copies the blob.
extern "C" __attribute__((visibility("hidden"))) const clew::abi::DPlace clew_d_place;

namespace clew::runtime::kernel {

using abi::DFault;
using abi::DWindow;
using abi::go_on;

// --- the session's memory
// ------------------------------------------------------------------------------------------

[[gnu::always_inline]] inline const abi::DProcess& process() {
  return *reinterpret_cast<const abi::DProcess*>(clew_d_place.process);
}

[[gnu::always_inline]] inline abi::DShared& shared() {
  return *reinterpret_cast<abi::DShared*>(process().shared);
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
[[gnu::always_inline]] inline const abi::DVariable* variables() {
  return reinterpret_cast<const abi::DVariable*>(process().variables);
}
[[gnu::always_inline]] inline const abi::DAggregationTable* aggregations() {
  return reinterpret_cast<const abi::DAggregationTable*>(process().aggregations);
}
[[gnu::always_inline]] inline const abi::DEnabled* enabled_probes() {
  return reinterpret_cast<const abi::DEnabled*>(process().enabled);
}
[[gnu::always_inline]] inline const uint8_t* names() {
  return reinterpret_cast<const uint8_t*>(process().names);
}

// --- numbers
// ---------------------------------------------------------------------------------------

using Number = uint64_t abi::DProcess::*;

[[gnu::always_inline]] inline uint64_t number(Number which) {
  return process().*which;
}

inline constexpr Number d_n_cpus = &abi::DProcess::cpus;
inline constexpr Number d_n_string_bytes = &abi::DProcess::string_bytes;
inline constexpr Number d_n_variables = &abi::DProcess::variable_count;
inline constexpr Number d_n_aggregations = &abi::DProcess::aggregation_count;
inline constexpr Number d_n_enabled = &abi::DProcess::enabled_count;
inline constexpr Number d_n_names_bytes = &abi::DProcess::names_bytes;
inline constexpr Number d_n_globals_bytes = &abi::DProcess::globals_bytes;
inline constexpr Number d_n_dynamic_buckets = &abi::DProcess::dynamic_buckets;
inline constexpr Number d_n_dynamic_entry_bytes = &abi::DProcess::dynamic_entry_bytes;
inline constexpr Number d_n_dynamic_key_bytes = &abi::DProcess::dynamic_key_bytes;
inline constexpr Number d_n_aggregates_cpu_bytes = &abi::DProcess::aggregates_cpu_bytes;
inline constexpr Number d_n_speculations = &abi::DProcess::speculations;
inline constexpr Number d_n_speculation_bytes = &abi::DProcess::speculation_bytes;
inline constexpr Number d_n_may_write_user = &abi::DProcess::may_write_user;
inline constexpr Number d_n_local_begin = &abi::DProcess::local_begin;
inline constexpr Number d_n_local_bytes = &abi::DProcess::local_bytes;
inline constexpr Number d_n_error_enabling = &abi::DProcess::error_enabling;
inline constexpr Number d_n_token_variable = &abi::DProcess::token_variable;

// --- plain arithmetic: there is no verifier to be told
// ---------------------------------------------------------------------------------------

[[gnu::always_inline]] inline uint64_t masked(uint64_t value, uint64_t mask) {
  return value & mask;
}
[[gnu::always_inline]] inline uint64_t zero(const DWindow*) {
  return 0;
}
[[gnu::always_inline]] inline uint64_t times(uint64_t value, uint64_t count) {
  return value * count;
}
[[gnu::always_inline]] inline uint64_t forgotten(DWindow*, uint64_t value) {
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
uint64_t random_word(DWindow* w);
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
bool put_record(DWindow* w, const void* record, uint64_t size);

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
inline constexpr uint32_t kRegisterIp = 16;
inline constexpr uint32_t kRegisterSp = 19;
inline constexpr uint64_t kRegistersAtFrame = 1;  // rsp points to a return address.
inline constexpr uint64_t kRegistersAtOffset = 2;
inline constexpr uint64_t kRedZoneBytes = 128;
[[gnu::always_inline]] inline uint64_t* registers_of(DWindow* w) {
  return reinterpret_cast<uint64_t*>(w->clock_stack);
}

}  // namespace clew::runtime::kernel
