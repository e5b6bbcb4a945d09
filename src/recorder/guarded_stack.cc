// SPDX-License-Identifier: Apache-2.0
#include "recorder/guarded_stack.h"

#include <utility>

namespace clew::recorder {

namespace {

constexpr size_t kFurtherMax = 256;  // Activations that are looked through.

bool fits(const Path& path) {
  return path.end != PathEnd::Misfit;
}

}  // namespace

Path GuardedStack::between(size_t level, const GuardedStart& start, Ends ends) const {
  const Activation& one = stack_[level];
  return guarded_path(paths_of(one), start, known_.in(one.module), ends);
}

Outlook GuardedStack::outlook(size_t level, const GuardedStart& start) const {
  return {.next = between(level, start, Ends::Next),
          .calls_out = fits(between(level, start, Ends::Out)),
          .returns = fits(between(level, start, Ends::Return))};
}

FurtherOut GuardedStack::further_out(size_t level, const Outlook& outlook) const {
  FurtherOut found{.last = level};
  bool returns = outlook.returns;
  bool others_throw = false;
  for (size_t i = level; i > 0 && level - i < kFurtherMax; --i) {
    if (!returns && !outlook.calls_out && !others_throw) break;
    found.last = i - 1;
    const Activation& caller = stack_[i - 1];
    if (caller.call == kNone || !paths_of(caller).is_guarded()) {
      add_copied(i - 1, returns, found);
      break;
    }
    const size_t first = found.ways.size();
    if (outlook.calls_out || others_throw) add_landings(i - 1, found);
    for (size_t k = first; k < found.ways.size(); ++k)
      found.ways[k].is_thrown_here = outlook.calls_out && !others_throw;
    if (!returns) continue;
    const Node& node = paths_of(caller).flow().nodes()[caller.call];
    found.calls_out = found.calls_out || (node.call != CallKind::Copied && is_entry_next());
    others_throw = others_throw || node.call != CallKind::Copied;
    returns = false;
    if (node.behind == kNone) continue;
    const Outlook behind = this->outlook(i - 1, {.block = node.behind});
    if (fits(behind.next)) found.ways.push_back({.level = i - 1, .from = node.behind});
    found.calls_out = found.calls_out || (behind.calls_out && is_entry_next());
    others_throw = others_throw || behind.calls_out;
    returns = behind.returns;
  }
  // Who has called the outermost one is not known, nor where it lands there.
  const bool is_left = returns || outlook.calls_out || others_throw;
  found.calls_out = found.calls_out || (is_left && is_entry_next());
  return found;
}

// What lands has a guard of its own; so only what comes next has to be looked at.
void GuardedStack::add_landings(size_t level, FurtherOut& found) const {
  const Activation& one = stack_[level];
  if (one.call == kNone) return;
  if (!is_entry_next() && known_.next && !one.is_of(*known_.next)) return;
  const Flow& flow = paths_of(one).flow();
  for (const uint32_t block : landings_of(flow, flow.nodes()[one.call])) {
    if (fits(between(level, {.block = block}, Ends::Next)))
      found.ways.push_back({.level = level, .from = block, .lands = true});
  }
}

bool GuardedStack::goes_on_at(size_t level, uint32_t block) const {
  const Activation& one = stack_[level];
  if (!known_.next || !one.is_of(*known_.next) || block == kNone) return false;
  return paths_of(one).head_of(known_.next->dag.dag) == block;
}

void GuardedStack::add_copied(size_t level, bool returns, FurtherOut& found) const {
  const Activation& one = stack_[level];
  if (is_entry_next()) {
    found.calls_out = true;
    return;
  }
  const bool is_its = known_.next && one.is_of(*known_.next);
  const bool is_stopped = known_.stop && known_.stop->module == one.module;
  if (one.call == kNone || is_stopped) {
    if (is_its || (is_stopped && returns)) found.ways.push_back({.level = level});
    return;
  }
  const Flow& flow = paths_of(one).flow();
  const Node& node = flow.nodes()[one.call];
  if (returns && goes_on_at(level, node.behind))
    found.ways.push_back({.level = level, .from = node.behind});
  for (const uint32_t block : landings_of(flow, node)) {
    if (goes_on_at(level, block))
      found.ways.push_back({.level = level, .from = block, .lands = true});
  }
}

}  // namespace clew::recorder
