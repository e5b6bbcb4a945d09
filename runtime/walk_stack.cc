// SPDX-License-Identifier: Apache-2.0
// The accessor WalkStack: the walk of abi/machine/unwind.h by a thread over its own stack. What it
// notes lies in the region, where others may write, so that nothing is read because it says that it
// is there: the page that this code's own stack is in can be read, which mostly holds the frames;
// others by loads that cannot fault, or else by the kernel, each as a whole.
#include "abi/accessor.h"
#include "abi/machine/unwind.h"
#include "abi/query_window.h"
#include "runtime/reading.h"
#include "runtime/state.h"

namespace clew::runtime {
namespace {

constexpr uint64_t kPageBytes = 4096;
// Visits of FrameVisitor at which no frame is put are counted, too.
constexpr uint32_t kVisitsPerFrame = 2;

constexpr uint64_t page_of(uint64_t address) {
  return address & ~(kPageBytes - 1);
}

class ProcessHost {
 public:
  ProcessHost(uint32_t session, uint64_t* words) : session_(session), words_(words) {}

  [[nodiscard]] abi::ProcessWalk& state() const {
    return *reinterpret_cast<abi::ProcessWalk*>(region().at(state_pointer()));
  }

  // A walk that ends at unknown code notes nothing: it will be known.
  [[gnu::always_inline]] bool recall_rule(uint64_t code, uint64_t& rule) const {
    const abi::KnownRule& known = known_rule(code);
    rule = known.rule;
    return known.code == code;
  }
  [[gnu::always_inline]] void note_rule(uint64_t code, uint64_t rule) const {
    if (state().walk.is_stale != 0) return;
    known_rule(code).rule = rule;
    known_rule(code).code = code;
  }
  // What no segment has is code that the tracer has not heard of yet; nothing is known of its
  // frames, so that the walk ends there.
  [[gnu::always_inline]] bool find_mapping(uint64_t) const {
    count(target_page().unknown_code[session_ % abi::kSessionsMax]);
    state().walk.segment = {};
    return true;
  }
  [[gnu::noinline]] bool read(uint64_t address, uint64_t& word) const {
    if (address % 8 != 0 || state().walk.is_stale != 0) return false;
    if (page_of(address) == page_of(stack_pointer())) {
      word = *reinterpret_cast<const volatile uint64_t*>(address);
      return true;
    }
    if (const uint64_t place = load_for(address, kWordBytes)) {
      return load_word(place, address, word);
    }
    return read_by_page(address, word);
  }
  [[gnu::noinline]] bool read_by_page(uint64_t address, uint64_t& word) const {
    if (state().page != page_of(address) && !copy_page(page_of(address))) return false;
    word = *reinterpret_cast<const uint64_t*>(state().bytes + address % kPageBytes);
    return true;
  }
  [[gnu::always_inline]] const abi::MachineUnwindSegment& segment(uint64_t index) const {
    return table<abi::MachineUnwindSegment>(
        abi::kUnwindSegmentsOffset)[index & (abi::kMachineUnwindSegments - 1)];
  }
  [[gnu::always_inline]] const abi::MachineUnwindRow& row(uint64_t index) const {
    return table<abi::MachineUnwindRow>(
        abi::kUnwindRowsOffset)[index < entry().unwind_rows ? index : 0];
  }
  [[gnu::always_inline]] const abi::MachineUnwindRule& rule(uint64_t index) const {
    return table<abi::MachineUnwindRule>(
        abi::kUnwindRulesOffset)[index & (abi::kMachineUnwindRules - 1)];
  }
  // Walks begin at a caller, of which three registers are known.
  [[gnu::always_inline]] static uint64_t leaf_register(uint64_t) { return 0; }
  [[gnu::always_inline]] static uint64_t hidden_return(uint64_t) { return 0; }
  [[gnu::always_inline]] void put(uint64_t index, uint64_t pc) const {
    words_[1 + index % abi::kStackFramesMax] = pc;
  }
  [[gnu::always_inline]] static uint64_t zero() { return 0; }

  // False when the session, or the tracer by now, knows nothing of the process.
  [[nodiscard]] bool begin() const {
    if (entry().unwind_tables == 0) return false;
    const auto* const all = table<abi::MachineUnwindProcess>(abi::kUnwindProcessesOffset);
    for (uint64_t turn = 0; turn < abi::kMachineUnwindSlotsMax; ++turn) {
      const abi::MachineUnwindProcess& one =
          all[abi::unwind_slot(header().pid, turn, abi::kMachineUnwindProcesses)];
      const uint64_t pid = abi::load_word(one.pid);
      if (pid == 0) break;
      if (pid != header().pid) continue;
      process_ = &one;
      version_ = abi::load_word(one.version);
      if (state().known_version != version_) forget_rules();
      state().walk.first_segment = one.first_segment;
      state().walk.segment_count = one.segment_count;
      return true;
    }
    return false;
  }
  // Whether the tables were the same all the time.
  [[nodiscard]] bool is_right() const {
    return (version_ & 1) == 0 && abi::load_word(process_->version) == version_;
  }

 private:
  [[nodiscard]] const abi::SessionEntry& entry() const { return session_entry(session_); }
  [[nodiscard]] Region region() const { return Region(entry()); }
  [[nodiscard]] uint64_t state_pointer() const { return entry().layout.walk_offset; }
  template <typename Row>
  [[nodiscard]] const Row* table(uint64_t offset) const {
    return reinterpret_cast<const Row*>(entry().unwind_tables + offset);
  }
  [[nodiscard]] abi::KnownRule& known_rule(uint64_t code) const {
    return state().known[(code ^ code >> 7) & (abi::kKnownRules - 1)];
  }
  [[gnu::noinline]] void forget_rules() const {
    for (uint64_t i = 0; i < abi::kKnownRules; ++i)
      *const_cast<volatile uint64_t*>(&state().known[i].code) = 0;
    state().known_version = version_;
  }
  [[nodiscard]] bool copy_page(uint64_t page) const {
    state().page = ~uint64_t{0};
    const uint64_t to = state_pointer() + offsetof(abi::ProcessWalk, bytes);
    if (copy_next(begin_reading(session_, to, kPageBytes, page), kPageBytes) != kPageBytes) {
      return false;
    }
    state().page = page;
    return true;
  }

  uint32_t session_;
  uint64_t* words_;
  mutable const abi::MachineUnwindProcess* process_ = nullptr;
  mutable uint64_t version_ = 0;
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
  if (!host.begin()) return clear(words, 0, end);
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
