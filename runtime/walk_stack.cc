// SPDX-License-Identifier: Apache-2.0
// The accessor WalkStack: the walk of abi/machine/unwind.h by a thread over its own stack, for
// queries. What it notes lies in the region.
#include "abi/accessor.h"
#include "abi/query_window.h"
#include "runtime/reading.h"
#include "runtime/state.h"
#include "runtime/table_walk.h"

namespace clew::runtime {
namespace {

// Visits of FrameVisitor at which no frame is put are counted, too.
constexpr uint32_t kVisitsPerFrame = 2;

class ProcessHost : public TableWalk<ProcessHost> {
 public:
  ProcessHost(uint32_t session, uint64_t* words) : TableWalk(session), words_(words) {}

  [[nodiscard]] abi::ProcessWalk& state() const {
    return *reinterpret_cast<abi::ProcessWalk*>(Region(entry()).at(state_pointer()));
  }
  [[nodiscard]] WalkNotes notes() const {
    abi::ProcessWalk& state = this->state();
    return {.walk = state.walk, .known_version = state.known_version, .known = state.known};
  }
  // Walks begin at a caller, of which three registers are known.
  [[gnu::always_inline]] static uint64_t leaf_register(uint64_t) { return 0; }
  [[gnu::always_inline]] void put(uint64_t index, uint64_t pc) const {
    words_[1 + index % abi::kStackFramesMax] = pc;
  }
  [[gnu::noinline]] bool read_by_page(uint64_t address, uint64_t& word) const {
    if (state().page != page_of(address) && !copy_page(page_of(address))) return false;
    word = *reinterpret_cast<const uint64_t*>(state().bytes + address % kPageBytes);
    return true;
  }

 private:
  [[nodiscard]] uint64_t state_pointer() const { return entry().layout.walk_offset; }
  [[nodiscard]] bool copy_page(uint64_t page) const {
    state().page = ~uint64_t{0};
    const uint64_t to = state_pointer() + offsetof(abi::ProcessWalk, bytes);
    if (copy_next(begin_reading(session(), to, kPageBytes, page), kPageBytes) != kPageBytes) {
      return false;
    }
    state().page = page;
    return true;
  }

  uint64_t* words_;
};

uint64_t clear(uint64_t* words, uint64_t from, uint64_t end) {
  for (uint64_t i = from; i < end; ++i)
    *const_cast<volatile uint64_t*>(words + i) = 0;
  return 0;
}

// Whose upper bits depend on all words. Never 0.
uint64_t hash_of(const uint64_t* words, uint64_t count) {
  uint64_t hash = 0;
  for (uint64_t i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * 0x9E37'79B9'7F4A'7C15;
    hash ^= hash >> 32;
  }
  return hash | 1;
}

}  // namespace

// The session, and what the accessor is called with.
struct WalkCall {
  uint64_t session;
  uint64_t to;
  uint64_t frames;
  uint64_t from;  // The return address is there, and its frame ends behind it.
  uint64_t base_pointer;
  uint64_t rbx;
};

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_walk_stack(const WalkCall& call) {
  const auto session = static_cast<uint32_t>(call.session);
  const uint64_t from = call.from;
  const uint64_t limit = call.frames < abi::kStackFramesMax ? call.frames : abi::kStackFramesMax;
  const uint64_t end = abi::stack_words(static_cast<uint32_t>(limit));
  uint64_t* const words = Region(session_entry(session)).words_at(call.to);
  ProcessHost host(session, words);
  if (!host.begin() || host.is_changing()) return clear(words, 0, end);
  abi::MachineWalk& walk = host.state().walk;
  host.state().page = ~uint64_t{0};
  walk.is_stale = 0;
  walk.depth = 0;
  walk.is_begun = 1;
  walk.frame = {.pc = 0, .sp = from + 8, .fp = call.base_pointer, .bx = call.rbx, .is_call = 1};
  if (!host.read(from, walk.frame.pc)) return clear(words, 0, end);
  words[0] = own_pid();
  abi::FrameVisitor<ProcessHost> visitor(host, walk);
  for (uint64_t turn = 0; turn < kVisitsPerFrame * limit && walk.depth < limit; ++turn) {
    if (!visitor.visit()) break;
  }
  if (!host.is_right()) return clear(words, 0, end);
  const uint64_t depth = walk.depth < limit ? walk.depth : limit;
  clear(words, 1 + depth, end);
  return hash_of(words, 1 + depth);
}

}  // namespace clew::runtime
