// SPDX-License-Identifier: Apache-2.0
// How clew show writes places and marks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "recorder/show.h"

namespace clew::cmd {

// "sum.c:10"; without a line "sum+0x1160".
std::string place_text(const recorder::ShownLine& line);
// Of the moments of spans that are shown behind each other: between those of one span, and of two
// whose order is known. A thread's stamps are some 10 ns apart at least.
std::optional<int64_t> least_gap(std::span<const recorder::SpanNs> spans);
// "-1.204 ms": relative to the moment of the snap. With more digits where it takes them to tell
// moments apart that have such a gap between them.
std::string time_text(int64_t ns, std::optional<int64_t> gap_ns);
// "app.py:12"; without a line "app.py".
std::string place_text(const recorder::ShownScriptCall& call);
// " [gap]" and so on, or nothing. See recorder/walk.h.
std::string marks_text(uint8_t marks);

// Of a thread: " (the signal's)", " (ends the process)", or nothing.
std::string_view role_of(const recorder::Snap& snap, bool is_reason);

}  // namespace clew::cmd
