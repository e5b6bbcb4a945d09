// SPDX-License-Identifier: Apache-2.0
// Names of functions for people: what stands between < and > can fill several lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clew::recorder {

inline constexpr size_t kNameWidth = 60;  // Beyond it names are shortened.

// "std::map<...>::find(std::string)": the innermost arguments of templates are left out first, and
// no more of them than needed. A name can be longer all the same.
std::string short_name(std::string_view name, size_t width = kNameWidth);
// It is a name that was shortened.
bool is_short_name(std::string_view name);

}  // namespace clew::recorder
