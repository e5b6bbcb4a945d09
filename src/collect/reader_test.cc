// SPDX-License-Identifier: Apache-2.0
#include "collect/reader.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "collect/fake_arena.h"

namespace clew::collect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ReaderLosses, AddUpTheCellsOfAllThreads) {
  FakeArena arena;
  FakeThread first(arena, 0, 100);
  FakeThread second(arena, 5, 101);
  first.count(0, 3);
  second.count(0, 4);
  second.count(15, 9);
  first.count_key(77, 2);
  second.count_key(77, 5);
  second.count_key(78);
  Reader reader = arena.reader();
  SumSink sink;
  reader.read_cells(sink);
  EXPECT_EQ(sink.dense_at(0), 7U);
  EXPECT_EQ(sink.dense_at(15), 9U);
  EXPECT_THAT(sink.keys[0], ElementsAre(Pair(77, 7), Pair(78, 1)));
  EXPECT_EQ(reader.slots_used(), 2U);
}

TEST(Reader, KeepsTheCountsOfFollowedProcessesApart) {
  FakeArena arena;
  FakeThread(arena, 0, 100).count(2, 3);
  FakeThread(arena, 1, 200, 7).count(2, 4);
  SumSink sink;
  arena.reader().read_cells(sink);
  EXPECT_EQ(sink.dense_at(2, 0), 3U);
  EXPECT_EQ(sink.dense_at(2, 7), 4U);
}

TEST(Reader, StillReadsSlotsWhoseThreadIsGone) {
  FakeArena arena;
  FakeThread(arena, 0, 100).count(2, 3);
  arena.control(0)->tid = 0;
  arena.control(0)->owner = 0;
  SumSink sink;
  arena.reader().read_cells(sink);
  EXPECT_EQ(sink.dense_at(2), 3U);
}

TEST(Reader, DoesNotTouchPagesThatNobodyWrote) {
  FakeArena arena({.slot_count = 64, .generations = 2, .dense_words = 4096, .entries_log2 = 12});
  FakeThread thread(arena, 3, 100);
  thread.count(4000);
  thread.count_key(1);
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(fstat(arena.file(), &before), 0);
  Reader reader = arena.reader();
  SumSink sink;
  EventBatch events;
  Losses losses;
  reader.read_cells(sink);
  reader.read_events(events);
  reader.add_losses(losses);
  ASSERT_TRUE(reader.turn(sink));
  ASSERT_EQ(fstat(arena.file(), &after), 0);
  EXPECT_EQ(after.st_blocks, before.st_blocks);
  EXPECT_EQ(sink.dense_at(4000), 2U);  // Read twice: by read_cells and by turn.
}

TEST(Reader, ReadsEntriesOfATableThatLieAcrossPages) {
  // An entry of 3 words: 4096 is no multiple of 24 bytes.
  FakeArena arena({.slot_count = 1, .entries_log2 = 10});
  FakeThread thread(arena, 0, 100);
  uint64_t stored = 0;
  for (uint64_t key = 1; key <= 600; ++key)
    thread.count_key(key, key);
  SumSink sink;
  Losses losses;
  Reader reader = arena.reader();
  reader.read_cells(sink);
  reader.add_losses(losses);
  for (const auto& [key, count] : sink.keys[0]) {
    EXPECT_EQ(count, key);
    ++stored;
  }
  EXPECT_EQ(stored + losses.dropped["table_full"], 600U);
}

uint64_t sum_of(const std::map<uint64_t, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [key, count] : counts)
    sum += count;
  return sum;
}

uint64_t dropped_updates(Reader& reader) {
  Losses losses;
  reader.add_losses(losses);
  return losses.dropped["table_full"];
}

TEST(ReaderTables, AThreadTurnsToTheOtherHalfAndTheFullOneIsDrained) {
  FakeArena arena({.slot_count = 1, .entries_log2 = 6});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  SumSink sink;
  uint32_t drained = 0;
  for (uint64_t key = 1; key <= 1000; ++key) {
    thread.count_key(key, key);
    drained += reader.drain_tables(sink);
  }
  EXPECT_GE(drained, 14U);  // A half has 64 entries; two of them are read at the end.
  reader.read_cells(sink);
  EXPECT_EQ(dropped_updates(reader), 0U);
  ASSERT_EQ(sink.keys[0].size(), 1000U);
  for (const auto& [key, count] : sink.keys[0])
    EXPECT_EQ(count, key);
}

TEST(ReaderTables, WhatTwoFullHalvesCannotTakeIsCounted) {
  FakeArena arena({.slot_count = 1, .entries_log2 = 6});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  for (uint64_t key = 1; key <= 1000; ++key)
    thread.count_key(key);
  const uint64_t dropped = dropped_updates(reader);
  EXPECT_GE(dropped, 1000U - 2 * 64);
  SumSink sink;
  EXPECT_EQ(reader.drain_tables(sink), 1U);
  EXPECT_EQ(reader.drain_tables(sink), 0U);
  thread.count_key(2000);  // There is room again.
  reader.read_cells(sink);
  EXPECT_EQ(dropped_updates(reader), dropped);
  EXPECT_EQ(sum_of(sink.keys[0]) + dropped, 1001U);
}

TEST(ReaderTables, TurnsOfThreadsAndOfGenerationsDoNotLoseEachOther) {
  FakeArena arena({.slot_count = 1, .generations = 2, .entries_log2 = 6});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  SumSink sink;
  for (uint64_t key = 1; key <= 5000; ++key) {
    thread.count_key(key);
    if (key % 23 == 0) reader.drain_tables(sink);
    if (key % 97 == 0) {
      ASSERT_TRUE(reader.turn(sink));
    }
  }
  reader.read_cells(sink);
  EXPECT_EQ(dropped_updates(reader), 0U);
  EXPECT_EQ(sink.keys[0].size(), 5000U);
  EXPECT_EQ(sum_of(sink.keys[0]), 5000U);
}

TEST(ReaderLosses, NamesEveryCause) {
  FakeArena arena;
  arena.claim(0, 100);
  arena.claim(1, 101);
  for (const uint32_t slot : {0U, 1U}) {
    abi::RegionHeader* header = arena.region_header(slot);
    header->missed_reentry = 1;
    header->missed_abandoned = 2;
    header->missed_records = 3;
    header->missed_unpaired = 4;
    header->missed_fuel = 5;
    header->missed_unreadable = 10;
    header->missed_tail_call = 11;
    header->dropped_ring = 6;
    header->dropped_table[0] = 7;
    header->dropped_table[5] = 100;  // There is one table only.
  }
  Reader reader = arena.reader();
  arena.target()->missed_no_slot[1] = 8;
  arena.target()->forks_muted = 9;
  Losses losses;
  reader.add_losses(losses);
  EXPECT_THAT(losses.missed,
              ElementsAre(Pair("abandoned", 4), Pair("forks_muted", 9), Pair("fuel", 10),
                          Pair("no_slot", 8), Pair("records_full", 6), Pair("reentry", 2),
                          Pair("tail_call", 22), Pair("unpaired", 8), Pair("unreadable", 20)));
  EXPECT_THAT(losses.dropped, ElementsAre(Pair("ring_full", 12), Pair("table_full", 14)));
}

TEST(ReaderLosses, CountsOnlyForksSinceTheSessionBegan) {
  FakeArena arena;
  arena.target()->forks_muted = 3;
  Reader reader = arena.reader();
  arena.target()->forks_muted = 5;
  Losses losses;
  reader.add_losses(losses);
  EXPECT_EQ(losses.missed["forks_muted"], 2U);
}

TEST(ReaderEvents, TakesEachEventOnceAndMakesRoom) {
  FakeArena arena;
  FakeThread thread(arena, 2, 100, 1);
  Reader reader = arena.reader();
  uint64_t stored = 0;
  uint64_t taken = 0;
  for (uint64_t round = 0; round < 50; ++round) {
    for (uint64_t i = 0; i < 20; ++i) {
      const std::array<uint64_t, 5> fields = {stored, 2, 3, 4, 5};
      ASSERT_TRUE(thread.put_event(2, stored, fields));
      ++stored;
    }
    EventBatch batch;
    reader.read_events(batch);
    for (size_t i = 0; i < batch.size(); ++i, ++taken) {
      const Event event = batch.at(i);
      EXPECT_EQ(event.time, taken);
      EXPECT_EQ(event.shape, 2U);
      EXPECT_EQ(event.tid, 100U);
      EXPECT_EQ(event.process, 1U);
      EXPECT_THAT(event.words, ElementsAre(taken, 2, 3, 4, 5));
    }
  }
  EXPECT_EQ(taken, 1000U);
}

TEST(ReaderEvents, CountsWhatAFullRingDropped) {
  FakeArena arena;
  FakeThread thread(arena, 0, 100);
  uint64_t stored = 0;
  for (uint64_t i = 0; i < 1000; ++i)
    stored += thread.put_event(1, i, {}) ? 1 : 0;
  EXPECT_EQ(stored, 4096U / 16);
  Reader reader = arena.reader();
  EventBatch batch;
  Losses losses;
  reader.read_events(batch);
  reader.add_losses(losses);
  EXPECT_EQ(batch.size(), stored);
  EXPECT_EQ(losses.dropped["ring_full"], 1000 - stored);
}

struct Damage {
  const char* what;
  std::function<void(FakeArena&)> apply;
};

TEST(ReaderEvents, DamageIsCountedAndLaterEventsAreReadAgain) {
  const auto first_word = [](FakeArena& arena, uint64_t value) {
    std::byte* ring = arena.region(0) + arena.view().layout.ring.offset;
    *reinterpret_cast<uint64_t*>(ring) = value;
  };
  const Damage damages[] = {
      {"size zero", [&](FakeArena& arena) { first_word(arena, 0); }},
      {"unknown shape", [&](FakeArena& arena) { first_word(arena, uint64_t{3} << 32 | 16); }},
      {"wrong size", [&](FakeArena& arena) { first_word(arena, uint64_t{1} << 32 | 24); }},
      {"beyond head", [&](FakeArena& arena) { first_word(arena, uint64_t{2} << 32 | 56); }},
      {"head far ahead", [](FakeArena& a) { a.region_header(0)->ring_head = uint64_t{1} << 60; }},
      {"head unaligned", [](FakeArena& a) { a.region_header(0)->ring_head = 13; }},
  };
  for (const Damage& damage : damages) {
    FakeArena arena;
    FakeThread thread(arena, 0, 100);
    Reader reader = arena.reader();
    ASSERT_TRUE(thread.put_event(1, 7, {}));
    damage.apply(arena);
    EventBatch batch;
    Losses losses;
    reader.read_events(batch);
    reader.add_losses(losses);
    EXPECT_TRUE(batch.empty()) << damage.what;
    EXPECT_GT(losses.dropped["damaged_bytes"], 0U) << damage.what;
    arena.region_header(0)->ring_head &= ~uint64_t{7};
    ASSERT_TRUE(thread.put_event(1, 8, {})) << damage.what;
    reader.read_events(batch);
    EXPECT_EQ(batch.size(), 1U) << damage.what;
  }
}

TEST(ReaderEvents, AForgedTailDoesNotBringEventsBack) {
  FakeArena arena;
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  ASSERT_TRUE(thread.put_event(1, 7, {}));
  EventBatch batch;
  reader.read_events(batch);
  arena.region_header(0)->ring_tail = 0;
  reader.read_events(batch);
  EXPECT_EQ(batch.size(), 1U);
  EXPECT_EQ(arena.region_header(0)->ring_tail, 16U);
}

TEST(ReaderTurn, DrainsTheOldHalfAndLeavesItZero) {
  FakeArena arena({.generations = 2});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  thread.count(1, 5);
  thread.count_key(9, 2);
  SumSink first;
  ASSERT_EQ(reader.turn(first)->drained, 1U);
  thread.count(1, 3);
  SumSink second;
  ASSERT_TRUE(reader.turn(second));
  SumSink third;
  ASSERT_TRUE(reader.turn(third));
  EXPECT_EQ(first.dense_at(1), 5U);
  EXPECT_EQ(first.keys[0][9], 2U);
  EXPECT_EQ(second.dense_at(1), 3U);
  EXPECT_TRUE(second.keys[0].empty());
  EXPECT_EQ(third.dense_at(1), 0U);
}

TEST(ReaderTurn, WhatIsCountedAfterTheEndIsNotRead) {
  FakeArena arena({.generations = 2});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  thread.count(1, 5);
  SumSink before;
  ASSERT_TRUE(reader.turn(before));
  thread.count(1, 3);
  SumSink left;
  reader.close_generation(left);
  thread.count(1, 70);
  SumSink last;
  reader.read_closed(last);
  EXPECT_EQ(left.dense_at(1), 0U);
  EXPECT_EQ(last.dense_at(1), 3U);
}

// A probe that was inside at the turn before: its half is passed on with the end.
TEST(ReaderTurn, WhatABusyThreadKeptIsPassedOnAtTheEnd) {
  FakeArena arena({.generations = 2});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  thread.count(1, 5);
  thread.enter();
  SumSink before;
  ASSERT_EQ(reader.turn(before)->busy, 1U);
  thread.leave();
  SumSink left;
  reader.close_generation(left);
  EXPECT_EQ(before.dense_at(1) + left.dense_at(1), 5U);
}

TEST(ReaderTurn, LeavesTheHalfOfARunningProbeAloneAndReportsItLater) {
  FakeArena arena({.generations = 2});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  thread.count(1, 5);
  thread.enter();  // A probe that is still inside, with the old generation.
  SumSink sink;
  const auto turned = reader.turn(sink);
  ASSERT_TRUE(turned);
  EXPECT_EQ(turned->busy, 1U);
  EXPECT_EQ(turned->drained, 0U);
  thread.leave();
  ASSERT_TRUE(reader.turn(sink));
  ASSERT_TRUE(reader.turn(sink));
  EXPECT_EQ(sink.dense_at(1), 5U);
}

TEST(ReaderTurn, WhatIsNotTurnedIsInTheLastRead) {
  FakeArena arena({.generations = 2});
  FakeThread thread(arena, 0, 100);
  Reader reader = arena.reader();
  thread.count(1, 5);
  SumSink sink;
  ASSERT_TRUE(reader.turn(sink));
  thread.count(1, 2);
  reader.read_cells(sink);
  EXPECT_EQ(sink.dense_at(1), 7U);
}

TEST(ReaderFree, ADeadThreadsSlotIsTakenWhenSeenTwiceAndGivenAwayByTheNextCall) {
  FakeArena arena;
  FakeThread thread(arena, 0, 100);
  thread.count(0, 4);
  ASSERT_TRUE(thread.put_event(1, 7, {}));
  arena.claim(1, 101);
  Reader reader = arena.reader();
  FakeThreads threads;
  threads.dead_tids = {100};
  SumSink last;
  EventBatch events;
  EXPECT_EQ(reader.free_dead_slots(threads, last, events), 0U);
  EXPECT_EQ(arena.control(0)->tid, 100U);
  EXPECT_EQ(reader.free_dead_slots(threads, last, events), 0U);
  EXPECT_EQ(arena.control(0)->tid, abi::kTidReserved);
  EXPECT_EQ(arena.control(0)->owner, 0U);
  EXPECT_EQ(reader.free_dead_slots(threads, last, events), 1U);
  EXPECT_EQ(arena.control(0)->tid, 0U);
  EXPECT_EQ(arena.control(1)->tid, 101U);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.at(0).tid, 100U);
  SumSink sink;
  reader.read_cells(sink);
  EXPECT_EQ(sink.dense_at(0), 4U);
}

TEST(ReaderFree, AThreadThatTookTheSlotMeanwhileKeepsIt) {
  FakeArena arena;
  arena.claim(0, 100);
  Reader reader = arena.reader();
  FakeThreads threads;
  threads.dead_tids = {100};
  SumSink last;
  EventBatch events;
  for (int i = 0; i < 3; ++i)
    (void)reader.free_dead_slots(threads, last, events);
  arena.claim(0, 102);
  EXPECT_EQ(reader.free_dead_slots(threads, last, events), 0U);
  EXPECT_EQ(arena.control(0)->tid, 102U);
}

TEST(ReaderFree, AThreadThatBeganAfterTheListWasMadeKeepsItsSlot) {
  FakeArena arena;
  arena.claim(0, 100);
  Reader reader = arena.reader();
  FakeThreads threads;
  SumSink last;
  EventBatch events;
  threads.dead_tids = {100};  // Not in the list yet.
  (void)reader.free_dead_slots(threads, last, events);
  threads.dead_tids = {};
  (void)reader.free_dead_slots(threads, last, events);
  threads.dead_tids = {100};
  (void)reader.free_dead_slots(threads, last, events);
  EXPECT_EQ(arena.control(0)->tid, 100U);
  EXPECT_NE(arena.control(0)->owner, 0U);
}

TEST(ReaderFree, ASlotReservedByATracerThatDiedIsGivenAwayInTheEnd) {
  FakeArena arena;
  arena.claim(0, 100);
  arena.control(0)->tid = abi::kTidReserved;
  Reader reader = arena.reader();
  SumSink last;
  EventBatch events;
  uint32_t freed = 0;
  for (int i = 0; i < 20; ++i)
    freed += reader.free_dead_slots(FakeThreads{}, last, events);
  EXPECT_EQ(freed, 1U);
  EXPECT_EQ(arena.control(0)->tid, 0U);
}

TEST(ReaderFree, WithFollowedForksSlotsOfADeadProcessMoveToTheHost) {
  FakeArena arena;
  arena.view().follow_forks = true;
  Reader reader = arena.reader();
  FakeThread child(arena, 1, 200, 3);
  child.count(2, 6);
  child.count_key(5, 1);
  ASSERT_TRUE(child.put_event(1, 7, {}));
  arena.region_header(1)->missed_fuel = 2;
  FakeThreads threads;
  threads.dead_tids = {200};  // The thread is dead, but its process lives.
  SumSink last;
  EventBatch events;
  EXPECT_EQ(reader.free_dead_slots(threads, last, events), 0U);
  threads.dead_processes = {3};
  EXPECT_EQ(reader.free_dead_slots(threads, last, events), 1U);
  EXPECT_EQ(last.dense_at(2, 3), 6U);
  EXPECT_EQ(last.keys[3][5], 1U);
  EXPECT_EQ(events.size(), 1U);

  FakeThread(arena, 1, 300, 4).count(2, 1);  // Another child gets the same slot.
  SumSink sink;
  Losses losses;
  reader.read_cells(sink);
  reader.add_losses(losses);
  EXPECT_EQ(sink.dense_at(2, 3), 0U);
  EXPECT_EQ(sink.dense_at(2, 4), 1U);
  EXPECT_EQ(losses.missed["fuel"], 2U);
}

TEST(ReaderFree, WithFollowedForksNothingIsFreedWhileAnotherSessionCountsThere) {
  FakeArena arena;
  arena.view().follow_forks = true;
  arena.header()->sessions[0].state = 1;
  FakeThread(arena, 1, 200, 3).count(2, 6);
  FakeThreads threads;
  threads.dead_processes = {3};
  SumSink last;
  EventBatch events;
  Reader reader = arena.reader();
  EXPECT_EQ(reader.free_dead_slots(threads, last, events), 0U);
  EXPECT_EQ(arena.control(1)->tid, 200U);
}

TEST(Reader, ClearLeavesNothingOfTheSession) {
  FakeArena arena;
  FakeThread thread(arena, 0, 100);
  thread.count(0, 4);
  thread.count_key(5);
  arena.region_header(0)->missed_fuel = 2;
  Reader reader = arena.reader();
  reader.clear();
  SumSink sink;
  Losses losses;
  reader.read_cells(sink);
  reader.add_losses(losses);
  EXPECT_EQ(sink.dense_at(0), 0U);
  EXPECT_TRUE(sink.keys[0].empty());
  EXPECT_TRUE(losses.empty());
}

struct WrongView {
  const char* message;
  std::function<void(SessionView&)> change;
};

TEST(SessionViewCheck, RefusesALayoutThatReachesOutsideItsMemory) {
  const WrongView wrong[] = {
      {"arena header", [](SessionView& v) { v.header = v.header.first(100); }},
      {"session 8", [](SessionView& v) { v.session = abi::kSessionsMax; }},
      {"not 8-aligned", [](SessionView& v) { v.slots = v.slots.subspan(1); }},
      {"are not in", [](SessionView& v) { ++v.slot_count; }},
      {"are not in", [](SessionView& v) { v.slot_count = abi::kSlotsMax + 1; }},
      {"not inside a slot", [](SessionView& v) { v.region_offset += 8; }},
      {"not inside a slot", [](SessionView& v) { v.region_offset = 0; }},
      {"too many", [](SessionView& v) { v.layout.size_log2 = 31; }},
      {"3 generations", [](SessionView& v) { v.layout.generations = 3; }},
      {"dense words", [](SessionView& v) { v.dense_words = 1 << 30; }},
      {"cells at", [](SessionView& v) { v.layout.cells_offset = 512; }},
      {"cells at", [](SessionView& v) { v.layout.cells_offset = 0xFFFF'FFF8; }},
      {"9 tables", [](SessionView& v) { v.layout.table_count = 9; }},
      {"table too large", [](SessionView& v) { v.layout.tables[0].entries_log2 = 25; }},
      {"table at", [](SessionView& v) { v.layout.tables[0].entries_log2 = 20; }},
      {"ring too large", [](SessionView& v) { v.layout.ring.size_log2 = 31; }},
      {"ring at", [](SessionView& v) { v.layout.ring.size_log2 = 20; }},
      {"ring at 9", [](SessionView& v) { v.layout.ring.offset = 9; }},
      {"larger than 16384",
       [](SessionView& v) {
         v.event_words.push_back({0, 2047});
       }},
  };
  for (const WrongView& each : wrong) {
    FakeArena arena;
    SessionView view = arena.view();
    each.change(view);
    const auto result = Reader::make(view);
    ASSERT_FALSE(result) << each.message;
    EXPECT_THAT(result.error().message, HasSubstr(each.message));
  }
}

TEST(ReaderLosses, AddUpWhatJoinsInPlaceCountForEachSource) {
  constexpr uint32_t kContexts = 3072;
  FakeArena arena;
  arena.view().layout.contexts = {
      .offset = kContexts, .blocks_offset = 0, .blocks_log2 = 0, .bags = 1, .bag_words = 3};
  arena.view().duty_words = 3;
  const size_t begin = kContexts - abi::kContextCountersBytes - 3 * sizeof(uint64_t);
  for (const uint32_t slot : {0U, 2U}) {
    arena.claim(slot, 100 + slot);
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t count = i + 10 * slot;
      std::memcpy(arena.region(slot) + begin + 8 * i, &count, sizeof count);
    }
  }
  Losses losses;
  Reader reader = arena.reader();
  reader.add_losses(losses);
  EXPECT_EQ(losses.duties, (std::vector<uint64_t>{20, 22, 24}));
}

TEST(ReaderLosses, OfJoinsInPlaceLieInTheWindow) {
  FakeArena arena;
  arena.view().layout.contexts = {
      .offset = 3072, .blocks_offset = 0, .blocks_log2 = 0, .bags = 1, .bag_words = 3};
  arena.view().duty_words = 1000;
  EXPECT_FALSE(check(arena.view()).has_value());
}

}  // namespace
}  // namespace clew::collect
