// SPDX-License-Identifier: Apache-2.0
// The tables between the kernel programs of a D session and their loader: aggregations, enabled
// probes. The windows and the shared state are in abi/d_window.h.
//
// Each CPU has a table of its own for each aggregation: `entries` entries of `entry_bytes` from
// `begin` on, searched from the place of the key's hash on, kDProbesMax entries far.
//
//     DAggregateHead
//     key         key_bytes
//     cells       cell_words; cells[0] counts updates, and is all that count() changes
//
// The collector takes what an entry holds by exchanging its cells with the neutral value, then
// subtracting from cells[0] the updates that it saw; an update changes the value first and counts
// itself last. So each update is in exactly one of the collector's views. An entry that counts no
// update is empty and may be given to another key; kDPending in cells[0] keeps that from happening
// between the claim of an entry and its first update.
//
//     cells[0]   63 kDPending | 56-62 pins | 40-55 tag | 0-39 updates
//
// A thread of a process may be preempted between finding an entry and changing it. So it changes
// cells[0] by compare-exchange alone, and only while the tag is still that of the state under which
// it saw its key: who gives an entry to another key changes the tag first of all. What is more than
// a count is pinned meanwhile. The kernel's programs are not preempted there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/d_window.h"

namespace clew::abi {

inline constexpr uint32_t kDWindowsPerCpu = 4;
inline constexpr uint64_t kDProbesMax = 64;
inline constexpr uint64_t kDPending = uint64_t{1} << 63;
inline constexpr uint64_t kDPin = uint64_t{1} << 56;
inline constexpr uint64_t kDPinMask = uint64_t{0x7F} << 56;
inline constexpr uint64_t kDTagMask = uint64_t{0xFFFF} << 40;
inline constexpr uint64_t kDUpdatesMask = (uint64_t{1} << 40) - 1;
// Behind the tables: an access may run this far past an entry's begin, and nobody reads that.
inline constexpr uint64_t kDAggregateSlackBytes = 0x20'0000;
// lquantize() has 65,535 levels at most, two buckets around them, and the word of updates.
inline constexpr uint32_t kDCellWordsMax = 0xFFFF + 3;

enum class DAggregateState : uint64_t { Unused = 0, Claimed = 1, Used = 2 };

struct DAggregateHead {
  uint64_t state;  // version << 2 | DAggregateState
  uint64_t hash;
};
static_assert(sizeof(DAggregateHead) == 16);

// The tag that cells[0] has under a state.
[[gnu::always_inline]] constexpr uint64_t tag_of(uint64_t state) {
  return ((state >> 2) << 40) & kDTagMask;
}
// Whether nobody has counted, nor is about to.
[[gnu::always_inline]] constexpr bool is_untouched(uint64_t updates) {
  return (updates & ~kDTagMask) == 0;
}

struct DAggregationTable {
  DAggregation aggregation;
  uint64_t begin;  // In each CPU's part.
  uint64_t entries;
  uint64_t entry_bytes;
  uint64_t steps;  // llquantize: log_linear_steps(). lquantize: linear_steps().
};
static_assert(sizeof(DAggregationTable) == 88);

// One enabled probe.
struct DEnabled {
  uint32_t probe;
  uint32_t names[4];          // Offsets of provider, module, function and name in the texts.
  uint32_t provider_has_pid;  // The provider's name goes on with the pid of who fires.
};
static_assert(sizeof(DEnabled) == 24);

// The lock function that a thread entered last, and what it found there. Kinds of locks:
enum class DLockKind : uint64_t { Mutex, Read, Write };
struct DEntered {
  uint64_t lock;      // The function's first argument.
  uint64_t stack;     // The stack pointer at the entry: nested calls have others.
  uint64_t function;  // Its offset in the file << kDLockKindBits | DLockKind
  uint64_t has_waited;
};
inline constexpr uint64_t kDLockKindBits = 2;
inline constexpr uint64_t kDLockBytesMax = 64;  // Of a pthread_mutex_t or pthread_rwlock_t.

// Code of the kernel: [begin, end).
struct DCodeRange {
  uint64_t begin;
  uint64_t end;
};

inline constexpr uint32_t kDSystemCallsMax = 1024;

}  // namespace clew::abi
