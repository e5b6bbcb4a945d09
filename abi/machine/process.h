// SPDX-License-Identifier: Apache-2.0
// A D session inside a process: user probes whose clauses run inline, as machine code of the
// process, on the state that they share with the kernel's programs of the same session.
//
//   in the session's region of each slot (abi/region.h):
//     kMachineRegionWindow   the thread's MachineWindow. Window pointers of D programs are offsets
//     in it, as in
//                      the kernel; its header leaves bytes kFrameOffset..kFrameEnd to the frame of
//                      the running program
//     kMachineRegionRing     an event ring; the payload of an event is a D record
//     (MachineRecordHeader first)
//   mapped in the process:
//     MachineProcess         made by the tracer for this process, read-only there: where the rest
//     is the session's arrays (shared state, globals, dynamic variables, aggregations,
//     descriptors):
//                      the very maps of the kernel's programs. The globals lie below 2 GiB, so that
//                      code reaches them by absolute 32-bit addresses
//   in the code area, once per session and extent:
//     the D runtime    runtime/d_blob.h: a copy knows its session by constants in it, which the
//                      tracer sets before the copy is used (MachinePlace)
//
// Context::generation (abi/context.h) is the low half of MachineShared::activity: a D session has
// no generations, and its shared state is below 2 GiB, too.
//
// The accessors are those of abi/machine/accessor.h, compiled for the process from the same
// sources. All of a firing runs while the slot is busy: a probe that is hit inside of one is
// counted, not run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/machine/accessor.h"
#include "abi/machine/window.h"
#include "abi/region.h"
#include "abi/stub.h"

namespace clew::abi {

inline constexpr uint32_t kMachineRegionWindow = 0x1000;
inline constexpr uint32_t kMachineRegionRing = 0x18000;
static_assert(kMachineRegionRing >= kMachineRegionWindow + sizeof(MachineWindow));
inline constexpr uint32_t kMachineRingSizeLog2 = 17;
inline constexpr uint32_t kMachineRegionSizeLog2 = 18;
inline constexpr uint32_t kMachineWindowSizeLog2 = 16;
static_assert(1U << kMachineWindowSizeLog2 == kMachineWindowBytes);
static_assert(kWindowSlackBytes <= kMachineWindowSlackBytes);

// An event of the ring (abi/region.h): uint32 size with this head, uint32 kMachineEventShape,
// uint64 MachineRecordHeader::time_ns, then the record. It is larger than a query's may be, and may
// run as far past the ring's end.
inline constexpr uint32_t kMachineEventShape = 0x4454'7263;  // "crTD"
inline constexpr uint32_t kMachineEventHeadBytes = 16;
inline constexpr uint32_t kMachineEventBytesMax = kMachineEventHeadBytes + kMachineRecordBytesMax;
static_assert(kMachineRegionRing + (1U << kMachineRingSizeLog2) + kMachineEventBytesMax <=
              1U << kMachineRegionSizeLog2);

// What only programs in processes call, besides MachineAccessor; numbers go on behind those. The
// engine of processes composes a firing of them and of clauses (src/plan/d/firing.h).
enum class MachineProcessAccessor : uint32_t {
  // (w, cookie, MachineActivity) 1: the firing runs, and the window is ready for its first clause.
  // The cookie is the probe's id << 32 | the index of its enabling, as in the kernel.
  Begin = static_cast<uint32_t>(MachineAccessor::End),
  // (w, cookie, MachineActivity | kMachineAtReturn or kMachineAtOffset, pc) the same, and notes the
  // program's registers: for ustack(), ucaller, uregs[] and arguments on the stack. The stub must
  // have saved kAllSaved (abi/stub.h).
  BeginWithRegisters,
  StackArguments,  // (w): arg6..arg9 of a function's entry, 0 what cannot be read.
  AfterClause,     // (w): 1 when the ERROR clauses are to run.
  AfterError,      // (w)
  Thread,          // (w): the ids of the process and the thread, never 0. No Begin is needed.
  Clear,           // (w, offset, size): sets this part of the window to zero.
  // BuiltinInteger and BuiltinString of a constant MachineBuiltin: number Builtin + it.
  Builtin,
  End = Builtin + 64,
};
inline constexpr uint32_t kMachineProcessAccessorsEnd =
    static_cast<uint32_t>(MachineProcessAccessor::End);

inline constexpr uint64_t kMachineAtOffset =
    0x100;  // An offset point: no frame, flags were pushed.
// A return point: the registers are those behind the return, as a uretprobe has them.
inline constexpr uint64_t kMachineAtReturn = 0x200;

inline constexpr uint64_t kMachineProcessMagic = 0x3353'5345'434F'5244;  // "DROCESS3"

struct MachineProcess {
  uint64_t magic;
  // Addresses in this process.
  uint64_t shared;        // MachineShared, below 2 GiB.
  uint64_t globals;       // Below 2 GiB.
  uint64_t dynamic;       // abi/machine/dynamic.h
  uint64_t aggregates;    // abi/machine/tables.h
  uint64_t variables;     // MachineVariable[]
  uint64_t aggregations;  // MachineAggregationTable[]
  uint64_t enabled;       // MachineEnabled[]
  uint64_t names;         // Texts of the probes' names.
  uint64_t literals;  // To be copied to kMachineLocalOffset of each window before its first firing.
  uint64_t clock;     // The vDSO's clock_gettime; 0 = by system call.
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
  // Of the process alone.
  uint64_t stamp;            // Not 0, another one for each session: windows that have it are ready.
  uint64_t clock_offset_ns;  // Added to CLOCK_MONOTONIC here: another time namespace; else 0.
  uint64_t has_rdpid;        // The CPU has rdpid (CPUID 7.0 ECX bit 22).
  uint64_t session;          // Its index in the arena.
};
static_assert(sizeof(MachineProcess) == 288);

// The constants of a copy of the D runtime.
struct MachinePlace {
  uint64_t low_address;  // A (abi/slot.h).
  uint64_t window;       // Offset in a slot of the window: of the region + kMachineRegionWindow.
  uint64_t process;      // Address of the MachineProcess.
};
static_assert(offsetof(MachinePlace, window) == 8);
static_assert(offsetof(MachinePlace, process) == 16);
static_assert(sizeof(MachinePlace) == 24);

}  // namespace clew::abi
