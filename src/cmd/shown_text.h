// SPDX-License-Identifier: Apache-2.0
// How clew show writes places and marks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "recorder/show.h"

namespace clew::cmd {

// "sum.c:10"; without a line "sum+0x1160".
std::string place_text(const recorder::ShownLine& line);
// "-1.204 ms": relative to the moment of the snap.
std::string time_text(int64_t ns);
// " [gap]" and so on, or nothing. See recorder/walk.h.
std::string marks_text(uint8_t marks);

// Of a thread: " (the signal's)", " (ends the process)", or nothing.
std::string_view role_of(const recorder::Snap& snap, bool is_reason);

}  // namespace clew::cmd
