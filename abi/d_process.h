// SPDX-License-Identifier: Apache-2.0
// A D session inside a process: user probes whose clauses run inline, as machine code of the
// process, on the state that they share with the kernel's programs of the same session.
//
//   in the session's region of each slot (abi/region.h):
//     kDRegionWindow   the thread's DWindow. Window pointers of D programs are offsets in it, as in
//                      the kernel; its header leaves bytes kFrameOffset..kFrameEnd to the frame of
//                      the running program
//     kDRegionRing     an event ring; the payload of an event is a D record (DRecordHeader first)
//   mapped in the process:
//     DProcess         made by the tracer for this process, read-only there: where the rest is
//     the session's arrays (shared state, globals, dynamic variables, aggregations, descriptors):
//                      the very maps of the kernel's programs. The globals lie below 2 GiB, so that
//                      code reaches them by absolute 32-bit addresses
//
// The accessors are those of abi/d_accessor.h, compiled for the process from the same sources.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/d_window.h"

namespace clew::abi {

inline constexpr uint32_t kDRegionWindow = 0x1000;
inline constexpr uint32_t kDRegionRing = 0x18000;
static_assert(kDRegionRing >= kDRegionWindow + sizeof(DWindow));
inline constexpr uint32_t kDRingSizeLog2 = 17;
inline constexpr uint32_t kDRegionSizeLog2 = 18;

inline constexpr uint64_t kDProcessMagic = 0x3153'5345'434F'5244;  // "DROCESS1"

struct DProcess {
  uint64_t magic;
  // Addresses in this process.
  uint64_t shared;        // DShared
  uint64_t globals;       // Below 2 GiB.
  uint64_t dynamic;       // abi/d_dynamic.h
  uint64_t aggregates;    // abi/d_tables.h
  uint64_t variables;     // DVariable[]
  uint64_t aggregations;  // DAggregationTable[]
  uint64_t enabled;       // DEnabled[]
  uint64_t names;         // Texts of the probes' names.
  uint64_t literals;      // To be copied to kDLocalOffset of each window before its first firing.
  uint64_t clock;         // The vDSO's clock_gettime; 0 = by system call.
  // Numbers: those of the same name in runtime/kernel/bpf.h.
  uint64_t cpus;
  uint64_t string_bytes;
  uint64_t variable_count;
  uint64_t aggregation_count;
  uint64_t enabled_count;
  uint64_t names_bytes;
  uint64_t globals_bytes;
  uint64_t literals_bytes;
  uint64_t dynamic_buckets;
  uint64_t dynamic_entry_bytes;
  uint64_t dynamic_key_bytes;
  uint64_t aggregates_cpu_bytes;
  uint64_t speculations;
  uint64_t speculation_bytes;
  uint64_t target_pid;
  uint64_t pid;  // Of this process, as the tracer sees it (the kernel's programs see the same).
  uint64_t may_write_user;
  uint64_t local_begin;
  uint64_t local_bytes;
  uint64_t error_enabling;
  uint64_t token_variable;
};

}  // namespace clew::abi
