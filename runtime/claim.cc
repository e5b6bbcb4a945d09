// SPDX-License-Identifier: Apache-2.0
// The slow paths of the ownership check: a thread without a slot takes one, a forked child becomes
// a process of its own or falls silent, and a guarded probe that finds another one running decides
// whether that one is still alive.
//
// Interrupted by: signal handlers that hit probes themselves, at any instruction. A nested claim of
// the same thread finds or takes the same directory word, so both end with the same slot.
#include "runtime/state.h"

namespace clew::runtime {
namespace {

constexpr uint32_t kPageWords = 512;     // Of the directory.
constexpr uint32_t kPageProbesMax = 16;  // In each page, before the next is touched.
constexpr uint32_t kDirectoryProbesMax = 256;
constexpr uint32_t kAttemptsMax = 4;
constexpr uint32_t kSignalStackOn = 1;  // SS_ONSTACK

struct SignalStack {
  uint64_t address;
  uint32_t flags;
  uint32_t reserved;
  uint64_t size;
};

uint32_t own_pid() {
  abi::PrivatePage& page = private_page();
  if (page.pid == 0) page.pid = static_cast<uint32_t>(call({kSysGetpid}));
  return page.pid;
}

void mute() {
  if (__atomic_exchange_n(&private_page().muted, 1U, __ATOMIC_RELAXED) == 0) {
    count(target_page().forks_muted);
  }
}

// The cookie of a forked child that is followed; 0 when it is not.
uint64_t follow() {
  const abi::ArenaHeader& arena = header();
  abi::TargetPage& page = target_page();
  const bool wanted =
      arena.fork_policy == abi::ForkPolicy::Follow && arena.system_calls_allowed != 0;
  const uint32_t index =
      wanted ? __atomic_fetch_add(&page.process_count, 1U, __ATOMIC_RELAXED) : abi::kProcessesMax;
  if (index >= abi::kProcessesMax) {
    mute();
    return 0;
  }
  page.processes[index].parent = static_cast<uint32_t>(call({kSysGetppid}));
  __atomic_store_n(&page.processes[index].pid, own_pid(), __ATOMIC_RELEASE);
  uint64_t expected = 0;
  const uint64_t cookie = (uint64_t{index} + 1) << 48;
  // Another thread of the child may have been faster; its cookie counts.
  const bool first = __atomic_compare_exchange_n(&private_page().cookie, &expected, cookie, false,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return first ? cookie : expected;
}

abi::SlotControl& slot_at(uint32_t index) {
  const abi::ArenaHeader& arena = header();
  return *reinterpret_cast<abi::SlotControl*>(arena.slots_address + index * arena.slot_stride);
}

// Takes directory word `index` for `owner` when it is free or was this owner's before.
bool take_word(uint32_t index, uint64_t owner) {
  uint64_t* const word = &directory()[index];
  uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  if (seen == owner) return true;
  const bool free = seen == 0 || __atomic_load_n(&slot_at(index).tid, __ATOMIC_ACQUIRE) == 0;
  if (!free) return false;
  return __atomic_compare_exchange_n(word, &seen, owner, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) ||
         seen == owner;
}

// Looks at `tries` of the words [first, first + size), from a place that depends on `start`.
// Index of one that now holds `owner`, or kSlotsMax.
uint32_t take_word_of(uint32_t first, uint32_t size, uint64_t start, uint64_t owner) {
  const uint32_t tries = size < kPageProbesMax ? size : kPageProbesMax;
  for (uint32_t i = 0; i < tries; ++i) {
    const auto index = first + static_cast<uint32_t>((start + i) % size);
    if (take_word(index, owner)) return index;
  }
  return abi::kSlotsMax;
}

// Index of a directory word that now holds `owner`, or kSlotsMax. Few threads share one page of the
// directory: each page that is touched is 4 KiB in the target.
uint32_t take_directory_word(uint64_t owner, uint32_t slot_count) {
  const uint64_t start = (owner * 0x9E37'79B9'7F4A'7C15) >> 48;  // The bits that all bits decide.
  for (uint32_t first = 0; first < slot_count; first += kPageWords) {
    const uint32_t left = slot_count - first;
    const uint32_t size = left < kPageWords ? left : kPageWords;
    const uint32_t index = take_word_of(first, size, start, owner);
    if (index != abi::kSlotsMax) return index;
  }
  const uint32_t tries = slot_count < kDirectoryProbesMax ? slot_count : kDirectoryProbesMax;
  for (uint32_t i = 0; i < tries; ++i) {
    const auto index = static_cast<uint32_t>((start + i) % slot_count);
    if (take_word(index, owner)) return index;
  }
  return abi::kSlotsMax;
}

uint32_t own_tid() {
  const uint64_t offset = header().tid_offset & abi::kTidOffsetMax;
  if (offset == abi::kTidFromKernel) return static_cast<uint32_t>(call({kSysGettid}));
  return noted_tid();
}

void become_owner(abi::SlotControl& slot, uint64_t owner) {
  slot.process = static_cast<uint32_t>(owner >> 48) - 1;
  slot.tid = own_tid();
  slot.busy = 0;
  count(slot.claims);
  __atomic_store_n(&slot.owner, owner, __ATOMIC_RELEASE);
}

// Whether gs leads to a slot or nowhere. A thread may have taken gs for itself since the attach; it
// keeps it then, and its probes are skipped.
bool has_our_gs(const abi::ArenaHeader& arena, uint32_t slot_count) {
  const uint64_t base = gs_base();
  const uint64_t offset = base + clew_low_address - arena.slots_address;
  return base == 0 || offset < slot_count * arena.slot_stride;
}

}  // namespace

// 1: the thread owns a slot now and the probe may run. 0: it must be skipped.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_claim_slot(uint32_t session) {
  const abi::ArenaHeader& arena = header();
  uint64_t cookie = __atomic_load_n(&private_page().cookie, __ATOMIC_ACQUIRE);
  if (cookie == 0) cookie = follow();
  if (cookie == 0) return 0;
  const uint64_t owner = (arena.fs_base_instruction != 0 ? fs_base() : fs_self()) + cookie;
  const uint32_t slot_count = arena.slot_count < abi::kSlotsMax ? arena.slot_count : abi::kSlotsMax;
  const uint32_t attempts = has_our_gs(arena, slot_count) ? kAttemptsMax : 0;
  for (uint32_t attempt = 0; attempt < attempts; ++attempt) {
    const uint32_t index = take_directory_word(owner, slot_count);
    if (index >= slot_count) break;
    become_owner(slot_at(index), owner);
    if (__atomic_load_n(&directory()[index], __ATOMIC_ACQUIRE) != owner) continue;
    set_gs_base(address_of(&slot_at(index)) - clew_low_address);
    return 1;
  }
  count(target_page().missed_no_slot[session % abi::kSessionsMax]);
  return 0;
}

// A guarded probe at stack pointer `rsp` found the slot busy. 1: the other probe is dead, run. A
// probe is dead when the stack has been cut back beyond it (longjmp out of a signal handler), or
// when another stack is in use (a handler switched fibers). A handler on the alternate signal stack
// says nothing about the probe that it interrupted, so it is taken for nested.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_busy_slot(uint32_t session,
                                                                         uint64_t rsp) {
  abi::SlotControl& slot = own_slot();
  const Region region(session_entry(session));
  const uint64_t busy = slot.busy;
  const bool nested_here = rsp < busy && busy - rsp < abi::kStackSpanBytes;
  const bool cut_back = rsp >= busy && rsp - busy < abi::kStackSpanBytes;
  SignalStack stack = {};
  const bool asked =
      header().system_calls_allowed != 0 && call({kSysSigaltstack, {0, address_of(&stack)}}) == 0;
  const bool on_signal_stack = asked && (stack.flags & kSignalStackOn) != 0;
  const bool dead = !nested_here && !on_signal_stack && (cut_back || asked);
  count(dead ? region.header().missed_abandoned : region.header().missed_reentry);
  if (dead) slot.busy = 0;
  return dead ? 1 : 0;
}

}  // namespace clew::runtime
