// SPDX-License-Identifier: Apache-2.0
// How control may have come from a guard's record to the next one, over the activations of a walk's
// stack: on in the innermost one, by returns to those further out, or by an exception that lands in
// one of them. A way is what is in front of the next guard, so there are few; where there is more
// than one, nothing says which it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recorder/guarded_paths.h"
#include "recorder/walk.h"
#include "recorder/walk_stack.h"

namespace clew::recorder {

// From one place of an activation, until its next guard.
struct Outlook {
  Path next;               // To what comes next; or Misfit.
  bool calls_out = false;  // What is called may call back, or throw.
  bool returns = false;
};

// A way to what comes next, from the block behind the activation's call, or where that lands.
struct WayOn {
  size_t level = 0;  // In the stack.
  uint32_t from = kNone;
  bool lands = false;
  bool is_thrown_here = false;  // Out of the activation that was asked for, and of no other one.
};

struct FurtherOut {
  std::vector<WayOn> ways = {};
  bool calls_out = false;  // What comes next is an entry, and somebody may have called it.
  size_t last = 0;         // The outermost activation that was looked at.
};

class GuardedStack {
 public:
  // Borrows them.
  GuardedStack(std::span<const WalkedModule> modules, std::span<const Activation> stack,
               const KnownBehind& known)
      : modules_(modules), stack_(stack), known_(known) {}

  [[nodiscard]] Path between(size_t level, const GuardedStart& start, Ends ends) const;
  [[nodiscard]] Outlook outlook(size_t level, const GuardedStart& start) const;
  // From this activation, whose outlook that is.
  [[nodiscard]] FurtherOut further_out(size_t level, const Outlook& outlook) const;
  // To `found`: from where an exception lands that comes out of the call in progress.
  void add_landings(size_t level, FurtherOut& found) const;

 private:
  [[nodiscard]] const Paths& paths_of(const Activation& one) const {
    return modules_[one.module].paths->of(one.function);
  }
  [[nodiscard]] bool is_entry_next() const { return known_.next && known_.next->dag.is_entry; }
  // It is recorded by a copy: `call` is followed by a head, or nothing is known.
  void add_copied(size_t level, bool returns, FurtherOut& found) const;
  [[nodiscard]] bool goes_on_at(size_t level, uint32_t block) const;

  std::span<const WalkedModule> modules_;
  std::span<const Activation> stack_;
  const KnownBehind& known_;
};

}  // namespace clew::recorder
