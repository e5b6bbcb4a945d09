// SPDX-License-Identifier: Apache-2.0
#include "inline/later_uprobe.h"

#include <algorithm>
#include <iterator>

namespace clew::inline_ {
namespace {

uint64_t jump_end(const Window& window) {
  const bool is_short = window.window_class == WindowClass::ShortJump;
  return window.jump_address() + (is_short ? kShortJumpSizeBytes : kJumpSizeBytes);
}

// The kernel takes these where the instruction of the file leads, not to the byte behind it.
bool leads_away(Flow flow) {
  return flow == Flow::Jump || flow == Flow::IndirectJump || flow == Flow::Return;
}

}  // namespace

std::string_view name(LaterUprobe fate) {
  switch (fate) {
    case LaterUprobe::Safe:
      return "safe";
    case LaterUprobe::HidesProbe:
      return "hides-probe";
    case LaterUprobe::Dangerous:
      return "dangerous";
  }
  return "";
}

LaterUprobe later_uprobe(const ModuleCode& code, const Plan& plan, uint64_t function) {
  const std::optional<Instruction> first = code.at(function);
  if (!first) return LaterUprobe::Safe;
  // The last window that begins in the first instruction, or before.
  const auto after = std::lower_bound(
      plan.windows.begin(), plan.windows.end(), first->end(),
      [](const Window& window, uint64_t address) { return window.address < address; });
  if (after == plan.windows.begin()) return LaterUprobe::Safe;
  const Window& window = *std::prev(after);
  if (jump_end(window) <= function || window.jump_address() >= first->end()) {
    return LaterUprobe::Safe;
  }
  const bool goes_on_inside = first->end() < jump_end(window) && !leads_away(first->flow);
  return goes_on_inside ? LaterUprobe::Dangerous : LaterUprobe::HidesProbe;
}

}  // namespace clew::inline_
