// SPDX-License-Identifier: Apache-2.0
// A key as a table has it -> as it is printed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "query/d/record.h"

namespace clew::output::d {

// `name_at`: the text of a probe's name by its place. What `stored` is too short for is zero.
std::vector<uint8_t> whole_key(const query::d::KeyLayout& layout, std::span<const uint8_t> stored,
                               const std::function<std::string_view(uint64_t)>& name_at);

}  // namespace clew::output::d
