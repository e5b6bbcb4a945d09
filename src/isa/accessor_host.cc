// SPDX-License-Identifier: Apache-2.0
// The window's checks, and RegionHost: the accessors over abi/region.h, without any haste.
#include "isa/accessor_host.h"

#include <algorithm>

#include <fmt/format.h>

#include "abi/query_window.h"
#include "base/assert.h"

namespace clew::isa {
namespace {

constexpr uint64_t kReadMax = 4096;
constexpr uint32_t kWord = 8;

// Adds 1 to the region header's word at `offset`.
void count(Window& window, size_t offset) {
  window.store(offset, kWord, window.load(offset, kWord) + 1);
}

Expected<std::span<uint8_t>> read_destination(const Arguments& arguments, Window& window) {
  const auto [destination, size, address, r4, r5] = arguments;
  if (size == 0 || size > kReadMax) {
    return fail(ErrorCode::Refused, fmt::format("a read of {} bytes, 1 to 4096 are allowed", size));
  }
  if (!window.holds(destination, size)) {
    return fail(ErrorCode::Refused, "the destination of a read is outside the window");
  }
  return window.at(destination, size);
}

}  // namespace

bool Window::holds(uint64_t pointer, uint64_t size_bytes) const {
  return pointer >= kNullEnd && size_bytes <= bytes_.size() &&
         pointer <= bytes_.size() - size_bytes;
}

uint64_t Window::load(uint64_t pointer, uint32_t size_bytes) const {
  CLEW_ASSERT(holds(pointer, size_bytes));
  uint64_t value = 0;
  for (uint32_t k = size_bytes; k > 0; --k)
    value = value << 8 | bytes_[pointer + k - 1];
  return value;
}

void Window::store(uint64_t pointer, uint32_t size_bytes, uint64_t value) {
  CLEW_ASSERT(holds(pointer, size_bytes));
  for (uint32_t k = 0; k < size_bytes; ++k) {
    bytes_[pointer + k] = static_cast<uint8_t>(value >> 8 * k);
  }
}

std::span<uint8_t> Window::at(uint64_t pointer, uint64_t size_bytes) {
  CLEW_ASSERT(holds(pointer, size_bytes));
  return bytes_.subspan(pointer, size_bytes);
}

Expected<uint64_t> RegionHost::call(abi::Accessor accessor, const Arguments& arguments,
                                    Window& window) {
  switch (accessor) {
    case abi::Accessor::Time:
      return time++;
    case abi::Accessor::Cpu:
      return cpu;
    case abi::Accessor::TryRead:
      return try_read(arguments, window);
    case abi::Accessor::TryReadString:
      return try_read_string(arguments, window);
    case abi::Accessor::TableFind:
      return table_find(arguments, window);
    case abi::Accessor::RecordPut:
      return record_put(arguments[0], window);
    case abi::Accessor::RecordTake:
      return record_take(arguments[0], window);
    case abi::Accessor::RecordDrop:
      return record_drop(arguments[0], window);
    case abi::Accessor::RecordTakeLeft:
      return record_take_left(arguments[0], window);
    case abi::Accessor::WalkStack:
    case abi::Accessor::WalkWithin:
    case abi::Accessor::WalkLeft:
      return walk_stack(arguments, window);
    case abi::Accessor::ContextOpen:
      return contexts_.open(layout_.contexts, window);
    case abi::Accessor::ContextAct:
      return contexts_.act(layout_.contexts, arguments, window);
    case abi::Accessor::BitLength:
    case abi::Accessor::DivideUnsigned:
    case abi::Accessor::ModuloUnsigned:
    case abi::Accessor::DivideSigned:
    case abi::Accessor::ModuloSigned:
      break;
  }
  return fail(ErrorCode::Refused, "an accessor that needs no host");
}

Expected<uint64_t> RegionHost::try_read(const Arguments& arguments, Window& window) const {
  const std::span<uint8_t> destination = CLEW_TRY(read_destination(arguments, window));
  if (read_memory && read_memory(destination, arguments[2])) return uint64_t{1};
  std::fill(destination.begin(), destination.end(), uint8_t{0});
  return uint64_t{0};
}

// Byte by byte, so that bytes after the NUL need not be readable.
Expected<uint64_t> RegionHost::try_read_string(const Arguments& arguments, Window& window) const {
  const std::span<uint8_t> destination = CLEW_TRY(read_destination(arguments, window));
  std::fill(destination.begin(), destination.end(), uint8_t{0});
  const size_t length_max = destination.size() - 1;
  for (size_t k = 0; k < length_max; ++k) {
    if (!read_memory || !read_memory(destination.subspan(k, 1), arguments[2] + k)) {
      std::fill(destination.begin(), destination.end(), uint8_t{0});
      return ~uint64_t{0};
    }
    if (destination[k] == 0) return k;
  }
  return length_max;
}

// The pid, and no frame.
Expected<uint64_t> RegionHost::walk_stack(const Arguments& arguments, Window& window) const {
  const auto [to, frames, from, base_pointer, rbx] = arguments;
  const uint64_t words = abi::stack_words(static_cast<uint32_t>(frames));
  if (frames > abi::kStackFramesMax || !window.holds(to, kWord * words)) {
    return fail(ErrorCode::Refused, "the destination of a stack is outside the window");
  }
  const std::span<uint8_t> bytes = window.at(to, kWord * words);
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  if (pid != 0) window.store(to, kWord, pid);
  return pid;
}

namespace {

struct Wanted {
  uint64_t first;  // Window pointer to the half.
  uint64_t key;
  uint64_t hash;
};

// The cells of a key in one half, inserted when they are not there; 0 when there is no room.
uint64_t find_in(const abi::TableLayout& table, const Wanted& wanted, Window& window) {
  const uint32_t key_size = kWord * table.key_words;
  const uint64_t mask = (uint64_t{1} << table.entries_log2) - 1;
  const uint64_t mark = wanted.hash | 1;
  for (uint32_t probe = 0; probe < abi::kTableProbesMax; ++probe) {
    const uint64_t position = ((wanted.hash >> (64 - table.entries_log2)) + probe) & mask;
    const uint64_t entry = wanted.first + position * table.entry_size_bytes();
    const std::span<uint8_t> key = window.at(wanted.key, key_size);
    const std::span<uint8_t> stored = window.at(entry + kWord, key_size);
    const uint64_t found = window.load(entry, kWord);
    if (found == 0) {
      const uint64_t cells = entry + kWord + key_size;
      std::copy(key.begin(), key.end(), stored.begin());
      std::ranges::fill(window.at(cells, uint64_t{kWord} * table.cell_words), uint8_t{0});
      window.store(entry, kWord, mark);
    }
    const bool same = std::equal(key.begin(), key.end(), stored.begin());
    if (found == 0 || (found == mark && same)) return entry + kWord + key_size;
  }
  return 0;
}

}  // namespace

Expected<uint64_t> RegionHost::table_find(const Arguments& arguments, Window& window) const {
  const auto [index, key, hash, r4, r5] = arguments;
  if (index >= layout_.table_count || index >= abi::kTablesMax) {
    return fail(ErrorCode::Refused, fmt::format("no table {}", index));
  }
  const abi::TableLayout& table = layout_.tables[index];
  const uint32_t key_size = kWord * table.key_words;
  if (!window.holds(key, key_size)) {
    return fail(ErrorCode::Refused, "the key is outside the window");
  }
  const uint64_t generations = layout_.generations == 2 ? generation & 1 : 0;
  const uint64_t first = table.offset + generations * table.generation_size_bytes();
  const uint64_t last = first + table.generation_size_bytes();
  if (table.entries_log2 == 0 || last < first || !window.holds(first, last - first)) {
    return fail(ErrorCode::Refused, fmt::format("table {} is outside the window", index));
  }
  const uint64_t half_at = offsetof(abi::RegionHeader, table_half) + uint64_t{kWord} * index;
  const uint64_t half = window.load(half_at, kWord) >> 63;
  const uint64_t found =
      find_in(table, {first + half * table.half_size_bytes(), key, hash}, window);
  if (found != 0) return found;
  const uint64_t drained = window.load(offsetof(abi::RegionHeader, tables_drained), kWord);
  if ((drained >> index & 1) != half) {
    count(window, offsetof(abi::RegionHeader, dropped_table) + kWord * index);
    return uint64_t{0};
  }
  window.store(half_at, kWord, (half ^ 1) << 63);
  return find_in(table, {first + (half ^ 1) * table.half_size_bytes(), key, hash}, window);
}

namespace {

uint64_t frame_of(uint64_t key) {
  return key & ((uint64_t{1} << abi::kFunctionIdShift) - 1);
}

// The places where a record of this key may be, in the order in which they are looked at.
Expected<std::array<uint64_t, abi::kRecordProbesMax>> record_places(
    const abi::RecordLayout& records, uint64_t key, const Window& window) {
  if (key == 0) return fail(ErrorCode::Refused, "a record with key 0");
  std::array<uint64_t, abi::kRecordProbesMax> places{};
  const uint64_t mask = (uint64_t{1} << records.records_log2) - 1;
  for (uint32_t probe = 0; probe < places.size(); ++probe) {
    const uint64_t position = ((frame_of(key) >> 4) + probe) & mask;
    places[probe] = records.offset + position * records.record_size_bytes();
    if (!window.holds(places[probe], records.record_size_bytes())) {
      return fail(ErrorCode::Refused, "the records are outside the window");
    }
  }
  return places;
}

}  // namespace

// The key's own record (of a call that never returned), else a free one, else one whose frame lies
// below this one on the same stack: that call is over.
Expected<uint64_t> RegionHost::record_put(uint64_t key, Window& window) const {
  const auto places = CLEW_TRY(record_places(layout_.records, key, window));
  const auto is_own = [&](uint64_t at) { return window.load(at, kWord) == key; };
  const auto is_free = [&](uint64_t at) { return window.load(at, kWord) == 0; };
  const auto is_dead = [&](uint64_t at) {
    const uint64_t other = frame_of(window.load(at, kWord));
    const uint64_t frame = frame_of(key);
    return other < frame && frame - other < abi::kStackSpanBytes;
  };
  auto place = std::find_if(places.begin(), places.end(), is_own);
  if (place == places.end()) place = std::find_if(places.begin(), places.end(), is_free);
  if (place == places.end()) place = std::find_if(places.begin(), places.end(), is_dead);
  if (place == places.end()) {
    count(window, offsetof(abi::RegionHeader, missed_records));
    return uint64_t{0};
  }
  window.store(*place, kWord, key);
  return *place + kWord;
}

Expected<uint64_t> RegionHost::record_take(uint64_t key, Window& window) const {
  for (const uint64_t place : CLEW_TRY(record_places(layout_.records, key, window))) {
    if (window.load(place, kWord) != key) continue;
    window.store(place, kWord, 0);
    return place + kWord;
  }
  count(window, offsetof(abi::RegionHeader, missed_unpaired));
  return uint64_t{0};
}

Expected<uint64_t> RegionHost::record_drop(uint64_t key, Window& window) const {
  for (const uint64_t place : CLEW_TRY(record_places(layout_.records, key, window))) {
    if (window.load(place, kWord) != key) continue;
    window.store(place, kWord, 0);
    return uint64_t{1};
  }
  return uint64_t{0};
}

// Looks at every record. Of two with one frame, either may be the first.
Expected<uint64_t> RegionHost::record_take_left(uint64_t to, Window& window) const {
  constexpr size_t kFrom = offsetof(abi::RegionHeader, unwind_from);
  const uint64_t from = window.load(kFrom, kWord);
  window.store(kFrom, kWord, 0);
  if (from == 0 || to <= from || to - from > abi::kUnwindSpanBytes) return uint64_t{0};
  const abi::RecordLayout& records = layout_.records;
  uint64_t innermost = 0;
  uint64_t innermost_frame = to;
  for (uint64_t i = 0; i < uint64_t{1} << records.records_log2; ++i) {
    const uint64_t place = records.offset + i * records.record_size_bytes();
    if (!window.holds(place, records.record_size_bytes())) {
      return fail(ErrorCode::Refused, "the records are outside the window");
    }
    const uint64_t key = window.load(place, kWord);
    if (key == 0 || frame_of(key) < from || frame_of(key) >= innermost_frame) continue;
    innermost = place;
    innermost_frame = frame_of(key);
  }
  if (innermost == 0) return uint64_t{0};
  window.store(innermost, kWord, 0);
  window.store(kFrom, kWord, innermost_frame);
  return innermost + kWord;
}

}  // namespace clew::isa
