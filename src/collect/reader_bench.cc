// SPDX-License-Identifier: Apache-2.0
// What a round of the collector costs: cells of all functions of a large program in N threads, and
// events through ring, batch and merge.
#include <array>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "collect/event_merge.h"
#include "collect/fake_arena.h"
#include "collect/reader.h"

namespace clew::collect {
namespace {

constexpr uint32_t kFunctions = 3150;  // redis-server has as many.

// Counts what it gets, nothing more.
class NullSink final : public CellSink {
 public:
  void dense(const SlotIdentity& /*slot*/, std::span<const uint64_t> words) override {
    seen += words.size();
  }
  void entry(const SlotIdentity& /*slot*/, uint32_t /*table*/, std::span<const uint64_t> /*key*/,
             std::span<const uint64_t> /*cells*/) override {
    ++seen;
  }
  uint64_t seen = 0;
};

// Time per round; the argument is the number of threads that count.
void read_dense_cells(benchmark::State& state) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  FakeArena arena({.slot_count = abi::kSlotsMax, .dense_words = kFunctions});
  for (uint32_t slot = 0; slot < threads; ++slot) {
    FakeThread thread(arena, slot, 100 + slot);
    for (uint32_t word = 0; word < kFunctions; ++word)
      thread.count(word);
  }
  Reader reader = arena.reader();
  NullSink sink;
  for (auto _ : state)
    reader.read_cells(sink);
  benchmark::DoNotOptimize(sink.seen);
}
BENCHMARK(read_dense_cells)->Arg(0)->Arg(1)->Arg(16)->Arg(256)->Unit(benchmark::kMicrosecond);

// Events a second from the ring to their place in time.
void read_and_merge_events(benchmark::State& state) {
  FakeArena arena({.ring_log2 = 16});
  FakeThread first(arena, 0, 100);
  FakeThread second(arena, 1, 101);
  Reader reader = arena.reader();
  EventMerge merge;
  const std::array<uint64_t, 2> fields = {1, 2};
  uint64_t time = 0;
  uint64_t events = 0;
  for (auto _ : state) {
    state.PauseTiming();
    while (first.put_event(0, ++time, fields) && second.put_event(0, ++time, fields)) {
    }
    state.ResumeTiming();
    EventBatch round;
    reader.read_events(round);
    merge.add(round, time);
    events += merge.take_ready().size();
  }
  state.SetItemsProcessed(static_cast<int64_t>(events));
}
BENCHMARK(read_and_merge_events);

}  // namespace
}  // namespace clew::collect
