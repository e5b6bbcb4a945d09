// SPDX-License-Identifier: Apache-2.0
// Bodies of the accessors that work on a region or read the program's memory (abi/accessor.h). The
// thunks in entry.S put the BPF arguments where C expects them. A thread runs them only while it
// owns its slot and, as they change regions in several steps, inside a guarded probe: nothing else
// writes the region meanwhile.
#include "runtime/reading.h"
#include "runtime/state.h"

namespace clew::runtime {
namespace {

constexpr uint64_t kPageSize = 4096;
constexpr uint64_t kRecordsMax = 1U << 16;
constexpr uint32_t kEntryWordsMax = 256;  // Keys and cells; keeps an entry within the slack.

// From where `first` says to the end, which is looked at last: it is zero in a child that is forked
// in between.
void zero_from(const uint64_t& first, const abi::Reading& reading) {
  uint64_t from = get(first);
  const uint64_t end = get(reading.end);
  for (; from < end; ++from)
    *reinterpret_cast<uint8_t*>(from) = 0;
}

uint64_t end_string(abi::Reading& reading) {
  zero_from(reading.to, reading);
  return reading.to - reading.begin;
}

[[gnu::noinline]] uint64_t fail_string(abi::Reading& reading) {
  zero_from(reading.begin, reading);
  return ~uint64_t{0};
}

uint64_t read_on(abi::Reading& reading);

[[gnu::noinline]] uint64_t find_end(abi::Reading& reading, uint64_t copied) {
  const uint64_t wanted = reading.to_size;
  // A probe on another fiber may have used the Reading meanwhile: the walk ends in its destination.
  for (uint64_t i = 0; i != copied && reading.to < reading.end; ++i) {
    if (*reinterpret_cast<uint8_t*>(reading.to) == 0) return end_string(reading);
    ++reading.to;
    ++reading.from;
  }
  return copied == wanted ? read_on(reading) : fail_string(reading);
}

// Page by page, so that a string that ends before an unmapped page is read whole.
[[gnu::noinline]] uint64_t read_on(abi::Reading& reading) {
  if (reading.to + 1 >= reading.end) return end_string(reading);
  const uint64_t to_page_end = kPageSize - (reading.from & (kPageSize - 1));
  const uint64_t room = reading.end - 1 - reading.to;
  return find_end(reading, copy_next(reading, room < to_page_end ? room : to_page_end));
}

uint64_t frame_of(uint64_t key) {
  return key & ((uint64_t{1} << abi::kFunctionIdShift) - 1);
}

// The same two by loads, a word after the other.
[[gnu::noinline]] uint64_t load_bytes(abi::Reading& reading, uint64_t place) {
  for (Loaded loaded = load_some(reading, place); loaded.count != 0;
       loaded = load_some(reading, place))
    store_some(reading, loaded);
  const uint64_t end = get(reading.end);
  if (end != 0 && get(reading.to) == end) return 1;
  zero_from(reading.begin, reading);
  return 0;
}

// A word, which most that is read is.
[[gnu::always_inline]] inline uint64_t load_one(uint32_t session, uint64_t to, uint64_t place,
                                                uint64_t from) {
  uint64_t word = 0;
  const bool is_there = load_word(place, from, word);
  uint8_t* const place_of_word = Region(session_entry(session)).at(to);
  *reinterpret_cast<Unaligned*>(place_of_word) = is_there ? word : 0;
  return is_there ? 1 : 0;
}

// The last byte of the destination is for the zero.
[[gnu::noinline]] uint64_t load_string(abi::Reading& reading, uint64_t place) {
  while (get(reading.to) + 1 < get(reading.end)) {
    Loaded loaded = load_some(reading, place, 1);
    if (loaded.count == 0) return fail_string(reading);
    const uint64_t length = bytes_to_zero(loaded.bytes);
    const bool has_end = length < loaded.count;
    if (has_end) loaded.count = length;
    store_some(reading, loaded);
    if (has_end) break;
  }
  return end_string(reading);
}

// A record is dead when its frame lies below `frame` on the same stack.
bool is_dead(uint64_t key, uint64_t frame) {
  const uint64_t other = frame_of(key);
  return other < frame && frame - other < abi::kStackSpanBytes;
}

// The same value, of which the compiler forgets what it computed from it: in a loop it would keep
// that on the stack.
template <typename Word>
[[gnu::always_inline]] inline Word afresh(Word value) {
  asm volatile("" : "+r"(value));
  return value;
}

// Walks the places where a record with this key may lie.
class RecordTable {
 public:
  RecordTable(const abi::SessionEntry& entry, uint64_t key)
      : region_(entry), layout_(entry.layout.records), frame_(frame_of(key)) {}

  [[nodiscard]] uint64_t frame() const { return frame_; }
  [[nodiscard]] abi::RegionHeader& counters() const { return region_.header(); }
  [[nodiscard]] uint64_t size() const {
    const uint64_t records = uint64_t{1} << (layout_.records_log2 & 31);
    return records < kRecordsMax ? records : kRecordsMax;
  }
  // Window pointer of the record with this key; 0 when there is none.
  [[nodiscard]] uint64_t find(uint64_t key) const {
    for (uint32_t i = 0; i < abi::kRecordProbesMax; ++i) {
      if (key_at(place(i)) == key) return place(i);
    }
    return 0;
  }
  // Window pointer of the i-th place.
  [[nodiscard]] uint64_t place(uint32_t i) const {
    const uint64_t mask = (uint64_t{1} << (layout_.records_log2 & 31)) - 1;
    const uint64_t position = ((frame_ >> 4) + i) & mask;
    return region_.mask(layout_.offset + position * layout_.record_size_bytes());
  }
  [[nodiscard]] uint64_t& key_at(uint64_t pointer) const { return *region_.words_at(pointer); }

 private:
  Region region_;
  const abi::RecordLayout& layout_;
  uint64_t frame_;
};

// A walk along the places where a key of one of the thread's tables may lie, in the half that takes
// updates, of the generation that takes them now; once more when it turns to the other half. Each
// step is a function that ends by calling the next: so no register is kept on the program's stack.
struct Walk {
  uint32_t session;
  uint8_t index;  // Of the table.
  uint8_t step;

  [[nodiscard]] const abi::SessionEntry& entry() const { return session_entry(session); }
  [[nodiscard]] const abi::TableLayout& table() const { return entry().layout.tables[index]; }
  [[nodiscard]] Region region() const { return Region(entry()); }
  [[nodiscard]] abi::RegionHeader& header() const { return region().header(); }
  [[nodiscard]] uint32_t key_words() const { return table().key_words % kEntryWordsMax; }
  [[nodiscard]] uint32_t cell_words() const { return table().cell_words % kEntryWordsMax; }
};

constexpr uint8_t kStepsMax = 2 * abi::kTableProbesMax;

// The place of this step: a window pointer.
[[gnu::always_inline]] inline uint64_t place_of(Walk walk, uint64_t hash) {
  const uint32_t log2 = walk.table().entries_log2 & 31;
  const uint64_t half = walk.header().table_half[walk.index] >> 63 << log2;
  const uint64_t in_half =
      ((hash >> 1 >> (63 - log2)) + walk.step % abi::kTableProbesMax) & ~(~uint64_t{0} << log2);
  const uint64_t turns = walk.entry().layout.generations == 2 ? walk.entry().generation & 1 : 0;
  const uint64_t position = (turns << log2 << 1) + half + in_half;
  return walk.region().mask(walk.table().offset + position * walk.table().entry_size_bytes());
}

[[gnu::noinline]] uint64_t cells_of(Walk walk, uint64_t place) {
  return walk.region().mask(place + 8 + 8 * uint64_t{walk.key_words()});
}

// The collector reads the entry as soon as it sees the tag.
[[gnu::noinline]] uint64_t publish(Walk walk, uint64_t hash, uint64_t place) {
  __atomic_store_n(walk.region().words_at(place), hash | 1, __ATOMIC_RELEASE);
  return cells_of(walk, place);
}

[[gnu::noinline]] uint64_t write_key(Walk walk, uint64_t key, uint64_t hash, uint64_t place) {
  uint64_t* to = walk.region().words_at(place) + 1;
  const uint64_t* from = walk.region().words_at(key);
  for (uint32_t i = walk.key_words(); i != 0; --i)
    *to++ = *from++;
  return publish(walk, hash, place);
}

[[gnu::noinline]] uint64_t write_entry(Walk walk, uint64_t key, uint64_t hash, uint64_t place) {
  uint64_t* cells = walk.region().words_at(place) + 1 + walk.key_words();
  for (uint32_t i = walk.cell_words(); i != 0; --i)
    *cells++ = 0;
  return write_key(walk, key, hash, place);
}

uint64_t look(Walk walk, uint64_t key, uint64_t hash);

[[gnu::noinline]] uint64_t turn(Walk walk, uint64_t key, uint64_t hash) {
  abi::RegionHeader& header = walk.header();
  const uint64_t drained = __atomic_load_n(&header.tables_drained, __ATOMIC_ACQUIRE);
  const uint64_t half = header.table_half[walk.index] >> 63;
  if (walk.step == kStepsMax || (drained >> walk.index & 1) != half) {
    count(header.dropped_table[walk.index]);
    return 0;
  }
  __atomic_store_n(&header.table_half[walk.index], (half ^ 1) << 63, __ATOMIC_RELEASE);
  return look(walk, key, hash);
}

[[gnu::noinline]] uint64_t look_further(Walk walk, uint64_t key, uint64_t hash) {
  ++walk.step;
  if (walk.step % abi::kTableProbesMax == 0) return turn(walk, key, hash);
  return look(walk, key, hash);
}

[[gnu::noinline]] uint64_t compare(Walk walk, uint64_t key, uint64_t hash, uint64_t place) {
  const uint64_t* found = walk.region().words_at(place) + 1;
  const uint64_t* wanted = walk.region().words_at(key);
  for (uint32_t i = walk.key_words(); i != 0; --i) {
    if (*found++ != *wanted++) return look_further(walk, key, hash);
  }
  return cells_of(walk, place);
}

[[gnu::noinline]] uint64_t look(Walk walk, uint64_t key, uint64_t hash) {
  const uint64_t place = place_of(walk, hash);
  const uint64_t tag = *walk.region().words_at(place);
  if (tag == 0) return write_entry(walk, key, hash, place);
  if (tag == (hash | 1)) return compare(walk, key, hash, place);
  return look_further(walk, key, hash);
}

[[gnu::noinline]] uint64_t put_in_dead(uint32_t session, uint64_t key) {
  for (uint32_t i = 0; i < abi::kRecordProbesMax; ++i) {
    const RecordTable table(session_entry(afresh(session)), afresh(key));
    const uint64_t pointer = table.place(i);
    uint64_t& seen = table.key_at(pointer);
    if (!is_dead(seen, table.frame())) continue;
    seen = key;
    return pointer + 8;
  }
  count(Region(session_entry(session)).header().missed_records);
  lose_contexts(session);
  return 0;
}

[[gnu::noinline]] uint64_t put_in_free(uint32_t session, uint64_t key) {
  const RecordTable table(session_entry(session), key);
  const uint64_t pointer = table.find(0);
  if (pointer == 0) return put_in_dead(session, key);
  table.key_at(pointer) = key;
  return pointer + 8;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_try_read(uint32_t session,
                                                                        uint64_t to, uint64_t size,
                                                                        uint64_t from) {
  if (size == 0) return 1;
  if (size == kWordBytes && from % kWordBytes == 0) {
    if (const uint64_t place = load_for(from, size)) return load_one(session, to, place, from);
  }
  abi::Reading& reading = begin_reading(session, to, size, from);
  if (const uint64_t place = load_for(from, size)) return load_bytes(reading, place);
  const uint64_t copied = copy_next(reading, size <= kReadSizeMax ? size : kReadSizeMax);
  if (copied != 0 && copied == reading.to_size) return 1;
  zero_from(reading.to, reading);
  return 0;
}

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_try_read_string(uint32_t session,
                                                                               uint64_t to,
                                                                               uint64_t size,
                                                                               uint64_t from) {
  abi::Reading& reading = begin_reading(session, to, size, from);
  if (const uint64_t place = load_for(from, size)) return load_string(reading, place);
  return read_on(reading);
}

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_table_find(uint32_t session,
                                                                          uint64_t table,
                                                                          uint64_t key,
                                                                          uint64_t hash) {
  const auto index = static_cast<uint8_t>(table % abi::kTablesMax);
  return look({.session = session, .index = index, .step = 0}, key, hash);
}

// The record with this key, else a free one, else one whose call is over.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_record_put(uint32_t session,
                                                                          uint64_t key) {
  const uint64_t pointer = RecordTable(session_entry(session), key).find(key);
  return pointer != 0 ? pointer + 8 : put_in_free(session, key);
}

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_record_take(uint32_t session,
                                                                           uint64_t key) {
  const RecordTable table(session_entry(session), key);
  const uint64_t pointer = table.find(key);
  if (pointer == 0) {
    count(table.counters().missed_unpaired);
    return 0;
  }
  table.key_at(pointer) = 0;
  return pointer + 8;
}

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_record_drop(uint32_t session,
                                                                           uint64_t key) {
  const RecordTable table(session_entry(session), key);
  const uint64_t pointer = table.find(key);
  if (pointer == 0) return 0;
  table.key_at(pointer) = 0;
  return 1;
}

// A frame's position in the table grows with its address, and its record lies at most
// kRecordProbesMax - 1 places behind it: a walk from the unwinder's frame meets the innermost
// first, as long as the stack between is shorter than one turn of the table. Then every place is
// looked at. Each call goes on where the last one found a record, until there is none.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_record_take_left(uint32_t session,
                                                                                uint64_t to) {
  const abi::SessionEntry& entry = session_entry(session);
  uint64_t& unwind_from = Region(entry).header().unwind_from;
  const uint64_t from = unwind_from;
  unwind_from = 0;
  if (from == 0 || to <= from || to - from > abi::kUnwindSpanBytes) return 0;
  const RecordTable table(entry, from);
  const uint64_t reach = ((to - from) >> 4) + abi::kRecordProbesMax + 1;
  const bool ordered = reach < table.size();
  const uint64_t places = ordered ? reach : table.size();
  uint64_t innermost = 0;
  uint64_t innermost_frame = to;
  for (uint32_t i = 0; i < places; ++i) {
    const bool passed = i > ((innermost_frame - from) >> 4) + abi::kRecordProbesMax;
    if (ordered && passed) break;
    const uint64_t key = table.key_at(table.place(i));
    const uint64_t frame = frame_of(key);
    if (key == 0 || frame < from || frame >= innermost_frame) continue;
    innermost = table.place(i);
    innermost_frame = frame;
  }
  if (innermost == 0) return 0;
  table.key_at(innermost) = 0;
  unwind_from = innermost_frame;
  return innermost + 8;
}

}  // namespace clew::runtime
