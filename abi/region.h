// SPDX-License-Identifier: Apache-2.0
// A region: the state of one session in one slot. It is the window of the session's programs:
// window pointer p is byte p of the region. src/plan lays it out, programs and the runtime's
// accessors write it, src/collect reads it while it changes.
//
//     0      RegionHeader                  (0..15 stay 0: a window pointer is never 0)
//     256    frame of the running program  (512 bytes; r10 = 768)
//     768    cells, tables, records, ring: RegionLayout says where
//     …      2^size_log2, then kWindowSlackBytes that an access may touch and nobody reads
//
// One thread writes a region, without locks. All words are 8-byte aligned. Within one generation,
// counts only grow, so the collector may read at any time and subtract what it read before.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clew::abi {

inline constexpr uint32_t kFrameOffset = 256;
inline constexpr uint32_t kFrameEnd = 768;
inline constexpr uint32_t kWindowSlackBytes = 4096;
inline constexpr uint32_t kTablesMax = 8;

// Counters of loss are cumulative; the collector reports them by these names.
struct RegionHeader {
  uint64_t reserved_null[2];  // Always 0.
  uint64_t missed_reentry;    // A guarded probe was hit while one ran on this thread.
  uint64_t missed_abandoned;  // A probe was left by longjmp from a signal handler.
  uint64_t missed_records;    // Entry not recorded: the record table is full.
  uint64_t
      missed_unpaired;   // An exit without a recorded entry (called before the attach, or evicted).
  uint64_t missed_fuel;  // Fuel exhausted.
  uint64_t dropped_ring;               // Event not stored: the ring is full.
  uint64_t dropped_table[kTablesMax];  // Update not stored: the table is full.
  uint64_t ring_head;  // Bytes ever reserved by the thread. Position = head & (ring_size - 1).
  uint64_t ring_tail;  // Bytes ever consumed; written by the collector only.
  uint64_t missed_unreadable;  // Hit left out: memory that it needs cannot be read.
  uint64_t missed_tail_call;   // retval asked for where the function left by a jump to another.
  uint64_t unwind_from;  // Frame of the unwinder's function that runs on this stack; 0 = none.
  uint64_t table_half[kTablesMax];  // Bit 63: the half of the table that takes updates now.
  // Bit i: the last half of table i of which the collector knew that it takes updates; the other
  // one is empty. Written by the collector only.
  uint64_t tables_drained;
  uint64_t forks;  // In the kernel: processes that those in the session's scope have made.
  uint64_t reserved[1];
};
static_assert(offsetof(RegionHeader, missed_reentry) == 16);
static_assert(offsetof(RegionHeader, missed_abandoned) == 24);
static_assert(offsetof(RegionHeader, missed_records) == 32);
static_assert(offsetof(RegionHeader, missed_unpaired) == 40);
static_assert(offsetof(RegionHeader, missed_fuel) == 48);
static_assert(offsetof(RegionHeader, dropped_table) == 64);
static_assert(offsetof(RegionHeader, ring_tail) == 136);
static_assert(offsetof(RegionHeader, missed_unreadable) == 144);
static_assert(offsetof(RegionHeader, missed_tail_call) == 152);
static_assert(offsetof(RegionHeader, unwind_from) == 160);
static_assert(offsetof(RegionHeader, table_half) == 168);
static_assert(offsetof(RegionHeader, tables_drained) == 232);
static_assert(offsetof(RegionHeader, forks) == 240);
static_assert(sizeof(RegionHeader) == 256);
static_assert(offsetof(RegionHeader, dropped_ring) == 56);
static_assert(offsetof(RegionHeader, ring_head) == 128);

// A table of cells by key, in two halves per generation. The thread fills one half; when it is full
// and the collector has emptied the other, the thread turns to that one (table_half), and the
// collector passes on the full one and leaves it zero (tables_drained). Full while the other is not
// empty yet: the update is dropped and counted. An entry:
//     0                  hash of the key | 1 (0 = empty); written last by an insertion
//     8                  key words (strings are zero-padded to whole words)
//     8 + 8*key_words    cell words, all zero when inserted
// Position in the half = hash >> (64 - entries_log2), then the next kTableProbesMax - 1 entries,
// wrapping. So the index over both halves is (hash >> 1 | table_half) >> (63 - entries_log2).
struct TableLayout {
  uint32_t offset;        // Of half 0 of generation 0; half 1, then generation 1 follow.
  uint32_t entries_log2;  // Of a half; at least 1.
  uint32_t key_words;
  uint32_t cell_words;

  [[nodiscard]] constexpr uint32_t entry_size_bytes() const {
    return 8 * (1 + key_words + cell_words);
  }
  [[nodiscard]] constexpr uint32_t half_size_bytes() const {
    return entry_size_bytes() << entries_log2;
  }
  // Both halves of one generation.
  [[nodiscard]] constexpr uint32_t generation_size_bytes() const { return 2 * half_size_bytes(); }
};
static_assert(offsetof(TableLayout, entries_log2) == 4);
static_assert(offsetof(TableLayout, key_words) == 8);
static_assert(offsetof(TableLayout, cell_words) == 12);
static_assert(sizeof(TableLayout) == 16);
inline constexpr uint32_t kTableProbesMax = 8;

// Open calls, for entry/exit pairing. A record:
//     0    key = frame | function id << 47 (0 = free)
//     8    payload words (entry time, entry arguments)
// Position = (frame >> 4) & (records - 1), then the next kRecordProbesMax - 1, wrapping. Full:
// records of frames below the current stack pointer (closer than kStackSpanBytes) are dead and are
// taken over.
struct RecordLayout {
  uint32_t offset;
  uint32_t records_log2;
  uint32_t payload_words;
  uint32_t reserved;

  [[nodiscard]] constexpr uint32_t record_size_bytes() const { return 8 * (1 + payload_words); }
};
static_assert(offsetof(RecordLayout, records_log2) == 4);
static_assert(offsetof(RecordLayout, payload_words) == 8);
static_assert(sizeof(RecordLayout) == 16);
inline constexpr uint32_t kRecordProbesMax = 8;
inline constexpr uint64_t kStackSpanBytes = 8ULL << 20;
inline constexpr uint64_t kUnwindSpanBytes = 1ULL << 30;  // No exception passes more stack.
inline constexpr uint32_t kFunctionIdShift = 47;
inline constexpr uint32_t kFunctionIdsMax = 1U << 17;

// Event ring of 2^size_log2 bytes (0 = none). A record starts 8-aligned at position head & mask and
// is contiguous: it may run past the end into the kEventSizeMax bytes that follow. A record:
//     0   uint32 size in bytes (multiple of 8, header included), uint32 shape (which fields)
//     8   time stamp counter
//     16  field words
// The producer checks head - tail + size <= 2^size_log2, writes, then advances ring_head (x86 keeps
// the order of stores).
struct RingLayout {
  uint32_t offset;
  uint32_t size_log2;
};
static_assert(offsetof(RingLayout, size_log2) == 4);
static_assert(sizeof(RingLayout) == 8);
inline constexpr uint32_t kEventSizeMax = 16'384;
inline constexpr uint32_t kEventHeaderBytes = 16;

// What a thread knows of the request that it works for, and what it hands over: the state of joins
// in place (plan/in_place.h). A context, in words:
//     0   sequence number of the last hand-over, and
//     1   number of the last request that began, by whoever had the slot
//     2   whose it is: SlotControl::claims << 32 | the thread's id, as far as that is known
//     3   the slot << kObjectSlotShift, and how many events whoever had it has counted in bags
//     4   TargetPage::contexts_lost, as it was where the request began
//     5   the request; 0: the thread is in none, or nobody knows in which
//     6   Lamport's number of the last event that was packed; kContextInDoubt: nobody knows
//     7   bags (BagKind)
// In front of it are the words of ContextCounter, which only grow.
// A block is a context as somebody handed it over. A thread writes 2^blocks_log2 of them in
// turn; who takes one looks at the sequence number behind it again, as it may be written anew.
//     0   sequence number of the hand-over; 0 while it is written
//     1   the object with which it is handed over, and 2 the process (Context::process)
//     3   the words of the context from word 4 on
// Where the block of an object is, TargetPage::objects says.
struct ContextLayout {
  uint32_t offset;  // Of the context; 0: programs have none.
  uint32_t blocks_offset;
  uint16_t blocks_log2;
  uint16_t bags;
  uint32_t bag_words;  // Of each, with its number.

  [[nodiscard]] constexpr uint32_t words() const { return 7 + bags * bag_words; }
  [[nodiscard]] constexpr uint32_t block_words() const { return words(); }
};
static_assert(offsetof(ContextLayout, bag_words) == 12);
static_assert(sizeof(ContextLayout) == 16);
// Words of a context, and of a block.
inline constexpr uint32_t kContextSequence = 0, kContextRequests = 1, kContextOwner = 2,
                          kContextCounted = 3, kContextLost = 4, kContextRequest = 5,
                          kContextNumber = 6, kContextBags = 7;
inline constexpr uint64_t kContextInDoubt = ~uint64_t{0};
inline constexpr uint32_t kBlockSequence = 0, kBlockObject = 1, kBlockProcess = 2,
                          kBlockContext = 3;
inline constexpr uint32_t kContextWordsMax = 64;
inline constexpr uint32_t kContextBlocksBytes = 1U << 20;  // At most.

// What a bag has of a joined stream: in its first words, and then its columns.
enum class BagKind : uint32_t {
  First,       // Its first event: the number of that, 0 when it is empty; the time stamp, where
  MostRecent,  // contexts are joined, which decides between equal numbers. Or the last event.
  // Cells of aggregates, over all of its events: how many there were; where contexts are joined,
  // which was the last one, by kContextCounted, which no two have.
  Cells,
};
// Of all bags, as ContextAct takes them.
inline constexpr uint32_t kBagKindBits = 2;
constexpr BagKind bag_kind(uint64_t kinds, uint32_t bag) {
  return static_cast<BagKind>(kinds >> kBagKindBits * bag & ((1U << kBagKindBits) - 1));
}

enum class ContextCounter : uint32_t {
  Requests,   // That began.
  NoRequest,  // Events of threads that are in none.
  Unjoined,   // Events in whose request nothing was there to be joined with them.
  NoContext,  // Takes of what nobody had put, or was forgotten.
  Weak,       // Begins and takes that are known less well than the query asks for.
  Other,      // Joins of two requests, which stay two.
  Overlap,    // Joins of two parts of a request, which both have what may be the same events.
  Edges,      // Takes, by causal::EdgeClass: four of them.
  End = Edges + 4,
};
inline constexpr uint32_t kContextCountersBytes = 8 * static_cast<uint32_t>(ContextCounter::End);

struct RegionLayout {
  uint32_t size_log2;     // The window is 2^size_log2 bytes (+ slack).
  uint32_t cells_offset;  // Dense cells, one copy per generation when `generations` is 2.
  uint32_t cells_half_bytes;
  uint32_t generations;  // 1: updates always go to half 0 and only grow. 2: halves take turns.
  uint32_t table_count;
  RingLayout ring;
  RecordLayout records;
  TableLayout tables[kTablesMax];
  uint32_t walk_offset;  // Of the ProcessWalk (abi/machine/unwind.h) of programs that walk stacks.
  ContextLayout contexts;
};
static_assert(offsetof(RegionLayout, cells_offset) == 4);
static_assert(offsetof(RegionLayout, cells_half_bytes) == 8);
static_assert(offsetof(RegionLayout, generations) == 12);
static_assert(offsetof(RegionLayout, table_count) == 16);
static_assert(offsetof(RegionLayout, ring) == 20);
static_assert(offsetof(RegionLayout, records) == 28);
static_assert(offsetof(RegionLayout, tables) == 44);
static_assert(sizeof(RegionLayout) == 20 + 8 + 16 + 16 * kTablesMax + 4 + 16);

}  // namespace clew::abi
