// SPDX-License-Identifier: Apache-2.0
// The words that set an option which is on or off.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace clew::query::d {

// Nothing when it is no such word. An option that is only named is on.
inline std::optional<bool> switch_word(std::string_view value) {
  constexpr std::array<std::string_view, 8> kOn = {"",     "1",   "on",     "yes",
                                                   "true", "set", "enable", "enabled"};
  constexpr std::array<std::string_view, 7> kOff = {"0",     "off",     "no",      "false",
                                                    "unset", "disable", "disabled"};
  if (std::find(kOn.begin(), kOn.end(), value) != kOn.end()) return true;
  if (std::find(kOff.begin(), kOff.end(), value) != kOff.end()) return false;
  return std::nullopt;
}

// Options with other values are on when they are there.
inline bool is_on(std::string_view value) {
  return switch_word(value).value_or(true);
}

}  // namespace clew::query::d
