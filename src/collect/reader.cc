// SPDX-License-Identifier: Apache-2.0
// The Reader: cells, losses and events. Turning generations is in turn.cc, freeing slots in
// release.cc.
#include "collect/reader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "causal/edge.h"
#include "collect/shared_words.h"

namespace clew::collect {

Expected<Reader> Reader::make(SessionView view) {
  CLEW_TRY(check(view));
  return Reader(std::move(view));
}

Reader::Reader(SessionView view)
    : view_(std::move(view)),
      present_(view_.memory_file, view_.slots_file_offset,
               view_.slot_count * view_.slot_stride_bytes) {
  size_t words_max = view_.dense_words;
  for (uint32_t i = 0; i < view_.layout.table_count; ++i) {
    const size_t words = view_.layout.tables[i].entry_size_bytes() / 8;
    words_max = std::max(words_max, words);
  }
  scratch_.resize(words_max);
  slots_.resize(view_.slot_count);
  forks_muted_before_ = load_half(view_.target.data() + offsetof(abi::TargetPage, forks_muted));
  generation_ = load_half(session_entry() + offsetof(abi::SessionEntry, generation)) & 1;
}

std::byte* Reader::slot_at(uint32_t slot) const {
  CLEW_ASSERT(slot < view_.slot_count);
  return view_.slots.data() + slot * view_.slot_stride_bytes;
}

std::byte* Reader::region_at(uint32_t slot) const {
  return slot_at(slot) + view_.region_offset;
}

std::byte* Reader::session_entry() const {
  return view_.header.data() + offsetof(abi::ArenaHeader, sessions) +
         view_.session * sizeof(abi::SessionEntry);
}

SlotIdentity Reader::identity_of(uint32_t slot) {
  const std::byte* control = slot_at(slot);
  const uint32_t process = load_half(control + offsetof(abi::SlotControl, process));
  const uint32_t tid = load_half(control + offsetof(abi::SlotControl, tid));
  if (tid != 0 && tid != abi::kTidReserved) slots_[slot].last_tid = tid;
  const uint32_t last_tid = slots_[slot].last_tid;
  return {.slot = slot,
          .process = process <= abi::kProcessesMax ? process : 0,
          .tid = last_tid == abi::kTidUnknown ? 0 : last_tid};
}

// Slots that hold something: claimed now or at any time before. Untouched ones are not even read.
std::vector<uint32_t> Reader::find_used() {
  present_.refresh();
  std::vector<uint32_t> used;
  for (uint32_t slot = 0; slot < view_.slot_count; ++slot) {
    const uint64_t begin = slot * view_.slot_stride_bytes;
    if (!present_.any(begin, begin + abi::kSlotControlSizeBytes)) continue;
    const std::byte* control = slot_at(slot);
    const bool claimed = load_word(control + offsetof(abi::SlotControl, claims)) != 0 ||
                         load_half(control + offsetof(abi::SlotControl, tid)) != 0;
    if (claimed) used.push_back(slot);
  }
  slots_used_ = static_cast<uint32_t>(used.size());
  return used;
}

void Reader::read_cells(CellSink& sink) {
  for (const uint32_t slot : find_used()) {
    for (uint32_t generation = 0; generation < view_.layout.generations; ++generation)
      read_generation(slot, generation, sink);
  }
}

void Reader::read_generation(uint32_t slot, uint32_t generation, CellSink& sink) {
  const SlotIdentity identity = identity_of(slot);
  if (view_.dense_words != 0) read_dense(identity, generation, sink);
  for (uint32_t i = 0; i < view_.layout.table_count; ++i) {
    for (uint32_t half = 0; half < 2; ++half)
      read_table(identity, {.table = i, .generation = generation, .half = half}, sink);
  }
}

uint32_t Reader::drain_tables(CellSink& sink) {
  if (view_.layout.table_count == 0) return 0;
  uint32_t drained = 0;
  for (const uint32_t slot : find_used())
    drained += drain_slot_tables(slot, sink);
  return drained;
}

// The thread turned before it said so and works in the other half since, so the full one is ours
// until `tables_drained` says that it is empty. In a session with generations it may have turned in
// the one before: then the half of this one that is drained here is empty.
uint32_t Reader::drain_slot_tables(uint32_t slot, CellSink& sink) {
  const uint64_t begin = slot * view_.slot_stride_bytes + view_.region_offset;
  if (!present_.any(begin, begin + sizeof(abi::RegionHeader))) return 0;
  std::byte* const region = region_at(slot);
  std::byte* const drained_word = region + offsetof(abi::RegionHeader, tables_drained);
  uint32_t count = 0;
  for (uint32_t i = 0; i < view_.layout.table_count; ++i) {
    const uint64_t in_use =
        load_word(region + offsetof(abi::RegionHeader, table_half) + size_t{8} * i) >> 63;
    const uint64_t drained = load_word(drained_word);
    const auto full = static_cast<uint32_t>(drained >> i & 1);
    if (full == in_use) continue;
    const TableHalf which{.table = i, .generation = generation_, .half = full};
    read_table(identity_of(slot), which, sink);
    zero_part(slot, offset_of(which), view_.layout.tables[i].half_size_bytes());
    store_word(drained_word, drained ^ uint64_t{1} << i);
    ++count;
  }
  return count;
}

// From the first byte of a slot.
uint64_t Reader::offset_of(const TableHalf& which) const {
  CLEW_ASSERT(which.table < view_.layout.table_count);
  CLEW_ASSERT(which.generation < view_.layout.generations);
  CLEW_ASSERT(which.half < 2);
  const abi::TableLayout& layout = view_.layout.tables[which.table];
  const uint64_t half = uint64_t{layout.entry_size_bytes()} << layout.entries_log2;
  return view_.region_offset + layout.offset + (2 * which.generation + which.half) * half;
}

void Reader::read_dense(const SlotIdentity& identity, uint32_t generation, CellSink& sink) {
  const uint64_t begin = identity.slot * view_.slot_stride_bytes + view_.region_offset +
                         view_.layout.cells_offset +
                         uint64_t{generation} * view_.layout.cells_half_bytes;
  CLEW_ASSERT(generation < view_.layout.generations);
  CLEW_ASSERT(scratch_.size() >= view_.dense_words);
  const auto ranges = present_.within(begin, begin + uint64_t{view_.dense_words} * 8);
  if (ranges.empty()) return;
  const std::span<uint64_t> words(scratch_.data(), view_.dense_words);
  std::fill(words.begin(), words.end(), 0);
  for (const PageRange& range : ranges) {
    const auto part = words.subspan((range.begin - begin) / 8, (range.end - range.begin) / 8);
    load_words(part, view_.slots.data() + range.begin);
  }
  sink.dense(identity, words);
}

// The hash at its start says whether there is an entry, so only those that start in a page with
// data are looked at: each once.
void Reader::read_table(const SlotIdentity& identity, const TableHalf& which, CellSink& sink) {
  const abi::TableLayout& layout = view_.layout.tables[which.table];
  const uint64_t size = layout.entry_size_bytes();
  const uint64_t half = size << layout.entries_log2;
  const uint64_t begin = identity.slot * view_.slot_stride_bytes + offset_of(which);
  CLEW_ASSERT(scratch_.size() >= size / 8);
  CLEW_ASSERT(begin % 8 == 0);
  const std::span<uint64_t> entry(scratch_.data(), size / 8);
  for (const PageRange& range : present_.within(begin, begin + half)) {
    const uint64_t end = (range.end - begin + size - 1) / size;
    for (uint64_t i = (range.begin - begin + size - 1) / size; i < end; ++i) {
      const std::byte* at = view_.slots.data() + begin + i * size;
      if (load_word(at) == 0) continue;  // An insertion writes the hash last.
      load_words(entry, at);
      sink.entry(identity, which.table, entry.subspan(1, layout.key_words),
                 entry.subspan(1 + layout.key_words));
    }
  }
}

void Reader::zero_part(uint32_t slot, uint64_t offset, uint64_t size_bytes) {
  CLEW_ASSERT(slot < view_.slot_count);
  CLEW_ASSERT(offset + size_bytes <= view_.slot_stride_bytes);  // Never the next thread's.
  const uint64_t begin = slot * view_.slot_stride_bytes + offset;
  for (const PageRange& range : present_.within(begin, begin + size_bytes)) {
    zero_words(view_.slots.data() + range.begin, range.end - range.begin);
  }
}

void Reader::zero_generation(uint32_t slot, uint32_t generation) {
  const abi::RegionLayout& layout = view_.layout;
  zero_part(
      slot,
      view_.region_offset + layout.cells_offset + uint64_t{generation} * layout.cells_half_bytes,
      layout.cells_half_bytes);
  for (uint32_t i = 0; i < layout.table_count; ++i) {
    const uint64_t both = uint64_t{layout.tables[i].generation_size_bytes()};
    zero_part(slot, offset_of({.table = i, .generation = generation, .half = 0}), both);
  }
}

void Reader::read_events(EventBatch& batch) {
  if (view_.layout.ring.size_log2 == 0) return;
  for (const uint32_t slot : find_used())
    read_slot_events(slot, batch);
}

void Reader::read_records(const TakeRecord& take) {
  if (!view_.has_records) return;
  for (const uint32_t slot : find_used()) {
    if (has_ring(slot)) collect::read_records(ring_of(slot), slots_[slot].ring, take);
  }
}

// False also when nothing was ever written to it.
bool Reader::has_ring(uint32_t slot) const {
  const uint64_t begin = slot * view_.slot_stride_bytes + view_.region_offset;
  return view_.layout.ring.size_log2 != 0 && present_.any(begin, begin + sizeof(abi::RegionHeader));
}

RingSource Reader::ring_of(uint32_t slot) {
  const SlotIdentity identity = identity_of(slot);
  return {.region = region_at(slot),
          .layout = view_.layout.ring,
          .event_words = view_.event_words,
          .process = identity.process,
          .tid = identity.tid};
}

// The records of a D session stay for read_records(), whoever owns the slot then.
void Reader::read_slot_events(uint32_t slot, EventBatch& batch) {
  if (view_.has_records || !has_ring(slot)) return;
  read_ring(ring_of(slot), slots_[slot].ring, batch);
}

namespace {

struct Counter {
  size_t offset;
  std::string_view cause;
};
constexpr Counter kMissedCounters[] = {
    {offsetof(abi::RegionHeader, missed_reentry), kMissedReentry},
    {offsetof(abi::RegionHeader, missed_abandoned), kMissedAbandoned},
    {offsetof(abi::RegionHeader, missed_records), kMissedRecords},
    {offsetof(abi::RegionHeader, missed_unpaired), kMissedUnpaired},
    {offsetof(abi::RegionHeader, missed_fuel), kMissedFuel},
    {offsetof(abi::RegionHeader, missed_unreadable), kMissedUnreadable},
    {offsetof(abi::RegionHeader, missed_tail_call), kMissedTailCall},
};

}  // namespace

// Of joins in place.
void Reader::add_slot_causes(uint32_t slot, Losses& losses) const {
  if (view_.layout.contexts.offset == 0) return;
  const uint64_t at = view_.layout.contexts.offset - abi::kContextCountersBytes;
  const uint64_t duty_bytes = uint64_t{8} * view_.duty_words;
  const uint64_t begin = slot * view_.slot_stride_bytes + view_.region_offset + at - duty_bytes;
  if (!present_.any(begin, begin + duty_bytes + abi::kContextCountersBytes)) return;
  const auto word = [&](abi::ContextCounter counter, uint32_t further = 0) {
    return load_word(region_at(slot) + at + 8 * (size_t{static_cast<uint32_t>(counter)} + further));
  };
  count_cause(losses.causal, kCausalRequests, word(abi::ContextCounter::Requests));
  count_cause(losses.causal, kCausalUnjoined, word(abi::ContextCounter::Unjoined));
  count_cause(losses.missed, kMissedNoRequest, word(abi::ContextCounter::NoRequest));
  count_cause(losses.missed, kMissedNoContext, word(abi::ContextCounter::NoContext));
  count_cause(losses.missed, kMissedWeak, word(abi::ContextCounter::Weak));
  count_cause(losses.missed, kMissedOtherRequest, word(abi::ContextCounter::Other));
  count_cause(losses.missed, kMissedOverlap, word(abi::ContextCounter::Overlap));
  for (uint32_t how = 0; how < causal::kEdgeClasses; ++how)
    count_cause(losses.causal, causal::kEdgeClassNames[how], word(abi::ContextCounter::Edges, how));
  std::vector<uint64_t> duties(view_.duty_words);
  for (size_t i = 0; i < duties.size(); ++i)
    duties[i] = load_word(region_at(slot) + at - 8 * (duties.size() - i));
  add_words(losses.duties, duties);
}

void Reader::add_slot_losses(uint32_t slot, Losses& losses) const {
  add_slot_causes(slot, losses);
  count_cause(losses.dropped, kDroppedDamaged, slots_[slot].ring.damaged_bytes);
  const uint64_t begin = slot * view_.slot_stride_bytes + view_.region_offset;
  if (!present_.any(begin, begin + sizeof(abi::RegionHeader))) return;
  const std::byte* region = region_at(slot);
  for (const Counter& counter : kMissedCounters) {
    count_cause(losses.missed, counter.cause, load_word(region + counter.offset));
  }
  if (view_.fuel_words != 0) {
    std::vector<uint64_t> fuel(view_.fuel_words);
    add_slot_fuel(slot, fuel);
    count_cause(losses.missed, kMissedFuel, std::accumulate(fuel.begin(), fuel.end(), uint64_t{0}));
    count_cause(losses.missed, kMissedLeftAlone, load_word(region + view_.fuel_offset));
  }
  count_cause(losses.dropped, kDroppedRing,
              load_word(region + offsetof(abi::RegionHeader, dropped_ring)));
  for (uint32_t i = 0; i < view_.layout.table_count; ++i) {
    count_cause(losses.dropped, kDroppedTable,
                load_word(region + offsetof(abi::RegionHeader, dropped_table) + i * size_t{8}));
  }
}

void Reader::add_slot_fuel(uint32_t slot, std::vector<uint64_t>& sums) const {
  const uint64_t begin = slot * view_.slot_stride_bytes + view_.region_offset + view_.fuel_offset;
  if (!present_.any(begin, begin + 8 * (uint64_t{1} + view_.fuel_words))) return;
  CLEW_ASSERT(sums.size() >= view_.fuel_words);
  const std::byte* const words = region_at(slot) + view_.fuel_offset + 8;
  for (size_t i = 0; i < view_.fuel_words; ++i)
    sums[i] += load_word(words + 8 * i);
}

std::vector<uint64_t> Reader::read_fuel() {
  std::vector<uint64_t> sums = retired_fuel_;
  sums.resize(view_.fuel_words);
  for (const uint32_t slot : find_used())
    add_slot_fuel(slot, sums);
  return sums;
}

void Reader::add_losses(Losses& losses) {
  for (const uint32_t slot : find_used())
    add_slot_losses(slot, losses);
  losses.merge(retired_);
  count_cause(losses.missed, kMissedNoSlot,
              load_word(view_.target.data() + offsetof(abi::TargetPage, missed_no_slot) +
                        view_.session * sizeof(uint64_t)));
  const uint64_t lost = load_word(view_.target.data() + offsetof(abi::TargetPage, contexts_lost) +
                                  view_.session * sizeof(uint64_t));
  count_cause(losses.missed, kMissedContexts, lost & ~abi::kContextsForbidden);
  const uint32_t muted = load_half(view_.target.data() + offsetof(abi::TargetPage, forks_muted));
  count_cause(losses.missed, view_.follow_forks ? kMissedFollowed : kMissedForks,
              muted - forks_muted_before_);
}

void Reader::clear() {
  const uint64_t window = (uint64_t{1} << view_.layout.size_log2) + abi::kWindowSlackBytes;
  present_.refresh();
  for (uint32_t slot = 0; slot < view_.slot_count; ++slot) {
    zero_part(slot, view_.region_offset, window);
    slots_[slot].ring = {};
  }
  retired_ = {};
  retired_fuel_.clear();
}

}  // namespace clew::collect
