// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader: the input says what the traced program writes and what the collector does.
//   byte 0: shape; then steps of 9 bytes: operation, where (4), what (4)
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "collect/fake_arena.h"
#include "collect/reader.h"

namespace {

using clew::collect::EventBatch;
using clew::collect::FakeArena;
using clew::collect::FakeThreads;
using clew::collect::Losses;
using clew::collect::Reader;
using clew::collect::SumSink;

constexpr size_t kStepBytes = 9;
constexpr size_t kStepsMax = 200;

struct Step {
  uint8_t operation;
  uint32_t where;
  uint32_t what;
};

Step step_of(std::span<const uint8_t> bytes) {
  Step step{};
  step.operation = bytes[0];
  std::memcpy(&step.where, &bytes[1], 4);
  std::memcpy(&step.what, &bytes[5], 4);
  return step;
}

void write_word(FakeArena& arena, size_t offset, uint32_t what) {
  const std::span<std::byte> memory = arena.memory();
  std::memcpy(memory.data() + offset % (memory.size() - 4), &what, 4);
}

void write_header(FakeArena& arena, const Step& step) {
  const uint32_t slot = step.where % arena.shape().slot_count;
  const uint32_t offset = step.where / 16 % 256;
  auto* base = (step.operation & 0x10) != 0 ? arena.region(slot)
                                            : reinterpret_cast<std::byte*>(arena.control(slot));
  std::memcpy(base + offset % 252, &step.what, 4);
}

void run(FakeArena& arena, Reader& reader, const Step& step) {
  SumSink sink;
  EventBatch events;
  Losses losses;
  FakeThreads threads;
  threads.dead_tids = {step.what};
  threads.dead_processes = {step.what % 8};
  switch (step.operation % 8) {
    case 0:
      write_word(arena, step.where, step.what);
      break;
    case 1:
    case 2:
      write_header(arena, step);
      break;
    case 3:
      arena.claim(step.where % arena.shape().slot_count, step.what, step.where % 70);
      break;
    case 4:
      reader.read_cells(sink);
      (void)reader.drain_tables(sink);
      break;
    case 5:
      reader.read_events(events);
      break;
    case 6:
      reader.add_losses(losses);
      break;
    case 7:
      (void)reader.free_dead_slots(threads, sink, events);
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  FakeArena arena({.slot_count = 3,
                   .generations = 1U + (data[0] & 1),
                   .dense_words = 8,
                   .key_words = (data[0] >> 1) & 3U,
                   .cell_words = (data[0] >> 3) & 3U,
                   .entries_log2 = 3,
                   .ring_log2 = 8});
  arena.view().follow_forks = (data[0] & 0x20) != 0;
  Reader reader = arena.reader();
  std::span<const uint8_t> rest(data + 1, size - 1);
  for (size_t i = 0; i < kStepsMax && rest.size() >= kStepBytes; ++i) {
    run(arena, reader, step_of(rest));
    rest = rest.subspan(kStepBytes);
  }
  return 0;
}
