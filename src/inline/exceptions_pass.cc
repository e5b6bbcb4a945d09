// SPDX-License-Identifier: Apache-2.0
#include "inline/exceptions_pass.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "target/frame_tables.h"
#include "target/linked_names.h"

namespace clew::inline_ {

bool exceptions_pass(const std::string& path) {
  constexpr std::array<std::string_view, 3> kThrowing = {"__cxa_throw", "_Unwind_Resume",
                                                         "_Unwind_RaiseException"};
  const auto names = target::read_linked_names(path);
  const auto tables = target::read_frame_tables(path);
  if (!names || !tables) return true;
  const bool throws = std::any_of(
      names->imports.begin(), names->imports.end(), [&](const target::ImportSlot& slot) {
        return std::find(kThrowing.begin(), kThrowing.end(), slot.symbol) != kThrowing.end();
      });
  return throws || std::any_of(tables->entries.begin(), tables->entries.end(),
                               [](const target::FrameEntry& entry) {
                                 return entry.exceptions != target::kNoExceptionTable;
                               });
}

}  // namespace clew::inline_
