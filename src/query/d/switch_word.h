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
  const auto is_same_letter = [](char a, char b) {
    return a == b || (b >= 'A' && b <= 'Z' && a == b - 'A' + 'a');
  };
  const auto is_value = [&](std::string_view word) {
    return std::equal(word.begin(), word.end(), value.begin(), value.end(), is_same_letter);
  };
  if (std::any_of(kOn.begin(), kOn.end(), is_value)) return true;
  if (std::any_of(kOff.begin(), kOff.end(), is_value)) return false;
  return std::nullopt;
}

// Options with other values are on when they are there.
inline bool is_on(std::string_view value) {
  return switch_word(value).value_or(true);
}

}  // namespace clew::query::d
