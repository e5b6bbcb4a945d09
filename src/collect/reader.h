// SPDX-License-Identifier: Apache-2.0
// Reads what one session's probes count, from the shared memory of one traced process, while they
// count. Nobody is stopped, nothing is locked.
//
// Each region is written by one thread, and within one generation its cells only grow; so a read at
// any time is a valid lower bound of now, and two reads give an interval by subtraction
// (layout.generations == 1). What cannot be subtracted (min, max, sketches) takes turns between two
// generations (layout.generations == 2): `turn` sends new updates to the other one, waits until no
// guarded probe runs that may still use the old one, drains it, and leaves it zero. Programs of
// such a session must be guarded: an unguarded one is not seen by that wait.
//
// Tables have two halves in each generation. When one is full, the thread itself turns to the other
// (abi/region.h), and `drain_tables` passes on the full one. Nobody waits: the thread has left the
// half before it says so.
//
// The memory is shared with a program that may be hostile: each word is read once, into private
// memory, and then checked; the layout is the tracer's own; every loop is bounded by it. Wrong
// bytes give wrong numbers for that process, never a fault or an endless loop. A cell of several
// words may be seen between two of its stores; the last read, after detach, sees whole cells.
//
// One thread uses a Reader. It borrows the memory of its SessionView.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "collect/event_batch.h"
#include "collect/losses.h"
#include "collect/open_records.h"
#include "collect/present.h"
#include "collect/ring.h"
#include "collect/session_view.h"
#include "collect/threads.h"

namespace clew::collect {

struct SlotIdentity {
  uint32_t slot = 0;
  uint32_t process = 0;  // Below abi::kProcessesMax + 1; larger ones are read as 0.
  uint32_t tid = 0;
};

// Receives cells. The spans are valid during the call.
class CellSink {
 public:
  CellSink() = default;
  CellSink(const CellSink&) = delete;
  CellSink& operator=(const CellSink&) = delete;
  virtual ~CellSink() = default;
  // All dense cells of one region, `dense_words` of them.
  virtual void dense(const SlotIdentity& slot, std::span<const uint64_t> words) = 0;
  // One entry of table `table`. The same key may come from many slots, and twice from one.
  virtual void entry(const SlotIdentity& slot, uint32_t table, std::span<const uint64_t> key,
                     std::span<const uint64_t> cells) = 0;
};

struct TurnResult {
  uint32_t drained = 0;  // Slots.
  uint32_t busy = 0;     // Slots whose old half stays undrained: the next turn but one reports it.
};

// On every thread of the machine that runs: what it did before is visible. Io: there is no
// membarrier(2).
Expected<void> barrier_everywhere();

// How long `turn` waits in total for probes that run.
inline constexpr uint32_t kTurnWaitMaxMs = 50;

class Reader {
 public:
  static Expected<Reader> make(SessionView view);

  // Passes on what full halves of tables hold and leaves them zero, so that their threads can turn
  // back. Returns how many there were. What it passes on is not seen by read_cells any more.
  uint32_t drain_tables(CellSink& sink);

  // Passes on the cells of all slots that ever were in use, of both generations, as they are now.
  void read_cells(CellSink& sink);

  // generations == 2 only: ends the interval, see above. Io: membarrier(2) is not there.
  Expected<TurnResult> turn(CellSink& sink);

  // The same in parts, for the readers of many processes that turn at one moment: send each, wait
  // for one barrier, drain each.
  void send_to_other_generation();
  TurnResult drain_left_generation(CellSink& sink, std::chrono::milliseconds wait_max);

  // generations == 2 only, once: what is counted from now on is not of the session. What was before
  // is passed on: the rest of earlier intervals now, this one's by read_closed() whenever that is
  // called; best when no probe runs any more. Neither turn() nor read_cells() after it.
  void close_generation(CellSink& sink);
  void read_closed(CellSink& sink);

  // Takes all events that are complete. At most one ring's content per slot and call.
  void read_events(EventBatch& batch);

  // The same for the records of a D session (SessionView::has_records): each one that is complete,
  // by slot, in a slot as they were made.
  void read_records(const TakeRecord& take);

  // Adds the counters of loss, cumulative since the start of the session.
  void add_losses(Losses& losses);

  // Hits out of fuel, by SessionView::fuel_words.
  std::vector<uint64_t> read_fuel();

  // The calls that have a record: all that are open, and those that were left by a jump or with
  // their thread and whose place nobody has used since.
  std::vector<OpenRecord> read_open_records();

  // Frees the slots of dead threads, so that new threads find one; returns how many became free.
  // `threads` is refreshed before each call. It takes three calls: the first two must see the same
  // thread dead, since one that began after the refresh is not in the list; the second takes the
  // slot from its owner; the third gives it away, which leaves a thread that wrongly believed to
  // own it (it inherited gs and TCB address) time to notice. Cells and rings stay as they are.
  // With follow_forks a slot must not change from one process to another with counts in it, so
  // slots are freed when their whole process is dead; then `last` gets their cells (keep them: they
  // are zero afterwards) and `events` their events.
  uint32_t free_dead_slots(const Threads& threads, CellSink& last, EventBatch& events);

  // Sets all state of the session in all slots to zero. Only while no probe is armed.
  void clear();

  [[nodiscard]] const SessionView& view() const { return view_; }
  // Slots that were in use at the last read.
  [[nodiscard]] uint32_t slots_used() const { return slots_used_; }

 private:
  // What the collector remembers of a slot.
  struct SlotState {
    RingState ring;
    uint32_t last_tid = 0;        // The last real thread id seen.
    uint32_t dead_tid = 0;        // The owner, when the last free_dead_slots saw that it is dead.
    uint8_t reserved_rounds = 0;  // Calls of free_dead_slots that saw it reserved.
    bool releasing = false;       // This Reader reserved it.
  };

  explicit Reader(SessionView view);

  [[nodiscard]] std::byte* slot_at(uint32_t slot) const;
  [[nodiscard]] std::byte* region_at(uint32_t slot) const;
  [[nodiscard]] std::byte* session_entry() const;
  [[nodiscard]] SlotIdentity identity_of(uint32_t slot);
  std::vector<uint32_t> find_used();

  // Half `half` of one generation of a table.
  struct TableHalf {
    uint32_t table = 0;
    uint32_t generation = 0;
    uint32_t half = 0;
  };
  void read_generation(uint32_t slot, uint32_t generation, CellSink& sink);
  void read_dense(const SlotIdentity& identity, uint32_t generation, CellSink& sink);
  void read_table(const SlotIdentity& identity, const TableHalf& which, CellSink& sink);
  [[nodiscard]] uint64_t offset_of(const TableHalf& which) const;
  uint32_t drain_slot_tables(uint32_t slot, CellSink& sink);
  void add_slot_causes(uint32_t slot, Losses& losses) const;
  void zero_part(uint32_t slot, uint64_t offset, uint64_t size_bytes);
  void zero_generation(uint32_t slot, uint32_t generation);
  [[nodiscard]] bool has_ring(uint32_t slot) const;
  RingSource ring_of(uint32_t slot);
  void read_slot_events(uint32_t slot, EventBatch& batch);
  void add_slot_losses(uint32_t slot, Losses& losses) const;
  void add_slot_fuel(uint32_t slot, std::vector<uint64_t>& sums) const;
  bool release_slot(uint32_t slot, const Threads& threads, EventBatch& events);
  bool retire_slot(uint32_t slot, const Threads& threads, CellSink& last, EventBatch& events);
  [[nodiscard]] bool only_session() const;
  void read_slot_records(uint32_t slot, std::vector<OpenRecord>& all);

  SessionView view_;
  PresentPages present_;
  std::vector<uint64_t> scratch_;  // One half's dense words, or one entry of a table.
  std::vector<SlotState> slots_;
  std::vector<uint64_t> retired_fuel_;
  Losses retired_;  // Losses of slots that were set to zero.
  uint32_t forks_muted_before_ = 0;
  uint32_t generation_ = 0;
  uint32_t slots_used_ = 0;
};

}  // namespace clew::collect
