// SPDX-License-Identifier: Apache-2.0
// A text of this program's own tables, without the spaces around it.
#pragma once

#include <string_view>

namespace clew::query::d {

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

}  // namespace clew::query::d
