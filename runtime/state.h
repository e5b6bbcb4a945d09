// SPDX-License-Identifier: Apache-2.0
// Where the arena's parts are, seen from inside the target. A program gone wild, or a forked child,
// may overwrite slots, directory and TargetPage, so whatever comes from there is masked before it
// becomes an address. The header nobody in the target can write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/arena.h"
#include "runtime/raw.h"

// The arena's low address A. Lies in the blob; the tracer sets it when it copies the blob.
extern "C" __attribute__((visibility("hidden"))) const volatile uint32_t clew_low_address;

namespace clew::runtime {

inline uint8_t* low_block(uint32_t offset) {
  return reinterpret_cast<uint8_t*>(uint64_t{clew_low_address} + offset);
}
inline abi::PrivatePage& private_page() {
  return *reinterpret_cast<abi::PrivatePage*>(low_block(0));
}
inline abi::Reading* readings() {
  return reinterpret_cast<abi::Reading*>(low_block(abi::kReadingsOffset));
}
inline const abi::ArenaHeader& header() {
  return *reinterpret_cast<const abi::ArenaHeader*>(low_block(abi::kHeaderOffset));
}
inline abi::TargetPage& target_page() {
  return *reinterpret_cast<abi::TargetPage*>(low_block(abi::kTargetPageOffset));
}
inline uint64_t* directory() {
  return reinterpret_cast<uint64_t*>(low_block(abi::kDirectoryOffset));
}
inline const abi::SessionEntry& session_entry(uint32_t session) {
  return header().sessions[session % abi::kSessionsMax];
}

inline bool has_base_instructions() {
  return header().bases == abi::SegmentBases::Instructions;
}

// Address of the slot of this thread; only after a successful ownership check. As the slot itself
// says, so it may be another one's where somebody writes over slots.
inline uint64_t own_slot_address() {
  // In two registers: the accessors have none to spare.
  uint64_t low = clew_low_address;
  uint64_t slot = 0;
  asm("movl %%gs:%c[index](%[low]), %k[slot]\n"
      "cmp %c[count](%[low]), %k[slot]\n"
      "jb 1f\n"
      "xor %k[slot], %k[slot]\n"
      "1: imul %c[stride](%[low]), %[slot]\n"
      "add %c[address](%[low]), %[slot]\n"
      : [slot] "=&r"(slot)
      : [low] "r"(low), [index] "i"(offsetof(abi::SlotControl, index)),
        [count] "i"(abi::kHeaderOffset + offsetof(abi::ArenaHeader, slot_count)),
        [stride] "i"(abi::kHeaderOffset + offsetof(abi::ArenaHeader, slot_stride)),
        [address] "i"(abi::kHeaderOffset + offsetof(abi::ArenaHeader, slots_address))
      : "cc");
  return slot;
}
inline abi::SlotControl& own_slot() {
  return *reinterpret_cast<abi::SlotControl*>(own_slot_address());
}

inline uint32_t tid_at(uint64_t offset) {
  const uint32_t tid = fs_half(offset);
  return tid != 0 ? tid : abi::kTidUnknown;
}

// The thread's id as the C library notes it in the thread's TCB. A thread pointer that does not
// point to itself is not a C library's. Not where only the tracer knows thread pointers.
inline uint32_t noted_tid() {
  const uint64_t offset = header().tid_offset & abi::kTidOffsetMax;
  if (offset == abi::kTidFromNobody || offset == abi::kTidFromKernel) return abi::kTidUnknown;
  const uint64_t self = has_base_instructions() ? read_fs_base() : ask_base(kArchGetFs);
  return self != 0 && fs_self() == self ? tid_at(offset) : abi::kTidUnknown;
}

// The same of the owner of the slot, without a system call where that can be: whoever took it with
// a tid had a C library's thread pointer, and the owner has the same one.
inline uint32_t noted_tid_of_owner(const abi::SlotControl& slot) {
  const uint64_t offset = header().tid_offset & abi::kTidOffsetMax;
  if (has_base_instructions() || header().keeps_self_pointer == 0) return noted_tid();
  const bool is_known = offset != abi::kTidFromNobody && offset != abi::kTidFromKernel;
  return is_known && slot.tid != abi::kTidUnknown ? tid_at(offset) : abi::kTidUnknown;
}

// The session's region in this thread's slot. `at(p)` is the byte at window pointer p; what is
// stored there may reach abi::kWindowSlackBytes further, never more.
class Region {
 public:
  explicit Region(const abi::SessionEntry& entry)
      : base_(own_slot_address() + entry.region_offset),
        mask_((uint64_t{1} << (entry.layout.size_log2 & 31)) - 1) {}

  [[nodiscard]] uint64_t mask(uint64_t pointer) const { return pointer & mask_; }
  [[nodiscard]] uint8_t* at(uint64_t pointer) const {
    return reinterpret_cast<uint8_t*>(base_ + mask(pointer));
  }
  [[nodiscard]] uint64_t* words_at(uint64_t pointer) const {
    return reinterpret_cast<uint64_t*>(base_ + (mask(pointer) & ~uint64_t{7}));
  }
  [[nodiscard]] abi::RegionHeader& header() const {
    return *reinterpret_cast<abi::RegionHeader*>(base_);
  }

 private:
  uint64_t base_;
  uint64_t mask_;
};

// Adds one where a signal handler or another thread may add, too.
template <typename Word>
void count(Word& counter) {
  __atomic_fetch_add(&counter, Word{1}, __ATOMIC_RELAXED);
}

// A probe of the session was missed, which may have been an act on contexts.
inline void lose_contexts(uint32_t session) {
  if (session_entry(session).layout.contexts.offset == 0) return;
  count(target_page().contexts_lost[session % abi::kSessionsMax]);
}

}  // namespace clew::runtime
