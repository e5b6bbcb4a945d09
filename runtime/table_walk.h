// SPDX-License-Identifier: Apache-2.0
// What walks of stacks in a process have in common (abi/machine/unwind.h): the session's tables,
// the rules of the code that was met last, and how memory is read. What is noted lies where others
// may write, so that nothing is read because it says that it is there: the page that this code's
// own stack is in can be read, which mostly holds the frames; others by loads that cannot fault, or
// else by the kernel, each as a whole.
#pragma once

#include "abi/machine/unwind.h"
#include "runtime/load.h"
#include "runtime/state.h"

namespace clew::runtime {

// A walk, and what is kept between two of them.
struct WalkNotes {
  abi::MachineWalk& walk;
  uint64_t& known_version;
  abi::KnownRule* known;  // kKnownRules of them.
};

// Self is a Host of FrameVisitor, and has besides:
//     WalkNotes notes() const
//     bool read_by_page(uint64_t address, uint64_t& word) const   by the kernel
template <typename Self>
class TableWalk {
 public:
  explicit TableWalk(uint32_t session) : session_(session) {}

  // A walk that ends at unknown code notes nothing: it will be known.
  [[gnu::always_inline]] bool recall_rule(uint64_t code, uint64_t& rule) const {
    const abi::KnownRule& known = known_rule(code);
    rule = known.rule;
    return known.code == code;
  }
  [[gnu::always_inline]] void note_rule(uint64_t code, uint64_t rule) const {
    if (self().notes().walk.is_stale != 0) return;
    known_rule(code).rule = rule;
    known_rule(code).code = code;
  }
  // What no segment has is code that the tracer has not heard of yet; nothing is known of its
  // frames, so that the walk ends there.
  [[nodiscard, gnu::always_inline]] bool find_mapping(uint64_t) const {
    count(target_page().unknown_code[session_ % abi::kSessionsMax]);
    self().notes().walk.segment = {};
    return true;
  }
  [[gnu::noinline]] bool read(uint64_t address, uint64_t& word) const {
    if (address % kWordBytes != 0 || self().notes().walk.is_stale != 0) return false;
    if (page_of(address) == page_of(stack_pointer())) {
      word = *reinterpret_cast<const volatile uint64_t*>(address);
      return true;
    }
    if (const uint64_t place = load_for(address, kWordBytes)) {
      return load_word(place, address, word);
    }
    return self().read_by_page(address, word);
  }
  [[nodiscard, gnu::always_inline]] const abi::MachineUnwindSegment& segment(uint64_t index) const {
    return table<abi::MachineUnwindSegment>(
        abi::kUnwindSegmentsOffset)[index & (abi::kMachineUnwindSegments - 1)];
  }
  [[nodiscard, gnu::always_inline]] const abi::MachineUnwindRow& row(uint64_t index) const {
    return table<abi::MachineUnwindRow>(
        abi::kUnwindRowsOffset)[index < entry().unwind_rows ? index : 0];
  }
  [[nodiscard, gnu::always_inline]] const abi::MachineUnwindRule& rule(uint64_t index) const {
    return table<abi::MachineUnwindRule>(
        abi::kUnwindRulesOffset)[index & (abi::kMachineUnwindRules - 1)];
  }
  [[gnu::always_inline]] static uint64_t hidden_return(uint64_t) { return 0; }
  [[gnu::always_inline]] static uint64_t zero() { return 0; }

  // False when the session, or the tracer by now, knows nothing of the process.
  [[nodiscard]] bool begin() {
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
      if (self().notes().known_version != version_) forget_rules();
      self().notes().walk.first_segment = one.first_segment;
      self().notes().walk.segment_count = one.segment_count;
      return true;
    }
    return false;
  }
  // Whether the tables were the same all the time.
  [[nodiscard]] bool is_right() const {
    return !is_changing() && abi::load_word(process_->version) == version_;
  }
  [[nodiscard]] bool is_changing() const { return (version_ & 1) != 0; }

 protected:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t page_of(uint64_t address) { return address & ~(kPageBytes - 1); }
  [[nodiscard]] const abi::SessionEntry& entry() const { return session_entry(session_); }
  [[nodiscard]] uint32_t session() const { return session_; }

 private:
  [[nodiscard]] const Self& self() const { return static_cast<const Self&>(*this); }
  template <typename Row>
  [[nodiscard]] const Row* table(uint64_t offset) const {
    return reinterpret_cast<const Row*>(entry().unwind_tables + offset);
  }
  [[nodiscard]] abi::KnownRule& known_rule(uint64_t code) const {
    return self().notes().known[(code ^ code >> 7) & (abi::kKnownRules - 1)];
  }
  [[gnu::noinline]] void forget_rules() const {
    for (uint64_t i = 0; i < abi::kKnownRules; ++i)
      *const_cast<volatile uint64_t*>(&self().notes().known[i].code) = 0;
    self().notes().known_version = version_;
  }

  uint32_t session_;
  const abi::MachineUnwindProcess* process_ = nullptr;
  uint64_t version_ = 0;
};

}  // namespace clew::runtime
