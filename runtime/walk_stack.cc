// SPDX-License-Identifier: Apache-2.0
// The accessors WalkStack, WalkWithin and WalkLeft: the walk of abi/machine/unwind.h by a thread
// over its own stack, for queries. What it notes lies in the region.
#include "abi/accessor.h"
#include "abi/query_window.h"
#include "abi/stub.h"
#include "runtime/reading.h"
#include "runtime/state.h"
#include "runtime/table_walk.h"

namespace clew::runtime {
namespace {

// Visits of FrameVisitor at which no frame is put are counted, too.
constexpr uint32_t kVisitsPerFrame = 2;

// The session, and what the accessor is called with; of WalkWithin the return address and an
// AllSaved follow.
struct WalkCall {
  uint64_t session;
  uint64_t to;  // Then where that is.
  uint64_t frames;
  // WalkStack: the return address is there, and its frame ends behind it. WalkWithin: the address
  // of the code. WalkLeft: where a return address was; 0 of the others once the walk has begun.
  uint64_t from;
  uint64_t base_pointer;
  uint64_t rbx;  // Of WalkWithin among what is saved.

  [[nodiscard]] uint64_t* words() const { return reinterpret_cast<uint64_t*>(to); }
  [[nodiscard]] const abi::AllSaved& saved() const {
    return *reinterpret_cast<const abi::AllSaved*>(reinterpret_cast<const uint64_t*>(this + 1) + 1);
  }
};

enum class WalkFrom : uint32_t { Caller, Within, Left };  // entry.S has the numbers.

class ProcessHost : public TableWalk<ProcessHost> {
 public:
  explicit ProcessHost(const WalkCall& call)
      : TableWalk(static_cast<uint32_t>(call.session)), call_(call) {}

  [[nodiscard]] abi::ProcessWalk& state() const {
    return *reinterpret_cast<abi::ProcessWalk*>(Region(entry()).at(state_pointer()));
  }
  [[nodiscard]] WalkNotes notes() const {
    abi::ProcessWalk& state = this->state();
    return {.walk = state.walk, .known_version = state.known_version, .known = state.known};
  }
  // DWARF's numbers in the order of AllSaved, four bits each: rax rdx rcx rbx rsi rdi rbp rsp
  // r8 … r15. (The places of rbp and rsp are beyond: no rule asks for them so.)
  [[nodiscard, gnu::always_inline]] uint64_t leaf_register(uint64_t dwarf) const {
    constexpr uint64_t kFirst = 0x0123'4d56'ee78'9bacULL;
    return reinterpret_cast<const uint64_t*>(&call_.saved())[kFirst >> (4 * (dwarf & 15)) & 15];
  }
  [[nodiscard]] uint64_t left_frame() const { return Region(entry()).header().unwind_from; }
  [[gnu::always_inline]] void put(uint64_t index, uint64_t pc) const {
    call_.words()[1 + index % abi::kStackFramesMax] = pc;
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

  const WalkCall& call_;
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

// The first frame: a caller, or the one that the program is in.
bool begin_walk(const ProcessHost& host, WalkCall& call, WalkFrom from) {
  abi::MachineWalk& walk = host.state().walk;
  const bool is_within = from == WalkFrom::Within;
  host.state().page = ~uint64_t{0};
  walk.is_stale = 0;
  walk.depth = 0;
  walk.is_begun = is_within ? 0 : 1;
  walk.frame = {.pc = call.from, .sp = 0, .fp = call.base_pointer, .bx = call.rbx, .is_call = 1};
  if (!is_within) {
    const uint64_t place = from == WalkFrom::Left ? host.left_frame() : call.from;
    walk.frame.sp = place + 8;
    if (from != WalkFrom::Left) call.from = 0;
    return host.read(place, walk.frame.pc);
  }
  const abi::AllSaved& saved = call.saved();
  walk.frame.sp = reinterpret_cast<uint64_t>(&saved.above + 1) + abi::kRedZoneBytes;
  walk.frame.bx = saved.rbx;
  walk.frame.is_call = 0;
  call.from = 0;
  return true;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) uint64_t clew_walk_stack(WalkCall& call,
                                                                          WalkFrom from) {
  const uint64_t limit = call.frames < abi::kStackFramesMax ? call.frames : abi::kStackFramesMax;
  const uint64_t end = abi::stack_words(static_cast<uint32_t>(limit));
  const abi::SessionEntry& entry = session_entry(static_cast<uint32_t>(call.session));
  call.to = reinterpret_cast<uint64_t>(Region(entry).words_at(call.to));
  ProcessHost host(call);
  if (!host.begin() || host.is_changing() || !begin_walk(host, call, from)) {
    return clear(call.words(), 0, end);
  }
  call.words()[0] = own_pid();
  abi::MachineWalk& walk = host.state().walk;
  abi::FrameVisitor<ProcessHost> visitor(host, walk);
  for (uint64_t turn = 0; turn < kVisitsPerFrame * limit && walk.depth < limit; ++turn) {
    if (walk.frame.sp == call.from + 8) walk.frame.is_call = 0;
    if (!visitor.visit()) break;
  }
  if (!host.is_right()) return clear(call.words(), 0, end);
  const uint64_t depth = walk.depth < limit ? walk.depth : limit;
  clear(call.words(), 1 + depth, end);
  return hash_of(call.words(), 1 + depth);
}

}  // namespace clew::runtime
