// SPDX-License-Identifier: Apache-2.0
// What a thread ran, as events, oldest first: blocks, lines, calls and returns, and where control
// came back without a return. All of it is read off a history (history.h): there is no second
// reconstruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "recorder/history.h"
#include "recorder/places.h"
#include "recorder/snap_modules.h"

namespace clew::recorder {

enum class EventKind : uint8_t {
  Block,      // A basic block.
  Line,       // A moment.
  Call,       // An activation begins. Code without records begins none.
  Return,     // The last block that is known of an activation returns; a tail call does not.
  Exception,  // Control is where an activation that was left behind goes on: a handler, or setjmp.
  Signal,     // The signal of the snap, at the thread that got it.
};

struct ThreadEvent {
  EventKind kind = EventKind::Block;
  uint8_t marks = 0;  // See walk.h.
  uint32_t place = 0;
  // The function itself, and not what was inlined where it begins: of calls and returns.
  bool is_of_activation = false;
  uint64_t address = 0;
  int32_t depth = 0;
  uint32_t order = 0;                // Of the block: 1 is the oldest one.
  std::optional<uint32_t> caller{};  // A place in it, where it is known: of calls and returns.
};

// A thread's, one after the other. Borrows all.
class ThreadEvents {
 public:
  struct Options {
    bool lines = true;  // Without them nothing is looked up for them.
    bool got_signal = false;
  };

  ThreadEvents(SnapModules& modules, Places& places, History& history, Options options);

  // Nothing behind the last one.
  std::optional<ThreadEvent> next();

 private:
  struct Activation {
    int32_t depth = 0;
    uint32_t place = 0;    // Of its last block: where it ends.
    uint64_t address = 0;  // The same.
    uint32_t order = 0;
    bool returns = false;  // That block does.
    std::optional<uint32_t> caller{};
  };

  void add_step();
  void add_end();
  void add_lines();
  void leave(int32_t depth);
  [[nodiscard]] bool returns(const Step& step);
  void add_return(const Activation& one);
  [[nodiscard]] std::optional<uint32_t> caller_at(int32_t depth) const;

  SnapModules& modules_;
  Places& places_;
  History& history_;
  Options options_;
  size_t step_ = 0;          // The next one.
  size_t moments_left_ = 0;  // At their end the next one is.
  std::vector<Activation> stack_;
  std::deque<ThreadEvent> ready_;
  bool is_at_end_ = false;
};

}  // namespace clew::recorder
