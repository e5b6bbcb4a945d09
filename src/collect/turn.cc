// SPDX-License-Identifier: Apache-2.0
// Turns the generation of a session without stopping a thread.
//
// A guarded probe stores `busy`, then loads the generation, with no fence between (x86 may let the
// load pass the store). The collector stores the generation, then asks for a barrier on every
// running thread of the machine (membarrier(2), MEMBARRIER_CMD_GLOBAL), then loads `busy`. After
// that barrier a probe that saw the old generation has its `busy` visible; a slot that is idle, or
// whose `busy` changed, has left it.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "collect/reader.h"
#include "collect/shared_words.h"

namespace clew::collect {
namespace {

using Clock = std::chrono::steady_clock;

struct PendingSlot {
  uint32_t slot;
  uint64_t busy;  // As it was right after the barrier; 0 = idle.
};

bool left_probe(const std::byte* control, uint64_t busy) {
  return busy == 0 || load_word(control + offsetof(abi::SlotControl, busy)) != busy;
}

}  // namespace

Expected<void> barrier_everywhere() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) {
    return fail(ErrorCode::Io, fmt::format("membarrier: {}", error_text(errno)));
  }
  return {};
}

Expected<TurnResult> Reader::turn(CellSink& sink) {
  send_to_other_generation();
  CLEW_TRY(barrier_everywhere());
  return drain_left_generation(sink, std::chrono::milliseconds(kTurnWaitMaxMs));
}

void Reader::send_to_other_generation() {
  CLEW_ASSERT(view_.layout.generations == 2);
  generation_ = 1 - generation_;
  store_half(session_entry() + offsetof(abi::SessionEntry, generation), generation_);
}

TurnResult Reader::drain_left_generation(CellSink& sink, std::chrono::milliseconds wait_max) {
  const uint32_t old = 1 - generation_;
  std::vector<PendingSlot> pending;
  for (const uint32_t slot : find_used()) {
    const uint64_t busy = load_word(slot_at(slot) + offsetof(abi::SlotControl, busy));
    pending.push_back({.slot = slot, .busy = busy});
  }
  TurnResult result;
  const auto deadline = Clock::now() + wait_max;
  while (true) {
    const auto drain = [&](const PendingSlot& waiting) {
      if (!left_probe(slot_at(waiting.slot), waiting.busy)) return false;
      read_generation(waiting.slot, old, sink);
      zero_generation(waiting.slot, old);
      ++result.drained;
      return true;
    };
    std::erase_if(pending, drain);
    if (pending.empty() || Clock::now() >= deadline) break;
    (void)sched_yield();
  }
  result.busy = static_cast<uint32_t>(pending.size());
  return result;
}

void Reader::close_generation(CellSink& sink) {
  CLEW_ASSERT(view_.layout.generations == 2);
  for (const uint32_t slot : find_used()) {
    read_generation(slot, 1 - generation_, sink);
    zero_generation(slot, 1 - generation_);
  }
  store_half(session_entry() + offsetof(abi::SessionEntry, generation), 1 - generation_);
}

void Reader::read_closed(CellSink& sink) {
  for (const uint32_t slot : find_used())
    read_generation(slot, generation_, sink);
}

}  // namespace clew::collect
