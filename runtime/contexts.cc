// SPDX-License-Identifier: Apache-2.0
// Contexts of requests, for joins in place (abi/region.h, ContextLayout): what a thread knows of
// the request that it works for, and how it is handed over with an object to another thread.
//
// Who hands over writes a block of its own, and then says where it is: nobody waits for anybody. A
// block that was written anew, an object that was forgotten for others, and what some of these
// threads, or a hostile program, wrote halfway, all look like an object that nobody has put.
#include "abi/accessor.h"
#include "runtime/state.h"

namespace clew::runtime {
namespace {

constexpr uint64_t kSequenceMask = (uint64_t{1} << abi::kObjectSlotShift) - 1;
constexpr uint32_t kObjects = 1U << abi::kObjectsLog2;
constexpr uint32_t kBlockHead = 3;    // Words of a block before those of the context,
constexpr uint32_t kContextHead = 2;  // and of a context before those that a block has.

uint64_t read_ticks() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return uint64_t{high} << 32 | low;
}

// A session's contexts, as the thread sees them that owns a slot.
struct Contexts {
  uint32_t session;

  [[nodiscard]] const abi::SessionEntry& entry() const { return session_entry(session); }
  [[nodiscard]] const abi::ContextLayout& layout() const { return entry().layout.contexts; }
  [[nodiscard]] uint32_t words() const {
    const uint32_t words = layout().words();
    return words < abi::kContextWordsMax ? words : abi::kContextWordsMax;
  }
  [[nodiscard]] uint64_t* own() const { return Region(entry()).words_at(layout().offset); }
  // Of whoever has the slot.
  [[nodiscard]] uint64_t* block(uint32_t slot, uint64_t sequence) const {
    const uint64_t position = sequence & ((uint64_t{1} << (layout().blocks_log2 & 31)) - 1);
    const uint64_t offset = layout().blocks_offset + position * 8 * layout().block_words();
    const uint64_t mask = (uint64_t{1} << (entry().layout.size_log2 & 31)) - 8;
    return reinterpret_cast<uint64_t*>(header().slots_address + slot * header().slot_stride +
                                       entry().region_offset + (offset & mask));
  }
  [[nodiscard]] abi::ObjectEntry* objects() const {
    return target_page().objects[session % abi::kSessionsMax];
  }
  [[nodiscard]] uint64_t lost() const {
    return __atomic_load_n(&target_page().contexts_lost[session % abi::kSessionsMax],
                           __ATOMIC_ACQUIRE);
  }
};

uint64_t own_process() {
  return gs_half(clew_low_address + offsetof(abi::SlotControl, process));
}

// Grows with each call of this thread, and over whoever had the slot before, whose memory may be
// gone: then it begins at a time, and threads hand over less often than time passes.
uint64_t next_sequence(uint64_t* own) {
  const uint64_t last = own[0] & kSequenceMask;
  const uint64_t next = (last != 0 ? last + 1 : read_ticks() >> 8) & kSequenceMask;
  own[0] = next != 0 ? next : 1;
  return own[0];
}

// The thread's context, which is its predecessor's no more, and older than no loss.
uint64_t* open(Contexts contexts) {
  uint64_t* const own = contexts.own();
  // A thread can have the slot of a dead one without a claim (collect/release.cc).
  const uint64_t claims = gs_word(clew_low_address + offsetof(abi::SlotControl, claims));
  const uint64_t owner = claims << 32 | noted_tid_of_owner(own_slot());
  const bool is_own = own[1] == owner && own[2] == contexts.lost();
  own[1] = owner;
  if (!is_own) own[abi::kContextRequest] = 0;
  return own;
}

uint64_t pointer_to(Contexts contexts, const uint64_t* own) {
  if (own[abi::kContextRequest] == 0) return 0;
  return Region(contexts.entry()).mask(contexts.layout().offset);
}

uint64_t tag_of(uint64_t object) {
  const uint64_t mixed = (object ^ own_process() << 48) * 0x9E37'79B9'7F4A'7C15;
  const uint64_t tag = (mixed ^ mixed >> 29) * 0xBF58'476D'1CE4'E5B9;
  return tag != 0 ? tag : 1;
}

abi::ObjectEntry& place_of(Contexts contexts, uint64_t tag, uint32_t step) {
  return contexts.objects()[((tag >> (64 - abi::kObjectsLog2)) + step) % kObjects];
}

// Null: it is not there.
abi::ObjectEntry* find(Contexts contexts, uint64_t tag) {
  for (uint32_t step = 0; step < abi::kObjectProbesMax; ++step) {
    abi::ObjectEntry& place = place_of(contexts, tag, step);
    if (__atomic_load_n(&place.tag, __ATOMIC_ACQUIRE) == tag) return &place;
  }
  return nullptr;
}

// Where it is from now on: one of the others is forgotten when there is no room.
abi::ObjectEntry& make(Contexts contexts, uint64_t tag) {
  if (abi::ObjectEntry* const found = find(contexts, tag)) return *found;
  for (uint32_t step = 0; step < abi::kObjectProbesMax; ++step) {
    abi::ObjectEntry& place = place_of(contexts, tag, step);
    uint64_t seen = 0;
    if (__atomic_compare_exchange_n(&place.tag, &seen, tag, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) ||
        seen == tag)
      return place;
  }
  abi::ObjectEntry& place = place_of(contexts, tag, tag % abi::kObjectProbesMax);
  __atomic_store_n(&place.block, uint64_t{0}, __ATOMIC_RELEASE);
  __atomic_store_n(&place.tag, tag, __ATOMIC_RELEASE);
  return place;
}

void forget(Contexts contexts, uint64_t object) {
  abi::ObjectEntry* const found = find(contexts, tag_of(object));
  if (found != nullptr) __atomic_store_n(&found->block, uint64_t{0}, __ATOMIC_RELEASE);
}

void put(Contexts contexts, uint64_t* own, uint64_t object) {
  const uint32_t slot = gs_half(clew_low_address + offsetof(abi::SlotControl, index));
  if (slot >= header().slot_count) return forget(contexts, object);
  const uint64_t sequence = next_sequence(own);
  uint64_t* const block = contexts.block(slot, sequence);
  __atomic_store_n(&block[0], uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  block[1] = object;
  block[2] = own_process();
  for (uint32_t i = kContextHead; i < contexts.words(); ++i)
    block[kBlockHead - kContextHead + i] = own[i];
  __atomic_store_n(&block[0], sequence, __ATOMIC_RELEASE);
  abi::ObjectEntry& place = make(contexts, tag_of(object));
  __atomic_store_n(&place.block, uint64_t{slot} << abi::kObjectSlotShift | sequence,
                   __ATOMIC_RELEASE);
}

// A block that somebody put for the object, and may write anew at any time.
struct Found {
  const uint64_t* block;  // Null: there is none.
  uint64_t sequence;
  uint64_t object;

  // Whether what was read of it before was of the object.
  [[nodiscard]] bool is_there() const {
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return block[1] == object && block[2] == own_process() &&
           __atomic_load_n(&block[0], __ATOMIC_RELAXED) == sequence;
  }
};

Found look_up(Contexts contexts, uint64_t object) {
  const abi::ObjectEntry* const found = find(contexts, tag_of(object));
  if (found == nullptr) return {};
  const uint64_t where = __atomic_load_n(&found->block, __ATOMIC_ACQUIRE);
  const auto slot = static_cast<uint32_t>(where >> abi::kObjectSlotShift);
  const uint64_t sequence = where & kSequenceMask;
  if (sequence == 0 || slot >= header().slot_count) return {};
  const uint64_t* const block = contexts.block(slot, sequence);
  if (__atomic_load_n(&block[0], __ATOMIC_ACQUIRE) != sequence) return {};
  return {.block = block, .sequence = sequence, .object = object};
}

void take(Contexts contexts, uint64_t* own, uint64_t object) {
  const Found found = look_up(contexts, object);
  own[abi::kContextRequest] = 0;
  if (found.block == nullptr) return;
  for (uint32_t i = kContextHead; i < contexts.words(); ++i)
    own[i] = found.block[kBlockHead - kContextHead + i];
  if (!found.is_there() || own[2] != contexts.lost()) own[abi::kContextRequest] = 0;
}

bool is_later(const uint64_t* one, const uint64_t* other) {
  return one[0] != other[0] ? one[0] > other[0] : one[1] > other[1];
}

// The earlier, or the later, of two bags.
void join_bag(uint64_t* own, const uint64_t* other, uint32_t words, bool is_most_recent) {
  if (other[0] == 0) return;
  const bool is_better =
      own[0] == 0 || (is_most_recent ? is_later(other, own) : is_later(own, other));
  for (uint32_t i = 0; is_better && i < words; ++i)
    own[i] = other[i];
}

void join(Contexts contexts, uint64_t* own, uint64_t object, uint64_t most_recent) {
  if (own[abi::kContextRequest] == 0) return take(contexts, own, object);
  const Found found = look_up(contexts, object);
  if (found.block == nullptr) return;
  const uint64_t* const other = found.block + kBlockHead - kContextHead;
  const bool is_same =
      other[2] == own[2] && other[abi::kContextRequest] == own[abi::kContextRequest];
  if (!is_same) return;
  const uint64_t number = other[abi::kContextNumber];
  if (number > own[abi::kContextNumber]) own[abi::kContextNumber] = number;
  const uint32_t size = contexts.layout().bag_words;
  for (uint32_t at = abi::kContextBags, bag = 0; at + size <= contexts.words() && size > 1;
       at += size, ++bag)
    join_bag(own + at, other + at, size, (most_recent >> (bag & 63) & 1) != 0);
  if (!found.is_there()) own[abi::kContextRequest] = 0;
}

void begin(Contexts contexts, uint64_t* own) {
  const uint32_t slot = gs_half(clew_low_address + offsetof(abi::SlotControl, index));
  own[2] = contexts.lost();
  own[abi::kContextRequest] =
      uint64_t{slot} << abi::kObjectSlotShift | (read_ticks() & kSequenceMask);
  own[abi::kContextNumber] = 0;
  for (uint32_t i = abi::kContextBags; i < contexts.words(); ++i)
    own[i] = 0;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_context_open(uint32_t session) {
  const Contexts contexts{session};
  if (contexts.layout().offset == 0) return 0;
  return pointer_to(contexts, open(contexts));
}

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_context_act(uint32_t session,
                                                                           uint64_t act,
                                                                           uint64_t object,
                                                                           uint64_t most_recent) {
  const Contexts contexts{session};
  if (contexts.layout().offset == 0) return 0;
  uint64_t* const own = open(contexts);
  const auto what = static_cast<abi::ContextAct>(act);
  const bool is_in_one = own[abi::kContextRequest] != 0;
  if (what == abi::ContextAct::Begin) begin(contexts, own);
  if (what == abi::ContextAct::End) own[abi::kContextRequest] = 0;
  if (what == abi::ContextAct::Put && is_in_one) put(contexts, own, object);
  if (what == abi::ContextAct::Forget || (what == abi::ContextAct::Put && !is_in_one))
    forget(contexts, object);
  if (what == abi::ContextAct::Take) take(contexts, own, object);
  if (what == abi::ContextAct::Join) join(contexts, own, object, most_recent);
  if (what == abi::ContextAct::Lose) lose_contexts(session);
  return pointer_to(contexts, own);
}

}  // namespace clew::runtime
