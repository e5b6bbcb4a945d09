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

// The index of one more process; kProcessesMax or more when there is none left. Who finds none
// leaves the count as it is: it never comes further than the children that ask at one time, so it
// does not begin again at the indices of others.
uint32_t take_index() {
  uint32_t& processes = target_page().process_count;
  const uint32_t seen = __atomic_load_n(&processes, __ATOMIC_RELAXED);
  if (seen >= abi::kProcessesMax) return seen;
  return __atomic_fetch_add(&processes, 1U, __ATOMIC_RELAXED);
}

// The cookie of a forked child that is followed; 0 when it is not.
uint64_t follow() {
  const abi::ArenaHeader& arena = header();
  abi::TargetPage& page = target_page();
  const bool wanted =
      arena.fork_policy == abi::ForkPolicy::Follow && arena.system_calls_allowed != 0;
  const uint32_t index = wanted ? take_index() : abi::kProcessesMax;
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

uint32_t slot_count() {
  return header().slot_count < abi::kSlotsMax ? header().slot_count : abi::kSlotsMax;
}

[[gnu::always_inline]] inline uint64_t thread_pointer() {
  if (header().keeps_self_pointer != 0) return fs_self();
  return has_base_instructions() ? read_fs_base() : ask_base(kArchGetFs);
}

[[gnu::always_inline]] inline uint64_t own_owner() {
  return thread_pointer() + __atomic_load_n(&private_page().cookie, __ATOMIC_ACQUIRE);
}

// The directory words that a thread looks at, one by one: kPageProbesMax in each page, then
// kDirectoryProbesMax from one place on. Few threads share one page of the directory: each page
// that is touched is 4 KiB in the target.
constexpr uint32_t kPagesMax = abi::kSlotsMax / kPageWords;
constexpr uint32_t kStepsMax = kPagesMax * kPageProbesMax + kDirectoryProbesMax;

// Of the step; kSlotsMax when it has none.
uint32_t word_of(uint32_t step, uint64_t owner) {
  const uint64_t start = (owner * 0x9E37'79B9'7F4A'7C15) >> 48;  // The bits that all bits decide.
  const uint32_t page = step / kPageProbesMax;
  const bool paged = page < kPagesMax;
  const uint32_t first = paged ? page * kPageWords : 0;
  if (first >= slot_count()) return abi::kSlotsMax;
  const uint32_t left = slot_count() - first;
  const uint32_t size = paged && left > kPageWords ? kPageWords : left;
  const uint32_t i = paged ? step % kPageProbesMax : step - kPagesMax * kPageProbesMax;
  return i < size ? first + static_cast<uint32_t>((start + i) % size) : abi::kSlotsMax;
}

[[gnu::always_inline]] inline uint32_t own_tid() {
  const uint64_t offset = header().tid_offset & abi::kTidOffsetMax;
  if (offset == abi::kTidFromKernel) return static_cast<uint32_t>(call_short(kSysGettid));
  return noted_tid();
}

void become_owner(uint32_t index, uint64_t owner) {
  abi::SlotControl& slot = slot_at(index);
  slot.process = static_cast<uint32_t>(owner >> 48) - 1;
  slot.index = index;
  slot.tid = own_tid();
  slot.busy = 0;
  count(slot.claims);
  __atomic_store_n(&slot.owner, owner, __ATOMIC_RELEASE);
}

// Whether gs leads to a slot or nowhere. A thread may have taken gs for itself since the attach; it
// keeps it then, and its probes are skipped.
bool has_our_gs() {
  const uint64_t base = has_base_instructions() ? read_gs_base() : ask_base(kArchGetGs);
  const uint64_t offset = base + clew_low_address - header().slots_address;
  return base == 0 || offset < slot_count() * header().slot_stride;
}

// False when the kernel does not do it: a filter of system calls that came after the attach.
bool set_gs_base(uint64_t base) {
  if (has_base_instructions()) {
    write_gs_base(base);
    return true;
  }
  return call_short(kSysArchPrctl, kArchSetGs, base) == 0;
}

// A claim, in steps: each is a function that ends by calling the next, so that no register is kept
// on the program's stack.
struct Claim {
  uint32_t session;
  uint32_t attempt;
};

[[gnu::noinline]] uint64_t miss(Claim claim) {
  count(target_page().missed_no_slot[claim.session % abi::kSessionsMax]);
  lose_contexts(claim.session);
  return 0;
}

uint64_t look_for_slot(Claim claim, uint64_t owner);

[[gnu::noinline]] uint64_t give_back(Claim claim, uint32_t index) {
  abi::SlotControl& slot = slot_at(index);
  __atomic_store_n(&slot.owner, uint64_t{0}, __ATOMIC_RELEASE);
  __atomic_store_n(&slot.tid, 0U, __ATOMIC_RELEASE);
  return miss(claim);
}

[[gnu::noinline]] uint64_t enter_slot(Claim claim, uint32_t index) {
  const bool is_set = set_gs_base(address_of(&slot_at(index)) - clew_low_address);
  return is_set ? 1 : give_back(claim, index);
}

[[gnu::noinline]] uint64_t take_slot(Claim claim, uint64_t owner, uint32_t index) {
  become_owner(index, owner);
  if (__atomic_load_n(&directory()[index], __ATOMIC_ACQUIRE) == owner) {
    return enter_slot(claim, index);
  }
  return look_for_slot({claim.session, claim.attempt + 1}, owner);
}

[[gnu::noinline]] uint64_t look_for_slot(Claim claim, uint64_t owner) {
  if (claim.attempt == kAttemptsMax) return miss(claim);
  for (uint32_t step = 0; step < kStepsMax; ++step) {
    const uint32_t index = word_of(step, owner);
    if (index != abi::kSlotsMax && take_word(index, owner)) return take_slot(claim, owner, index);
  }
  return miss(claim);
}

[[gnu::always_inline]] inline uint64_t judge(uint32_t session, bool dead) {
  abi::RegionHeader& region = Region(session_entry(session)).header();
  count(dead ? region.missed_abandoned : region.missed_reentry);
  lose_contexts(session);
  if (dead) own_slot().busy = 0;
  return dead ? 1 : 0;
}

[[gnu::noinline]] uint64_t look_at_signal_stack(uint32_t session, bool cut_back) {
  SignalStack stack = {};
  const bool asked =
      header().system_calls_allowed != 0 && call({kSysSigaltstack, {0, address_of(&stack)}}) == 0;
  const bool on_it = asked && (stack.flags & kSignalStackOn) != 0;
  return judge(session, !on_it && (cut_back || asked));
}

}  // namespace

// 1: the thread owns a slot now and the probe may run. 0: it must be skipped.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_claim_slot(uint32_t session) {
  uint64_t cookie = __atomic_load_n(&private_page().cookie, __ATOMIC_ACQUIRE);
  if (cookie == 0) cookie = follow();
  if (cookie == 0) return 0;
  if (header().bases == abi::SegmentBases::Tracer) return miss({session, 0});
  const uint64_t owner = own_owner();
  // Where the stub cannot know whose slot it is, it comes here at each hit.
  if (gs_word(clew_low_address + offsetof(abi::SlotControl, owner)) == owner) return 1;
  return has_our_gs() ? look_for_slot({session, 0}, owner) : miss({session, 0});
}

// A guarded probe at stack pointer `rsp` found the slot busy. 1: the other probe is dead, run. A
// probe is dead when the stack has been cut back beyond it (longjmp out of a signal handler), or
// when another stack is in use (a handler switched fibers). A handler on the alternate signal stack
// says nothing about the probe that it interrupted, so it is taken for nested.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_busy_slot(uint32_t session,
                                                                         uint64_t rsp) {
  const uint64_t busy = own_slot().busy;
  if (rsp < busy && busy - rsp < abi::kStackSpanBytes) return judge(session, false);
  const bool cut_back = rsp >= busy && rsp - busy < abi::kStackSpanBytes;
  return look_at_signal_stack(session, cut_back);
}

}  // namespace clew::runtime
