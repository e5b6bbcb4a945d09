// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "abi/machine/process.h"
#include "collect/ring.h"
#include "collect/shared_words.h"

namespace clew::collect {
namespace {

constexpr uint32_t kSmallest = abi::kMachineEventHeadBytes + sizeof(abi::MachineRecordHeader);

// Size in bytes of the event that begins with this word, or 0 when none of a D session does.
uint32_t event_size(uint64_t first_word, uint64_t left) {
  const auto size = static_cast<uint32_t>(first_word);
  const bool is_ours = static_cast<uint32_t>(first_word >> 32) == abi::kMachineEventShape;
  const bool fits = size >= kSmallest && size <= abi::kMachineEventBytesMax && size % 8 == 0;
  return is_ours && fits && size <= left ? size : 0;
}

// Does the copy of a record say the same size of itself?
bool is_sound(std::span<const uint8_t> record) {
  abi::MachineRecordHeader header{};
  std::memcpy(&header, record.data(), sizeof header);
  return header.size_bytes == record.size() && header.kind <= abi::MachineRecordKind::Exit;
}

}  // namespace

void read_records(const RingSource& source, RingState& state, const TakeRecord& take) {
  std::byte* const shared_tail = source.region + offsetof(abi::RegionHeader, ring_tail);
  const uint64_t size = uint64_t{1} << source.layout.size_log2;
  const uint64_t head =
      load_word(source.region + offsetof(abi::RegionHeader, ring_head)) & ~uint64_t{7};
  if (!state.known) state.tail = load_word(shared_tail) & ~uint64_t{7};
  state.known = true;
  if (head - state.tail > size) {
    state.damaged_bytes += size;
    state.tail = head;
  }
  std::array<uint64_t, abi::kMachineRecordBytesMax / 8> words;
  while (state.tail != head) {
    const std::byte* at = source.region + source.layout.offset + (state.tail & (size - 1));
    const uint32_t event = event_size(load_word(at), head - state.tail);
    if (event == 0) {
      state.damaged_bytes += head - state.tail;
      state.tail = head;
      break;
    }
    const std::span<uint64_t> copy(words.data(), (event - abi::kMachineEventHeadBytes) / 8);
    load_words(copy, at + abi::kMachineEventHeadBytes);
    state.tail += event;
    const std::span<const uint8_t> record(reinterpret_cast<const uint8_t*>(copy.data()),
                                          copy.size_bytes());
    if (is_sound(record)) {
      take(record);
    } else {
      state.damaged_bytes += event;
    }
  }
  store_word(shared_tail, state.tail);
}

}  // namespace clew::collect
