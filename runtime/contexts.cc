// SPDX-License-Identifier: Apache-2.0
// Contexts of requests, for joins in place (abi/region.h, ContextLayout): what a thread knows of
// the request that it works for, and how it is handed over with an object to another thread.
//
// Who hands over writes a block of its own, and then says where it is: nobody waits for anybody. A
// block that was written anew, an object that was forgotten for others, and what some of these
// threads, or a hostile program, wrote halfway, is not known, and who takes it is in no request.
#include "abi/accessor.h"
#include "runtime/state.h"

namespace clew::runtime {
namespace {

using abi::ContextAct;
using abi::ContextOutcome;

constexpr uint64_t kSequenceMask = (uint64_t{1} << abi::kObjectSlotShift) - 1;
constexpr uint32_t kObjects = 1U << abi::kObjectsLog2;

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
  [[nodiscard]] uint64_t& evicted() const {
    return target_page().objects_evicted[session % abi::kSessionsMax];
  }
  [[nodiscard]] uint64_t lost() const {
    return __atomic_load_n(&target_page().contexts_lost[session % abi::kSessionsMax],
                           __ATOMIC_ACQUIRE);
  }
};

uint32_t own_index() {
  return gs_half(clew_low_address + offsetof(abi::SlotControl, index));
}

uint64_t own_process() {
  return gs_half(clew_low_address + offsetof(abi::SlotControl, process));
}

uint64_t own_claims() {
  return gs_word(clew_low_address + offsetof(abi::SlotControl, claims));
}

// Over all that have the slot.
uint64_t next(uint64_t& last) {
  const uint64_t next = (last + 1) & kSequenceMask;
  last = next != 0 ? next : 1;
  return last;
}

ContextOutcome leave(uint64_t* own) {
  own[abi::kContextRequest] = 0;
  own[abi::kContextNumber] = 0;
  return ContextOutcome::Nothing;
}

// What is joined with it, and what it hands over, is not known either.
ContextOutcome doubt(Contexts contexts, uint64_t* own) {
  own[abi::kContextLost] = contexts.lost();
  own[abi::kContextRequest] = 0;
  own[abi::kContextNumber] = abi::kContextInDoubt;
  return ContextOutcome::Nothing;
}

bool is_in_doubt(const uint64_t* own) {
  return own[abi::kContextRequest] == 0 && own[abi::kContextNumber] == abi::kContextInDoubt;
}

// The thread's context, which is its predecessor's no more, and older than no loss. A thread can
// have the slot of a dead one without a claim (collect/release.cc): ids tell them apart.
uint64_t* open(Contexts contexts) {
  uint64_t* const own = contexts.own();
  const uint64_t owner = own_claims() << 32 | noted_tid_of_owner(own_slot());
  const uint64_t lost = contexts.lost();
  const bool is_own = own[abi::kContextOwner] == owner && own[abi::kContextLost] == lost &&
                      (lost & abi::kContextsForbidden) == 0;
  own[abi::kContextOwner] = owner;
  if (own[abi::kContextCounted] == 0)
    own[abi::kContextCounted] = uint64_t{own_index()} << abi::kObjectSlotShift;
  if (!is_own) leave(own);
  return own;
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
  count(contexts.evicted());
  __atomic_store_n(&place.block, abi::kObjectInDoubt, __ATOMIC_RELEASE);
  __atomic_store_n(&place.tag, tag, __ATOMIC_RELEASE);
  return place;
}

void say(Contexts contexts, uint64_t object, uint64_t block) {
  __atomic_store_n(&make(contexts, tag_of(object)).block, block, __ATOMIC_RELEASE);
}

// Of what was forgotten for others it is known that nothing is known.
void say_doubt(Contexts contexts, uint64_t object) {
  const bool is_said = __atomic_load_n(&contexts.evicted(), __ATOMIC_ACQUIRE) != 0 &&
                       find(contexts, tag_of(object)) == nullptr;
  if (!is_said) say(contexts, object, abi::kObjectInDoubt);
}

void forget(Contexts contexts, uint64_t object) {
  abi::ObjectEntry* const found = find(contexts, tag_of(object));
  if (found != nullptr) __atomic_store_n(&found->block, uint64_t{0}, __ATOMIC_RELEASE);
}

void put(Contexts contexts, uint64_t* own, uint64_t object) {
  if (is_in_doubt(own)) return say(contexts, object, abi::kObjectInDoubt);
  if (own[abi::kContextRequest] == 0) return forget(contexts, object);
  const uint32_t slot = own_index();
  if (slot >= header().slot_count) return say(contexts, object, abi::kObjectInDoubt);
  const uint64_t sequence = next(own[abi::kContextSequence]);
  uint64_t* const block = contexts.block(slot, sequence);
  __atomic_store_n(&block[abi::kBlockSequence], uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  block[abi::kBlockObject] = object;
  block[abi::kBlockProcess] = own_process();
  for (uint32_t i = abi::kContextLost; i < contexts.words(); ++i)
    block[abi::kBlockContext - abi::kContextLost + i] = own[i];
  __atomic_store_n(&block[abi::kBlockSequence], sequence, __ATOMIC_RELEASE);
  say(contexts, object, uint64_t{slot} << abi::kObjectSlotShift | sequence);
}

// What somebody put for an object. The block may be written anew at any time.
struct Found {
  bool is_known = false;            // That nobody has put it, where there is no block.
  const uint64_t* block = nullptr;  // None: null.
  uint64_t sequence = 0;
  uint64_t object = 0;

  // Its context, by the numbers of a context's words.
  [[nodiscard]] const uint64_t* context() const {
    return block + abi::kBlockContext - abi::kContextLost;
  }
  // Whether what was read of it before was of the object.
  [[nodiscard]] bool is_there() const {
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return block[abi::kBlockObject] == object && block[abi::kBlockProcess] == own_process() &&
           __atomic_load_n(&block[abi::kBlockSequence], __ATOMIC_RELAXED) == sequence;
  }
};

Found look_up(Contexts contexts, uint64_t object) {
  const abi::ObjectEntry* const found = find(contexts, tag_of(object));
  // An eviction is counted before its object's entry goes.
  if (found == nullptr)
    return {.is_known = __atomic_load_n(&contexts.evicted(), __ATOMIC_ACQUIRE) == 0};
  const uint64_t where = __atomic_load_n(&found->block, __ATOMIC_ACQUIRE);
  const auto slot = static_cast<uint32_t>(where >> abi::kObjectSlotShift);
  const uint64_t sequence = where & kSequenceMask;
  if (where == 0) return {.is_known = true};
  if (slot >= header().slot_count) return {};
  const uint64_t* const block = contexts.block(slot, sequence);
  if (__atomic_load_n(&block[abi::kBlockSequence], __ATOMIC_ACQUIRE) != sequence) return {};
  return {.block = block, .sequence = sequence, .object = object};
}

ContextOutcome take(Contexts contexts, uint64_t* own, uint64_t object) {
  const Found found = look_up(contexts, object);
  if (found.block == nullptr) return found.is_known ? leave(own) : doubt(contexts, own);
  for (uint32_t i = abi::kContextLost; i < contexts.words(); ++i)
    own[i] = found.context()[i];
  const bool is_there = found.is_there() && own[abi::kContextLost] == contexts.lost();
  return is_there ? ContextOutcome::Done : doubt(contexts, own);
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

// False: both have counted, and one may have what the other has, so there is no sum.
bool join_cells(uint64_t* own, const uint64_t* other, uint32_t words) {
  if (other[0] == 0 || (own[0] != 0 && own[1] == other[1])) return true;
  if (own[0] != 0) return false;
  for (uint32_t i = 0; i < words; ++i)
    own[i] = other[i];
  return true;
}

bool join_bags(Contexts contexts, uint64_t* own, const uint64_t* other, uint64_t kinds) {
  const uint64_t number = other[abi::kContextNumber];
  if (number > own[abi::kContextNumber]) own[abi::kContextNumber] = number;
  const uint32_t size = contexts.layout().bag_words;
  bool is_whole = true;
  for (uint32_t at = abi::kContextBags, bag = 0; at + size <= contexts.words() && size > 1;
       at += size, ++bag) {
    const abi::BagKind kind = abi::bag_kind(kinds, bag & 31);
    if (kind == abi::BagKind::Cells) {
      is_whole = join_cells(own + at, other + at, size) && is_whole;
    } else {
      join_bag(own + at, other + at, size, kind == abi::BagKind::MostRecent);
    }
  }
  return is_whole;
}

// Behind what is not known, the thread is nowhere: its own bags need not have the first event, or
// the most recent one.
ContextOutcome join(Contexts contexts, uint64_t* own, uint64_t object, uint64_t kinds) {
  if (is_in_doubt(own)) return ContextOutcome::InDoubt;
  if (own[abi::kContextRequest] == 0) return take(contexts, own, object);
  const Found found = look_up(contexts, object);
  if (found.block == nullptr)
    return found.is_known ? ContextOutcome::Nothing : doubt(contexts, own);
  const uint64_t* const other = found.context();
  const bool is_other = other[abi::kContextRequest] != own[abi::kContextRequest];
  const bool is_lost = other[abi::kContextLost] != own[abi::kContextLost];
  const bool is_whole = is_other || is_lost || join_bags(contexts, own, other, kinds);
  if (!found.is_there() || is_lost) return doubt(contexts, own);
  if (is_other) return ContextOutcome::Other;
  if (is_whole) return ContextOutcome::Done;
  doubt(contexts, own);
  return ContextOutcome::Overlap;
}

void begin(Contexts contexts, uint64_t* own) {
  const uint64_t lost = contexts.lost();
  own[abi::kContextLost] = lost;
  own[abi::kContextRequest] =
      uint64_t{own_index()} << abi::kObjectSlotShift | next(own[abi::kContextRequests]);
  own[abi::kContextNumber] = 0;
  for (uint32_t i = abi::kContextBags; i < contexts.words(); ++i)
    own[i] = 0;
  if ((lost & abi::kContextsForbidden) != 0) own[abi::kContextRequest] = 0;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_context_open(uint32_t session) {
  const Contexts contexts{session};
  if (contexts.layout().offset == 0) return 0;
  const uint64_t* const own = open(contexts);
  if (own[abi::kContextRequest] == 0) return 0;
  return Region(contexts.entry()).mask(contexts.layout().offset);
}

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_context_act(uint32_t session,
                                                                           uint64_t act,
                                                                           uint64_t object,
                                                                           uint64_t kinds) {
  const Contexts contexts{session};
  if (contexts.layout().offset == 0) return 0;
  uint64_t* const own = open(contexts);
  auto outcome = ContextOutcome::Done;
  switch (static_cast<ContextAct>(act)) {
    case ContextAct::Begin:
      begin(contexts, own);
      break;
    case ContextAct::End:
      leave(own);
      break;
    case ContextAct::Put:
      put(contexts, own, object);
      break;
    case ContextAct::Doubt:
      say_doubt(contexts, object);
      break;
    case ContextAct::Take:
      outcome = take(contexts, own, object);
      break;
    case ContextAct::Join:
      outcome = join(contexts, own, object, kinds);
      break;
    case ContextAct::Lose:
      lose_contexts(session);
      break;
  }
  return static_cast<uint64_t>(outcome);
}

}  // namespace clew::runtime
