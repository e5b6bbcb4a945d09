// SPDX-License-Identifier: Apache-2.0
// Readers and writers at the same time: what was read in the end is what was counted, exactly.
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collect/event_merge.h"
#include "collect/fake_arena.h"
#include "collect/reader.h"

namespace clew::collect {
namespace {

constexpr uint32_t kWriters = 4;
constexpr uint64_t kHits = 100'000;
constexpr uint64_t kKeys = 20;

// Runs kWriters threads that each call `hit(thread, i)` kHits times, and `read` until they end;
// none is through with them before the first reading.
template <typename Hit, typename Read>
void write_while_reading(FakeArena& arena, Hit hit, Read read) {
  std::atomic<uint32_t> running = kWriters;
  std::atomic<bool> has_read = false;
  std::vector<std::jthread> writers;
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&arena, &running, &has_read, hit, writer] {
      FakeThread thread(arena, writer, 100 + writer);
      for (uint64_t i = 0; i < kHits; ++i) {
        if (i == kHits / 2) has_read.wait(false);
        hit(thread, i);
      }
      --running;
    });
  }
  while (running > 0) {
    read();
    has_read = true;
    has_read.notify_all();
  }
}

TEST(ConcurrentReading, ReadsGrowAndTheLastOneIsExact) {
  FakeArena arena;
  Reader reader = arena.reader();
  uint64_t before = 0;
  write_while_reading(
      arena,
      [](FakeThread& thread, uint64_t i) {
        thread.count(3);
        thread.count_key(i % kKeys);
      },
      [&] {
        SumSink sink;
        reader.read_cells(sink);
        EXPECT_GE(sink.dense_at(3), before);
        before = sink.dense_at(3);
      });
  SumSink last;
  reader.read_cells(last);
  EXPECT_EQ(last.dense_at(3), kWriters * kHits);
  for (uint64_t key = 0; key < kKeys; ++key) {
    EXPECT_EQ(last.keys[0][key], kWriters * kHits / kKeys);
  }
}

TEST(ConcurrentReading, TheIntervalsOfTurnsAddUpExactly) {
  FakeArena arena({.generations = 2});
  Reader reader = arena.reader();
  SumSink sum;
  uint32_t turns = 0;
  write_while_reading(
      arena,
      [](FakeThread& thread, uint64_t i) {
        thread.count(3);
        thread.count_key(i % kKeys);
      },
      [&] {
        ASSERT_TRUE(reader.turn(sum));
        ++turns;
      });
  reader.read_cells(sum);
  EXPECT_GT(turns, 0U);
  EXPECT_EQ(sum.dense_at(3), kWriters * kHits);
  for (uint64_t key = 0; key < kKeys; ++key) {
    EXPECT_EQ(sum.keys[0][key], kWriters * kHits / kKeys);
  }
}

TEST(ConcurrentReading, EveryKeyIsDrainedOnceOrCountedAsDropped) {
  FakeArena arena({.entries_log2 = 8});
  Reader reader = arena.reader();
  SumSink sum;
  uint32_t drained = 0;
  write_while_reading(
      arena, [](FakeThread& thread, uint64_t i) { thread.count_key(i % 5000); },
      [&] { drained += reader.drain_tables(sum); });
  drained += reader.drain_tables(sum);  // The writers may have been faster than the first look.
  reader.read_cells(sum);
  Losses losses;
  reader.add_losses(losses);
  uint64_t counted = losses.dropped["table_full"];
  for (const auto& [key, count] : sum.keys[0])
    counted += count;
  EXPECT_GT(drained, 0U);
  EXPECT_EQ(counted, kWriters * kHits);
}

TEST(ConcurrentReading, EveryEventIsReadOnceOrCountedAsDropped) {
  FakeArena arena;
  Reader reader = arena.reader();
  EventBatch all;
  write_while_reading(
      arena,
      [](FakeThread& thread, uint64_t i) {
        const std::array<uint64_t, 2> fields = {i, ~i};
        (void)thread.put_event(0, i, fields);
      },
      [&] { reader.read_events(all); });
  reader.read_events(all);
  Losses losses;
  reader.add_losses(losses);
  EXPECT_EQ(all.size() + losses.dropped["ring_full"], kWriters * kHits);
  EXPECT_FALSE(losses.dropped.contains("damaged_bytes"));
  std::array<uint64_t, kWriters> next{};
  for (size_t i = 0; i < all.size(); ++i) {
    const Event event = all.at(i);
    ASSERT_EQ(event.words[0], event.time);
    ASSERT_EQ(event.words[1], ~event.time);
    ASSERT_GE(event.time, next[event.tid - 100]);  // In order within a thread.
    next[event.tid - 100] = event.time + 1;
  }
}

}  // namespace
}  // namespace clew::collect
