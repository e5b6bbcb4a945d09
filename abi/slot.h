// SPDX-License-Identifier: Apache-2.0
// A slot: one thread's control block and regions in the arena, and how instructions reach them.
//
// A = the low address (< 2 GiB) of the arena's low block, fixed at attach. A thread that owns slot
// i has gs base = slot_address(i) - A; a thread that owns none has gs base 0 and sees the default
// slot at A itself. So `gs:[A + x]` is byte x of the thread's slot in both cases, without a fault.
// Code that needs the slot's own address has it from `gs:[A + index]`: reading gs base takes an
// instruction that not every machine allows (ArenaHeader::bases).
//
// Ownership check of every stub (flags and r10 are free there):
//     mov r10, fs:[0]              the thread's TCB self pointer
//     add r10, [A + kCookieOffset] this process's cookie; wiped to 0 in a forked child
//     cmp r10, gs:[A + owner]
//     jne slow                     runtime claim: takes a free slot and sets gs base
// Where fs:0 is not the self pointer in all threads, `rdfsbase r10` comes first instead; where that
// is not allowed either, the check is `jmp slow`, and the claim asks the kernel at each hit.
// The default slot's owner is 0 and never matches. A new thread inherits its parent's gs base but
// has another TCB, so it falls into `slow` as well, and so does every thread of a forked child.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clew::abi {

struct SlotControl {
  uint64_t owner;  // fs:0 + cookie of the owning thread; 0 = free. Last thing a claim writes.
  uint64_t busy;   // rsp of the guarded probe that runs now; 0 = none.
  uint32_t tid;  // gettid() of the owner; 0 = free; kTidUnknown when system calls are not allowed.
  uint32_t process;  // 0 = attached process, 1.. = followed children (TargetPage::processes).
  uint64_t claims;   // How often this slot was claimed; lets the collector see a change of owner.
  uint32_t index;    // Of this slot; written by each claim, and to be checked by who reads it.
  uint32_t reserved_word;
  uint64_t reserved[27];
};
static_assert(offsetof(SlotControl, process) == 20);
static_assert(offsetof(SlotControl, claims) == 24);
static_assert(offsetof(SlotControl, busy) == 8);
static_assert(offsetof(SlotControl, tid) == 16);
static_assert(offsetof(SlotControl, index) == 32);
static_assert(sizeof(SlotControl) == 256);

inline constexpr uint32_t kTidUnknown = 0xFFFF'FFFF;
inline constexpr uint32_t kTidReserved = 0xFFFF'FFFE;  // Being freed by the collector.

// The directory word of slot i (abi/arena.h) is 0, or who took slot i last. A thread takes a slot
// by a compare-and-swap of its directory word, from 0, or from another owner when the slot's tid is
// 0: so the collector frees the slot of a dead thread by zeroing `owner`, then `tid`, and need not
// know the directory. Two claims may overlap while a tid is still 0; the one that finds the
// directory word changed at its end tries elsewhere, and the other repairs the slot at its next
// hit.
inline constexpr uint32_t kSlotsMax = 4096;
inline constexpr uint32_t kSlotControlSizeBytes = sizeof(SlotControl);

}  // namespace clew::abi
