// SPDX-License-Identifier: Apache-2.0
// The arena: everything Clew maps in a traced process. Two memfds per process, shared by all
// sessions on that process; the tracer holds the descriptors, the target closes its own.
//
//   low block, at A < 2 GiB (MAP_FIXED_NOREPLACE), reached by absolute 32-bit addresses:
//     A            PrivatePage   anonymous, private, RW, MADV_WIPEONFORK: zero in a forked child
//     A + 4096     readings      the same, one Reading per slot
//     A + 266240   ArenaHeader   code file, R (one page)
//     A + 270336   directory     slots file, RW: one word per slot: who took it last, 0 = nobody
//                                yet. So that a claim does not pay a page for each slot it looks at
//     A + 303104   TargetPage    slots file, RW: what the target says about itself, and who its
//     followed
//                                children are
//   journal        code file, R: abi/journal.h. Mapped so that a tracer without the descriptor and
//                  without privileges can still read how to undo everything
//   code area      code file, R-X, cut into extents. Each extent begins with a copy of the blob of
//                  runtime/, then trampolines; it is mapped a second time where it is needed,
//                  within rel32 reach of the modules it serves (mremap of a shared mapping with old
//                  size 0 needs no descriptor in the target)
//   slots          slots file, RW: slot_count * stride bytes of address space, touched lazily
//
// The tracer writes code through its own mapping of the code file; no page of the target is W and
// X. A forked child keeps all of this and may have fewer rights than its parent, which goes on to
// run it. So the target maps the code file through a descriptor that was opened for reading, which
// no mprotect(2) can change, and whatever decides where the runtime reads, writes or goes is in
// that file. Two files, since remap_file_pages(2) turns a writable mapping of a file into one of
// any other part of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/region.h"
#include "abi/slot.h"

namespace clew::abi {

inline constexpr uint64_t kArenaMagic = 0x31414e4552415743;  // "CWARENA1", little endian.
inline constexpr uint32_t kArenaVersion = 13;
inline constexpr uint32_t kSessionsMax = 8;
inline constexpr uint32_t kProcessesMax = 16'384;  // Followed children, in all of a session.
inline constexpr uint32_t kCookieOffset = 2048;    // Of PrivatePage::cookie.
inline constexpr uint32_t kReadingsOffset = 4096;  // Of the readings, from A.
inline constexpr uint32_t kReadingsSizeBytes = 64 * kSlotsMax;
inline constexpr uint32_t kPrivateSizeBytes = kReadingsOffset + kReadingsSizeBytes;
inline constexpr uint32_t kHeaderOffset = kPrivateSizeBytes;        // Of ArenaHeader, from A.
inline constexpr uint32_t kDirectoryOffset = kHeaderOffset + 4096;  // Of the directory, from A.
inline constexpr uint32_t kDirectorySizeBytes = 8 * kSlotsMax;
inline constexpr uint32_t kTargetPageOffset = kDirectoryOffset + kDirectorySizeBytes;  // From A.
inline constexpr uint32_t kSpentWords = 256;  // Of a session.
inline constexpr uint32_t kObjectsLog2 = 16;  // Of each session.
inline constexpr uint32_t kTargetPageSizeBytes =
    4096 + 8 * kProcessesMax + 4 * kSpentWords * kSessionsMax + (16 << kObjectsLog2) * kSessionsMax;
inline constexpr uint32_t kLowBlockSizeBytes = kTargetPageOffset + kTargetPageSizeBytes;

struct PrivatePage {
  SlotControl default_slot;  // All zero, for ever.
  uint8_t reserved_low[kCookieOffset - sizeof(SlotControl)];
  uint64_t cookie;  // This process's cookie: process index + 1, in bits 48..63; 0 = forked child.
  uint32_t muted;   // 1: a forked child that was counted in forks_muted and runs no probe.
  // getpid() of this process: of the traced one the tracer writes it, since a vfork child has this
  // page, too; a forked child asks once; 0 = not yet.
  uint32_t pid;
  uint8_t reserved_high[4096 - kCookieOffset - 16];
};
static_assert(offsetof(PrivatePage, muted) == 2056);
static_assert(offsetof(PrivatePage, pid) == 2060);
static_assert(offsetof(PrivatePage, cookie) == kCookieOffset);
static_assert(sizeof(PrivatePage) == 4096);

// What a thread's accessor hands to process_vm_readv(2), by slot: not on the program's stack, of
// which there may be little, and not in the slot, where others may write between its stores and the
// call. Two iovecs, and the whole destination. Loads (runtime/load.h) go by it, too.
struct Reading {
  uint64_t to;
  uint64_t to_size;
  uint64_t from;
  uint64_t from_size;
  uint64_t begin;
  uint64_t end;
  uint64_t reserved[2];
};
static_assert(offsetof(Reading, to_size) == 8);
static_assert(offsetof(Reading, from) == 16);
static_assert(offsetof(Reading, from_size) == 24);
static_assert(offsetof(Reading, begin) == 32);
static_assert(offsetof(Reading, end) == 40);
static_assert(sizeof(Reading) * kSlotsMax == kReadingsSizeBytes);

enum class ForkPolicy : uint32_t {
  Mute = 0,    // A forked child runs no probe.
  Follow = 1,  // A forked child claims slots of its own, marked with its process index.
};

// How a thread reads and sets its segment bases. The kernel says in AT_HWCAP2 (bit 1, Linux 5.9)
// whether programs may use rdgsbase and its like; that they can be executed proves nothing.
enum class SegmentBases : uint32_t {
  Instructions = 0,
  SystemCall = 1,  // arch_prctl(2)
  // The process forbids itself that call: only the tracer, in a stopped thread. Threads that come
  // later have no slot.
  Tracer = 2,
};

// One session's entry. `generation` is read by programs (Context::generation).
struct SessionEntry {
  uint32_t state;  // 0 = free, 1 = in use.
  uint32_t tracer_pid;
  uint64_t tracer_start_time;  // Field 22 of /proc/PID/stat: a recycled pid is not the tracer.
  uint32_t region_offset;      // In the slot, from its first byte.
  uint32_t generation;         // 0 or 1.
  RegionLayout layout;
  uint64_t unwind_tables;  // In the target, as abi/machine/unwind.h has them in a file; 0 = none.
  uint64_t unwind_rows;    // Room for so many.
};
static_assert(offsetof(SessionEntry, tracer_pid) == 4);
static_assert(offsetof(SessionEntry, tracer_start_time) == 8);
static_assert(offsetof(SessionEntry, region_offset) == 16);
static_assert(offsetof(SessionEntry, generation) == 20);
static_assert(offsetof(SessionEntry, layout) == 24);
static_assert(offsetof(SessionEntry, unwind_tables) == 24 + sizeof(RegionLayout));

// Values of ArenaHeader::tid_offset. A program that sandboxes itself after the attach may die of a
// system call that it does not expect, so the C library's own note of the tid is read if it is
// known.
inline constexpr uint64_t kTidFromNobody = 0;
inline constexpr uint64_t kTidFromKernel = 1;
inline constexpr uint64_t kTidOffsetMax = 4095;

// Written by tracers only.
struct ArenaHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t slot_count;
  uint64_t slots_address;      // In the target.
  uint64_t slot_stride;        // Bytes.
  uint64_t low_address;        // A.
  uint64_t slots_file_offset;  // In the slots file; the other offsets are in the code file.
  ForkPolicy fork_policy;
  uint32_t system_calls_allowed;  // 0 when the target filters system calls (seccomp).
  uint32_t keeps_self_pointer;    // 1: fs:[0] is the thread pointer; 0: it has to be asked for.
  uint32_t lock_owner;            // pid of the tracer that changes the arena; 0 = none.
  uint32_t pid;                   // Of the traced process, as the tracer knows it.
  SegmentBases bases;
  SessionEntry sessions[kSessionsMax];
  uint32_t loader_answers[kSessionsMax];  // Futexes: see TargetPage::loader_requests.
  uint32_t loader_wait_ms;                // How long at most.
  uint32_t reserved_word2;
  uint64_t journal_address;  // In the target.
  uint64_t journal_file_offset;
  uint64_t code_address;  // Of the whole code area, in the target.
  uint64_t code_file_offset;
  uint64_t code_size_bytes;
  uint64_t tid_offset;  // Of a thread's tid, from its thread pointer, or one of the two below.
  // Of the load without a fault (inline/vdso_load.h), in the target; 0 = the kernel reads memory.
  uint64_t load_address;
  // Where the first thread's stack is and may grow.
  uint64_t stack_low;
  uint64_t stack_high;
  // Zero: the caller's frame of who is inside the load, for unwinders of the program.
  uint64_t no_frame[4];
  uint8_t reserved[4096 - 184 - 4 * kSessionsMax - kSessionsMax * sizeof(SessionEntry)];
};
static_assert(offsetof(ArenaHeader, version) == 8);
static_assert(offsetof(ArenaHeader, low_address) == 32);
static_assert(offsetof(ArenaHeader, slots_file_offset) == 40);
static_assert(offsetof(ArenaHeader, fork_policy) == 48);
static_assert(offsetof(ArenaHeader, system_calls_allowed) == 52);
static_assert(offsetof(ArenaHeader, keeps_self_pointer) == 56);
static_assert(offsetof(ArenaHeader, lock_owner) == 60);
static_assert(offsetof(ArenaHeader, pid) == 64);
static_assert(offsetof(ArenaHeader, bases) == 68);
static_assert(offsetof(ArenaHeader, loader_answers) == 1928);
static_assert(offsetof(ArenaHeader, loader_wait_ms) == 1960);
static_assert(offsetof(ArenaHeader, journal_address) == 1968);
static_assert(offsetof(ArenaHeader, journal_file_offset) == 1976);
static_assert(offsetof(ArenaHeader, code_address) == 1984);
static_assert(offsetof(ArenaHeader, code_file_offset) == 1992);
static_assert(offsetof(ArenaHeader, code_size_bytes) == 2000);
static_assert(offsetof(ArenaHeader, tid_offset) == 2008);
static_assert(offsetof(ArenaHeader, load_address) == 2016);
static_assert(offsetof(ArenaHeader, stack_low) == 2024);
static_assert(offsetof(ArenaHeader, stack_high) == 2032);
static_assert(offsetof(ArenaHeader, no_frame) == 2040);
static_assert(sizeof(SessionEntry) == 24 + sizeof(RegionLayout) + 16);
static_assert(offsetof(ArenaHeader, sessions) == 72);
static_assert(offsetof(ArenaHeader, slot_count) == 12);
static_assert(offsetof(ArenaHeader, slots_address) == 16);
static_assert(offsetof(ArenaHeader, slot_stride) == 24);
static_assert(sizeof(ArenaHeader) == 4096);

struct ProcessEntry {
  uint32_t pid;  // 0 = free.
  uint32_t parent;
};
static_assert(offsetof(ProcessEntry, parent) == 4);
static_assert(sizeof(ProcessEntry) == 8);

// Where the block of a context is that was handed over with an object (abi/region.h).
struct ObjectEntry {
  uint64_t tag;    // A hash of object and process; 0: nothing was ever here.
  uint64_t block;  // The slot of who wrote it << kObjectSlotShift | sequence number; 0: none.
};
static_assert(offsetof(ObjectEntry, block) == 8);
static_assert(sizeof(ObjectEntry) == 16);
inline constexpr uint32_t kObjectSlotShift = 48;
inline constexpr uint64_t kObjectInDoubt = UINT64_MAX;  // Put from nobody knows where.
// Of TargetPage::contexts_lost, set by the tracer: nothing is known any more, whatever begins.
inline constexpr uint64_t kContextsForbidden = uint64_t{1} << 63;
inline constexpr uint32_t kObjectProbesMax = 8;  // From tag >> (64 - kObjectsLog2) on, wrapping.

// Any of the processes that share the arena may write anything here: nothing in it is an address or
// decides where somebody reads or writes.
struct TargetPage {
  uint32_t process_count;  // Followed processes so far, the first one included (atomic).
  uint32_t forks_muted;    // Children that met a probe and were muted (atomic).
  uint64_t missed_no_slot[kSessionsMax];  // Hits without a slot (atomic; slow path only).
  // The loader's hook, one word per session. The loading thread adds 1 to `loader_requests`, wakes
  // the tracer, and waits until `loader_answers` is as large, or the time is over; then it clears
  // the session's bit, so that a tracer that is gone costs one delay, not one per dlopen. The
  // tracer sets the bit again with its answer.
  uint32_t loader_requests[kSessionsMax];  // Futexes.
  uint32_t loader_sessions;                // Bit s: session s wants to be waited for.
  uint32_t reserved_word;
  uint32_t unknown_code[kSessionsMax];  // Stacks that met code without a segment (atomic).
  // How often a probe was missed that could have been an act on contexts (atomic): a context that
  // is older is not believed.
  uint64_t contexts_lost[kSessionsMax];
  // How often an object was forgotten for another one (atomic): one that is not there may have
  // been.
  uint64_t objects_evicted[kSessionsMax];
  uint8_t reserved[4096 - 16 - 32 * kSessionsMax];
  ProcessEntry processes[kProcessesMax];  // The first one's is free. Touched as far as it is used.
  // By probe: how many hits of all threads, of the process and of its followed children together,
  // have used up their fuel (atomic). A probe reads its word before it calls what may use it up.
  uint32_t spent[kSessionsMax][kSpentWords];
  ObjectEntry objects[kSessionsMax][1U << kObjectsLog2];  // Touched as far as they are used.
};
static_assert(offsetof(TargetPage, forks_muted) == 4);
static_assert(offsetof(TargetPage, missed_no_slot) == 8);
static_assert(offsetof(TargetPage, loader_requests) == 72);
static_assert(offsetof(TargetPage, loader_sessions) == 104);
static_assert(offsetof(TargetPage, processes) == 4096);
static_assert(offsetof(TargetPage, contexts_lost) == 144);
static_assert(offsetof(TargetPage, objects_evicted) == 208);
static_assert(offsetof(TargetPage, spent) == 135168);
static_assert(offsetof(TargetPage, objects) == 143360);
static_assert(sizeof(TargetPage) == kTargetPageSizeBytes);
static_assert(kTargetPageSizeBytes % 4096 == 0);
static_assert(kProcessesMax < 0xFFFF);  // Cookies and SlotControl::process.

}  // namespace clew::abi
