// SPDX-License-Identifier: Apache-2.0
#include "recorder/script_loops.h"

#include <algorithm>

namespace clew::recorder {

namespace {

bool is_of_function(SnapModules& modules, const Step& step, uint64_t address) {
  const ReadModule& module = modules.walked(step.module);
  const uint32_t function = module.recorded->proof().proved[step.function].function;
  const uint64_t begin = module.recorded->facts().code.functions()[function].address;
  return address != 0 && module.described->load_bias + begin == address;
}

bool begins_or_ends(SnapModules& modules, const Step& step) {
  const auto ways = modules.walked(step.module).paths->of(step.function).flow().ways_of(step.block);
  return step.is_entry || std::any_of(ways.begin(), ways.end(),
                                      [](const Way& way) { return way.kind == WayKind::Return; });
}

constexpr size_t kNotThere = SIZE_MAX;

// Behind the call that the loop was called for, of those from `begin` on.
size_t end_of_loop(const ScriptStack& script, size_t begin) {
  const auto first =
      std::find_if(script.calls.begin() + static_cast<ptrdiff_t>(begin), script.calls.end(),
                   [](const ScriptCall& call) { return call.is_loops_first; });
  return first == script.calls.end() ? kNotThere
                                     : static_cast<size_t>(first - script.calls.begin()) + 1;
}

}  // namespace

const ScriptStack* script_of(const Scripts& scripts, int32_t thread) {
  const auto is_its = [thread](const ScriptStack& one) { return one.thread == thread; };
  const auto& stacks = scripts.stacks;
  const auto first = std::find_if(stacks.begin(), stacks.end(), is_its);
  if (first == stacks.end() || std::any_of(first + 1, stacks.end(), is_its)) return nullptr;
  return &*first;
}

std::vector<ScriptLoop> script_loops(SnapModules& modules, const Walk& walk, const Snap& snap,
                                     const SnapThread& thread) {
  std::vector<ScriptLoop> loops;
  const ScriptStack* const script = script_of(snap.scripts, thread.thread);
  if (script == nullptr || walk.end != PathEnd::Stopped || walk.steps.empty()) return loops;
  const uint64_t loop = snap.scripts.interpreters[script->interpreter].loop;
  const Step& last = walk.steps.back();
  if (is_of_function(modules, last, loop) && begins_or_ends(modules, last)) return loops;
  size_t done = 0;
  int32_t depth = INT32_MAX;
  for (size_t i = walk.steps.size(); i-- > 0 && done < script->calls.size();) {
    const Step& step = walk.steps[i];
    const bool is_in_progress = step.depth < depth;
    depth = std::min(depth, step.depth);
    if (is_in_progress && is_of_function(modules, step, loop)) {
      const size_t end = end_of_loop(*script, done);
      if (end == kNotThere) break;
      loops.push_back({.step = i, .begin = done, .end = end});
      done = end;
    }
    if ((step.marks & kMissing) != 0) break;
  }
  return loops;
}

}  // namespace clew::recorder
