// SPDX-License-Identifier: Apache-2.0
// For tests: an arena in a memfd, and threads that count into it as probe programs do (abi/slot.h,
// abi/region.h), without any program being traced.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <sys/mman.h>

#include "base/assert.h"
#include "base/file_descriptor.h"
#include "collect/reader.h"

namespace clew::collect {

struct FakeShape {
  uint32_t slot_count = 8;
  uint32_t generations = 1;
  uint32_t dense_words = 16;
  uint32_t key_words = 1;
  uint32_t cell_words = 1;
  uint32_t entries_log2 = 6;
  uint32_t ring_log2 = 12;
  std::vector<EventWords> event_words = {{2, 2}, {0, 0}, {5, 5}};
};

// header page | pages of the target | slots
class FakeArena {
 public:
  explicit FakeArena(FakeShape shape = {}) : shape_(std::move(shape)) {
    lay_out();
    size_ = kHeaderBytes + shape_.slot_count * view_.slot_stride_bytes;
    file_ = FileDescriptor(memfd_create("fake-arena", MFD_CLOEXEC));
    CLEW_ASSERT(ftruncate(file_.get(), static_cast<off_t>(size_)) == 0);
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    CLEW_ASSERT(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    view_.header = std::span(memory_, kPageBytes);
    view_.target = std::span(memory_ + kPageBytes, sizeof(abi::TargetPage));
    view_.slots = std::span(memory_ + kHeaderBytes, size_ - kHeaderBytes);
    view_.memory_file = file_.get();
    view_.slots_file_offset = kHeaderBytes;
    header()->sessions[view_.session].state = 1;
    target()->process_count = 1;
  }
  ~FakeArena() { (void)munmap(memory_, size_); }
  FakeArena(const FakeArena&) = delete;
  FakeArena& operator=(const FakeArena&) = delete;

  [[nodiscard]] SessionView& view() { return view_; }
  [[nodiscard]] Reader reader() const {
    auto reader = Reader::make(view_);
    CLEW_ASSERT(reader.has_value());
    return std::move(*reader);
  }
  [[nodiscard]] abi::ArenaHeader* header() { return reinterpret_cast<abi::ArenaHeader*>(memory_); }
  [[nodiscard]] abi::TargetPage* target() {
    return reinterpret_cast<abi::TargetPage*>(memory_ + kPageBytes);
  }
  [[nodiscard]] abi::SlotControl* control(uint32_t slot) {
    return reinterpret_cast<abi::SlotControl*>(memory_ + kHeaderBytes +
                                               slot * view_.slot_stride_bytes);
  }
  [[nodiscard]] std::byte* region(uint32_t slot) {
    return reinterpret_cast<std::byte*>(control(slot)) + view_.region_offset;
  }
  [[nodiscard]] abi::RegionHeader* region_header(uint32_t slot) {
    return reinterpret_cast<abi::RegionHeader*>(region(slot));
  }
  [[nodiscard]] std::span<std::byte> memory() { return {memory_, size_}; }
  [[nodiscard]] const FakeShape& shape() const { return shape_; }
  [[nodiscard]] int file() const { return file_.get(); }

  void claim(uint32_t slot, uint32_t tid, uint32_t process = 0) {
    abi::SlotControl* slot_control = control(slot);
    __atomic_store_n(&slot_control->tid, tid, __ATOMIC_RELEASE);
    slot_control->process = process;
    __atomic_store_n(&slot_control->claims, slot_control->claims + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&slot_control->owner, tid * uint64_t{4096}, __ATOMIC_RELEASE);
  }

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kHeaderBytes = kPageBytes + sizeof(abi::TargetPage);

  void lay_out() {
    abi::RegionLayout& layout = view_.layout;
    uint32_t at = 4096;
    layout.generations = shape_.generations;
    layout.cells_offset = at;
    layout.cells_half_bytes = shape_.dense_words * 8;
    at += layout.cells_half_bytes * shape_.generations;
    layout.table_count = 1;
    layout.tables[0] = {.offset = at,
                        .entries_log2 = shape_.entries_log2,
                        .key_words = shape_.key_words,
                        .cell_words = shape_.cell_words};
    at += layout.tables[0].generation_size_bytes() * shape_.generations;
    layout.ring = {.offset = at, .size_log2 = shape_.ring_log2};
    at += (1U << shape_.ring_log2) + abi::kEventSizeMax;
    layout.size_log2 = static_cast<uint32_t>(std::bit_width(at));
    view_.slot_count = shape_.slot_count;
    view_.session = 1;
    view_.region_offset = 4096;
    view_.slot_stride_bytes = 4096 + (uint64_t{1} << layout.size_log2) + abi::kWindowSlackBytes;
    view_.dense_words = shape_.dense_words;
    view_.event_words = shape_.event_words;
  }

  FakeShape shape_;
  SessionView view_;
  FileDescriptor file_;
  size_t size_ = 0;
  std::byte* memory_ = nullptr;
};

// Counts as a probe on one thread does: guarded, in the generation of the session.
class FakeThread {
 public:
  FakeThread(FakeArena& arena, uint32_t slot, uint32_t tid, uint32_t process = 0)
      : arena_(arena), slot_(slot) {
    arena.claim(slot, tid, process);
  }

  void enter() {
    __atomic_store_n(&arena_.control(slot_)->busy, uint64_t{0x7ff0}, __ATOMIC_RELAXED);
  }
  void leave() { __atomic_store_n(&arena_.control(slot_)->busy, uint64_t{0}, __ATOMIC_RELEASE); }
  [[nodiscard]] uint32_t generation() const {
    if (arena_.shape().generations == 1) return 0;
    auto* session = &arena_.header()->sessions[arena_.view().session];
    return __atomic_load_n(&session->generation, __ATOMIC_ACQUIRE);
  }

  void count(uint32_t word, uint64_t value = 1) {
    enter();
    const abi::RegionLayout& layout = arena_.view().layout;
    bump(layout.cells_offset + generation() * layout.cells_half_bytes + word * 8, value);
    leave();
  }

  void count_key(uint64_t key, uint64_t value = 1) {
    enter();
    const abi::TableLayout& table = arena_.view().layout.tables[0];
    const uint64_t hash = key * 0x9e3779b97f4a7c15 | 1;
    const uint32_t first = table.offset + generation() * table.generation_size_bytes();
    uint32_t entry = find(first + half() * table.half_size_bytes(), table, hash, key);
    if (entry == 0 && turn()) {
      entry = find(first + half() * table.half_size_bytes(), table, hash, key);
    }
    if (entry != 0) {
      bump(entry + 16, value);
    } else {
      bump(offsetof(abi::RegionHeader, dropped_table), 1);
    }
    leave();
  }

  // False when the ring is full: counted as dropped.
  bool put_event(uint32_t shape, uint64_t time, std::span<const uint64_t> fields) {
    const abi::RingLayout& ring = arena_.view().layout.ring;
    abi::RegionHeader* header = arena_.region_header(slot_);
    const uint64_t head = header->ring_head;
    const uint64_t tail = __atomic_load_n(&header->ring_tail, __ATOMIC_ACQUIRE);
    const uint64_t size = 16 + 8 * fields.size();
    if (head - tail + size > uint64_t{1} << ring.size_log2) {
      bump(offsetof(abi::RegionHeader, dropped_ring), 1);
      return false;
    }
    const uint64_t at = ring.offset + (head & ((uint64_t{1} << ring.size_log2) - 1));
    store(at, size | uint64_t{shape} << 32);
    store(at + 8, time);
    for (size_t i = 0; i < fields.size(); ++i)
      store(at + 16 + i * 8, fields[i]);
    __atomic_store_n(&header->ring_head, head + size, __ATOMIC_RELEASE);
    return true;
  }

 private:
  [[nodiscard]] uint64_t* word(uint64_t offset) {
    return reinterpret_cast<uint64_t*>(arena_.region(slot_) + offset);
  }
  void store(uint64_t offset, uint64_t value) {
    __atomic_store_n(word(offset), value, __ATOMIC_RELAXED);
  }
  void bump(uint64_t offset, uint64_t value) {
    store(offset, __atomic_load_n(word(offset), __ATOMIC_RELAXED) + value);
  }
  [[nodiscard]] uint32_t half() {
    return static_cast<uint32_t>(arena_.region_header(slot_)->table_half[0] >> 63);
  }
  // To the other half of the table, when the collector has emptied it.
  bool turn() {
    abi::RegionHeader* header = arena_.region_header(slot_);
    const uint64_t drained = __atomic_load_n(&header->tables_drained, __ATOMIC_ACQUIRE);
    if ((drained & 1) != half()) return false;
    __atomic_store_n(&header->table_half[0], uint64_t{half() ^ 1} << 63, __ATOMIC_RELEASE);
    return true;
  }
  uint32_t find(uint32_t half, const abi::TableLayout& table, uint64_t hash, uint64_t key) {
    for (uint32_t i = 0; i < abi::kTableProbesMax; ++i) {
      const auto start = static_cast<uint32_t>(hash >> (64 - table.entries_log2));
      const uint32_t index = (start + i) & ((1U << table.entries_log2) - 1);
      const uint32_t entry = half + index * table.entry_size_bytes();
      const uint64_t found = __atomic_load_n(word(entry), __ATOMIC_RELAXED);
      if (found == hash) return entry;
      if (found != 0) continue;
      store(entry + 8, key);
      __atomic_store_n(word(entry), hash, __ATOMIC_RELEASE);
      return entry;
    }
    return 0;
  }

  FakeArena& arena_;
  uint32_t slot_;
};

// Adds up what it gets, by process.
class SumSink final : public CellSink {
 public:
  void dense(const SlotIdentity& slot, std::span<const uint64_t> words) override {
    auto& sum = dense_sums[slot.process];
    sum.resize(words.size());
    for (size_t i = 0; i < words.size(); ++i)
      sum[i] += words[i];
    slots.insert(slot.slot);
  }
  void entry(const SlotIdentity& slot, uint32_t /*table*/, std::span<const uint64_t> key,
             std::span<const uint64_t> cells) override {
    keys[slot.process][key.empty() ? 0 : key[0]] += cells.empty() ? 0 : cells[0];
  }
  [[nodiscard]] uint64_t dense_at(uint32_t word, uint32_t process = 0) const {
    const auto found = dense_sums.find(process);
    return found == dense_sums.end() ? 0 : found->second[word];
  }

  std::map<uint32_t, std::vector<uint64_t>> dense_sums;
  std::map<uint32_t, std::map<uint64_t, uint64_t>> keys;
  std::set<uint32_t> slots;
};

class FakeThreads final : public Threads {
 public:
  [[nodiscard]] bool alive(uint32_t process, uint32_t tid) const override {
    return process_alive(process) && !dead_tids.contains(tid);
  }
  [[nodiscard]] bool process_alive(uint32_t process) const override {
    return !dead_processes.contains(process);
  }
  std::set<uint32_t> dead_tids;
  std::set<uint32_t> dead_processes;
};

}  // namespace clew::collect
