// SPDX-License-Identifier: Apache-2.0
#include "collect/ring.h"

#include <array>

#include "base/assert.h"
#include "collect/shared_words.h"

namespace clew::collect {
namespace {

// Size in bytes of the event at `at`, or 0 when what stands there is no event of a known shape
// within `left` bytes.
uint32_t checked_size(uint64_t first_word, std::span<const EventWords> event_words, uint64_t left) {
  const auto size = static_cast<uint32_t>(first_word);
  const auto shape = static_cast<uint32_t>(first_word >> 32);
  const bool is_whole = size >= abi::kEventHeaderBytes && size % 8 == 0 && size <= left;
  if (shape >= event_words.size() || !is_whole) return 0;
  return event_words[shape].allow((size - abi::kEventHeaderBytes) / 8) ? size : 0;
}

void copy_event(const RingSource& source, const std::byte* at, uint64_t first_word,
                EventBatch& batch) {
  const auto shape = static_cast<uint32_t>(first_word >> 32);
  std::array<uint64_t, abi::kEventSizeMax / 8> words;
  const std::span<uint64_t> fields(
      words.data(), (static_cast<uint32_t>(first_word) - abi::kEventHeaderBytes) / 8);
  CLEW_ASSERT(fields.size() <= words.size());  // checked_size() has allowed it.
  load_words(fields, at + abi::kEventHeaderBytes);
  batch.push({.shape = shape,
              .process = source.process,
              .tid = source.tid,
              .time = load_word(at + 8),
              .words = fields});
}

}  // namespace

void read_ring(const RingSource& source, RingState& state, EventBatch& batch) {
  std::byte* const shared_head = source.region + offsetof(abi::RegionHeader, ring_head);
  std::byte* const shared_tail = source.region + offsetof(abi::RegionHeader, ring_tail);
  CLEW_ASSERT(source.layout.size_log2 != 0);
  CLEW_ASSERT(source.layout.size_log2 < 64);
  const uint64_t size = uint64_t{1} << source.layout.size_log2;
  const uint64_t head = load_word(shared_head) & ~uint64_t{7};
  if (!state.known) state.tail = load_word(shared_tail) & ~uint64_t{7};
  state.known = true;
  if (head - state.tail > size) {
    state.damaged_bytes += size;
    state.tail = head;
  }
  while (state.tail != head) {
    const std::byte* at = source.region + source.layout.offset + (state.tail & (size - 1));
    const uint64_t first_word = load_word(at);
    const uint32_t event_size = checked_size(first_word, source.event_words, head - state.tail);
    if (event_size == 0) {
      state.damaged_bytes += head - state.tail;
      state.tail = head;
      break;
    }
    copy_event(source, at, first_word, batch);
    state.tail += event_size;
  }
  store_word(shared_tail, state.tail);
}

}  // namespace clew::collect
