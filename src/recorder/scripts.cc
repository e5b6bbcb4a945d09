// SPDX-License-Identifier: Apache-2.0
#include "recorder/scripts.h"

#include <algorithm>

namespace clew::recorder {

// Those of ASCII and, two bytes in UTF-8, of Latin-1.
bool is_plain_text(std::string_view text) {
  constexpr unsigned char kDelete = 0x7f;
  constexpr unsigned char kFirstOfLatin1 = 0xc2;
  constexpr unsigned char kControlsEnd = 0xa0;
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == kDelete) return false;
    if (before == kFirstOfLatin1 && byte < kControlsEnd) return false;
    before = byte;
  }
  return true;
}

bool is_sound(const Scripts& scripts) {
  const bool are_plain =
      std::all_of(
          scripts.interpreters.begin(), scripts.interpreters.end(),
          [](const auto& one) { return is_plain_text(one.name) && is_plain_text(one.problem); }) &&
      std::all_of(scripts.functions.begin(), scripts.functions.end(), [](const auto& one) {
        return is_plain_text(one.name) && is_plain_text(one.file);
      });
  return are_plain &&
         std::all_of(scripts.stacks.begin(), scripts.stacks.end(), [&](const ScriptStack& stack) {
           return stack.interpreter < scripts.interpreters.size() &&
                  std::all_of(stack.calls.begin(), stack.calls.end(), [&](const ScriptCall& call) {
                    return call.function < scripts.functions.size();
                  });
         });
}

}  // namespace clew::recorder
