// SPDX-License-Identifier: Apache-2.0
// Bodies of the accessors that work on a region or read the program's memory (abi/accessor.h). The
// thunks in entry.S put the BPF arguments where C expects them. A thread runs them only while it
// owns its slot and, as they change regions in several steps, inside a guarded probe: nothing else
// writes the region meanwhile.
#include "runtime/state.h"

namespace clew::runtime {
namespace {

constexpr uint64_t kReadSizeMax = 4096;
constexpr uint64_t kPageSize = 4096;
constexpr uint64_t kRecordsMax = 1U << 16;
constexpr uint32_t kEntryWordsMax = 64;  // Keys and cells; keeps an entry within the slack.

struct IoVector {
  uint64_t address;
  uint64_t size;
};

void zero(uint8_t* bytes, uint64_t size) {
  for (uint64_t i = 0; i < size; ++i)
    bytes[i] = 0;
}

uint32_t own_pid() {
  abi::PrivatePage& page = private_page();
  if (page.pid == 0) page.pid = static_cast<uint32_t>(call({kSysGetpid}));
  return page.pid;
}

// How many of `size` bytes could be read. The kernel copies, so a bad address is an error number.
uint64_t read_self(uint8_t* to, uint64_t from, uint64_t size) {
  if (header().system_calls_allowed == 0) return 0;
  const IoVector local = {address_of(to), size};
  const IoVector remote = {from, size};
  const int64_t copied =
      call({kSysProcessVmReadv, {own_pid(), address_of(&local), 1, address_of(&remote), 1, 0}});
  return copied < 0 ? 0 : static_cast<uint64_t>(copied);
}

uint64_t bounded_size(uint64_t size) {
  return size <= kReadSizeMax ? size : kReadSizeMax;
}

// Index of the first NUL in bytes[from, to), or `to`.
uint64_t find_nul(const uint8_t* bytes, uint64_t from, uint64_t to) {
  while (from < to && bytes[from] != 0)
    ++from;
  return from;
}

bool same_words(const uint64_t* a, const uint64_t* b, uint32_t count_words) {
  for (uint32_t i = 0; i < count_words; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// `volatile`-free copies that the compiler may not turn into a library call it cannot find: mem.cc
// has memcpy and memset, so either way is fine.
void copy_words(uint64_t* to, const uint64_t* from, uint32_t count_words) {
  for (uint32_t i = 0; i < count_words; ++i)
    to[i] = from[i];
}

uint64_t frame_of(uint64_t key) {
  return key & ((uint64_t{1} << abi::kFunctionIdShift) - 1);
}

// A record is dead when its frame lies below `frame` on the same stack.
bool is_dead(uint64_t key, uint64_t frame) {
  const uint64_t other = frame_of(key);
  return other < frame && frame - other < abi::kStackSpanBytes;
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

// The half that takes updates, of one table of the thread, in the generation that takes updates
// now: a walk along the entries where a key may lie.
class CellTable {
 public:
  CellTable(const abi::SessionEntry& entry, uint32_t index, uint64_t hash)
      : region_(entry), layout_(entry.layout.tables[index]), index_(index) {
    const uint32_t generation = entry.layout.generations == 2 ? entry.generation & 1 : 0;
    const uint32_t entries_log2 = layout_.entries_log2 & 31;
    first_ = layout_.offset + generation * uint64_t{layout_.generation_size_bytes()} +
             half() * layout_.half_size_bytes();
    mask_ = (uint64_t{1} << entries_log2) - 1;
    start_ = (hash >> 1) >> (63 - entries_log2);
  }

  [[nodiscard]] uint32_t key_words() const { return layout_.key_words % kEntryWordsMax; }
  [[nodiscard]] uint32_t cell_words() const { return layout_.cell_words % kEntryWordsMax; }
  [[nodiscard]] const uint64_t* key_at(uint64_t pointer) const { return region_.words_at(pointer); }
  // The i-th entry: its window pointer, its words, and the window pointer to its cells.
  [[nodiscard]] uint64_t place(uint32_t i) const {
    return region_.mask(first_ + ((start_ + i) & mask_) * layout_.entry_size_bytes());
  }
  [[nodiscard]] uint64_t* words(uint64_t place) const { return region_.words_at(place); }
  [[nodiscard]] uint64_t cells(uint64_t place) const {
    return region_.mask(place + 8 + 8 * uint64_t{key_words()});
  }
  // Goes on in the other half. False when the collector has not emptied it yet.
  [[nodiscard]] bool turn() const {
    abi::RegionHeader& header = region_.header();
    const uint64_t drained = __atomic_load_n(&header.tables_drained, __ATOMIC_ACQUIRE);
    if ((drained >> index_ & 1) != half()) return false;
    __atomic_store_n(&header.table_half[index_], (half() ^ 1) << 63, __ATOMIC_RELEASE);
    return true;
  }
  void count_dropped() const { count(region_.header().dropped_table[index_]); }

 private:
  [[nodiscard]] uint64_t half() const { return region_.header().table_half[index_] >> 63; }

  Region region_;
  const abi::TableLayout& layout_;
  uint32_t index_;
  uint64_t first_;  // Window pointer of the half.
  uint64_t mask_;   // Of positions in it.
  uint64_t start_;  // The first position.
};

[[gnu::always_inline]] inline bool is_entry(const CellTable& table, const uint64_t* words,
                                            const uint64_t* key, uint64_t tag) {
  return words[0] == tag && same_words(words + 1, key, table.key_words());
}

// The same value, of which the compiler forgets what it computed from it: in a loop it would keep
// that on the stack.
[[gnu::always_inline]] inline uint32_t afresh(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

// In a session's number: the walk is the second, through a half that was just turned to.
constexpr uint32_t kTurned = 1U << 31;

// An entry for a key, at this place. Its cells.
[[gnu::noinline]] uint64_t write_entry(uint64_t place, uint32_t session, uint32_t index,
                                       uint64_t key, uint64_t hash) {
  const CellTable table(session_entry(session), index, hash);
  uint64_t* const words = table.words(place);
  copy_words(words + 1, table.key_at(key), table.key_words());
  for (uint32_t w = 0; w < table.cell_words(); ++w)
    words[1 + table.key_words() + w] = 0;
  // The collector reads the entry as soon as it sees the tag.
  __atomic_store_n(&words[0], hash | 1, __ATOMIC_RELEASE);
  return table.cells(place);
}

uint64_t insert_in_other_half(uint32_t session, uint32_t index, uint64_t key, uint64_t hash);

// Window pointer to the cells of a key, which is inserted when it is not there. 0: there is no
// room, and a drop is counted. Called last, as the next one is: the frame of each takes the place
// of the one before.
[[gnu::noinline]] uint64_t insert(uint32_t session, uint32_t index, uint64_t key, uint64_t hash) {
  for (uint32_t i = 0; i < abi::kTableProbesMax; ++i) {
    const CellTable table(session_entry(afresh(session)), index, hash);
    const uint64_t place = table.place(i);
    const uint64_t* const words = table.words(place);
    if (words[0] == 0) return write_entry(place, session, index, key, hash);
    if (is_entry(table, words, table.key_at(key), hash | 1)) return table.cells(place);
  }
  return insert_in_other_half(session, index, key, hash);
}

[[gnu::noinline]] uint64_t insert_in_other_half(uint32_t session, uint32_t index, uint64_t key,
                                                uint64_t hash) {
  const CellTable table(session_entry(session), index, hash);
  if ((session & kTurned) == 0 && table.turn()) return insert(session | kTurned, index, key, hash);
  table.count_dropped();
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_try_read(uint32_t session,
                                                                        uint64_t to, uint64_t size,
                                                                        uint64_t from) {
  uint8_t* const bytes = Region(session_entry(session)).at(to);
  const uint64_t wanted = bounded_size(size);
  if (read_self(bytes, from, wanted) == wanted) return 1;
  zero(bytes, wanted);
  return 0;
}

// Reads page by page, so that a string that ends before an unmapped page is read whole.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_try_read_string(uint32_t session,
                                                                               uint64_t to,
                                                                               uint64_t size,
                                                                               uint64_t from) {
  uint8_t* const bytes = Region(session_entry(session)).at(to);
  const uint64_t capacity = bounded_size(size);
  uint64_t length = 0;
  while (length + 1 < capacity) {
    const uint64_t to_page_end = kPageSize - ((from + length) & (kPageSize - 1));
    const uint64_t room = capacity - 1 - length;
    const uint64_t wanted = room < to_page_end ? room : to_page_end;
    const uint64_t copied = read_self(bytes + length, from + length, wanted);
    const uint64_t end = find_nul(bytes, length, length + copied);
    const bool failed = copied != wanted && end == length + copied;
    if (failed) {
      zero(bytes, capacity);
      return ~uint64_t{0};
    }
    const bool found = end < length + copied;
    length = end;
    if (found) break;
  }
  zero(bytes + length, capacity - length);
  return length;
}

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_table_find(uint32_t session,
                                                                          uint64_t table,
                                                                          uint64_t key,
                                                                          uint64_t hash) {
  const auto index = static_cast<uint32_t>(table % abi::kTablesMax);
  const CellTable entries(session_entry(session), index, hash);
  const uint64_t place = entries.place(0);  // Most keys are where their hash says.
  if (is_entry(entries, entries.words(place), entries.key_at(key), hash | 1)) {
    return entries.cells(place);
  }
  return insert(session, index, key, hash);
}

// The record with this key, else a free one, else one whose call is over.
extern "C" __attribute__((visibility("hidden"))) uint64_t clew_record_put(uint32_t session,
                                                                          uint64_t key) {
  const RecordTable table(session_entry(session), key);
  uint64_t free = 0;
  uint64_t dead = 0;
  for (uint32_t i = 0; i < abi::kRecordProbesMax; ++i) {
    const uint64_t pointer = table.place(i);
    const uint64_t seen = table.key_at(pointer);
    if (seen == key) return pointer + 8;
    if (seen == 0 && free == 0) free = pointer;
    if (seen != 0 && dead == 0 && is_dead(seen, table.frame())) dead = pointer;
  }
  const uint64_t chosen = free != 0 ? free : dead;
  if (chosen == 0) {
    count(table.counters().missed_records);
    return 0;
  }
  table.key_at(chosen) = key;
  return chosen + 8;
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
