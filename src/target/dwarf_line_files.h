// SPDX-License-Identifier: Apache-2.0
// The names of the source files that a unit's line table lists, read from its header alone (DWARF
// 5, section 6.2.4). libdw gives them only after decoding the whole table and keeping it, which for
// a large program takes seconds and gigabytes. Internal to target/.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace clew::target {

// The contents of the sections, decompressed; they must outlive every call.
struct LineSections {
  std::span<const uint8_t> line;         // .debug_line
  std::span<const uint8_t> line_string;  // .debug_line_str
  std::span<const uint8_t> string;       // .debug_str
};

// Calls `visit` with each file name (its last part only) of the table at `offset`, until it gives
// false. False when the header cannot be read, or has a form that this reader does not know: the
// caller must then assume that any file may be in it.
bool for_each_line_file(const LineSections& sections, uint64_t offset,
                        const std::function<bool(std::string_view)>& visit);

}  // namespace clew::target
