// SPDX-License-Identifier: Apache-2.0
// Whether one pattern of names (target/pattern.h) is within another.
#pragma once

#include <string_view>

namespace clew::cluster {

// Whether all that `wanted` matches is matched by `allowed`, too. It may say no of patterns that
// only look different ("*?" and "?*"), never yes where a name is one of `wanted`'s alone. No, also
// where one of them is no pattern.
bool is_within(std::string_view wanted, std::string_view allowed);

}  // namespace clew::cluster
