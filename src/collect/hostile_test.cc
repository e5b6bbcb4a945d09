// SPDX-License-Identifier: Apache-2.0
// The traced program writes anything, anywhere, at any time: the reader ends, and touches nothing
// outside its memory (run with the asan preset to see the latter).
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "collect/fake_arena.h"
#include "collect/reader.h"

namespace clew::collect {
namespace {

// Words as an attacker would choose them, not only noise.
uint64_t nasty_word(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return random();
    case 1:
      return 0;
    case 2:
      return UINT64_MAX;
    case 3:
      return random() % 4096;
    case 4:
      return uint64_t{1} << (random() % 64);
    default:
      return (random() % 4) << 32 | (random() % 64) * 8;
  }
}

void scribble(FakeArena& arena, std::mt19937_64& random, size_t words) {
  const std::span<std::byte> memory = arena.memory();
  for (size_t i = 0; i < words; ++i) {
    auto* word = reinterpret_cast<uint64_t*>(memory.data()) + random() % (memory.size() / 8);
    __atomic_store_n(word, nasty_word(random), __ATOMIC_RELAXED);
  }
}

// Damages where it matters: slot controls and region headers.
void scribble_headers(FakeArena& arena, std::mt19937_64& random) {
  for (uint32_t slot = 0; slot < arena.shape().slot_count; ++slot) {
    auto* control = reinterpret_cast<uint64_t*>(arena.control(slot));
    auto* header = reinterpret_cast<uint64_t*>(arena.region(slot));
    __atomic_store_n(control + random() % 4, nasty_word(random), __ATOMIC_RELAXED);
    __atomic_store_n(header + random() % 32, nasty_word(random), __ATOMIC_RELAXED);
  }
}

void read_everything(Reader& reader, const FakeArena& arena) {
  SumSink sink;
  EventBatch events;
  Losses losses;
  reader.read_cells(sink);
  (void)reader.drain_tables(sink);
  reader.read_events(events);
  reader.add_losses(losses);
  FakeThreads threads;
  threads.dead_tids = {0, 1, 100, 101};
  threads.dead_processes = {3};
  (void)reader.free_dead_slots(threads, sink, events);
  const size_t events_max = arena.shape().slot_count * (size_t{2} << arena.shape().ring_log2) / 16;
  EXPECT_LE(events.size(), events_max);
  for (const auto& [process, words] : sink.dense_sums)
    EXPECT_LE(process, abi::kProcessesMax);
}

TEST(HostileMemory, NoWordInSharedMemoryMakesTheReaderFail) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    FakeArena arena({.slot_count = 4,
                     .generations = 1 + static_cast<uint32_t>(random() % 2),
                     .entries_log2 = 4,
                     .ring_log2 = 10});
    arena.view().follow_forks = random() % 2 == 0;
    Reader reader = arena.reader();
    for (uint32_t slot = 0; slot < 4; ++slot)
      arena.claim(slot, 100 + slot, slot);
    for (int step = 0; step < 10; ++step) {
      scribble(arena, random, 200);
      scribble_headers(arena, random);
      read_everything(reader, arena);
    }
  }
}

TEST(HostileMemory, ATurnEndsEvenWhenEverySlotClaimsToBeBusy) {
  std::mt19937_64 random(8);
  FakeArena arena({.slot_count = 64, .generations = 2});
  Reader reader = arena.reader();
  for (uint32_t slot = 0; slot < 64; ++slot) {
    arena.claim(slot, 100);
    arena.control(slot)->busy = slot % 2;
  }
  scribble(arena, random, 10'000);
  for (uint32_t slot = 0; slot < 64; ++slot)
    arena.control(slot)->busy = 1;
  SumSink sink;
  const auto result = reader.turn(sink);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->drained, 0U);
}

TEST(HostileMemory, WritingDuringTheReadDoesNotHelpTheAttacker) {
  FakeArena arena({.slot_count = 4, .entries_log2 = 4, .ring_log2 = 10});
  Reader reader = arena.reader();
  std::atomic<bool> stop = false;
  std::jthread attacker([&] {
    std::mt19937_64 random(9);
    while (!stop) {
      scribble(arena, random, 50);
      scribble_headers(arena, random);
    }
  });
  for (int round = 0; round < 500; ++round)
    read_everything(reader, arena);
  stop = true;
}

}  // namespace
}  // namespace clew::collect
