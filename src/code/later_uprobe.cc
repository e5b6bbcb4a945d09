// SPDX-License-Identifier: Apache-2.0
#include "code/later_uprobe.h"

#include <algorithm>
#include <iterator>

namespace clew::code {
namespace {

uint64_t jump_end(const Window& window) {
  const bool is_short = window.window_class == WindowClass::ShortJump;
  return window.jump_address() + (is_short ? kShortJumpSizeBytes : kJumpSizeBytes);
}

// Of an instruction that the kernel takes to where the file's leads, not to the byte behind it: is
// what stands there when the uprobe has left as good as our jump or as the file's instruction?
bool outlasts(const ModuleCode& code, const Instruction& first, const Window& window) {
  constexpr uint8_t kJump = 0xe9;
  constexpr uint8_t kShortJump = 0xeb;
  const uint8_t byte = code.text_from(first.address)[0];
  const bool is_short = window.window_class == WindowClass::ShortJump;
  if (first.flow == Flow::Jump) return byte == (is_short ? kShortJump : kJump);
  return first.flow == Flow::Return && first.length == 1;
}

}  // namespace

std::string_view name(LaterUprobe fate) {
  switch (fate) {
    case LaterUprobe::Safe:
      return "safe";
    case LaterUprobe::HidesProbe:
      return "hides-probe";
    case LaterUprobe::HidesValues:
      return "hides-values";
    case LaterUprobe::Dangerous:
      return "dangerous";
  }
  return "";
}

LaterUprobe later_uprobe(const ModuleCode& code, std::span<const Window> windows,
                         uint64_t function) {
  const std::optional<Instruction> first = code.at(function);
  if (!first) return LaterUprobe::Safe;
  // The last window that begins in the first instruction, or before.
  const auto after = std::lower_bound(
      windows.begin(), windows.end(), first->end(),
      [](const Window& window, uint64_t address) { return window.address < address; });
  if (after == windows.begin()) return LaterUprobe::Safe;
  const Window& window = *std::prev(after);
  const bool is_both = window.window_class == WindowClass::BothWays;
  if (is_both && window.address == function) return LaterUprobe::HidesValues;
  if (jump_end(window) <= function || (!is_both && window.jump_address() >= first->end())) {
    return LaterUprobe::Safe;
  }
  return outlasts(code, *first, window) ? LaterUprobe::HidesProbe : LaterUprobe::Dangerous;
}

}  // namespace clew::code
