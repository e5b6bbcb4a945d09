// SPDX-License-Identifier: Apache-2.0
#include "code/lost_jumps.h"

#include <array>

#include "code/instruction_start.h"

namespace clew::code {

bool can_be_found(const ModuleCode& code, const Window& window) {
  constexpr std::array<size_t, 1> kSectionBegin = {0};
  const auto is_place = [&](uint64_t address, size_t size_bytes) {
    const Section text = code.text_section(address);
    return can_be_patched(text.bytes, address - text.address, size_bytes, kSectionBegin);
  };
  switch (window.window_class) {
    case WindowClass::ShortJump:
      return is_place(window.jump_address(), kShortJumpSizeBytes) &&
             is_place(window.hop_address, kJumpSizeBytes);
    case WindowClass::BothWays:
      return is_place(window.address, kBothWaysSizeBytes);
    case WindowClass::OwnBytes:
    case WindowClass::OwnBytesAndPadding:
      break;
  }
  return is_place(window.jump_address(), kJumpSizeBytes);
}

}  // namespace clew::code
