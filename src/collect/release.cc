// SPDX-License-Identifier: Apache-2.0
// Gives slots of dead threads to new ones.
//
// A thread can hold a slot that it did not claim: it inherited gs from its parent and got the TCB
// address of a dead thread from the C library's cache, so the ownership check passes. Therefore a
// slot of a dead tid is first taken from its owner (tid = kTidReserved, owner = 0: the next probe
// of such a thread claims a slot again), and only the next call gives it away. What it counted
// stays: cells only grow, whoever owns the slot.
#include "collect/reader.h"
#include "collect/shared_words.h"

namespace clew::collect {
namespace {

// Another tracer that reserved a slot and died leaves it reserved; after this many calls we give
// it away instead.
constexpr uint8_t kForeignRoundsMax = 16;

bool is_thread(uint32_t tid) {
  return tid != 0 && tid != abi::kTidUnknown && tid != abi::kTidReserved;
}

}  // namespace

uint32_t Reader::free_dead_slots(const Threads& threads, CellSink& last, EventBatch& events) {
  uint32_t freed = 0;
  const bool retire = view_.follow_forks && only_session();
  if (view_.follow_forks && !retire) return 0;
  for (const uint32_t slot : find_used()) {
    const bool free_now =
        retire ? retire_slot(slot, threads, last, events) : release_slot(slot, threads, events);
    if (free_now) ++freed;
  }
  return freed;
}

bool Reader::release_slot(uint32_t slot, const Threads& threads, EventBatch& events) {
  SlotState& state = slots_[slot];
  std::byte* const tid_word = slot_at(slot) + offsetof(abi::SlotControl, tid);
  const SlotIdentity identity = identity_of(slot);
  const uint32_t tid = load_half(tid_word);
  if (tid == abi::kTidReserved) {
    ++state.reserved_rounds;
    if (!state.releasing && state.reserved_rounds < kForeignRoundsMax) return false;
    read_slot_events(slot, events);
    state.releasing = false;
    state.reserved_rounds = 0;
    return exchange_half(tid_word, abi::kTidReserved, 0);
  }
  state.releasing = false;
  state.reserved_rounds = 0;
  const bool dead = is_thread(tid) && !threads.alive(identity.process, tid);
  const bool seen_dead_before = dead && state.dead_tid == tid;
  state.dead_tid = dead ? tid : 0;
  if (!seen_dead_before) return false;
  if (exchange_half(tid_word, tid, abi::kTidReserved)) {
    store_word(slot_at(slot) + offsetof(abi::SlotControl, owner), 0);
    state.releasing = true;
  }
  return false;
}

// The whole process is dead: no thread can use the slot, so its counts move to the host and the
// slot becomes empty at once.
bool Reader::retire_slot(uint32_t slot, const Threads& threads, CellSink& last,
                         EventBatch& events) {
  std::byte* const tid_word = slot_at(slot) + offsetof(abi::SlotControl, tid);
  const SlotIdentity identity = identity_of(slot);
  const uint32_t tid = load_half(tid_word);
  if (tid == 0 || threads.process_alive(identity.process)) return false;
  if (tid != abi::kTidReserved && !exchange_half(tid_word, tid, abi::kTidReserved)) return false;
  store_word(slot_at(slot) + offsetof(abi::SlotControl, owner), 0);
  store_word(slot_at(slot) + offsetof(abi::SlotControl, busy), 0);
  for (uint32_t generation = 0; generation < view_.layout.generations; ++generation)
    read_generation(slot, generation, last);
  read_slot_events(slot, events);
  add_slot_losses(slot, retired_);
  retired_fuel_.resize(view_.fuel_words);
  add_slot_fuel(slot, retired_fuel_);
  zero_part(slot, view_.region_offset, uint64_t{1} << view_.layout.size_log2);
  slots_[slot] = {};
  return exchange_half(tid_word, abi::kTidReserved, 0);
}

bool Reader::only_session() const {
  const std::byte* sessions = view_.header.data() + offsetof(abi::ArenaHeader, sessions);
  for (uint32_t i = 0; i < abi::kSessionsMax; ++i) {
    const std::byte* entry = sessions + i * sizeof(abi::SessionEntry);
    const bool in_use = load_half(entry + offsetof(abi::SessionEntry, state)) != 0;
    if (in_use && i != view_.session) return false;
  }
  return true;
}

}  // namespace clew::collect
