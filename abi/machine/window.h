// SPDX-License-Identifier: Apache-2.0
// What the programs of a D script share with the engine that runs them: the window of one firing,
// the session's shared state, the records they emit, and the descriptors of variables and
// aggregations.
//
// A firing owns one window from the first clause to the last. Window addresses in D programs are
// offsets, and offset 0 is the NULL string. A D *pointer* to window memory (alloca, a string taken
// as char *) is kWindowTag | offset, which is no canonical address, so that one load accessor can
// tell both kinds apart.
//
//     0x0000  MachineWindowHeader
//     0x0400  key: the tuple of the dynamic variable or aggregation at hand     (kKeyBytesMax)
//     0x1400  record: MachineRecordHeader and the clause's fields (kRecordBytesMax) 0x5400  this->
//     variables, temporaries (laid out by src/plan/d), then alloca's scratch 0x10000 end; accesses
//     may run kMachineWindowSlackBytes past it, and nobody reads that 0x12000 text of strtok() and
//     room for paths and stacks, of the engine  (kMachinePrivateBytes)
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/aggregate.h"
#include "abi/region.h"

namespace clew::abi {

inline constexpr uint32_t kMachineKeyOffset = 0x0400;
inline constexpr uint32_t kMachineKeyBytesMax = 0x1000;
inline constexpr uint32_t kMachineRecordOffset = 0x1400;
inline constexpr uint32_t kMachineRecordBytesMax = 0x4000;
inline constexpr uint32_t kMachineLocalOffset = 0x5400;
inline constexpr uint32_t kMachineWindowBytes = 0x10000;
inline constexpr uint32_t kMachineWindowSlackBytes = 0x2000;
inline constexpr uint32_t kMachinePrivateBytes = 0x4000;
inline constexpr uint64_t kMachineWindowTag = 0xD7AC'0000'0000'0000;
inline constexpr uint64_t kMachineWindowTagMask = 0xFFFF'0000'0000'0000;
// The same for a part of a global array or struct, by its offset in the globals: &a[1].
inline constexpr uint64_t kMachineGlobalTag = 0xD7AD'0000'0000'0000;
inline constexpr uint32_t kMachineStringBytesMax = 4096;  // -xstrsize at most.
inline constexpr uint32_t kMachineCopyBytesMax = 4096;    // Of one copy by an accessor.

// Faults (DTRACEFLT_*): the values that ERROR's arg4 has.
enum class MachineFault : uint64_t {
  None = 0,
  BadAddress = 1,
  BadAlignment = 2,
  IllegalOperation = 3,
  DivideByZero = 4,
  NoScratch = 5,
  KernelPrivilege = 6,
  UserPrivilege = 7,
  TupleOverflow = 8,
  BadStack = 9,
  BadSize = 10,
  BadIndex = 11,
  // Not DTrace's: no error is reported, the clause ends (a dynamic variable drop was counted).
  Dropped = 64,
};

struct MachineWindowHeader {
  uint64_t reserved_null[2];  // Always 0: the NULL string, and what an absent string reads as.
  uint64_t busy;              // A firing owns the window.
  uint64_t arguments[10];     // arg0..arg9
  uint32_t probe;             // Probe id.
  uint32_t clause;            // Of the program that runs, for faults and records.
  uint64_t timestamp;         // `timestamp` of this firing; 0 = not asked yet.
  uint64_t fault;             // MachineFault; the clause ends when it is set.
  uint64_t fault_value;       // The address, id or index at fault.
  uint64_t fault_pc;          // Instruction of the program, as its own index.
  uint64_t speculation;       // Records of this clause go to the one of this key; 0 = none.
  uint64_t alloca_top;        // Next free byte of scratch; set to scratch_begin before each clause.
  uint64_t scratch_begin;
  uint64_t registers;  // Kernel address of the user's pt_regs; 0 = not known.
  uint64_t kernel_pc;  // Of a profile firing in the kernel; else 0.
  uint64_t user_pc;
  uint64_t errno_value;  // syscall return probes: errno; else 0.
  uint64_t in_error;     // ERROR clauses run.
  uint64_t context;      // The kernel's own context pointer is never here; 0.
  // Of the engine; no program looks at them.
  uint64_t run_when;      // MachineActivity in which this firing's clauses run.
  uint64_t exit_pending;  // exit() was called by the clause that runs.
  uint64_t enabling;      // Index in the session's list of enabled probes.
  uint64_t token_offset;  // Where strtok() is in token_text, while it runs.
  uint64_t vtimestamp;    // `vtimestamp` of this firing; 0 = not asked yet.
  // In a process the program's frame: where abi/region.h has it.
  uint64_t frame[64];
  uint64_t kept_arguments[6];  // Of the probe while its ERROR clauses run.
  uint64_t kept_probe;
  uint64_t kept_clause;
  uint64_t has_stack;      // A clock's firing: the kernel's stack was taken by the main program,
  uint64_t stack_bytes;    // this much of it, to clock_stack.
  uint64_t forgotten;      // Room for one word, see runtime/kernel/bpf.h.
  uint64_t second_result;  // Of functions that have two, or three.
  uint64_t third_result;
  uint64_t ready;   // In a process: MachineProcess::stamp once the literals are in the window.
  uint64_t random;  // In a process: state of rand().
  uint64_t frame_address;  // At a function, in the kernel: of the call's return address.
  uint64_t thread;         // In the kernel: who fires; 0 = not asked yet.
  uint64_t reserved[15];
};
static_assert(offsetof(MachineWindowHeader, busy) == 16);
static_assert(offsetof(MachineWindowHeader, clause) == 108);
static_assert(offsetof(MachineWindowHeader, fault_value) == 128);
static_assert(offsetof(MachineWindowHeader, fault_pc) == 136);
static_assert(offsetof(MachineWindowHeader, alloca_top) == 152);
static_assert(offsetof(MachineWindowHeader, scratch_begin) == 160);
static_assert(offsetof(MachineWindowHeader, registers) == 168);
static_assert(offsetof(MachineWindowHeader, kernel_pc) == 176);
static_assert(offsetof(MachineWindowHeader, user_pc) == 184);
static_assert(offsetof(MachineWindowHeader, errno_value) == 192);
static_assert(offsetof(MachineWindowHeader, in_error) == 200);
static_assert(offsetof(MachineWindowHeader, context) == 208);
static_assert(offsetof(MachineWindowHeader, run_when) == 216);
static_assert(offsetof(MachineWindowHeader, exit_pending) == 224);
static_assert(offsetof(MachineWindowHeader, enabling) == 232);
static_assert(offsetof(MachineWindowHeader, token_offset) == 240);
static_assert(offsetof(MachineWindowHeader, vtimestamp) == 248);
static_assert(offsetof(MachineWindowHeader, kept_probe) == 816);
static_assert(offsetof(MachineWindowHeader, kept_clause) == 824);
static_assert(offsetof(MachineWindowHeader, has_stack) == 832);
static_assert(offsetof(MachineWindowHeader, stack_bytes) == 840);
static_assert(offsetof(MachineWindowHeader, forgotten) == 848);
static_assert(offsetof(MachineWindowHeader, second_result) == 856);
static_assert(offsetof(MachineWindowHeader, third_result) == 864);
static_assert(offsetof(MachineWindowHeader, ready) == 872);
static_assert(offsetof(MachineWindowHeader, random) == 880);
static_assert(offsetof(MachineWindowHeader, frame_address) == 888);
static_assert(offsetof(MachineWindowHeader, thread) == 896);
static_assert(offsetof(MachineWindowHeader, frame) == kFrameOffset);
static_assert(offsetof(MachineWindowHeader, kept_arguments) == kFrameEnd);
static_assert(offsetof(MachineWindowHeader, arguments) == 24);
static_assert(offsetof(MachineWindowHeader, probe) == 104);
static_assert(offsetof(MachineWindowHeader, timestamp) == 112);
static_assert(offsetof(MachineWindowHeader, fault) == 120);
static_assert(offsetof(MachineWindowHeader, speculation) == 144);
static_assert(sizeof(MachineWindowHeader) == kMachineKeyOffset);

struct MachineWindow {
  MachineWindowHeader header;
  uint8_t bytes[kMachineWindowBytes - sizeof(MachineWindowHeader)];
  uint8_t slack[kMachineWindowSlackBytes];
  uint8_t token_text[kMachinePrivateBytes / 4];
  uint8_t clock_stack[kMachinePrivateBytes / 4];
  uint8_t scratch[kMachinePrivateBytes / 2];
};
static_assert(sizeof(MachineWindow) ==
              kMachineWindowBytes + kMachineWindowSlackBytes + kMachinePrivateBytes);

// --- records -------------------------------------------------------------------------------------

enum class MachineRecordKind : uint32_t {
  Data,    // Fields of a clause.
  Commit,  // Of `speculation`: what it held is now for output, at this place.
  Discard,
  Error,  // A fault: MachineErrorRecord follows.
  Exit,   // exit() was called, as MachineShared says: this one may be lost. Wakes the reader.
};

struct MachineRecordHeader {
  uint32_t size_bytes;  // With this header, a multiple of 8.
  MachineRecordKind kind;
  uint32_t probe;
  uint32_t clause;
  uint32_t cpu;
  uint32_t speculation;  // Its machine_speculation_key; 0 = for output at once.
  uint64_t time_ns;      // CLOCK_MONOTONIC
};
static_assert(offsetof(MachineRecordHeader, kind) == 4);
static_assert(offsetof(MachineRecordHeader, probe) == 8);
static_assert(offsetof(MachineRecordHeader, clause) == 12);
static_assert(offsetof(MachineRecordHeader, cpu) == 16);
static_assert(offsetof(MachineRecordHeader, speculation) == 20);
static_assert(offsetof(MachineRecordHeader, time_ns) == 24);
static_assert(sizeof(MachineRecordHeader) == 32);

struct MachineErrorRecord {
  MachineRecordHeader header;
  uint64_t fault;
  uint64_t value;
  uint64_t pc;
};
static_assert(offsetof(MachineErrorRecord, fault) == 32);
static_assert(offsetof(MachineErrorRecord, value) == 40);
static_assert(offsetof(MachineErrorRecord, pc) == 48);
static_assert(sizeof(MachineErrorRecord) == 56);

// --- session state, shared by all programs and the collector
// --------------------------------------

enum class MachineActivity : uint64_t {
  Inactive = 0,  // No probe fires but BEGIN.
  Active = 1,
  Draining = 2,  // exit() was called: nothing fires but END.
  Stopped = 3,
};

inline constexpr uint32_t kMachineCpusMax = 1024;
inline constexpr uint32_t kMachineSpeculationsMax = 1024;

// Losses, counted by the accessors; the collector reports differences.
struct MachineLosses {
  uint64_t principal[kMachineCpusMax];    // Records without room, by CPU.
  uint64_t aggregation[kMachineCpusMax];  // Updates without room, by CPU.
  uint64_t dynamic;                       // Dynamic variables without room.
  uint64_t speculative;                   // Records beyond specsize.
  uint64_t speculation_unavailable;
  uint64_t speculation_busy;
  uint64_t error_in_error;
  uint64_t nested;  // No window was free (a probe inside probes).
  uint64_t stack_overflow;
  uint64_t fuel;        // Firings that loops of extensions ended.
  uint64_t left_alone;  // In processes, not begun: their probe had no fuel eight times.
};

// An id is free again as soon as it is discarded, and the collector may meet records of its next
// use before it has read of that: the generation tells one use from the other.
struct MachineSpeculation {
  uint64_t state;  // 0 free, 1 active, 2 committing (the collector frees it), 3 discarding.
  uint64_t bytes;  // Held.
  uint64_t generation;
};
static_assert(offsetof(MachineSpeculation, bytes) == 8);
static_assert(offsetof(MachineSpeculation, generation) == 16);
static_assert(sizeof(MachineSpeculation) == 24);

inline constexpr uint32_t kMachineSpeculationIdBits = 11;
static_assert(kMachineSpeculationsMax < 1U << kMachineSpeculationIdBits);

constexpr uint32_t machine_speculation_key(uint64_t id, uint64_t generation) {
  return static_cast<uint32_t>(generation << kMachineSpeculationIdBits | id);
}
constexpr uint32_t machine_speculation_id(uint64_t key) {
  return static_cast<uint32_t>(key & ((1U << kMachineSpeculationIdBits) - 1));
}

struct MachineShared {
  uint64_t activity;  // MachineActivity
  uint64_t exit_code;
  uint64_t exit_called;  // 1 once exit_code is that of an exit().
  uint64_t begin_cpu;
  uint64_t wall_offset_ns;  // CLOCK_REALTIME - CLOCK_MONOTONIC at the start.
  MachineLosses losses;
  MachineSpeculation speculations[kMachineSpeculationsMax];
};
static_assert(offsetof(MachineShared, exit_code) == 8);
static_assert(offsetof(MachineShared, exit_called) == 16);
static_assert(offsetof(MachineShared, begin_cpu) == 24);
static_assert(offsetof(MachineShared, wall_offset_ns) == 32);
static_assert(offsetof(MachineShared, losses) == 40);
static_assert(offsetof(MachineShared, speculations) == 16496);
static_assert(sizeof(MachineShared) == 41072);

// --- descriptors: constant for a session
// -----------------------------------------------------------

inline constexpr uint32_t kMachineVariablesMax = 1024;
inline constexpr uint32_t kMachineAggregationsMax = 512;
inline constexpr uint32_t kMachineSymbolKeysMax = 8;

// A thread-local or associative variable. An entry's key is: the variable's number, the thread
// (0 when it is global), and key_bytes of the window's key area, all of whose bytes are set.
struct MachineVariable {
  uint32_t key_bytes;    // A multiple of 8.
  uint32_t value_bytes;  // 8 for scalars; a multiple of 8.
  uint32_t is_thread;
  uint32_t reserved;
};
static_assert(offsetof(MachineVariable, value_bytes) == 4);
static_assert(offsetof(MachineVariable, is_thread) == 8);
static_assert(sizeof(MachineVariable) == 16);

// Cells of a key: Count, Sum, Min, Max: 1 word. Average: count, sum. StandardDeviation: count, sum,
// sum of squares (128 bits, low word first). Quantize: 127 buckets (63 negative, 0, 63 positive).
// Lquantize, Llquantize: their buckets. How many words: machine_cell_words() in abi/buckets.h.
// All of them begin with a word that counts updates, so that an untouched cell is known: cells[0].
struct MachineAggregation {
  AggregateFunction function;
  uint32_t key_bytes;   // A multiple of 8.
  uint32_t cell_words;  // The word of updates included.
  uint32_t reserved;
  int64_t parameters[4];  // lquantize: base, limit, step. llquantize: factor, low, high, steps.
  uint64_t generation;    // Raised by the collector to clear: older cells count as none.
};
static_assert(offsetof(MachineAggregation, key_bytes) == 4);
static_assert(offsetof(MachineAggregation, cell_words) == 8);
static_assert(offsetof(MachineAggregation, parameters) == 16);
static_assert(offsetof(MachineAggregation, generation) == 48);
static_assert(sizeof(MachineAggregation) == 56);

struct MachineConfiguration {
  uint64_t string_bytes;  // strsize, rounded up to 8.
  uint64_t speculation_bytes_max;
  uint64_t speculations;  // nspec
  uint64_t target_pid;
  uint64_t tracer_pid;
  uint64_t user_frames_max;
  MachineVariable variables[kMachineVariablesMax];
};
static_assert(offsetof(MachineConfiguration, speculation_bytes_max) == 8);
static_assert(offsetof(MachineConfiguration, speculations) == 16);
static_assert(offsetof(MachineConfiguration, target_pid) == 24);
static_assert(offsetof(MachineConfiguration, tracer_pid) == 32);
static_assert(offsetof(MachineConfiguration, user_frames_max) == 40);
static_assert(offsetof(MachineConfiguration, variables) == 48);
static_assert(sizeof(MachineConfiguration) == 16432);

}  // namespace clew::abi
