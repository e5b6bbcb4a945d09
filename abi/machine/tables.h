// SPDX-License-Identifier: Apache-2.0
// The tables between the kernel programs of a D session and their loader: aggregations, enabled
// probes. The windows and the shared state are in abi/machine/window.h.
//
// Each CPU has a table of its own for each aggregation: `entries` entries of `entry_bytes` from
// `begin` on, searched from the place of the key's hash on, kMachineProbesMax entries far.
//
//     MachineAggregateHead
//     key         key_bytes
//     cells       cell_words; cells[0] counts updates, and is all that count() changes
//
// The collector takes what an entry holds by exchanging its cells with the neutral value, then
// subtracting from cells[0] the updates that it saw; an update changes the value first and counts
// itself last. So each update is in exactly one of the collector's views. An entry that counts no
// update is empty and may be given to another key; kMachinePending in cells[0] keeps that from
// happening between the claim of an entry and its first update.
//
//     cells[0]   63 kMachinePending | 56-62 pins | 40-55 tag | 0-39 updates
//
// A thread of a process may be preempted between finding an entry and changing it. So it changes
// cells[0] by compare-exchange alone, and only while the tag is still that of the state under which
// it saw its key: who gives an entry to another key changes the tag first of all. What is more than
// a count is pinned meanwhile. The kernel's programs are not preempted there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/machine/window.h"

namespace clew::abi {

inline constexpr uint32_t kMachineWindowsPerCpu = 4;
inline constexpr uint64_t kMachineProbesMax = 64;
inline constexpr uint64_t kMachinePending = uint64_t{1} << 63;
inline constexpr uint64_t kMachinePin = uint64_t{1} << 56;
inline constexpr uint64_t kMachinePinMask = uint64_t{0x7F} << 56;
inline constexpr uint64_t kMachineTagMask = uint64_t{0xFFFF} << 40;
inline constexpr uint64_t kMachineUpdatesMask = (uint64_t{1} << 40) - 1;
// Behind the tables: an access may run this far past an entry's begin, and nobody reads that.
inline constexpr uint64_t kMachineAggregateSlackBytes = 0x20'0000;
// lquantize() has 65,535 levels at most, two buckets around them, and the word of updates.
inline constexpr uint32_t kMachineCellWordsMax = 0xFFFF + 3;

enum class MachineAggregateState : uint64_t { Unused = 0, Claimed = 1, Used = 2 };

struct MachineAggregateHead {
  uint64_t state;  // version << 2 | MachineAggregateState
  uint64_t hash;
};
static_assert(offsetof(MachineAggregateHead, hash) == 8);
static_assert(sizeof(MachineAggregateHead) == 16);

// The tag that cells[0] has under a state.
[[gnu::always_inline]] constexpr uint64_t tag_of(uint64_t state) {
  return ((state >> 2) << 40) & kMachineTagMask;
}
// Whether nobody has counted, nor is about to.
[[gnu::always_inline]] constexpr bool is_untouched(uint64_t updates) {
  return (updates & ~kMachineTagMask) == 0;
}

struct MachineAggregationTable {
  MachineAggregation aggregation;
  uint64_t begin;  // In each CPU's part.
  uint64_t entries;
  uint64_t entry_bytes;
  uint64_t steps;  // llquantize: log_linear_steps(). lquantize: linear_steps().
};
static_assert(offsetof(MachineAggregationTable, begin) == 56);
static_assert(offsetof(MachineAggregationTable, entries) == 64);
static_assert(offsetof(MachineAggregationTable, entry_bytes) == 72);
static_assert(offsetof(MachineAggregationTable, steps) == 80);
static_assert(sizeof(MachineAggregationTable) == 88);

// One enabled probe.
struct MachineEnabled {
  uint32_t probe;
  uint32_t names[4];          // Offsets of provider, module, function and name in the texts.
  uint32_t provider_has_pid;  // The provider's name goes on with the pid of who fires.
};
static_assert(offsetof(MachineEnabled, names) == 4);
static_assert(offsetof(MachineEnabled, provider_has_pid) == 20);
static_assert(sizeof(MachineEnabled) == 24);

// The lock function that a thread entered last, and what it found there. Kinds of locks:
enum class MachineLockKind : uint64_t { Mutex, Read, Write };
struct MachineEntered {
  uint64_t lock;      // The function's first argument.
  uint64_t stack;     // The stack pointer at the entry: nested calls have others.
  uint64_t function;  // Its offset in the file << kMachineLockKindBits | MachineLockKind
  uint64_t has_waited;
};
static_assert(offsetof(MachineEntered, stack) == 8);
static_assert(offsetof(MachineEntered, function) == 16);
static_assert(offsetof(MachineEntered, has_waited) == 24);
static_assert(sizeof(MachineEntered) == 32);
inline constexpr uint64_t kMachineLockKindBits = 2;
inline constexpr uint64_t kMachineLockBytesMax = 64;  // Of a pthread_mutex_t or pthread_rwlock_t.

// Code of the kernel: [begin, end).
struct MachineCodeRange {
  uint64_t begin;
  uint64_t end;
};

inline constexpr uint32_t kMachineSystemCallsMax = 1024;

}  // namespace clew::abi
